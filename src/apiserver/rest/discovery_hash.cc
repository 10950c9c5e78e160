// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 by FIPS 180-4, in full: the library of TLS is the business of net/ alone.
#include "apiserver/rest/discovery_hash.h"

#include <bit>
#include <cstddef>

namespace jogak::api {
namespace {

// FIPS 180-4, section 4.2.2.
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
constexpr std::size_t kBlock = 64;

using State = std::array<std::uint32_t, 8>;

void add_block(State& state, const char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      w[i] = w[i] << 8 | static_cast<unsigned char>(block[4 * i + j]);
    }
  }
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  State s = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t mix_e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const std::uint32_t mix_a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const std::uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const std::uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    const std::uint32_t one = s[7] + mix_e + choice + kRounds[i] + w[i];
    s = {one + mix_a + majority, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] += s[i];
  }
}

std::string base64(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < size; i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < size ? bytes[i + j] : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= size ? kDigits[group >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::size_t done = 0;
  for (; bytes.size() - done >= kBlock; done += kBlock) {
    add_block(state, bytes.data() + done);
  }
  // The rest, a one bit, zeros, and the length in bits at the end of the last block.
  std::string tail(bytes.substr(done));
  tail += '\x80';
  while (tail.size() % kBlock != kBlock - 8) {
    tail += '\0';
  }
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) {
    tail += static_cast<char>(bits >> shift & 0xff);
  }
  for (std::size_t i = 0; i < tail.size(); i += kBlock) {
    add_block(state, tail.data() + i);
  }
  Sha256 sum{};
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  }
  return sum;
}

std::string content_hash(std::string_view document) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const std::uint8_t byte : sha256(document)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string storage_hash(std::string_view group, std::string_view version, std::string_view kind) {
  constexpr std::size_t kKept = 8;
  std::string name(group);
  name.append("/").append(version).append("/").append(kind);
  return base64(sha256(name).data(), kKept);
}

}  // namespace jogak::api
