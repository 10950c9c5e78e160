// SPDX-License-Identifier: Apache-2.0
//
// A call is a small state machine: an attempt is under way (it holds the exchange), or the next one
// waits for its timer. It leaves the set of calls before its caller is told, so that the caller may
// do anything, even destroy the client.
#include "kube/api_client.h"

#include <algorithm>
#include <utility>

#include "kube/status.h"
#include "net/http_text.h"

namespace jogak::kube {

namespace {

constexpr TimeUs kRetryAfterMax = 60 * kSecondInUs;
constexpr TimeUs kRetryAfterMin = 100 * kMsInUs;
constexpr int kBrokenMax = 4;
constexpr TimeUs kBrokenDelay = 100 * kMsInUs;  // doubles

bool asks_to_come_again(int status) { return status == 429 || status >= 500; }

}  // namespace

struct ApiClient::Call {
  ApiRequest request;
  Done done;
  ApiAnswer answer;
  std::shared_ptr<void> exchange;
  TimerId timer = 0;
  TimeUs began = 0;
  int repeats = 0;  // because the server asked for it
  int broken = 0;   // because the connection broke
};

ApiClient::ApiClient(net::HttpClient& http) : http_(http) {}

ApiClient::~ApiClient() {
  for (const std::shared_ptr<Call>& call : calls_) loop().cancel(call->timer);
}

Loop& ApiClient::loop() { return http_.loop(); }

void ApiClient::add_headers(net::ClientRequest& request) const {
  request.headers.emplace_back("Accept", "application/json");
  if (!user_agent.empty()) request.headers.emplace_back("User-Agent", user_agent);
}

void ApiClient::call(ApiRequest request, Done done) {
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  calls_.insert(call);
  attempt(call);
}

void ApiClient::call_ok(ApiRequest request, DoneOk done) {
  call(std::move(request), [done = std::move(done)](Result<ApiAnswer> answer) {
    if (!answer) return done(std::unexpected(std::move(answer).error()));
    if (answer->status >= 400) return done(std::unexpected(error_of(problem_of(*answer))));
    done(std::move(answer->body));
  });
}

// The events hold the call weakly: it owns the exchange, which owns them.
void ApiClient::attempt(const std::shared_ptr<Call>& call) {
  call->answer = {};
  call->began = loop().now();
  net::ClientRequest request{.method = call->request.method,
                             .target = call->request.target,
                             .body = call->request.body,
                             .time_limit = call->request.time_limit};
  add_headers(request);
  if (!request.body.empty()) {
    request.headers.emplace_back("Content-Type", call->request.content_type);
  }
  const std::weak_ptr<Call> weak = call;
  call->exchange =
      http_.send(std::move(request),
                 {.on_head =
                      [weak](int status, const net::Headers& headers) {
                        const auto of = weak.lock();
                        if (of == nullptr) return;
                        of->answer.status = status;
                        of->answer.retry_after = retry_after_of(headers, "");
                        of->answer.warnings = warnings_of(headers);
                      },
                  .on_body =
                      [this, weak](std::string_view bytes) {
                        const auto of = weak.lock();
                        if (of == nullptr) return;
                        if (bytes.size() > of->request.body_bytes_max - of->answer.body.size()) {
                          note_call(of->request.method, of->answer.status, of->began);
                          return finish(of, invalid("the answer to {} {} is longer than {} bytes",
                                                    of->request.method, of->request.target,
                                                    of->request.body_bytes_max));
                        }
                        of->answer.body.append(bytes);
                      },
                  .on_end =
                      [this, weak](Result<void> outcome) {
                        if (const auto of = weak.lock(); of != nullptr)
                          on_end(of, std::move(outcome));
                      }});
}

void ApiClient::on_end(const std::shared_ptr<Call>& call, Result<void> outcome) {
  const ApiRequest& request = call->request;
  note_call(request.method, outcome ? call->answer.status : 0, call->began);
  if (!outcome) {
    const bool surely_not_done = outcome.error().code == Errc::Unavailable;
    const bool broke_off =
        outcome.error().code == Errc::Timeout &&
        (request.time_limit == 0 || loop().now() - call->began < request.time_limit);
    if ((surely_not_done || (broke_off && request.method == "GET")) &&
        call->broken < std::min(kBrokenMax, request.retries_max)) {
      return repeat_after(call, kBrokenDelay << call->broken++);
    }
    return finish(call, std::unexpected(std::move(outcome).error()));
  }
  note_warnings(call->answer.warnings);
  ApiAnswer& answer = call->answer;
  if (answer.status >= 400 && !answer.retry_after) {
    answer.retry_after = retry_after_of({}, answer.body);
  }
  const bool may_be_done = answer.status == 504 && request.method == "POST";
  if (asks_to_come_again(answer.status) && answer.retry_after && !may_be_done &&
      *answer.retry_after <= kRetryAfterMax && call->repeats < request.retries_max) {
    ++call->repeats;
    return repeat_after(call, std::max(*answer.retry_after, kRetryAfterMin));
  }
  finish(call, std::move(answer));
}

void ApiClient::repeat_after(const std::shared_ptr<Call>& call, TimeUs delay) {
  call->exchange.reset();
  const std::weak_ptr<Call> weak = call;
  call->timer = loop().after(delay, [this, weak] {
    const auto of = weak.lock();
    if (of == nullptr) return;
    of->timer = 0;
    attempt(of);
  });
}

void ApiClient::finish(const std::shared_ptr<Call>& call, Result<ApiAnswer> result) {
  calls_.erase(call);
  call->exchange.reset();
  const Done done = std::move(call->done);
  if (done) done(std::move(result));
}

void ApiClient::note_call(std::string_view method, int status, TimeUs began) {
  if (on_call) on_call({.method = method, .status = status, .duration = loop().now() - began});
}

void ApiClient::note_warnings(const std::vector<std::string>& warnings) {
  if (!on_warning) return;
  for (const std::string& text : warnings) on_warning(text);
}

std::shared_ptr<void> ApiClient::stream(net::ClientRequest request, net::ClientEvents events) {
  add_headers(request);
  struct Told {
    std::string method;
    TimeUs began;
    bool is_done = false;
  };
  const auto told = std::make_shared<Told>(Told{request.method, loop().now()});
  auto on_head = [this, told, next = std::move(events.on_head)](int status,
                                                                const net::Headers& headers) {
    told->is_done = true;
    note_call(told->method, status, told->began);
    note_warnings(warnings_of(headers));
    if (next) next(status, headers);
  };
  auto on_end = [this, told, next = std::move(events.on_end)](Result<void> outcome) {
    if (!std::exchange(told->is_done, true)) note_call(told->method, 0, told->began);
    if (next) next(std::move(outcome));
  };
  return http_.send(std::move(request), {.on_head = std::move(on_head),
                                         .on_body = std::move(events.on_body),
                                         .on_end = std::move(on_end)});
}

std::vector<std::string> warnings_of(const net::Headers& headers) {
  std::vector<std::string> result;
  for (const auto& [name, value] : headers) {
    if (!net::is_same_name(name, "Warning")) continue;
    // code SP agent SP "text" [SP "date"], separated by commas
    std::size_t at = 0;
    while ((at = value.find('"', at)) != std::string::npos) {
      std::string text;
      for (++at; at < value.size() && value[at] != '"'; ++at) {
        if (value[at] == '\\' && at + 1 < value.size()) ++at;
        text += value[at];
      }
      if (!text.empty()) result.push_back(std::move(text));
      at = value.find(',', at);  // a date in quotes is no text
      if (at == std::string::npos) break;
    }
  }
  return result;
}

std::string escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-_.~";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
        kPlain.find(c) != std::string_view::npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kHex[byte >> 4];
    result += kHex[byte & 15];
  }
  return result;
}

}  // namespace jogak::kube
