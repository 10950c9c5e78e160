// SPDX-License-Identifier: Apache-2.0
//
// For tests: a server that speaks whatever the test says, byte by byte, on the test's own loop: one
// that answers half, never, or with nonsense, and a proxy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/epoll_loop.h"

namespace jogak::net {

class RawServer {
 public:
  class Connection {
   public:
    Connection(EpollLoop& loop, int fd) : loop_(loop), fd_(fd) {}
    ~Connection() { close(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Blocks until the bytes are in the socket's buffer: keep them few.
    void send(std::string_view bytes);
    void close();
    // With a reset instead of in order.
    void reset();
    bool is_open() const { return fd_ >= 0; }

    std::string input;  // all that came so far; the test may take from it
    // Not empty: instead of the server's on_bytes.
    std::function<void(Connection&)> on_bytes;

   private:
    friend class RawServer;
    EpollLoop& loop_;
    int fd_;
  };

  // on_bytes runs on the loop after each arrival.
  using OnBytes = std::function<void(Connection&)>;
  RawServer(EpollLoop& loop, OnBytes on_bytes);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

  // Dials loopback and treats the connection as one that was accepted; for proxies.
  std::shared_ptr<Connection> dial(std::uint16_t port, OnBytes on_bytes);

 private:
  void add(const std::shared_ptr<Connection>& connection);

  EpollLoop& loop_;
  OnBytes on_bytes_;
  int listen_fd_ = -1;
  std::uint16_t port_ = 0;
  int accepted_ = 0;
  std::map<int, std::shared_ptr<Connection>> connections_;
};

}  // namespace jogak::net
