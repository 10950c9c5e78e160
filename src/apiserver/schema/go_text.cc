// SPDX-License-Identifier: Apache-2.0
//
// Quoting, floats and UTF-8 as Go has them.
#include "apiserver/schema/go_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace jogak::schema {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

struct Escape {
  char plain;
  std::string_view escaped;
};
constexpr Escape kEscapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\a', "\\a"},
                               {'\b', "\\b"}, {'\f', "\\f"},  {'\n', "\\n"},
                               {'\r', "\\r"}, {'\t', "\\t"},  {'\v', "\\v"}};

std::string_view escape_of(char c) {
  for (const Escape& entry : kEscapes) {
    if (entry.plain == c) return entry.escaped;
  }
  return "";
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const unsigned first = byte_at(text, 0);
    if (const auto escaped = escape_of(text.front()); !escaped.empty()) {
      out += escaped;
    } else if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

std::string float_text(double value) {
  // The shortest digits that read back the same; to_chars would write a large value out in full.
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                    std::chars_format::scientific);
  const std::string_view shortest(buffer.data(), result.ptr);
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  std::string_view power = shortest.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string text(shortest.substr(0, e));
  if (exponent < -6 || exponent >= 21) {
    text += fmt::format("e{}{}", exponent < 0 ? "" : "+", exponent);
  } else {
    std::erase(text, '.');
    const auto digits = static_cast<int>(text.size());
    if (exponent < 0) {
      text.insert(0, "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0'));
    } else if (exponent + 1 < digits) {
      text.insert(static_cast<std::size_t>(exponent + 1), ".");
    } else {
      text.append(static_cast<std::size_t>(exponent + 1 - digits), '0');
    }
  }
  return std::signbit(value) && value != 0 ? "-" + text : text;
}

std::optional<double> read_float(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small is nothing; too large is refused. from_chars does not say which.
    const std::size_t e = digits.find_first_of("eE");
    if (e == std::string_view::npos || digits.substr(e + 1, 1) != "-") return std::nullopt;
    return 0.0;
  }
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | (code >> 6));
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3f));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

std::size_t utf8_length(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, 1);
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

std::string_view json_type(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null:
      return "null";
    case Doc::Kind::Bool:
      return "bool";
    case Doc::Kind::Int:
    case Doc::Kind::Number:
      return "number";
    case Doc::Kind::String:
      return "string";
    case Doc::Kind::Array:
      return "array";
    case Doc::Kind::Object:
      return "object";
  }
  return "";
}

}  // namespace jogak::schema
