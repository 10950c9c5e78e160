// SPDX-License-Identifier: Apache-2.0
//
// Which of libcurl's codes mean what. Whether the request had been sent decides between Unavailable
// and Timeout; a certificate or a protocol that is refused is Invalid.
#include "net/curl_outcome.h"

#include <curl/curl.h>

#include <cctype>
#include <system_error>

#include <fmt/core.h>

namespace jogak::net {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// libcurl's words in our manner: small at the start, on one line, no full stop.
std::string words_of(const CurlFailure& failure) {
  std::string text(failure.text);
  if (text.empty()) text = curl_easy_strerror(static_cast<CURLcode>(failure.code));
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  const bool is_word = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (is_word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string via(const CurlFailure& failure) {
  return failure.proxy.empty() ? "" : fmt::format(" (through the proxy {})", failure.proxy);
}

std::string certificate_text(const CurlFailure& failure) {
  std::string_view text = failure.text;
  constexpr std::string_view kPrefix = "SSL certificate problem: ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  std::string_view cure = "trust the authority that signed it (certificate-authority)";
  if (has(text, "subject name") || has(text, "does not match") || has(text, "no alternative")) {
    cure = "use a name that it is for, or say it with tls-server-name";
  } else if (has(text, "expired") || has(text, "not yet valid")) {
    cure = "renew it, or set this machine's clock right";
  }
  return fmt::format("certificate of {} refused: {}; {}", failure.server,
                     text.empty() ? "it cannot be verified" : text, cure);
}

bool is_own_certificate_refused(const CurlFailure& failure) {
  return has(failure.text, "alert") &&
         (has(failure.text, "certificate") || has(failure.text, "unknown ca") ||
          has(failure.text, "access denied"));
}

std::string own_certificate_text(const CurlFailure& failure) {
  return failure.has_client_certificate
             ? fmt::format(
                   "{} refused the client certificate: {}; use one that its authority signed",
                   failure.server, words_of(failure))
             : fmt::format(
                   "{} wants a client certificate: {}; give client-certificate and "
                   "client-key",
                   failure.server, words_of(failure));
}

// Before the request was sent.
Error connect_error(const CurlFailure& failure) {
  switch (failure.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {
          .code = Errc::Unavailable,
          .what = fmt::format("no address found for the host of {}; is the name right, and does "
                              "DNS work here?",
                              failure.server)};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {.code = Errc::Unavailable,
              .what = fmt::format("no address found for the proxy{}{} in front of {}",
                                  failure.proxy.empty() ? "" : " ", failure.proxy, failure.server)};
    case CURLE_COULDNT_CONNECT:
      return {.code = Errc::Unavailable,
              .what = fmt::format("cannot connect to {}{}: {}", failure.server, via(failure),
                                  failure.os_errno != 0
                                      ? std::generic_category().message(failure.os_errno)
                                      : words_of(failure))};
    case CURLE_OPERATION_TIMEDOUT:
      return {.code = Errc::Unavailable,
              .what = fmt::format("cannot connect to {}{}: no answer in time", failure.server,
                                  via(failure))};
    case CURLE_SSL_CONNECT_ERROR:
      return {.code = Errc::Unavailable,
              .what = fmt::format("no TLS with {}{}: {}; does it speak https?", failure.server,
                                  via(failure), words_of(failure))};
    default:
      return {.code = Errc::Unavailable,
              .what = fmt::format("cannot connect to {}{}: {}", failure.server, via(failure),
                                  words_of(failure))};
  }
}

}  // namespace

Error error_of(const CurlFailure& failure) {
  if (is_own_certificate_refused(failure)) {
    return {.code = Errc::Invalid, .what = own_certificate_text(failure)};
  }
  switch (failure.code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return {.code = Errc::Invalid, .what = certificate_text(failure)};
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_URL_MALFORMAT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return {.code = Errc::Invalid,
              .what = fmt::format("{}: {}", failure.server, words_of(failure))};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return {
          .code = Errc::Invalid,
          .what = fmt::format("{} does not answer in HTTP: {}; is its URL right, http or https?",
                              failure.server, words_of(failure))};
    case CURLE_ABORTED_BY_CALLBACK:
      return {.code = Errc::Timeout,
              .what = fmt::format("{} closed the connection without an answer to the {} request",
                                  failure.server, failure.method)};
    default:
      break;
  }
  if (!failure.is_sent) return connect_error(failure);
  return {.code = Errc::Timeout,
          .what = fmt::format("{} {} to the {} request: {}", failure.server,
                              failure.is_answered ? "broke off in the answer"
                                                  : "closed the connection without an answer",
                              failure.method, words_of(failure))};
}

std::string duration_text(TimeUs duration) {
  if (duration % kSecondInUs == 0) return fmt::format("{} s", duration / kSecondInUs);
  return fmt::format("{} ms", (duration + kMsInUs - 1) / kMsInUs);
}

}  // namespace jogak::net
