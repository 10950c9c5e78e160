// SPDX-License-Identifier: Apache-2.0
//
// The protobuf wire format: tags, varints and lengths, without any knowledge of messages. Errors
// are those of Go's generated code. A reader never looks outside the bytes it was given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::codec {

enum class Wire : std::uint8_t {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  GroupStart = 3,
  GroupEnd = 4,
  Fixed32 = 5
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  struct Tag {
    std::uint32_t number = 0;
    Wire wire = Wire::Varint;
  };

  bool is_done() const { return rest_.empty(); }
  Result<Tag> tag();
  Result<std::uint64_t> varint();
  Result<std::string_view> bytes();
  Result<std::uint64_t> fixed64();
  // Over the value behind a tag.
  Result<void> skip(Wire wire);

 private:
  Result<void> skip_bytes(std::size_t count);
  Result<void> skip_group(int depth);

  std::string_view rest_;
};

// "proto: wrong wireType = 5 for field Name"
std::unexpected<Error> wrong_wire(Wire wire, std::string_view field);

class WireWriter {
 public:
  void varint(std::uint64_t value);
  void tag(std::uint32_t number, Wire wire) {
    varint((std::uint64_t{number} << 3) | static_cast<std::uint64_t>(wire));
  }
  void varint_field(std::uint32_t number, std::uint64_t value) {
    tag(number, Wire::Varint);
    varint(value);
  }
  void bytes_field(std::uint32_t number, std::string_view value) {
    tag(number, Wire::Bytes);
    varint(value.size());
    out_ += value;
  }
  void fixed64_field(std::uint32_t number, std::uint64_t value);

  // What `body` writes is the message of that field.
  template <class Body>
  void message_field(std::uint32_t number, Body body) {
    tag(number, Wire::Bytes);
    const std::size_t start = out_.size();
    body();
    insert_length(start);
  }

  std::string take() { return std::move(out_); }

 private:
  void insert_length(std::size_t start);

  std::string out_;
};

}  // namespace jogak::codec
