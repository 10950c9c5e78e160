// SPDX-License-Identifier: Apache-2.0
//
// Answers that say no: a Status object of the API, or whatever a proxy on the way wrote. Callers
// branch on code and reason, so a reason is made from the code where the body has none.
#include "kube/status.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include <simdjson.h>

#include "kube/api_client.h"

namespace jogak::kube {

namespace {

constexpr std::size_t kMessageMax = 500;
constexpr std::int64_t kRetryAfterSecondsMax = 24 * 3600;

std::string_view reason_of_code(int status) {
  switch (status) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 406:
      return "NotAcceptable";
    case 408:
      return "Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "Unknown";
  }
}

// One line: white space and control characters become single blanks; cut at a character.
std::string one_line(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool is_blank = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    if (!is_blank) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
    if (result.size() > kMessageMax) break;
  }
  if (result.size() > kMessageMax) {
    std::size_t end = kMessageMax;
    while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xC0) == 0x80) --end;
    result.resize(end);
    result += "...";
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

// The fields of a Status that something depends on.
struct Status {
  std::string reason, message, cause;
  int code = 0;
  std::optional<TimeUs> retry_after;
};

std::string_view text_at(simdjson::simdjson_result<simdjson::dom::element> value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return {};
  return text;
}

// Text that is no Status gives none, whatever it is.
std::optional<Status> read_status(std::string_view json) {
  const std::size_t begin = json.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || json[begin] != '{') return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (text_at(root["kind"]) != "Status") return std::nullopt;
  Status status;
  status.reason = text_at(root["reason"]);
  status.message = text_at(root["message"]);
  status.cause = text_at(root["details"]["causes"].at(0)["reason"]);
  std::int64_t number = 0;
  if (root["code"].get(number) == simdjson::SUCCESS && number >= 100 && number <= 999) {
    status.code = static_cast<int>(number);
  }
  if (root["details"]["retryAfterSeconds"].get(number) == simdjson::SUCCESS && number > 0) {
    status.retry_after = std::min(number, kRetryAfterSecondsMax) * kSecondInUs;
  }
  return status;
}

}  // namespace

std::optional<TimeUs> retry_after_of(const net::Headers& headers, std::string_view body) {
  const std::string_view text = net::header(headers, "Retry-After");
  if (!text.empty()) {
    std::int64_t seconds = 0;
    const char* const text_end = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), text_end, seconds);
    // A date, which proxies may send, or nonsense: come again soon.
    if (error != std::errc() || end != text_end || seconds < 0) return kSecondInUs;
    return std::min(seconds, kRetryAfterSecondsMax) * kSecondInUs;
  }
  const auto status = read_status(body);
  return status ? status->retry_after : std::nullopt;
}

ApiProblem problem_of(const ApiAnswer& answer) {
  ApiProblem problem{.status = answer.status, .reason = {}, .message = {}, .cause = {}};
  if (auto status = read_status(answer.body)) {
    problem.reason = std::move(status->reason);
    problem.message = one_line(status->message);
    problem.cause = std::move(status->cause);
  } else {
    problem.message = one_line(answer.body);
  }
  if (problem.reason.empty()) problem.reason = reason_of_code(answer.status);
  return problem;
}

ApiProblem problem_of_status(std::string_view status_json) {
  const auto status = read_status(status_json);
  return problem_of({.status = status && status->code != 0 ? status->code : 500,
                     .body = std::string(status_json)});
}

Error error_of(const ApiProblem& problem) {
  Errc code = Errc::Invalid;
  if (problem.status == 404) code = Errc::NotFound;
  if (problem.status == 409) code = Errc::Conflict;
  if (problem.status == 410) code = Errc::Gone;
  if (problem.status == 408 || problem.status == 429 || problem.status >= 500) {
    code = Errc::Unavailable;
  }
  std::string what =
      problem.message.empty()
          ? fmt::format("the server answered {} {}", problem.status, problem.reason)
          : fmt::format("{} ({} {})", problem.message, problem.status, problem.reason);
  return {.code = code, .what = std::move(what)};
}

}  // namespace jogak::kube
