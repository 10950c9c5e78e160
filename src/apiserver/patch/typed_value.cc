// SPDX-License-Identifier: Apache-2.0
//
// Checking an intent, naming its fields, and taking fields out. Merging is in merge_values.cc.
#include "apiserver/patch/typed_value.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/patch/item_index.h"

namespace jogak::patch {
namespace {

using Form = TypeView::Form;

// The members of an object by name.
std::vector<const Doc::Member*> sorted_members(const Doc& object) {
  std::vector<const Doc::Member*> members;
  members.reserve(object.size());
  for (const Doc::Member& member : object.members()) members.push_back(&member);
  std::ranges::sort(members, {},
                    [](const Doc::Member* member) -> const std::string& { return member->key; });
  return members;
}

std::string_view go_type(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null:
      return "<nil>";
    case Doc::Kind::Bool:
      return "bool";
    case Doc::Kind::Int:
      return "int64";
    case Doc::Kind::Number:
      return "float64";
    case Doc::Kind::String:
      return "string";
    case Doc::Kind::Array:
      return "[]interface {}";
    case Doc::Kind::Object:
      return "map[string]interface {}";
  }
  return "";
}

class Checker {
 public:
  explicit Checker(Repeats repeats) : repeats_(repeats) {}

  void check(const Doc& value, const TypeView& type, const std::string& path);
  std::string text() const;

 private:
  void add(const std::string& path, std::string_view message) {
    problems_.push_back(path.empty() ? std::string(message) : fmt::format("{}: {}", path, message));
  }
  void check_scalar(const Doc& value, TypeView::Scalar scalar, const std::string& path);
  void check_list(const Doc& value, const TypeView& type, const std::string& path);
  void check_map(const Doc& value, const TypeView& type, const std::string& path);

  Repeats repeats_;
  std::vector<std::string> problems_;
};

void Checker::check_scalar(const Doc& value, TypeView::Scalar scalar, const std::string& path) {
  if (value.is_null()) return;
  const std::string_view got = go_type(value);
  if (scalar == TypeView::Scalar::Numeric && !value.is_number()) {
    add(path, fmt::format("expected numeric (int or float), got {}", got));
  } else if (scalar == TypeView::Scalar::String && !value.is_string()) {
    add(path, fmt::format("expected string, got {}", got));
  } else if (scalar == TypeView::Scalar::Boolean && !value.is_bool()) {
    add(path, fmt::format("expected boolean, got {}", got));
  } else if (value.is_array() || value.is_object()) {
    add(path, fmt::format("expected any scalar, got {}", got));
  }
}

void Checker::check_list(const Doc& value, const TypeView& type, const std::string& path) {
  if (value.is_null()) return;
  if (!value.is_array()) {
    add(path, fmt::format("expected list, got {}", go_type(value)));
    return;
  }
  const TypeView item = type.item();
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Doc& child = value.items()[i];
    std::string element = fmt::format("i:{}", i);
    if (!type.is_atomic_list()) {
      std::string why;
      auto found = type.item_element(child, &why);
      if (!found) {
        add(path, fmt::format("element {}: {}", i, why));
        return;
      }
      element = std::move(*found);
      if (!seen.insert(element).second && repeats_ == Repeats::Refused) {
        add(path, fmt::format("duplicate entries for key {}", element_text(element)));
      }
    }
    check(child, item, path + element_text(element));
  }
}

void Checker::check_map(const Doc& value, const TypeView& type, const std::string& path) {
  if (value.is_null()) return;
  if (!value.is_object()) {
    add(path, fmt::format("expected map, got {}", go_type(value)));
    return;
  }
  for (const auto& [key, inner] : value.members()) {
    const auto member = type.member(key);
    if (!member) {
      add(fmt::format("{}.{}", path, key), "field not declared in schema");
      return;
    }
    check(inner, *member, fmt::format("{}.{}", path, key));
  }
}

void Checker::check(const Doc& value, const TypeView& type, const std::string& path) {
  switch (type.form_for(&value)) {
    case Form::Map:
      return check_map(value, type, path);
    case Form::Scalar:
      return check_scalar(value, type.scalar(), path);
    case Form::List:
      return check_list(value, type, path);
  }
}

std::string Checker::text() const {
  if (problems_.empty()) return "";
  if (problems_.size() == 1) return problems_.front();
  std::string text = "errors:";
  for (const std::string& problem : problems_) text += "\n  " + problem;
  return text;
}

// A node of the set while it grows.
struct Node {
  bool is_in_set = false;
  Doc::Members children;

  void add(std::string element, Node child) {
    if (!child.is_in_set && child.children.empty()) return;
    children.push_back({.key = std::move(element),
                        .value = make_node(child.is_in_set, std::move(child.children))});
  }
};

void name_fields(const Doc& value, const TypeView& type, Node& out);

void name_members(const Doc& value, const TypeView& type, Node& out) {
  for (const Doc::Member* member : sorted_members(value)) {
    Node child;
    const auto inner = type.member(member->key);
    name_fields(member->value, inner ? *inner : TypeView::deduced(), child);
    const bool is_empty_map = member->value.is_object() && member->value.empty();
    if (member->value.is_null() || is_empty_map || !type.names_member(member->key)) {
      child.is_in_set = true;
    }
    out.add(field_element(member->key), std::move(child));
  }
}

void name_items(const Doc& value, const TypeView& type, Node& out) {
  const ItemIndex index(value.items(), type);
  std::vector<const ItemIndex::Entry*> entries;
  for (const ItemIndex::Entry& entry : index.entries()) entries.push_back(&entry);
  std::ranges::sort(entries, [](const ItemIndex::Entry* a, const ItemIndex::Entry* b) {
    return compare_elements(a->element, b->element) < 0;
  });
  const TypeView item = type.item();
  for (const ItemIndex::Entry* entry : entries) {
    Node child;
    if (!entry->is_repeated()) name_fields(*entry->item, item, child);
    child.is_in_set = true;
    out.add(entry->element, std::move(child));
  }
}

void name_fields(const Doc& value, const TypeView& type, Node& out) {
  switch (type.form_for(&value)) {
    case Form::Scalar:
      out.is_in_set = true;
      return;
    case Form::Map:
      if (type.is_atomic_map()) {
        out.is_in_set = true;
      } else {
        name_members(value, type, out);
      }
      return;
    case Form::List:
      if (type.is_atomic_list()) {
        out.is_in_set = true;
      } else {
        name_items(value, type, out);
      }
      return;
  }
}

const FieldSet* node_at(const FieldSet& set, std::string_view element) { return set.find(element); }

Doc remove_members(const Doc& value, const FieldSet& set, const TypeView& type) {
  Doc out;
  for (const auto& [key, inner] : value.members()) {
    const FieldSet* node = node_at(set, field_element(key));
    if (node != nullptr && is_member(*node)) continue;
    if (node == nullptr || children_of(*node).empty()) {
      out.set(key, inner);
      continue;
    }
    const auto member = type.member(key);
    out.set(key, remove_fields(inner, *node, member ? *member : TypeView::deduced()));
  }
  return out;
}

Doc remove_items(const Doc& value, const FieldSet& set, const TypeView& type) {
  Doc out;
  const TypeView item = type.item();
  for (const Doc& child : value.items()) {
    const auto element = type.item_element(child);
    const FieldSet* node = element ? node_at(set, *element) : nullptr;
    if (node != nullptr && is_member(*node)) continue;
    out.push(node == nullptr ? child : remove_fields(child, *node, item));
  }
  return out;
}

// Whether this node has children where its type is one value now.
bool has_become_atomic(const FieldSet& node, const TypeView& type) {
  if (children_of(node).empty()) return false;
  switch (type.form_for(nullptr)) {
    case Form::Map:
      return type.is_atomic_map() && !type.is_free_form();
    case Form::List:
      return type.is_atomic_list();
    case Form::Scalar:
      return false;
  }
  return false;
}

std::optional<TypeView> type_below(const TypeView& type, std::string_view element) {
  switch (type.form_for(nullptr)) {
    case Form::Map:
      return type.member(element.starts_with("f:") ? element.substr(2) : "");
    case Form::List:
      return type.item();
    case Form::Scalar:
      return std::nullopt;
  }
  return std::nullopt;
}

FieldSet name_below(const FieldSet& set, const std::optional<TypeView>& type) {
  Doc::Members out;
  for (const auto& [key, node] : children_of(set)) {
    bool is_in_set = is_member(node);
    std::optional<TypeView> inner;
    if (type && key.starts_with("f:") && type->has_map()) {
      const std::string_view name = std::string_view(key).substr(2);
      is_in_set = is_in_set || type->names_member(name);
      inner = type->member(name);
    } else if (type && key.starts_with("k:") && type->has_list()) {
      inner = type->item();
    }
    FieldSet below = name_below(node, inner);
    if (!is_in_set && below.empty()) continue;
    out.push_back({.key = key, .value = make_node(is_in_set, std::move(below.members()))});
  }
  return make_root(std::move(out));
}

}  // namespace

std::string type_problem(const Doc& value, const TypeView& type, Repeats repeats) {
  Checker checker(repeats);
  checker.check(value, type, "");
  return checker.text();
}

FieldSet named_fields(const Doc& value, const TypeView& type) {
  Node root;
  name_fields(value, type, root);
  return make_root(std::move(root.children));
}

Doc remove_fields(const Doc& value, const FieldSet& set, const TypeView& type) {
  switch (type.form_for(&value)) {
    case Form::Scalar:
      return value;
    case Form::Map:
      return value.is_object() && !type.is_atomic_map() ? remove_members(value, set, type) : Doc();
    case Form::List:
      return value.is_array() && !type.is_atomic_list() ? remove_items(value, set, type) : Doc();
  }
  return {};
}

FieldSet fit_to_type(const FieldSet& set, const TypeView& type) {
  Doc::Members out;
  for (const auto& [key, node] : children_of(set)) {
    const auto inner = type_below(type, key);
    if (inner && has_become_atomic(node, *inner)) {
      out.push_back({.key = key, .value = Doc::object()});
    } else if (!inner || inner->is_free_form()) {
      out.push_back({.key = key, .value = node});
    } else {
      FieldSet below = fit_to_type(node, *inner);
      out.push_back({.key = key, .value = make_node(is_member(node), std::move(below.members()))});
    }
  }
  return make_root(std::move(out));
}

FieldSet with_named_members(const FieldSet& set, const TypeView& type) {
  return name_below(set, type);
}

}  // namespace jogak::patch
