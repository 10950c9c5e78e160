// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648) in the two alphabets that the API uses.
#include "apiserver/kinds/config_data.h"

#include <algorithm>
#include <cstdint>

namespace jogak::api {

namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet, bool is_padded) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      if (j <= count) {
        text += alphabet[group >> (18 - 6 * j) & 63];
      } else if (is_padded) {
        text += '=';
      }
    }
  }
  return text;
}

}  // namespace

std::string base64_encode(std::string_view bytes) { return encode(bytes, kStandard, true); }

std::string base64url_encode(std::string_view bytes) { return encode(bytes, kUrl, false); }

std::optional<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  int letters = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      group <<= 6;
    } else {
      const std::size_t value = kStandard.find(c);
      if (value == std::string_view::npos || padding > 0) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    if (++letters % 4 != 0) continue;
    if (padding > 2) return std::nullopt;
    for (int i = 0; i < 3 - padding; ++i) {
      bytes += static_cast<char>(group >> (16 - 8 * i) & 255);
    }
    group = 0;
  }
  if (letters % 4 != 0) return std::nullopt;
  return bytes;
}

std::size_t base64_size(std::string_view text) {
  const auto padding = static_cast<std::size_t>(std::ranges::count(text, '='));
  const auto breaks = static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return c == '\n' || c == '\r'; }));
  const std::size_t whole = (text.size() - breaks) / 4 * 3;
  return whole - std::min(padding, whole);
}

}  // namespace jogak::api
