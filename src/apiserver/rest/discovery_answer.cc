// SPDX-License-Identifier: Apache-2.0
//
// Negotiation as apiserver endpoints/handlers/negotiation does it for documents.
#include "apiserver/rest/discovery_answer.h"

#include <algorithm>
#include <utility>

#include "apiserver/rest/request.h"

namespace jogak::api {
namespace {

constexpr std::string_view kNoCache = "no-cache, private";

TextAnswer answer_of(int status, std::string_view type, std::string text) {
  net::Headers headers = {{"cache-control", std::string(kNoCache)},
                          {"content-type", std::string(type)}};
  return {.status = status, .headers = std::move(headers), .body = std::move(text)};
}

std::string json_text(const Doc& doc, bool is_pretty) {
  if (is_pretty) {
    return doc.json(JsonWriter::Style::Pretty);
  }
  std::string text;
  doc.append_json(text);
  return text + "\n";
}

}  // namespace

std::vector<codec::MediaType> accepted_types(const net::Headers& headers) {
  const std::string_view accept = net::header(headers, "accept");
  std::vector<codec::MediaType> types = codec::parse_media_types(accept.empty() ? "*/*" : accept);
  // The most wanted first, then the more exact ones.
  const auto stars = [](const codec::MediaType& type) {
    return type.type.starts_with('*') ? 2 : type.type.ends_with('*') ? 1 : 0;
  };
  std::ranges::stable_sort(types, [&](const codec::MediaType& a, const codec::MediaType& b) {
    return a.q != b.q ? a.q > b.q : stars(a) < stars(b);
  });
  return types;
}

bool covers(const codec::MediaType& accepted, std::string_view type) {
  if (accepted.type == "*/*" || accepted.type == "*" || accepted.type == type) {
    return true;
  }
  std::string_view family = accepted.type;
  if (!family.ends_with("/*")) {
    return false;
  }
  family.remove_suffix(1);
  return type.starts_with(family);
}

TextAnswer plain_answer(int status, std::string text) {
  return answer_of(status, "text/plain; charset=utf-8", std::move(text));
}

TextAnswer error_answer(const ApiError& error) {
  if (error.is_plain_text) {
    return plain_answer(error.code, error.message);
  }
  return answer_of(error.code, "application/json", json_text(status_of(error), false));
}

bool wants_pretty(std::string_view query, const net::Headers& headers) {
  for (const auto& [key, value] : parse_query(query)) {
    if (key == "pretty" && !value.empty()) {
      return value == "true" || value == "1" || value == "t" || value == "T" || value == "True" ||
             value == "TRUE";
    }
  }
  const std::string_view agent = net::header(headers, "user-agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

TextAnswer document_answer(const Doc& doc, std::string_view query, const net::Headers& headers) {
  for (const codec::MediaType& type : accepted_types(headers)) {
    if (!type.parameter("as").empty()) {
      continue;
    }
    if (covers(type, "application/json")) {
      const bool is_pretty = type.parameter("pretty") == "1" || wants_pretty(query, headers);
      return answer_of(200, "application/json", json_text(doc, is_pretty));
    }
    if (covers(type, "application/yaml")) {
      return answer_of(200, "application/yaml", doc.yaml());
    }
  }
  ApiError error;
  error.code = 406;
  error.reason = "NotAcceptable";
  error.message =
      "only the following media types are accepted: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf";
  return error_answer(error);
}

TextAnswer cached_answer(const std::string& text, std::string_view content_type,
                         std::string_view tag, const net::Headers& headers) {
  const std::string quoted = "\"" + std::string(tag) + "\"";
  const bool is_known = net::header(headers, "if-none-match") == quoted;
  TextAnswer answer{
      .status = is_known ? 304 : 200,
      .headers = {{"cache-control", std::string(kNoCache)}, {"etag", quoted}, {"vary", "Accept"}},
      .body = is_known ? "" : text};
  if (!is_known) {
    answer.headers.emplace_back("content-type", content_type);
  }
  return answer;
}

}  // namespace jogak::api
