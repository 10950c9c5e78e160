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

Doc Doc::object() { return Doc(Kind::Object); }

Doc Doc::array() { return Doc(Kind::Array); }

Doc Doc::decimal(double value, int places) {
  Doc doc(Kind::Literal);
  doc.text_ = fixed_decimal(value, places);
  return doc;
}

Doc Doc::decimal(std::int64_t unscaled, int places) {
  Doc doc(Kind::Literal);
  doc.text_ = fixed_decimal(unscaled, places);
  return doc;
}

Doc& Doc::set(std::string_view key, Doc value) {
  JOGAK_CHECK(is_object(), "key {} in what is not an object", key);
  const auto it = std::ranges::find(keys_, key);
  if (it != keys_.end()) {
    values_[static_cast<std::size_t>(it - keys_.begin())] = std::move(value);
  } else {
    keys_.emplace_back(key);
    values_.push_back(std::move(value));
  }
  return *this;
}

Doc& Doc::push(Doc value) {
  JOGAK_CHECK(is_array());
  values_.push_back(std::move(value));
  return *this;
}

std::string Doc::json(JsonWriter::Style style) const {
  JsonWriter writer(style);
  write(writer);
  return writer.take();
}

void Doc::write(JsonWriter& writer) const {
  switch (kind_) {
    case Kind::Null:
      writer.null();
      break;
    case Kind::Literal:
      writer.raw(text_);
      break;
    case Kind::String:
      writer.value(text_);
      break;
    case Kind::Array:
      writer.begin_array();
      for (const Doc& value : values_) value.write(writer);
      writer.end_array();
      break;
    case Kind::Object:
      writer.begin_object();
      for (std::size_t i = 0; i < values_.size(); ++i) {
        writer.key(keys_[i]);
        values_[i].write(writer);
      }
      writer.end_object();
      break;
  }
}

std::string Doc::yaml() const {
  if (!is_block()) return yaml_scalar() + "\n";
  std::string out;
  write_yaml(out, 0);
  return out;
}

std::string Doc::yaml_scalar() const {
  switch (kind_) {
    case Kind::Null:
      return "null";
    case Kind::Literal:
      return text_;
    case Kind::String:
      return yaml_string(text_);
    case Kind::Array:
      return "[]";
    case Kind::Object:
      return "{}";
  }
  JOGAK_CHECK(false, "unknown kind");
}

// Writes the items of an object or array at `indent`, where the first line's indentation is already
// in `out`.
void Doc::write_yaml(std::string& out, std::size_t indent) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i > 0) out.append(indent, ' ');
    const Doc& value = values_[i];
    out += is_object() ? yaml_string(keys_[i]) + ":" : "-";
    if (!value.is_block()) {
      out.append(" ").append(value.yaml_scalar()).append("\n");
    } else if (is_object()) {
      out += '\n';
      // a list may stand as far left as its key, as kubectl prints it
      const std::size_t inner = indent + (value.is_array() ? 0 : kIndent);
      out.append(inner, ' ');
      value.write_yaml(out, inner);
    } else {
      out += ' ';
      value.write_yaml(out, indent + kIndent);
    }
  }
}

}  // namespace jogak
