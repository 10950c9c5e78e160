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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "net/http_client.h"

namespace jogak::kube {

struct ApiRequest {
  std::string method = "GET";  // GET, POST, PUT, PATCH, DELETE
  std::string target = {};     // path and query, already escaped
  std::string body = {};       // JSON
  std::string content_type = "application/json";
  TimeUs time_limit = 30 * kSecondInUs;  // of each attempt
  // Attempts after an answer that asks to come again (429, 5xx with Retry-After). GETs are also
  // repeated when the connection broke.
  int retries_max = 10;
  // A longer body is an error: what was asked for is never that large.
  std::size_t body_bytes_max = std::size_t{64} << 20;
};

struct ApiAnswer {
  int status = 0;
  std::string body = {};
  // The server asks to come again after so long: header Retry-After, or the Status says so.
  std::optional<TimeUs> retry_after = {};
  // Texts of the Warning headers, of the last attempt.
  std::vector<std::string> warnings = {};
};

// What went wrong, of an answer with a status of 400 or more: Status object or plain text.
struct ApiProblem {
  int status = 0;
  std::string reason;   // "NotFound", "Conflict", ...; made from the status when the body has none
  std::string message;  // one line
  std::string cause;    // reason of the first cause, "" for none: "ResourceVersionTooLarge", ...
};
ApiProblem problem_of(const ApiAnswer& answer);
// Of the object in an ERROR event of a watch; the status is the one that it names.
ApiProblem problem_of_status(std::string_view status_json);
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
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  Loop& loop();
  net::HttpClient& http() { return http_; }

  // The answer, whatever its status, or the transport's error (http_client.h); Invalid for a body
  // that is too long. On the loop, never before the call returns. What is under way when the client
  // goes is cancelled. The client may be destroyed inside `done`.
  //
  // An attempt is repeated, after a pause,
  //   - when the answer is 429 or 5xx and says when to come again (retries_max; a wait of more than
  //     a minute is left to the caller, and so is a 504 to a POST: it may have been carried out);
  //   - when the request surely did not arrive (Unavailable), and for a GET also when the answer
  //     broke off: at most 4 times, within 2 s. A POST whose answer broke off is never repeated.
  using Done = std::function<void(Result<ApiAnswer>)>;
  void call(ApiRequest request, Done done);
  // The same; a status of 400 or more becomes error_of() it.
  using DoneOk = std::function<void(Result<std::string> body)>;
  void call_ok(ApiRequest request, DoneOk done);

  // One exchange without retries, whose answer is read as it arrives (a watch, a page of a list).
  // It lasts as long as the handle, which must not outlive the client.
  std::shared_ptr<void> stream(net::ClientRequest request, net::ClientEvents events);

  // Told of every attempt that ended; of a stream, when its head arrived or it could not begin.
  std::function<void(const ApiCall&)> on_call;
  // Told of every Warning header.
  std::function<void(std::string_view text)> on_warning;
  // Header User-Agent; what is before the '/' becomes the field manager of writes without one.
  std::string user_agent = "jogak";

 private:
  struct Call;
  void attempt(const std::shared_ptr<Call>& call);
  void on_end(const std::shared_ptr<Call>& call, Result<void> outcome);
  void repeat_after(const std::shared_ptr<Call>& call, TimeUs delay);
  void finish(const std::shared_ptr<Call>& call, Result<ApiAnswer> result);
  void note_call(std::string_view method, int status, TimeUs began);
  void note_warnings(const std::vector<std::string>& warnings);
  void add_headers(net::ClientRequest& request) const;

  net::HttpClient& http_;
  std::set<std::shared_ptr<Call>> calls_;  // under way or waiting
};

// Texts of the Warning headers: `299 - "unknown field \"a\""`, several to a header or one.
std::vector<std::string> warnings_of(const net::Headers& headers);

// Percent-encodes what may not stand in a query value or a path segment.
std::string escape(std::string_view text);

}  // namespace jogak::kube
