// SPDX-License-Identifier: Apache-2.0
//
// For tests and benchmarks: a small blocking HTTP/1.1 client over one connection to loopback, plain
// or TLS. Every wait ends after some seconds with an error, so that no test hangs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace jogak::net {

struct BlockingClientOptions {
  std::string address = "127.0.0.1";
  // Not empty: TLS, trusting this certificate, which must be for the address.
  std::string trusted_pem = {};
  int receive_buffer_bytes = 0;  // of the socket; small ones make a slow reader
  int timeout_s = 20;
};

class BlockingClient {
 public:
  struct Response {
    int status = 0;
    Headers headers;
    std::string body;
  };

  static Result<BlockingClient> connect(std::uint16_t port,
                                        const BlockingClientOptions& options = {});
  BlockingClient(BlockingClient&&) noexcept;
  BlockingClient& operator=(BlockingClient&&) noexcept;
  ~BlockingClient();

  // Sends one request and reads its answer.
  Result<Response> request(std::string_view method, std::string_view target,
                           const Headers& headers = {}, std::string_view body = "");

  // The steps of it. Host and Content-Length are added.
  Result<void> send_request(std::string_view method, std::string_view target,
                            const Headers& headers = {}, std::string_view body = "");
  Result<void> send_raw(std::string_view bytes);
  Result<Response> read_response(std::string_view method = "GET");

  // An answer in pieces: the head alone, then lines as they come. nullopt: the stream has ended in
  // order. An end without its last chunk is an Error.
  Result<Response> read_head();
  Result<std::optional<std::string>> read_line();

  // Everything until the peer closes.
  Result<std::string> read_to_end();
  void end_writing();
  // Closes with a reset instead of in order.
  void reset();

 private:
  struct Impl;
  explicit BlockingClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::net
