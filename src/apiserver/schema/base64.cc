// SPDX-License-Identifier: Apache-2.0
//
// Base64 with padding.
#include "apiserver/schema/base64.h"

#include <array>
#include <cstdint>

namespace jogak::schema {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> kValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

int value_of(char c) { return kValues[static_cast<unsigned char>(c)]; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group <<= 8;
      if (i + k < bytes.size()) group |= static_cast<unsigned char>(bytes[i + k]);
    }
    const std::size_t left = bytes.size() - i;
    out += kAlphabet[group >> 18];
    out += kAlphabet[(group >> 12) & 63];
    out += left > 1 ? kAlphabet[(group >> 6) & 63] : '=';
    out += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return out;
}

std::expected<std::string, std::size_t> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int count = 0;    // characters of the group
  int padding = 0;  // '=' among them
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_line_end(c)) continue;
    const int value = value_of(c);
    const bool is_padding = c == '=' && count >= 2;
    if ((value < 0 && !is_padding) || (padding > 0 && !is_padding)) return std::unexpected(i);
    if (count == 0 && padding > 0) return std::unexpected(i);
    padding += is_padding ? 1 : 0;
    group = (group << 6) | (is_padding ? 0U : static_cast<std::uint32_t>(value));
    if (++count < 4) continue;
    for (int k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k));
    group = 0;
    count = 0;
  }
  if (count != 0) return std::unexpected(text.size());
  return out;
}

bool is_canonical_base64(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  std::size_t length = text.size();
  std::size_t padding = 0;
  while (padding < 2 && padding < length && text[length - 1 - padding] == '=') ++padding;
  length -= padding;
  for (std::size_t i = 0; i < length; ++i) {
    if (value_of(text[i]) < 0) return false;
  }
  if (padding == 0) return true;
  // The bits that the padding cuts off are zero.
  return (value_of(text[length - 1]) & (padding == 2 ? 15 : 3)) == 0;
}

}  // namespace jogak::schema
