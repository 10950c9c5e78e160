// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on int64_t that notices the edge: checked_* answer nothing on overflow (for input from
// outside), saturating_* stop at the largest or smallest value (for totals that only grow).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/check.h"

namespace jogak {

inline constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

constexpr std::optional<std::int64_t> checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

constexpr std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return checked_add(a, b).value_or(b > 0 ? kInt64Max : kInt64Min);
}

constexpr std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
  return checked_sub(a, b).value_or(b < 0 ? kInt64Max : kInt64Min);
}

constexpr std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  return checked_mul(a, b).value_or((a > 0) == (b > 0) ? kInt64Max : kInt64Min);
}

// a / b rounded toward positive infinity; b is positive.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  JOGAK_CHECK(b > 0);
  const std::int64_t quotient = a / b;
  return quotient + (a % b > 0 ? 1 : 0);
}

// a / b rounded toward negative infinity; b is positive.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  JOGAK_CHECK(b > 0);
  const std::int64_t quotient = a / b;
  return quotient - (a % b < 0 ? 1 : 0);
}

// a * b / c with a 128-bit product, rounded down; a and b are not negative, c is positive. The
// result is cut at the largest int64_t.
constexpr std::int64_t mul_div(std::int64_t a, std::int64_t b, std::int64_t c) {
  JOGAK_CHECK(a >= 0 && b >= 0 && c > 0);
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(a) * static_cast<Wide>(b) / static_cast<Wide>(c);
  return wide > static_cast<Wide>(kInt64Max) ? kInt64Max : static_cast<std::int64_t>(wide);
}

}  // namespace jogak
