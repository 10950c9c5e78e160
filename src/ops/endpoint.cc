// SPDX-License-Identifier: Apache-2.0
//
// A table of paths; who may ask for what is a column of it.
#include "ops/endpoint.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace jogak::ops {

namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kJson = "application/json";

struct Answer {
  int status = 200;
  std::string_view type = kPlain;
  std::string body;
};

struct Question {
  const net::HttpRequest& request;
  std::string_view query;
};

Answer metrics(const EndpointParts& parts, const Question& question) {
  const ExpositionFormat format =
      exposition_format(net::header(question.request.headers, "accept"));
  return {.type = content_type(format), .body = parts.registry.expose(format)};
}

// Whoever reads this answered a moment ago: one thread does everything.
Answer live(const EndpointParts& /*parts*/, const Question& /*question*/) { return {.body = "ok"}; }

bool has_word(std::string_view query, std::string_view word) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    if (pair.substr(0, pair.find('=')) == word) return true;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

Answer ready(const EndpointParts& parts, const Question& question) {
  const std::vector<Check> checks = parts.ready();
  const bool is_ready = std::ranges::all_of(checks, &Check::is_ok);
  if (is_ready && !has_word(question.query, "verbose")) return {.body = "ok"};
  return {.status = is_ready ? 200 : 503, .body = checks_text(checks)};
}

Answer config(const EndpointParts& parts, const Question& /*question*/) {
  return {.type = kJson, .body = parts.config()};
}

Answer state(const EndpointParts& parts, const Question& /*question*/) {
  auto text = parts.state();
  if (!text) return {.status = 500, .body = std::move(text).error().what + "\n"};
  return {.type = kJson, .body = *std::move(text)};
}

Answer drift(const EndpointParts& parts, const Question& /*question*/) {
  return {.body = parts.drift()};
}

struct Page {
  std::string_view path;
  std::string_view summary;
  bool is_public = true;
  Answer (*answer)(const EndpointParts& parts, const Question& question) = nullptr;
};
constexpr Page kPages[] = {
    {"/metrics", "series for Prometheus", true, metrics},
    {"/livez", "whether it answers", true, live},
    {"/healthz", "the same, by its older name", true, live},
    {"/readyz", "whether it may be relied on; ?verbose says why", true, ready},
    {"/configz", "the effective configuration", false, config},
    {"/debug/state", "the cluster as it is known here: input of `jogak explain -f FILE`", false,
     state},
    {"/debug/drift", "the last comparison with the API server (SIGUSR2 makes one)", false, drift},
};

Answer index(const EndpointParts& parts, bool is_debug) {
  std::string text = parts.program + "\n\n";
  for (const Page& page : kPages) {
    if (page.is_public || is_debug) text += fmt::format("{:<14} {}\n", page.path, page.summary);
  }
  if (!is_debug) text += "\nMore is served on loopback, see debugPort in the configuration.\n";
  return {.body = std::move(text)};
}

Answer answer_to(const EndpointParts& parts, const net::HttpRequest& request, bool is_debug) {
  const std::string_view target = request.target;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = mark < target.size() ? target.substr(mark + 1) : "";
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .body = "only GET and HEAD\n"};
  }
  if (path == "/") return index(parts, is_debug);
  for (const Page& page : kPages) {
    if (page.path != path) continue;
    if (page.is_public || is_debug) return page.answer(parts, {request, query});
    return {.status = 403, .body = "only on loopback, see debugPort in the configuration\n"};
  }
  return {.status = 404, .body = "no such page; / lists them\n"};
}

net::HttpHandler handler(EndpointParts parts, bool is_debug) {
  return [parts = std::move(parts), is_debug](const net::HttpRequest& request,
                                              const std::shared_ptr<net::ResponseWriter>& writer) {
    Answer answer = answer_to(parts, request, is_debug);
    net::Headers headers = {{"Content-Type", std::string(answer.type)},
                            {"Cache-Control", "no-store"},
                            {"X-Content-Type-Options", "nosniff"}};
    if (answer.status == 405) headers.emplace_back("Allow", "GET, HEAD");
    writer->respond(answer.status, std::move(headers), std::move(answer.body));
  };
}

}  // namespace

std::string checks_text(const std::vector<Check>& checks) {
  std::string text;
  bool is_ready = true;
  for (const Check& check : checks) {
    is_ready = is_ready && check.is_ok;
    text +=
        fmt::format("[{}]{} {}{}{}\n", check.is_ok ? '+' : '-', check.name,
                    check.is_ok ? "ok" : "failed", check.detail.empty() ? "" : ": ", check.detail);
  }
  return text + (is_ready ? "readyz check passed\n" : "readyz check failed\n");
}

net::HttpHandler public_handler(EndpointParts parts) { return handler(std::move(parts), false); }
net::HttpHandler debug_handler(EndpointParts parts) { return handler(std::move(parts), true); }

}  // namespace jogak::ops
