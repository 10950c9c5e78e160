// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of the protobuf wire format.
#include "apiserver/codec/wire.h"

#include <array>
#include <utility>

namespace jogak::codec {
namespace {

constexpr int kGroupDepthMax = 100;  // groups are only ever skipped

std::unexpected<Error> unexpected_end() { return invalid("unexpected EOF"); }

// The bytes of a varint, and how many.
struct Varint {
  std::array<char, 10> bytes{};
  std::size_t size = 0;
};

Varint varint_of(std::uint64_t value) {
  Varint result;
  while (value >= 0x80) {
    result.bytes[result.size++] = static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  result.bytes[result.size++] = static_cast<char>(value);
  return result;
}

}  // namespace

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return unexpected_end();
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return invalid("proto: integer overflow");
}

Result<WireReader::Tag> WireReader::tag() {
  JOGAK_TRY(const std::uint64_t key, varint());
  const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(key >> 3));
  const auto wire = static_cast<unsigned>(key & 7);
  if (wire == static_cast<unsigned>(Wire::GroupEnd)) {
    return invalid("proto: wiretype end group for non-group");
  }
  if (number <= 0) return invalid("proto: illegal tag {} (wire type {})", number, wire);
  return Tag{.number = static_cast<std::uint32_t>(number), .wire = static_cast<Wire>(wire)};
}

Result<std::string_view> WireReader::bytes() {
  JOGAK_TRY(const std::uint64_t size, varint());
  if (size > rest_.size()) return unexpected_end();
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

Result<std::uint64_t> WireReader::fixed64() {
  if (rest_.size() < 8) return unexpected_end();
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  }
  rest_.remove_prefix(8);
  return value;
}

Result<void> WireReader::skip(Wire wire) {
  switch (wire) {
    case Wire::Varint: {
      auto value = varint();
      if (!value) return std::unexpected(std::move(value).error());
      return {};
    }
    case Wire::Fixed64:
      return skip_bytes(8);
    case Wire::Bytes: {
      auto value = bytes();
      if (!value) return std::unexpected(std::move(value).error());
      return {};
    }
    case Wire::Fixed32:
      return skip_bytes(4);
    case Wire::GroupStart:
      return skip_group(1);
    case Wire::GroupEnd:
      break;
  }
  return invalid("proto: illegal wireType {}", static_cast<unsigned>(wire));
}

Result<void> WireReader::skip_bytes(std::size_t count) {
  if (rest_.size() < count) return unexpected_end();
  rest_.remove_prefix(count);
  return {};
}

Result<void> WireReader::skip_group(int depth) {
  while (depth > 0) {
    JOGAK_TRY(const std::uint64_t key, varint());
    const auto wire = static_cast<Wire>(key & 7);
    if (wire == Wire::GroupEnd) {
      --depth;
    } else if (wire == Wire::GroupStart) {
      if (++depth > kGroupDepthMax) return invalid("proto: groups are nested too deep");
    } else {
      JOGAK_TRY_VOID(skip(wire));
    }
  }
  return {};
}

std::unexpected<Error> wrong_wire(Wire wire, std::string_view field) {
  return invalid("proto: wrong wireType = {} for field {}", static_cast<unsigned>(wire), field);
}

void WireWriter::varint(std::uint64_t value) {
  const Varint text = varint_of(value);
  out_.append(text.bytes.data(), text.size);
}

void WireWriter::fixed64_field(std::uint32_t number, std::uint64_t value) {
  tag(number, Wire::Fixed64);
  for (int i = 0; i < 8; ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xff);
}

void WireWriter::insert_length(std::size_t start) {
  const Varint length = varint_of(out_.size() - start);
  out_.insert(start, length.bytes.data(), length.size);
}

}  // namespace jogak::codec
