// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing quantities. The scanner goes over the text as upstream's does, so that each
// bad input gets the same one of its three errors; the value is held in nano units, which is the
// finest upstream keeps.
#include "apiserver/object/amount.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/core.h>

namespace jogak::api {
namespace {

using Wide = __int128;
constexpr Wide kWideMax = std::numeric_limits<Wide>::max();
// What no amount exceeds in either direction: 10^29 in nano units. Rounding it up cannot overflow.
constexpr Wide kMost = Wide{10'000'000'000'000'000'000U} * 10'000'000'000'000'000'000U;
constexpr Wide kInt64Max = std::numeric_limits<std::int64_t>::max();
// Upstream computes in 64 bits while a number has no more digits than this.
constexpr int kShortDigits = 18;
// Decimals of a binary quantity beyond this cannot show in nano units, whatever its suffix.
constexpr int kBinaryPlaces = 18;
constexpr std::string_view kSuffixLetters = "eEinumkKMGTP";

struct Scanned {
  bool is_negative = false;
  std::string_view whole = "0", fraction;  // digits; leading zeros of `whole` gone
  std::string_view suffix;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// nullopt: the text does not have the form of a quantity.
std::optional<Scanned> scan(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Scanned out;
  std::size_t at = 0;
  if (text[0] == '-' || text[0] == '+') {
    out.is_negative = text[0] == '-';
    at = 1;
  }
  while (at < text.size() && text[at] == '0') ++at;
  std::size_t end = skip_digits(text, at);
  if (end > at) out.whole = text.substr(at, end - at);
  at = end;
  if (at < text.size() && text[at] == '.') {
    end = skip_digits(text, at + 1);
    out.fraction = text.substr(at + 1, end - at - 1);
    at = end;
  }
  out.suffix = text.substr(at);
  while (at < text.size() && kSuffixLetters.find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (skip_digits(text, at) != text.size()) return std::nullopt;
  return out;
}

struct Suffix {
  std::string_view text;
  int exponent;
};
constexpr std::array<Suffix, 10> kDecimal = {{{"n", -9},
                                              {"u", -6},
                                              {"m", -3},
                                              {"", 0},
                                              {"k", 3},
                                              {"M", 6},
                                              {"G", 9},
                                              {"T", 12},
                                              {"P", 15},
                                              {"E", 18}}};
constexpr std::array<Suffix, 6> kBinary = {
    {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

template <std::size_t N>
const Suffix* find_suffix(const std::array<Suffix, N>& table, std::string_view text) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Suffix& suffix) { return suffix.text == text; });
  return found == table.end() ? nullptr : &*found;
}

// "e3", "E-9": the exponent.
std::optional<int> read_exponent(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(suffix[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, code] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (code != std::errc() || end != suffix.data() + suffix.size()) return std::nullopt;
  return exponent;
}

// Product, or the largest value when it does not fit.
Wide times(Wide a, Wide b) {
  Wide out = 0;
  return __builtin_mul_overflow(a, b, &out) ? kWideMax : out;
}

// Quotient rounded away from zero.
Wide divided_up(Wide value, Wide by) {
  return value / by + (value % by > 0 ? 1 : 0) - (value % by < 0 ? 1 : 0);
}

// digits * 10^scale in nano units, rounded up; `digits` has no sign.
Wide scaled_nanos(std::string_view digits, int scale) {
  Wide value = 0;
  for (const char c : digits) {
    value = times(value, 10);
    if (value < kWideMax - 9) value += c - '0';
  }
  if (value == 0) return 0;
  for (scale += 9; scale > 0 && value < kWideMax; --scale) value = times(value, 10);
  // Below 10^-39 nothing is left of any value but the rounding.
  Wide divisor = 1;
  for (; scale < 0 && divisor < kWideMax; ++scale) divisor = times(divisor, 10);
  return std::min(divided_up(value, divisor), kMost);
}

std::string wide_text(Wide value) {
  const bool is_negative = value < 0;
  // The magnitude as unsigned: the smallest value has no positive counterpart.
  auto rest =
      is_negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  do {
    out += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (is_negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::optional<Amount> Amount::parse(std::string_view text) {
  auto amount = read(text);
  if (!amount) return std::nullopt;
  return *std::move(amount);
}

Result<Amount> Amount::read(std::string_view text) {
  text = trimmed(text);
  const auto scanned = scan(text);
  if (!scanned) {
    return invalid(
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  }
  Amount out;
  const std::string digits = std::string(scanned->whole) + std::string(scanned->fraction);
  const int places = static_cast<int>(scanned->fraction.size());
  const int count = static_cast<int>(digits.size());
  bool is_literal = false;
  if (const Suffix* binary = find_suffix(kBinary, scanned->suffix)) {
    out.format_ = Format::BinarySi;
    // `units` counts 10^-kept; multiplying before the division loses no digit that counts.
    const int kept = std::min(places, kBinaryPlaces);
    const Wide number = scaled_nanos(digits, kept - places - 9);
    Wide units = times(number, Wide{1} << binary->exponent);
    Wide divisor = 1;
    for (int i = 0; i < kept; ++i) divisor *= 10;
    for (; divisor > 1 && units > kWideMax / kNano; divisor /= 10) units = divided_up(units, 10);
    out.nanos_ = std::min(divided_up(times(units, kNano), divisor), kInt64Max * kNano);
    if (out.nanos_ < kNano) out.format_ = Format::DecimalSi;
    const bool is_short = places == 0 && count + binary->exponent * 3 / 10 + 1 <= 15;
    is_literal = is_short && (number & 7) != 0;
  } else {
    const Suffix* decimal = find_suffix(kDecimal, scanned->suffix);
    const auto exponent = decimal ? decimal->exponent : read_exponent(scanned->suffix);
    if (!exponent) return invalid("unable to parse quantity's suffix");
    if (decimal == nullptr) out.format_ = Format::DecimalExponent;
    // Far beyond what either end of the range holds, and no overflow in what follows.
    const int scale = std::clamp(*exponent, -1'000'000, 1'000'000) - places;
    out.nanos_ = scaled_nanos(digits, scale);
    is_literal = count <= kShortDigits && scale >= -9 && scale % 3 == 0 &&
                 !digits.ends_with("000") && digits[0] != '0';
  }
  if (scanned->is_negative) out.nanos_ = -out.nanos_;
  if (is_literal) out.literal_ = text;
  return out;
}

std::string Amount::decimal_text(Format format) const {
  Wide mantissa = nanos_;
  int exponent = -9;
  const int limit = format == Format::DecimalSi ? 18 : std::numeric_limits<int>::max();
  while (mantissa % 1000 == 0 && exponent < limit) {
    mantissa /= 1000;
    exponent += 3;
  }
  const std::string number = wide_text(mantissa);
  if (exponent == 0) return number;
  if (format == Format::DecimalExponent) return fmt::format("{}e{}", number, exponent);
  const auto suffix = std::find_if(kDecimal.begin(), kDecimal.end(), [&](const Suffix& candidate) {
    return candidate.exponent == exponent;
  });
  return number + std::string(suffix->text);
}

std::string Amount::text() const {
  if (!literal_.empty()) return literal_;
  if (nanos_ == 0) return "0";
  if (format_ != Format::BinarySi) return decimal_text(format_);
  // A fraction of a unit, and anything small, would lose digits or look odd with a binary suffix.
  const bool is_small = nanos_ > -1024 * kNano && nanos_ < 1024 * kNano;
  if (is_small || !is_whole()) return decimal_text(Format::DecimalSi);
  Wide mantissa = nanos_ / kNano;
  std::size_t power = 0;
  for (; mantissa % 1024 == 0 && power < kBinary.size(); ++power) mantissa /= 1024;
  return wide_text(mantissa) + (power == 0 ? "" : std::string(kBinary[power - 1].text));
}

std::int64_t Amount::in_units_of(__int128 nanos) const {
  return static_cast<std::int64_t>(
      std::clamp(divided_up(nanos_, nanos), -kInt64Max - 1, kInt64Max));
}

std::int64_t Amount::value() const { return in_units_of(kNano); }

std::int64_t Amount::milli_value() const { return in_units_of(kNano / 1000); }

Amount Amount::rounded_to_milli() const {
  constexpr Wide kMilli = kNano / 1000;
  if (nanos_ % kMilli == 0) return *this;
  Amount out;
  out.format_ = format_;
  out.nanos_ = divided_up(nanos_, kMilli) * kMilli;
  return out;
}

Amount& Amount::operator+=(const Amount& other) {
  if (nanos_ == 0) format_ = other.format_;
  literal_.clear();
  Wide sum = 0;
  if (__builtin_add_overflow(nanos_, other.nanos_, &sum)) sum = nanos_ > 0 ? kMost : -kMost;
  nanos_ = std::clamp(sum, -kMost, kMost);
  return *this;
}

Amount& Amount::operator-=(const Amount& other) {
  Amount negated = other;
  negated.nanos_ = -negated.nanos_;
  return *this += negated;
}

}  // namespace jogak::api
