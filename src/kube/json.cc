// SPDX-License-Identifier: Apache-2.0
// Lookups in simdjson's tree and the path to what was wrong, built only when something is.
#include "kube/json.h"

#include <algorithm>

#include <fmt/format.h>

namespace jogak::kube {

namespace {

std::string_view type_name(simdjson::dom::element_type type) {
  using simdjson::dom::element_type;
  switch (type) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      return "a number";
  }
  return "something else";
}

bool is_plain_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

}  // namespace

Json Json::child(std::string_view key, std::uint32_t index, bool is_item,
                 simdjson::dom::element element) const {
  Json result;
  result.context_ = context_;
  result.element_ = element;
  result.frame_ = static_cast<std::uint32_t>(context_->frames_.size());
  result.present_ = true;
  context_->frames_.push_back({.parent = frame_, .index = index, .key = key, .is_item = is_item});
  return result;
}

Json Json::operator[](std::string_view key) const {
  simdjson::dom::element element;
  simdjson::dom::object object;
  const bool found = fields(object) && object.at_key(key).get(element) == simdjson::SUCCESS;
  // An absent value keeps its place too, so that "is required" can name it.
  Json result = child(key, 0, false, element);
  result.present_ = found && !element.is_null();
  return result;
}

bool Json::list(simdjson::dom::array& out) const {
  if (!present_) return false;
  if (element_.get_array().get(out) == simdjson::SUCCESS) return true;
  complain_type("a list");
  return false;
}

bool Json::fields(simdjson::dom::object& out) const {
  if (!present_) return false;
  if (element_.get_object().get(out) == simdjson::SUCCESS) return true;
  complain_type("an object");
  return false;
}

std::string_view Json::view() const {
  std::string_view result;
  if (present_ && element_.get_string().get(result) != simdjson::SUCCESS) {
    complain_type("a string");
    return {};
  }
  return result;
}

std::int64_t Json::integer(std::int64_t min, std::int64_t max) const {
  if (!present_) return 0;
  std::int64_t result = 0;
  if (element_.get_int64().get(result) != simdjson::SUCCESS) {
    if (element_.is_number()) {
      complain(fmt::format("want a whole number between {} and {}", min, max));
    } else {
      complain_type("a whole number");
    }
    return 0;
  }
  if (result < min || result > max) {
    complain(fmt::format("{} is out of range; want {} to {}", result, min, max));
    return 0;
  }
  return result;
}

bool Json::flag() const {
  bool result = false;
  if (present_ && element_.get_bool().get(result) != simdjson::SUCCESS) {
    complain_type("true or false");
    return false;
  }
  return result;
}

std::string Json::number_text() const {
  if (!present_) return {};
  std::int64_t whole = 0;
  if (element_.get_int64().get(whole) == simdjson::SUCCESS) return fmt::to_string(whole);
  double number = 0;
  if (element_.get_double().get(number) == simdjson::SUCCESS) return fmt::to_string(number);
  return text();
}

void Json::complain_type(std::string_view wanted) const {
  complain(fmt::format("want {}, found {}", wanted, type_name(element_.type())));
}

void Json::complain(std::string_view problem) const {
  if (!context_->problem_.empty()) return;
  const std::string where = path();
  context_->problem_ = where.empty() ? std::string(problem) : fmt::format("{}: {}", where, problem);
}

std::string Json::path() const {
  std::string result;
  for (std::uint32_t frame = frame_; frame != 0;) {
    const JsonContext::Frame& at = context_->frames_[frame];
    std::string step = at.is_item             ? fmt::format("[{}]", at.index)
                       : is_plain_key(at.key) ? fmt::format(".{}", at.key)
                                              : fmt::format("[\"{}\"]", at.key);
    result.insert(0, step);
    frame = at.parent;
  }
  return result.starts_with('.') ? result.substr(1) : result;
}

}  // namespace jogak::kube
