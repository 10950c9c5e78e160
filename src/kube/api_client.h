// SPDX-License-Identifier: Apache-2.0
//
// Calls of the Kubernetes API: one request, one answer, with the retries that are safe. Rules:
// client-go's (Retry-After on 429 and 5xx at most 10 times; a request that may have been carried
// out is repeated only when that cannot harm).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "net/http_client.h"

namespace jogak::kube {

struct ApiRequest {
  std::string method;        // GET, POST, PUT, PATCH, DELETE
  std::string target;        // path and query, already escaped
  std::string body = {};     // JSON
  std::string content_type = "application/json";
  TimeUs time_limit = 30 * kSecondInUs;  // of each attempt
  // Attempts after an answer that asks to come again (429, 5xx with Retry-After). GETs are also
  // repeated when the connection broke.
  int retries_max = 10;
};

struct ApiAnswer {
  int status = 0;
  std::string body;
  std::optional<TimeUs> retry_after;
};

// What went wrong, of an answer with a status of 400 or more: Status object or plain text.
struct ApiProblem {
  int status = 0;
  std::string reason;   // "NotFound", "Conflict", ...; made from the status when the body has none
  std::string message;  // one line
  std::string cause;    // reason of the first cause, "" for none: "ResourceVersionTooLarge", ...
};
ApiProblem problem_of(const ApiAnswer& answer);
// 404 NotFound, 409 Conflict, 410 Gone, 429 and 5xx Unavailable (504 too), the rest Invalid.
Error error_of(const ApiProblem& problem);

// Counts of what was asked, for metrics; a transport failure counts as status 0.
struct ApiCall {
  std::string_view method;
  int status = 0;
  TimeUs duration = 0;
};

class ApiClient {
 public:
  explicit ApiClient(net::HttpClient& http);
  ~ApiClient();

  Loop& loop();
  net::HttpClient& http() { return http_; }

  // The answer, whatever its status, or the transport's error (http_client.h). On the loop, never
  // before the call returns. What is under way when the client goes is cancelled.
  using Done = std::function<void(Result<ApiAnswer>)>;
  void call(ApiRequest request, Done done);
  // The same; a status of 400 or more becomes error_of() it.
  using DoneOk = std::function<void(Result<std::string> body)>;
  void call_ok(ApiRequest request, DoneOk done);

  // Told of every attempt that ended.
  std::function<void(const ApiCall&)> on_call;

 private:
  struct Impl;
  net::HttpClient& http_;
  std::unique_ptr<Impl> impl_;
};

// Percent-encodes what may not stand in a query value or a path segment.
std::string escape(std::string_view text);

}  // namespace jogak::kube
