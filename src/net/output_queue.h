// SPDX-License-Identifier: Apache-2.0
//
// Bytes on their way to a peer: short ones copied together, long ones kept as they are, those that
// go to many peers shared between the queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace jogak::net {

class OutputQueue {
 public:
  void add(std::string_view bytes);  // copies
  void add(std::string&& bytes);     // keeps long ones without a copy
  void add(std::shared_ptr<const std::string> bytes);

  std::size_t size() const { return static_cast<std::size_t>(added_ - consumed_); }
  bool empty() const { return added_ == consumed_; }
  // All bytes that ever came in, and that ever left.
  std::uint64_t added() const { return added_; }
  std::uint64_t consumed() const { return consumed_; }

  // The first pieces, in order; returns how many were filled in.
  std::size_t peek(std::span<std::string_view> pieces) const;
  // Forgets that many bytes from the front.
  void consume(std::size_t bytes);
  void clear();

 private:
  struct Piece {
    std::string own;  // or:
    std::shared_ptr<const std::string> shared;
    std::string_view text() const { return shared != nullptr ? *shared : own; }
  };

  std::deque<Piece> pieces_;
  std::size_t front_used_ = 0;  // of the first piece
  std::uint64_t added_ = 0, consumed_ = 0;
};

}  // namespace jogak::net
