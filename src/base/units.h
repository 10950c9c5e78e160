// SPDX-License-Identifier: Apache-2.0
//
// int64_t with a unit, so that MilliGpu + Bytes does not compile. Construction and value() are
// explicit; arithmetic is plain (overflow is for the border, see checked.h).
#pragma once

#include <compare>
#include <cstdint>

namespace jogak {

template <class Tag>
class Unit {
 public:
  constexpr Unit() = default;
  constexpr explicit Unit(std::int64_t value) : value_(value) {}

  constexpr std::int64_t value() const { return value_; }

  friend constexpr auto operator<=>(const Unit&, const Unit&) = default;
  friend constexpr Unit operator+(Unit a, Unit b) { return Unit(a.value_ + b.value_); }
  friend constexpr Unit operator-(Unit a, Unit b) { return Unit(a.value_ - b.value_); }
  friend constexpr Unit operator*(Unit a, std::int64_t n) { return Unit(a.value_ * n); }
  constexpr Unit operator-() const { return Unit(-value_); }
  constexpr Unit& operator+=(Unit b) { return *this = *this + b; }
  constexpr Unit& operator-=(Unit b) { return *this = *this - b; }

 private:
  std::int64_t value_ = 0;
};

using MilliCpu = Unit<struct MilliCpuTag>;  // thousandths of one CPU
using MilliGpu = Unit<struct MilliGpuTag>;  // thousandths of one GPU
using Bytes = Unit<struct BytesTag>;        // memory of the host
using Mib = Unit<struct MibTag>;            // memory of a GPU, in units of 2^20 bytes

inline constexpr std::int64_t kBytesPerMib = std::int64_t{1} << 20;

constexpr Bytes to_bytes(Mib mib) { return Bytes(mib.value() * kBytesPerMib); }

// Rounded up: for what is asked for. Not negative.
constexpr Mib to_mib_up(Bytes bytes) {
  return Mib((bytes.value() + kBytesPerMib - 1) / kBytesPerMib);
}

// Rounded down: for what exists. Not negative.
constexpr Mib to_mib_down(Bytes bytes) { return Mib(bytes.value() / kBytesPerMib); }

}  // namespace jogak
