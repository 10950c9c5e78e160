// SPDX-License-Identifier: Apache-2.0
//
// Doc as JSON and as YAML.
#include "base/doc.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace jogak {

namespace {

constexpr std::size_t kIndent = 2;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_plain_char(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') ||
         std::string_view("_-./@+=()%, ").find(c) != std::string_view::npos;
}

// Words that some YAML reader takes for a bool or null.
bool is_reserved_word(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"true", "false", "null", "yes", "no",
                                                             "on",   "off",   "y",    "n"};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::ranges::find(kWords, lower) != kWords.end();
}

// Whether every YAML reader takes the bare text for this very string. Narrower than YAML's own
// rule: a letter or '/' in front, and no character that means anything.
bool is_plain(std::string_view text) {
  if (text.empty() || text.back() == ' ') return false;
  if (!is_letter(text.front()) && text.front() != '/') return false;
  return std::ranges::all_of(text, is_plain_char) && !is_reserved_word(text);
}

std::string yaml_string(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

}  // namespace

Doc Doc::object() {
  Doc doc;
  doc.value_.emplace<Members>();
  return doc;
}

Doc Doc::array() { return array(Items()); }

Doc Doc::array(Items items) {
  Doc doc;
  doc.value_ = std::move(items);
  return doc;
}

Doc Doc::decimal(double value, int places) { return number(fixed_decimal(value, places)); }

Doc Doc::decimal(std::int64_t unscaled, int places) {
  return number(fixed_decimal(unscaled, places));
}

Doc Doc::number(std::string digits) {
  Doc doc;
  doc.value_ = Digits{std::move(digits)};
  return doc;
}

Doc Doc::strings(const std::vector<std::string>& items) {
  Doc doc = array();
  for (const std::string& item : items) doc.push(item);
  return doc;
}

std::size_t Doc::size() const {
  if (const auto* items = std::get_if<Items>(&value_)) return items->size();
  if (const auto* members = std::get_if<Members>(&value_)) return members->size();
  return 0;
}

bool Doc::as_bool(bool fallback) const {
  const bool* flag = std::get_if<bool>(&value_);
  return flag == nullptr ? fallback : *flag;
}

std::int64_t Doc::as_int(std::int64_t fallback) const {
  const std::int64_t* number = std::get_if<std::int64_t>(&value_);
  return number == nullptr ? fallback : *number;
}

const std::string& Doc::as_string() const {
  static const std::string kEmpty;
  const std::string* text = std::get_if<std::string>(&value_);
  return text == nullptr ? kEmpty : *text;
}

std::string Doc::number_text() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return std::to_string(*number);
  if (const auto* digits = std::get_if<Digits>(&value_)) return digits->text;
  return "";
}

const Doc::Items& Doc::items() const {
  static const Items kNone;
  const Items* items = std::get_if<Items>(&value_);
  return items == nullptr ? kNone : *items;
}

Doc::Items& Doc::items() {
  JOGAK_CHECK(is_array());
  return std::get<Items>(value_);
}

const Doc::Members& Doc::members() const {
  static const Members kNone;
  const Members* members = std::get_if<Members>(&value_);
  return members == nullptr ? kNone : *members;
}

Doc::Members& Doc::members() {
  JOGAK_CHECK(is_object());
  return std::get<Members>(value_);
}

const Doc* Doc::find(std::string_view key) const {
  const Members* members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  const auto it = std::ranges::find(*members, key, &Member::key);
  return it == members->end() ? nullptr : &it->value;
}

Doc* Doc::find(std::string_view key) {
  return const_cast<Doc*>(std::as_const(*this).find(key));  // NOLINT(*-const-cast): same object
}

const Doc& Doc::operator[](std::string_view key) const {
  static const Doc kNull;
  const Doc* member = find(key);
  return member == nullptr ? kNull : *member;
}

Doc& Doc::at(std::string_view key) {
  if (Doc* member = find(key)) return *member;
  if (is_null()) value_.emplace<Members>();
  JOGAK_CHECK(is_object(), "key {} in what is not an object", key);
  return std::get<Members>(value_).emplace_back(std::string(key), Doc()).value;
}

Doc& Doc::set(std::string_view key, Doc value) {
  at(key) = std::move(value);
  return *this;
}

Doc& Doc::set_default(std::string_view key, Doc value) {
  Doc& member = at(key);
  if (member.is_null()) member = std::move(value);
  return *this;
}

bool Doc::erase(std::string_view key) {
  if (!is_object()) return false;
  Members& list = members();
  const auto it = std::ranges::find(list, key, &Member::key);
  if (it == list.end()) return false;
  list.erase(it);
  return true;
}

Doc& Doc::push(Doc value) {
  if (is_null()) value_.emplace<Items>();
  JOGAK_CHECK(is_array());
  std::get<Items>(value_).push_back(std::move(value));
  return *this;
}

bool operator==(const Doc& a, const Doc& b) {
  if (a.kind() != b.kind()) return false;
  if (!a.is_object()) return a.value_ == b.value_;
  if (a.size() != b.size()) return false;
  const Doc::Members& left = a.members();
  const Doc::Members& right = b.members();
  for (std::size_t i = 0; i < left.size(); ++i) {  // mostly in the same order: look there first
    const Doc* other = right[i].key == left[i].key ? &right[i].value : b.find(left[i].key);
    if (other == nullptr || !(left[i].value == *other)) return false;
  }
  return true;
}

std::string Doc::json(JsonWriter::Style style) const {
  JsonWriter writer(style);
  write(writer);
  return writer.take();
}

void Doc::append_json(std::string& out) const {
  switch (kind()) {
    case Kind::Null:
      out += "null";
      break;
    case Kind::Bool:
      out += as_bool() ? "true" : "false";
      break;
    case Kind::Int:
    case Kind::Number:
      out += number_text();
      break;
    case Kind::String:
      append_json_string(out, as_string());
      break;
    case Kind::Array: {
      char separator = '[';
      for (const Doc& item : items()) {
        out += separator;
        separator = ',';
        item.append_json(out);
      }
      out += empty() ? "[]" : "]";
      break;
    }
    case Kind::Object: {
      char separator = '{';
      for (const auto& [key, value] : members()) {
        out += separator;
        separator = ',';
        append_json_string(out, key);
        out += ':';
        value.append_json(out);
      }
      out += empty() ? "{}" : "}";
      break;
    }
  }
}

void Doc::write(JsonWriter& writer) const {
  if (is_array()) {
    writer.begin_array();
    for (const Doc& item : items()) item.write(writer);
    writer.end_array();
  } else if (is_object()) {
    writer.begin_object();
    for (const auto& [key, value] : members()) {
      writer.key(key);
      value.write(writer);
    }
    writer.end_object();
  } else {
    std::string scalar;
    append_json(scalar);
    writer.raw(scalar);
  }
}

std::string Doc::yaml() const {
  if (!is_block()) return yaml_scalar() + "\n";
  std::string out;
  write_yaml(out, 0);
  return out;
}

std::string Doc::yaml_scalar() const {
  if (is_string()) return yaml_string(as_string());
  std::string scalar;
  append_json(scalar);
  return scalar;
}

// Writes the items of an object or array at `indent`, where the first line's indentation is already
// in `out`.
void Doc::write_yaml(std::string& out, std::size_t indent) const {
  bool is_first = true;
  const auto start = [&](std::string_view lead) {
    if (!is_first) out.append(indent, ' ');
    is_first = false;
    out += lead;
  };
  for (const Doc& item : items()) {
    start("-");
    item.write_yaml_value(out, indent, false);
  }
  for (const auto& [key, value] : members()) {
    start(yaml_string(key) + ":");
    value.write_yaml_value(out, indent, true);
  }
}

// The value after "-" or "key:" in a line indented by `indent`.
void Doc::write_yaml_value(std::string& out, std::size_t indent, bool in_object) const {
  if (!is_block()) {
    out.append(" ").append(yaml_scalar()).append("\n");
  } else if (in_object) {
    out += '\n';
    // a list may stand as far left as its key, as kubectl prints it
    const std::size_t inner = indent + (is_array() ? 0 : kIndent);
    out.append(inner, ' ');
    write_yaml(out, inner);
  } else {
    out += ' ';
    write_yaml(out, indent + kIndent);
  }
}

}  // namespace jogak
