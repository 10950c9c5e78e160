// SPDX-License-Identifier: Apache-2.0
//
// Our own random numbers, the same on every compiler and library: xoshiro256** seeded through
// splitmix64. A stream has a name, so that adding a draw in one part does not shift another part.
// Integers only. Draw into variables, one statement each: the order of two draws in one argument
// list is up to the compiler.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace jogak {

class Rng {
 public:
  // Equal seed and stream name give equal draws, for ever: recorded runs rely on it.
  explicit Rng(std::uint64_t seed, std::string_view stream = "") {
    std::uint64_t state = mix(seed + kGolden);
    for (const char c : stream) {
      state = mix(state + kGolden + static_cast<unsigned char>(c));
    }
    for (std::uint64_t& word : state_) {
      state += kGolden;
      word = mix(state);
    }
  }

  // Uniform over all 64-bit values.
  std::uint64_t next() {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, n), without bias; n is at least 1. May use more than one draw.
  std::uint64_t below(std::uint64_t n) {
    JOGAK_CHECK(n > 0);
    const std::uint64_t reject_below = (0 - n) % n;  // 2^64 mod n values would be too many
    std::uint64_t draw = next();
    while (draw < reject_below) draw = next();
    return draw % n;
  }

  // Uniform in [low, high], both included; low is at most high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    JOGAK_CHECK(low <= high);
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t offset = span == UINT64_MAX ? next() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
  }

  // True in numerator of denominator cases.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return below(denominator) < numerator;
  }

  // Index of a weight, drawn in proportion to it; the weights are not all zero.
  std::size_t weighted(std::span<const std::int64_t> weights) {
    std::uint64_t total = 0;
    for (const std::int64_t weight : weights) {
      JOGAK_CHECK(weight >= 0);
      total += static_cast<std::uint64_t>(weight);
    }
    std::uint64_t at = below(total);
    std::size_t i = 0;
    while (at >= static_cast<std::uint64_t>(weights[i])) {
      at -= static_cast<std::uint64_t>(weights[i]);
      ++i;
    }
    return i;
  }

  // Every order is equally likely.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[below(i)]);
    }
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  // The finalizer of splitmix64: one input bit changes half of the output bits.
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace jogak
