// SPDX-License-Identifier: Apache-2.0
//
// Reads HTTP/1.x requests from bytes in any pieces, one request at a time, within limits.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace jogak::net {

class RequestParser {
 public:
  struct Limits {
    std::size_t head_bytes = 0;
    std::size_t body_bytes = 0;
  };
  enum class State {
    Idle,  // nothing of a request has come
    Head,
    Body,
    Done,    // take() it
    Failed,  // for good
  };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  // Uses bytes up to the end of the request and returns how many; the rest belongs to the next one.
  std::size_t feed(std::string_view bytes);

  State state() const;
  // Once the head is there: the client waits for "100 Continue" before it sends the body.
  bool wants_continue() const;
  // What the request says about its connection. From the head on.
  bool is_http_1_0() const;
  bool keeps_alive() const;

  // Of a failure: 400, 413, 417, 431 or 505, and why.
  int error_status() const;
  const std::string& error() const;

  // The request (Done), or what is known of it (Failed). After Done the next one may come.
  HttpRequest take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::net
