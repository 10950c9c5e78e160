// SPDX-License-Identifier: Apache-2.0
//
// What libcurl says of an exchange that failed, put into the three codes and one clear line of
// http_client.h.
#pragma once

#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::net {

struct CurlFailure {
  int code = 0;             // CURLcode
  int os_errno = 0;         // of the connection, 0: none
  std::string_view text;    // libcurl's own words, may be empty
  std::string_view server;  // "10.0.0.1:6443"
  std::string_view proxy;   // "" for none
  std::string_view method;
  bool is_sent = false;      // at least a part of the request may have reached the server
  bool is_answered = false;  // the head of the answer has arrived
  bool has_client_certificate = false;
};
Error error_of(const CurlFailure& failure);

// "15 s", "250 ms".
std::string duration_text(TimeUs duration);

}  // namespace jogak::net
