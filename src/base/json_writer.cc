// SPDX-License-Identifier: Apache-2.0
//
// Escaping, number formatting and the comma-and-indent state of JsonWriter.
#include "base/json_writer.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"

namespace jogak {

namespace {

constexpr std::size_t kIndent = 2;

// Length in bytes of the valid UTF-8 character at the front, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  // The second byte's range leaves out overlong forms, surrogates and what is past U+10FFFF.
  const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

void append_ascii(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (c >= 0x20 && c != 0x7f) {
    out += c;
  } else {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\\ufffd";
    } else if (length == 1) {
      append_ascii(out, text.front());
    } else if (length == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) {
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[1]));  // C1 controls
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string fixed_decimal(double value, int places) {
  JOGAK_CHECK(places >= 0 && places <= 17);
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{:.{}f}", value, places);
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string fixed_decimal(std::int64_t unscaled, int places) {
  JOGAK_CHECK(places >= 0 && places <= 18);
  if (places == 0) return std::to_string(unscaled);
  std::uint64_t unit = 1;
  for (int i = 0; i < places; ++i) unit *= 10;
  const bool is_negative = unscaled < 0;
  const auto bits = static_cast<std::uint64_t>(unscaled);
  const std::uint64_t size = is_negative ? 0 - bits : bits;
  return fmt::format("{}{}.{:0{}}", is_negative ? "-" : "", size / unit, size % unit, places);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  JOGAK_CHECK(!levels_.empty() && levels_.back().closer == '}', "key {} outside an object", name);
  JOGAK_CHECK(!levels_.back().has_key, "key {} where a value belongs", name);
  before_item();
  append_json_string(out_, name);
  out_ += style_ == Style::Pretty ? ": " : ":";
  levels_.back().has_key = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::open(char opener) {
  before_value();
  out_ += opener;
  levels_.push_back({.closer = opener == '{' ? '}' : ']'});
  return *this;
}

JsonWriter& JsonWriter::close(char closer) {
  JOGAK_CHECK(!levels_.empty() && levels_.back().closer == closer, "unexpected {}", closer);
  JOGAK_CHECK(!levels_.back().has_key, "a key without its value");
  const bool was_empty = levels_.back().is_empty;
  levels_.pop_back();
  if (!was_empty) new_line();
  out_ += closer;
  return *this;
}

void JsonWriter::before_item() {
  if (!levels_.back().is_empty) out_ += ',';
  levels_.back().is_empty = false;
  new_line();
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    JOGAK_CHECK(out_.empty(), "a second value at the top");
  } else if (levels_.back().closer == ']') {
    before_item();
  } else {
    JOGAK_CHECK(levels_.back().has_key, "a value without a key");
    levels_.back().has_key = false;
  }
}

void JsonWriter::new_line() {
  if (style_ == Style::Compact) return;
  out_ += '\n';
  out_.append(levels_.size() * kIndent, ' ');
}

std::string JsonWriter::take() {
  JOGAK_CHECK(levels_.empty() && !out_.empty(), "the text is not finished");
  if (style_ == Style::Pretty) out_ += '\n';
  return std::exchange(out_, {});
}

}  // namespace jogak
