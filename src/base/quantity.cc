// SPDX-License-Identifier: Apache-2.0
//
// The number stays a string of decimal digits with a place for the point; a suffix moves the point
// (powers of ten) or multiplies the digits by 1024. No step can lose anything, however long the
// text.
#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/checked.h"

namespace jogak {

namespace {

// Longest text taken: far above any quantity, low enough that a hostile one costs nothing.
constexpr std::size_t kTextBytesMax = 256;

// Exponents beyond this only say "huge" or "tiny".
constexpr int kExponentMax = 100'000;

constexpr std::size_t kInt64Digits = 19;

// What a suffix multiplies by: 10^ten * 1024^binary.
struct Scale {
  int ten = 0;
  int binary = 0;
};

struct Suffix {
  std::string_view text;
  Scale scale;
};

constexpr std::array<Suffix, 16> kSuffixes = {{
    {"", {}},
    {"n", {.ten = -9}},
    {"u", {.ten = -6}},
    {"m", {.ten = -3}},
    {"k", {.ten = 3}},
    {"M", {.ten = 6}},
    {"G", {.ten = 9}},
    {"T", {.ten = 12}},
    {"P", {.ten = 15}},
    {"E", {.ten = 18}},
    {"Ki", {.binary = 1}},
    {"Mi", {.binary = 2}},
    {"Gi", {.binary = 3}},
    {"Ti", {.binary = 4}},
    {"Pi", {.binary = 5}},
    {"Ei", {.binary = 6}},
}};

// A number written as 0.d1d2d3... * 10^point, no zero in front; zero has no digits.
struct Decimal {
  bool is_negative = false;
  std::string digits;
  int point = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes a leading sign off `text`; true when it was a minus.
bool take_sign(std::string_view& text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  return is_negative;
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// The exponent of "e3", "E+3", "e-12"; nothing when the text is not of that form.
std::optional<int> exponent_of(std::string_view text) {
  if (!text.starts_with('e') && !text.starts_with('E')) return std::nullopt;
  text.remove_prefix(1);
  const bool is_negative = take_sign(text);
  const std::string_view digits = take_digits(text);
  if (digits.empty() || !text.empty()) return std::nullopt;
  int exponent = 0;
  for (const char c : digits) exponent = std::min(exponent * 10 + (c - '0'), kExponentMax);
  return is_negative ? -exponent : exponent;
}

std::optional<Scale> scale_of(std::string_view suffix) {
  const auto it = std::ranges::find(kSuffixes, suffix, &Suffix::text);
  if (it != kSuffixes.end()) return it->scale;
  if (const auto exponent = exponent_of(suffix)) return Scale{.ten = *exponent};
  return std::nullopt;
}

// Multiplies the digits by 1024, as on paper from the right.
void multiply_1024(Decimal& number) {
  unsigned carry = 0;
  for (std::size_t i = number.digits.size(); i > 0; --i) {
    const unsigned product = static_cast<unsigned>(number.digits[i - 1] - '0') * 1024 + carry;
    number.digits[i - 1] = static_cast<char>('0' + product % 10);
    carry = product / 10;
  }
  for (; carry > 0; carry /= 10) {
    number.digits.insert(number.digits.begin(), static_cast<char>('0' + carry % 10));
    ++number.point;
  }
}

Result<Decimal> parse_decimal(std::string_view whole_text) {
  std::string_view text = whole_text;
  Decimal number;
  number.is_negative = take_sign(text);
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) {
    return invalid("quantity \"{}\": no number in front; write one such as 2, 500m or 1.5Gi",
                   whole_text);
  }
  const auto scale = scale_of(text);
  if (!scale) {
    return invalid(
        "quantity \"{}\": unknown suffix \"{}\"; use one of n u m k M G T P E, "
        "Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
        whole_text, text);
  }

  number.digits.append(whole).append(fraction);
  number.point = static_cast<int>(whole.size()) + scale->ten;
  const std::size_t zeros = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, zeros);
  number.point -= static_cast<int>(zeros);
  for (int i = 0; i < scale->binary; ++i) multiply_1024(number);
  return number;
}

// The magnitude as a whole number, rounded, with its sign; nothing when it does not fit.
std::optional<std::int64_t> to_int64(const Decimal& number, Rounding rounding) {
  if (number.digits.empty()) return 0;
  if (number.point > static_cast<int>(kInt64Digits)) return std::nullopt;
  const std::size_t whole = number.point < 0 ? 0 : static_cast<std::size_t>(number.point);

  // Counted below zero, where there is room for one more.
  std::optional<std::int64_t> value = 0;
  for (std::size_t i = 0; i < whole && value; ++i) {
    const int digit = i < number.digits.size() ? number.digits[i] - '0' : 0;
    value = checked_mul(*value, 10);
    if (value) value = checked_sub(*value, digit);
  }
  const std::size_t rest = std::min(whole, number.digits.size());
  const bool is_exact = number.digits.find_first_not_of('0', rest) == std::string::npos;
  if (value && !is_exact && rounding == Rounding::Up) value = checked_sub(*value, 1);
  if (value && !number.is_negative) value = checked_sub(0, *value);
  return value;
}

Result<std::int64_t> parse_scaled(std::string_view text, int places, Rounding rounding) {
  if (text.empty()) return invalid("quantity \"\": empty; write one such as 2, 500m or 1.5Gi");
  if (text.size() > kTextBytesMax) {
    return invalid("quantity \"{}...\": longer than {} characters", text.substr(0, 32),
                   kTextBytesMax);
  }
  JOGAK_TRY(Decimal number, parse_decimal(text));
  number.point += places;
  const auto value = to_int64(number, rounding);
  if (!value) {
    return invalid("quantity \"{}\": does not fit in 64 bits{}; the largest is {}", text,
                   places == 0 ? "" : " as thousandths",
                   places == 0 ? "9223372036854775807" : "9223372036854775807m");
  }
  return *value;
}

}  // namespace

Result<std::int64_t> parse_quantity(std::string_view text, Rounding rounding) {
  return parse_scaled(text, 0, rounding);
}

Result<std::int64_t> parse_quantity_milli(std::string_view text, Rounding rounding) {
  return parse_scaled(text, 3, rounding);
}

}  // namespace jogak
