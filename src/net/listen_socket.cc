// SPDX-License-Identifier: Apache-2.0
//
// The casts between sockaddr types stay in this file.
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace jogak::net {
namespace {

constexpr int kBacklog = 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<SocketAddress> parse_address(const std::string& address, std::uint16_t port) {
  SocketAddress made;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&made.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    made.size = sizeof *v4;
    return made;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&made.storage);
  if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    made.size = sizeof *v6;
    return made;
  }
  return invalid("listening on \"{}\": not an IP address", address);
}

void set_flag(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

Result<int> listen_on(const std::string& address, std::uint16_t port) {
  JOGAK_TRY(const SocketAddress where, parse_address(address, port));
  const int fd = ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Errc::Unavailable, "listening on {}: {}", address, std::strerror(errno));
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd, where.get(), where.size) != 0 || ::listen(fd, kBacklog) != 0) {
    const int error = errno;
    ::close(fd);
    const Errc code = error == EADDRINUSE      ? Errc::Conflict
                      : error == EADDRNOTAVAIL ? Errc::Invalid
                                               : Errc::Unavailable;
    return fail(code, "listening on {} port {}: {}", address, port, std::strerror(error));
  }
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  const bool is_v4 = storage.ss_family == AF_INET;
  return ntohs(is_v4 ? reinterpret_cast<const sockaddr_in*>(&storage)->sin_port
                     : reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

void prepare_connection(int fd) {
  set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_flag(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_flag(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_flag(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_flag(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace jogak::net
