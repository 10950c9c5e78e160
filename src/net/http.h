// SPDX-License-Identifier: Apache-2.0
//
// An HTTP exchange as a server sees it, without the transport: handlers work the same behind a
// socket and in a test.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jogak::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The first value of that header (names compare without case), "" when absent.
std::string_view header(const Headers& headers, std::string_view name);

struct HttpRequest {
  std::string method;
  std::string target;  // path and query as sent
  Headers headers;
  std::string body;
};

// The answer to one request. Shared by the transport and the handler; calls after the peer has gone
// do nothing. On the loop's thread only.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // A whole answer.
  virtual void respond(int status, Headers headers, std::string body) = 0;
  // An answer in pieces (chunked): begin, write*, end. Each write goes out at once.
  virtual void begin(int status, Headers headers) = 0;
  virtual void write(std::string_view bytes) = 0;
  // The same bytes to many peers without a copy each; the transport keeps a reference.
  virtual void write_shared(std::shared_ptr<const std::string> bytes) = 0;
  virtual void end() = 0;

  virtual bool is_open() const = 0;
  // Bytes accepted here that the peer has not taken yet.
  virtual std::size_t pending() const = 0;
  // Called once when the peer goes away before end(), or after the last byte left.
  virtual void on_close(std::function<void()> callback) = 0;
  // Called each time pending() falls to 0.
  virtual void on_drain(std::function<void()> callback) = 0;
  // Drops the connection.
  virtual void abort() = 0;
};

using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<ResponseWriter>)>;

}  // namespace jogak::net
