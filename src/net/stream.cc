// SPDX-License-Identifier: Apache-2.0
//
// The plain kind; the other one is in tls.cc.
#include "net/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace jogak::net {
namespace {

constexpr std::size_t kPiecesPerCall = 64;

Stream::Moved from_call(ssize_t result) {
  if (result > 0) return {Stream::Outcome::Done, static_cast<std::size_t>(result)};
  if (result == 0) return {Stream::Outcome::End, 0};
  const bool is_blocked = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {is_blocked ? Stream::Outcome::Blocked : Stream::Outcome::Lost, 0};
}

class PlainStream : public Stream {
 public:
  explicit PlainStream(int fd) : fd_(fd) {}

  Moved read(std::span<char> into) override {
    return from_call(::recv(fd_, into.data(), into.size(), 0));
  }

  Moved write(const OutputQueue& from) override {
    std::array<std::string_view, kPiecesPerCall> pieces;
    std::array<iovec, kPiecesPerCall> parts;
    const std::size_t count = from.peek(pieces);
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    return from_call(::sendmsg(fd_, &message, MSG_NOSIGNAL));
  }

  void end_writing() override { ::shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<Stream> plain_stream(int fd) { return std::make_unique<PlainStream>(fd); }

}  // namespace jogak::net
