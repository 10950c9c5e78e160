// SPDX-License-Identifier: Apache-2.0
//
// A connected, non-blocking socket, plain or under TLS: what the server needs of either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/output_queue.h"

namespace jogak::net {

class Stream {
 public:
  enum class Outcome : std::uint8_t { Done, Blocked, End, Lost };
  struct Moved {
    Outcome outcome = Outcome::Done;
    std::size_t bytes = 0;  // with Done, at least one
  };

  virtual ~Stream() = default;

  virtual Moved read(std::span<char> into) = 0;
  // Takes bytes from the front of the queue; the caller consumes what was taken.
  virtual Moved write(const OutputQueue& from) = 0;
  // Says that nothing more will be written; the peer may still send.
  virtual void end_writing() = 0;
  // TLS alone: bytes that have left the socket and wait in here.
  virtual bool has_buffered() const { return false; }
  // TLS alone: what it blocks on is the other direction than that of the call.
  virtual bool is_read_blocked_on_write() const { return false; }
};

// Neither closes the descriptor.
std::unique_ptr<Stream> plain_stream(int fd);

}  // namespace jogak::net
