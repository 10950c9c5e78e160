// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 server on an EpollLoop: listens, accepts, moves bytes between sockets and
// HttpConnections, and ends those that take too long. Everything happens on the loop's thread.
//
// Answers leave at the end of a turn of the loop, those of all connections together, after one call
// of `before_write`. A server that must not answer before its changes are on disk writes them
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "net/epoll_loop.h"
#include "net/http.h"
#include "net/http_connection.h"
#include "net/tls.h"

namespace jogak::net {

struct HttpServerOptions {
  std::string address = "127.0.0.1";          // IPv4 or IPv6, no name
  std::uint16_t port = 0;                     // 0: any that is free
  std::shared_ptr<TlsContext> tls = nullptr;  // null: plain HTTP
  HttpLimits limits = {};
  std::size_t connections_max = 4096;  // one more is answered 503
  HttpErrorAnswer error_answer = plain_error_answer;
  // False: what waits to be written must not leave, and its connections are dropped.
  std::function<bool()> before_write = nullptr;
};

class HttpServer {
 public:
  // Listens from now on; requests are handled once the loop runs. Errc::Conflict when the port is
  // taken, Invalid when the address is not one of this machine's.
  static Result<std::unique_ptr<HttpServer>> listen(EpollLoop& loop, HttpServerOptions options,
                                                    HttpHandler handler);
  // Drops all connections.
  ~HttpServer();

  std::uint16_t port() const;
  // "https://127.0.0.1:6443", IPv6 in brackets.
  std::string url() const;

  struct Counts {
    std::size_t connections = 0;  // open now
    std::uint64_t accepted = 0, refused = 0, timed_out = 0;
  };
  Counts counts() const;

  // Accepts nobody any more, lets answers under way finish, and drops what is left after `grace`.
  // Calls `done` once all are gone. Streams last until somebody ends them: their handlers should.
  void close(TimeUs grace, std::function<void()> done);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::net
