// SPDX-License-Identifier: Apache-2.0
//
// Which rules run on what, and what a broken one says (apiextensions-apiserver
// pkg/apiserver/schema/cel/validation.go).
#include "apiserver/crd/rule_check.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/json_schema.h"

namespace jogak::api {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::string rule_text(const Doc& rule) {
  const std::string message = trimmed(rule["message"].as_string());
  if (!message.empty()) return message;
  return "failed rule: " + trimmed(rule["rule"].as_string());
}

// ".spec.x" below the place of the rule.
Path place_of(const Doc& rule, const Path& at) {
  std::string_view field = rule["fieldPath"].as_string();
  if (field.starts_with('.')) field.remove_prefix(1);
  return field.empty() ? at : at.child(field);
}

Path nil_if_empty(const Path& at) { return at.text().empty() ? Path("<nil>") : at; }

}  // namespace

bool Rules::has_any(const Doc& schema) {
  if (!schema.is_object()) return false;
  if (!schema["x-kubernetes-validations"].empty()) return true;
  if (has_any(schema["items"]) || has_any(schema["additionalProperties"])) return true;
  const auto& members = schema["properties"].members();
  return std::any_of(members.begin(), members.end(),
                     [](const Doc::Member& member) { return has_any(member.value); });
}

Rules::Rules(const Doc& schema) : schema_(schema) { collect(schema); }

void Rules::collect(const Doc& schema) {
  if (!has_any(schema)) return;
  std::vector<Rule>& rules = rules_[&schema];
  for (const Doc& source : schema["x-kubernetes-validations"].items()) {
    auto expression = cel::Expression::parse(source["rule"].as_string());
    if (!expression || !expression->is_supported()) continue;
    // An optional oldSelf is a value of another type, which cel.h leaves out.
    if (source["optionalOldSelf"].as_bool()) continue;
    Rule rule{.expression = *expression,
              .message_expression = std::nullopt,
              .source = &source,
              .is_transition = expression->uses("oldSelf")};
    const std::string& message = source["messageExpression"].as_string();
    if (auto text = cel::Expression::parse(message); !message.empty() && text) {
      if (text->is_supported()) rule.message_expression = *std::move(text);
    }
    rules.push_back(std::move(rule));
  }
  if (const Doc* items = items_schema(schema)) collect(*items);
  if (const Doc* additional = additional_schema(schema)) collect(*additional);
  for (const auto& member : schema["properties"].members()) collect(member.value);
}

void Rules::check(const Doc& value, const Doc* old, FieldErrors& errors) const {
  check_at(value, old, schema_, Path(), errors);
}

void Rules::check_at(const Doc& value, const Doc* old, const Doc& schema, const Path& at,
                     FieldErrors& errors) const {
  const auto found = rules_.find(&schema);
  if (found == rules_.end() || value.is_null()) return;
  for (const Rule& rule : found->second) check_rule(rule, value, old, schema, at, errors);
  if (value.is_array()) {
    const Doc* items = items_schema(schema);
    for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
      const Doc& item = value.items()[i];
      check_at(item, correlated_item(schema, item, old), *items, at.index(i), errors);
    }
    return;
  }
  for (const auto& [key, member] : value.members()) {
    const Doc* property = schema["properties"].find(key);
    const Doc* inner = property != nullptr ? property : additional_schema(schema);
    if (inner == nullptr) continue;
    check_at(member, old == nullptr ? nullptr : old->find(key), *inner,
             property != nullptr ? at.child(key) : at.key(key), errors);
  }
}

void Rules::check_rule(const Rule& rule, const Doc& value, const Doc* old, const Doc& schema,
                       const Path& at, FieldErrors& errors) const {
  if (rule.is_transition && (old == nullptr || old->is_null())) return;
  std::vector<cel::Expression::Variable> variables = {{"self", &value}};
  if (old != nullptr) variables.push_back({"oldSelf", old});
  const Path place = nil_if_empty(place_of(*rule.source, at));
  const std::string& type = schema["type"].as_string();
  const auto result = rule.expression.evaluate(variables);
  if (!result) {
    errors.invalid(
        nil_if_empty(at), type,
        fmt::format("{} evaluating rule: {}", result.error().what, rule_text(*rule.source)));
    return;
  }
  if (result->as_bool()) return;
  if (!rule.is_transition && old != nullptr && *old == value) return;
  std::string detail = rule_text(*rule.source);
  if (rule.message_expression) {
    const auto message = rule.message_expression->evaluate(variables);
    if (message && !trimmed(message->as_string()).empty()) detail = message->as_string();
  }
  const std::string& reason = (*rule.source)["reason"].as_string();
  const bool hides_value = type == "object" || type == "array";
  if (reason == "FieldValueForbidden") {
    errors.forbidden(place, detail);
  } else if (reason == "FieldValueRequired") {
    errors.required(place, detail);
  } else if (hides_value) {
    const bool is_double = reason == "FieldValueDuplicate";
    const FieldErrorType kind = is_double ? FieldErrorType::Duplicate : FieldErrorType::Invalid;
    errors.add({.type = kind,
                .field = place.text(),
                .message = is_double ? "Duplicate value" : "Invalid value: " + detail});
  } else if (reason == "FieldValueDuplicate") {
    errors.duplicate(place, value);
  } else {
    errors.invalid(place, value, detail);
  }
}

}  // namespace jogak::api
