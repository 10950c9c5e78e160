// SPDX-License-Identifier: Apache-2.0
//
// An HTTP exchange as a client sees it, without the transport: whoever asks works the same over a
// socket (net/curl_client.h) and against a server in the same process under virtual time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "net/http.h"

namespace jogak::net {

struct ClientRequest {
  std::string method;
  std::string target;  // path and query, "/api/v1/pods?limit=500"; the client knows the server
  Headers headers = {};
  std::string body = {};
  // The whole exchange may take so long; 0: no limit (a watch).
  TimeUs time_limit = 0;
  // Nothing arrived for so long: the peer is taken for dead; 0: never.
  TimeUs silence_limit = 0;
};

// Called on the loop, never before send() returns: on_head once, on_body any number of times,
// on_end last and exactly once. Any of them may be empty.
struct ClientEvents {
  std::function<void(int status, const Headers& headers)> on_head = {};
  std::function<void(std::string_view bytes)> on_body = {};
  // No error: the whole answer arrived, whatever its status says. Unavailable: the request has
  // surely not been handled (no connection, no TLS, a name unknown). Timeout: it may have been; the
  // answer did not come, or not whole. Invalid: it can never work (a certificate refused).
  std::function<void(Result<void> outcome)> on_end = {};
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;

  virtual Loop& loop() = 0;
  // The exchange lasts as long as the handle; dropping it cancels, and no event follows. May be
  // dropped inside an event.
  virtual std::shared_ptr<void> send(ClientRequest request, ClientEvents events) = 0;
};

}  // namespace jogak::net
