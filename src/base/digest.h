// SPDX-License-Identifier: Apache-2.0
//
// A 64-bit digest of plans and states, built field by field, the same on every machine. It answers
// "are these two equal?" in one comparison and is not meant to resist anyone. Every add() takes in
// its length or width, so that ("ab","c") and ("a","bc") differ. Add in a defined order, never in
// the order of a hash table.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace jogak {

class Digest {
 public:
  // Integers, bools and enumerations. A negative value and its unsigned twin give the same digest;
  // the width of the type does not matter.
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  Digest& add(T value) {
    if constexpr (std::is_enum_v<T>) {
      return add(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::signed_integral<T>) {
      word(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    } else {
      word(static_cast<std::uint64_t>(value));
    }
    return *this;
  }

  Digest& add(std::string_view text) {
    word(text.size());
    std::uint64_t packed = 0;
    unsigned filled = 0;
    for (const char c : text) {
      packed |= std::uint64_t{static_cast<unsigned char>(c)} << (8 * filled);
      if (++filled == 8) {
        word(packed);
        packed = 0;
        filled = 0;
      }
    }
    if (filled > 0) word(packed);
    return *this;
  }
  Digest& add(const char* text) { return add(std::string_view(text)); }

  // The digest of what was added so far; more may be added after.
  std::uint64_t value() const {
    std::uint64_t x = state_ ^ (words_ * kMultiplyB);
    x = (x ^ (x >> 32)) * kMultiplyA;
    x = (x ^ (x >> 29)) * kMultiplyB;
    return x ^ (x >> 32);
  }

  // Sixteen lower-case hex digits.
  std::string hex() const {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text(16, '0');
    std::uint64_t x = value();
    for (std::size_t i = text.size(); i > 0; --i) {
      text[i - 1] = kDigits[x & 0xf];
      x >>= 4;
    }
    return text;
  }

 private:
  static constexpr std::uint64_t kMultiplyA = 0x9fb21c651e98df25ULL;
  static constexpr std::uint64_t kMultiplyB = 0xd6e8feb86659fd93ULL;

  void word(std::uint64_t w) {
    w *= kMultiplyB;
    w ^= w >> 32;
    state_ = std::rotl(state_ ^ w, 27) * kMultiplyA + 0x2545f4914f6cdd1dULL;
    ++words_;
  }

  std::uint64_t state_ = 0x6a6f67616b000001ULL;
  std::uint64_t words_ = 0;
};

}  // namespace jogak
