// SPDX-License-Identifier: Apache-2.0
//
// Which bytes are copied and which are kept is a matter of size alone: many small pieces cost more
// system calls than their copies cost time.
#include "net/output_queue.h"

#include <utility>

#include "base/check.h"

namespace jogak::net {
namespace {

constexpr std::size_t kPieceBytesMax = 16 * 1024;  // a piece that grows by copies
constexpr std::size_t kCopyBytesMax = 1024;        // shorter ones are not worth a piece

}  // namespace

void OutputQueue::add(std::string_view bytes) {
  if (bytes.empty()) return;
  added_ += bytes.size();
  const bool has_room = !pieces_.empty() && pieces_.back().shared == nullptr &&
                        pieces_.back().own.size() + bytes.size() <= kPieceBytesMax;
  if (has_room) {
    pieces_.back().own += bytes;
  } else {
    pieces_.push_back({std::string(bytes), nullptr});
  }
}

void OutputQueue::add(std::string&& bytes) {
  if (bytes.size() <= kCopyBytesMax) return add(std::string_view(bytes));
  added_ += bytes.size();
  pieces_.push_back({std::move(bytes), nullptr});
}

void OutputQueue::add(std::shared_ptr<const std::string> bytes) {
  if (bytes->size() <= kCopyBytesMax) return add(std::string_view(*bytes));
  added_ += bytes->size();
  pieces_.push_back({{}, std::move(bytes)});
}

std::size_t OutputQueue::peek(std::span<std::string_view> pieces) const {
  std::size_t count = 0;
  for (const Piece& piece : pieces_) {
    if (count == pieces.size()) break;
    pieces[count] = piece.text();
    if (count == 0) pieces[count].remove_prefix(front_used_);
    ++count;
  }
  return count;
}

void OutputQueue::consume(std::size_t bytes) {
  JOGAK_CHECK(bytes <= size());
  consumed_ += bytes;
  while (bytes > 0) {
    const std::size_t left = pieces_.front().text().size() - front_used_;
    if (bytes < left) {
      front_used_ += bytes;
      return;
    }
    bytes -= left;
    pieces_.pop_front();
    front_used_ = 0;
  }
}

void OutputQueue::clear() {
  pieces_.clear();
  front_used_ = 0;
  consumed_ = added_;
}

}  // namespace jogak::net
