// SPDX-License-Identifier: Apache-2.0
//
// Loopback sockets behind raw_server.h.
#include "net/testing/raw_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/check.h"

namespace jogak::net {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

void RawServer::Connection::send(std::string_view bytes) {
  while (!bytes.empty() && fd_ >= 0) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN) return close();
    pollfd wait{.fd = fd_, .events = POLLOUT, .revents = 0};
    ::poll(&wait, 1, 1000);
  }
}

void RawServer::Connection::close() {
  if (fd_ < 0) return;
  loop_.remove_fd(fd_);
  ::close(fd_);
  fd_ = -1;
}

void RawServer::Connection::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

RawServer::RawServer(EpollLoop& loop, OnBytes on_bytes)
    : loop_(loop), on_bytes_(std::move(on_bytes)) {
  listen_fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  JOGAK_CHECK(listen_fd_ >= 0 && ::bind(listen_fd_, generic, size) == 0 &&
              ::listen(listen_fd_, 128) == 0 && ::getsockname(listen_fd_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  loop_.add_fd(listen_fd_, EPOLLIN, [this](std::uint32_t) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ++accepted_;
    add(std::make_shared<Connection>(loop_, fd));
  });
}

RawServer::~RawServer() {
  loop_.remove_fd(listen_fd_);
  ::close(listen_fd_);
  for (const auto& [fd, connection] : connections_) {
    connection->close();
    connection->on_bytes = nullptr;  // it may hold other connections
  }
}

std::shared_ptr<RawServer::Connection> RawServer::dial(std::uint16_t port, OnBytes on_bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = loopback(port);
  JOGAK_CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  JOGAK_CHECK(::fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  auto connection = std::make_shared<Connection>(loop_, fd);
  connection->on_bytes = std::move(on_bytes);
  add(connection);
  return connection;
}

void RawServer::add(const std::shared_ptr<Connection>& connection) {
  const int fd = connection->fd_;
  connections_[fd] = connection;
  loop_.add_fd(fd, EPOLLIN, [this, weak = std::weak_ptr(connection)](std::uint32_t) {
    const auto own = weak.lock();
    if (own == nullptr || own->fd_ < 0) return;
    std::array<char, 64 * 1024> buffer;
    const ssize_t got = ::recv(own->fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return own->close();
    own->input.append(buffer.data(), static_cast<std::size_t>(got));
    (own->on_bytes ? own->on_bytes : on_bytes_)(*own);
  });
}

}  // namespace jogak::net
