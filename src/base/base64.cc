// SPDX-License-Identifier: Apache-2.0
//
// Six bits at a time.
#include "base/base64.h"

#include <cstdint>

namespace jogak {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The value of a digit, -1 for what is none.
int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = (bits << 8U) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const auto shift = static_cast<unsigned>(18 - 6 * k);
      text += k <= count ? kDigits[(bits >> shift) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = value_of(c);
    if (value < 0 || padding > 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    if (++digits % 4 == 0) {
      bytes += static_cast<char>((bits >> 16U) & 255U);
      bytes += static_cast<char>((bits >> 8U) & 255U);
      bytes += static_cast<char>(bits & 255U);
      bits = 0;
    }
  }
  const std::size_t rest = digits % 4;
  if (rest == 1 || padding > 2 || (padding > 0 && rest + padding != 4)) return std::nullopt;
  if (rest >= 2) bytes += static_cast<char>((bits >> (rest == 2 ? 4U : 10U)) & 255U);
  if (rest == 3) bytes += static_cast<char>((bits >> 2U) & 255U);
  return bytes;
}

}  // namespace jogak
