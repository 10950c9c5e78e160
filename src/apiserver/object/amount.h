// SPDX-License-Identifier: Apache-2.0
//
// resource.Quantity with its full range and its canonical text (suffix family kept, no fraction,
// largest suffix), as the API server reads and writes it. base/quantity.h gives plain numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace jogak::api {

class Amount {
 public:
  Amount() = default;
  // nullopt: not a quantity. Blanks around it are skipped. Nano precision; finer rounds up; binary
  // ones beyond 2^63-1 are capped there, others at about 10^29.
  static std::optional<Amount> parse(std::string_view text);
  // The same with the server's words for what is wrong.
  static Result<Amount> read(std::string_view text);
  static Amount of(std::int64_t value) { return Amount(static_cast<__int128>(value) * kNano); }
  static Amount of_milli(std::int64_t value) {
    return Amount(static_cast<__int128>(value) * (kNano / 1000));
  }

  // Canonical text; of a value as it was parsed the text itself where the server echoes it ("+1").
  std::string text() const;
  // Rounded up (away from zero), capped at the range of the result.
  std::int64_t value() const;
  std::int64_t milli_value() const;
  bool is_zero() const { return nanos_ == 0; }
  bool is_negative() const { return nanos_ < 0; }
  bool is_whole() const { return nanos_ % kNano == 0; }
  // At most three decimals, rounded away from zero: what the server keeps in resource lists.
  Amount rounded_to_milli() const;

  // Sums keep the format of the left side (of the right one when the left is zero).
  Amount& operator+=(const Amount& other);
  Amount& operator-=(const Amount& other);
  friend auto operator<=>(const Amount& a, const Amount& b) { return a.nanos_ <=> b.nanos_; }
  friend bool operator==(const Amount& a, const Amount& b) { return a.nanos_ == b.nanos_; }

 private:
  static constexpr __int128 kNano = 1'000'000'000;
  enum class Format : std::uint8_t { DecimalSi, BinarySi, DecimalExponent };

  explicit Amount(__int128 nanos) : nanos_(nanos) {}
  std::int64_t in_units_of(__int128 nanos) const;
  std::string decimal_text(Format format) const;

  __int128 nanos_ = 0;
  Format format_ = Format::DecimalSi;
  // What was parsed, where upstream takes it for canonical already; else empty.
  std::string literal_;
};

}  // namespace jogak::api
