// SPDX-License-Identifier: Apache-2.0
//
// Booleans by many names, integers in four bases with underscores, floats; anything else is a
// string. Dates are strings too. Floats come out as the number that Go's JSON would have.
#include "apiserver/codec/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "apiserver/schema/base64.h"
#include "apiserver/schema/go_text.h"

namespace jogak::codec {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                       "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kNan[] = {".nan", ".NaN", ".NAN"};
constexpr std::string_view kInfinite[] = {".inf", ".Inf", ".INF"};

template <std::size_t n>
bool is_in(std::string_view text, const std::string_view (&words)[n]) {
  return std::ranges::find(words, text) != std::end(words);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// strconv.ParseInt and ParseUint with base 0: 0x, 0o, 0b, and 0 for octal.
std::optional<Doc> read_whole(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const bool is_signed = is_negative || text.starts_with('+');
  if (is_signed) text.remove_prefix(1);
  int base = 10;
  if (drop_prefix(text, "0x") || drop_prefix(text, "0X")) {
    base = 16;
  } else if (drop_prefix(text, "0o") || drop_prefix(text, "0O")) {
    base = 8;
  } else if (drop_prefix(text, "0b") || drop_prefix(text, "0B")) {
    base = 2;
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (is_negative) {
    if (size > kMax + 1) return std::nullopt;
    return Doc(static_cast<std::int64_t>(0 - size));
  }
  if (size > kMax && is_signed) return std::nullopt;  // ParseUint takes no sign
  return Doc(size);
}

// [-+]? ( .digits | digits [.digits?] ) ( [eE] [-+]? digits )?
bool is_float(std::string_view text) {
  const auto skip_digits = [&] {
    const auto end = std::ranges::find_if_not(text, is_digit);
    const auto count = static_cast<std::size_t>(end - text.begin());
    text.remove_prefix(count);
    return count > 0;
  };
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const bool has_whole = skip_digits();
  if (drop_prefix(text, ".")) {
    if (!skip_digits() && !has_whole) return false;
  } else if (!has_whole) {
    return false;
  }
  if (drop_prefix(text, "e") || drop_prefix(text, "E")) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  return text.empty();
}

Doc number_of(double value) {
  const std::string text = schema::float_text(value);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc() && end == text.data() + text.size()) return Doc(whole);
  return Doc::number(text);
}

enum class Kind : std::uint8_t { String, Bool, Int, Float, Null, Infinite };
struct Meaning {
  Kind kind = Kind::String;
  Doc value;
};

Meaning meaning_of(std::string_view text) {
  if (is_in(text, kTrue)) return {Kind::Bool, Doc(true)};
  if (is_in(text, kFalse)) return {Kind::Bool, Doc(false)};
  if (is_in(text, kNull)) return {Kind::Null, Doc()};
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  if (is_in(text, kNan) || is_in(is_signed ? text.substr(1) : text, kInfinite)) {
    return {Kind::Infinite, Doc(text)};
  }
  if (!is_signed && !text.starts_with('.') && !is_digit(text.front())) {
    return {Kind::String, Doc(text)};
  }
  std::string plain(text);
  std::erase(plain, '_');
  if (!text.starts_with('.')) {
    if (auto whole = read_whole(plain)) return {Kind::Int, *std::move(whole)};
  }
  if (is_float(plain)) {
    std::string_view digits = plain;
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (const auto value = schema::read_float(digits)) return {Kind::Float, number_of(*value)};
  }
  return {Kind::String, Doc(text)};
}

Result<Doc> decode_binary(std::string_view text) {
  auto bytes = schema::decode_base64(text);
  if (!bytes) return invalid("yaml: !!binary value contains invalid base64 data");
  return Doc(*std::move(bytes));
}

Result<Doc> refuse(std::string_view text, std::string_view tag) {
  return invalid("yaml: cannot decode !!str `{}` as a !!{}", text, tag);
}

}  // namespace

Result<Doc> resolve_scalar(std::string_view tag, std::string_view text) {
  const bool is_bare = tag == "?" || tag.empty();
  if (!is_bare && !drop_prefix(tag, kTagPrefix)) return Doc(text);  // quoted, or a private tag
  if (tag == "binary") return decode_binary(text);
  static constexpr std::string_view kResolved[] = {"bool", "int", "float", "null", "timestamp"};
  if (!is_bare && !is_in(tag, kResolved)) return Doc(text);
  Meaning meaning = meaning_of(text);
  const bool fits = is_bare || (tag == "bool" && meaning.kind == Kind::Bool) ||
                    (tag == "int" && meaning.kind == Kind::Int) ||
                    (tag == "float" && (meaning.kind == Kind::Int || meaning.kind == Kind::Float ||
                                        meaning.kind == Kind::Infinite)) ||
                    (tag == "null" && meaning.kind == Kind::Null) ||
                    (tag == "timestamp" && meaning.kind == Kind::String);
  if (!fits) return refuse(text, tag);
  if (meaning.kind == Kind::Infinite) return invalid("json: unsupported value: {}", text);
  return std::move(meaning.value);
}

}  // namespace jogak::codec
