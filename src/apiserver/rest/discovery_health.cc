// SPDX-License-Identifier: Apache-2.0
//
// Health and version. All checks look at one thread that is answering right now: when it is not
// well, nobody answers.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/rest/discovery_answer.h"
#include "apiserver/rest/request.h"

namespace jogak::api {
namespace {

constexpr std::string_view kAliveChecks[] = {"ping", "log", "etcd"};
constexpr std::string_view kReadyChecks[] = {"ping", "log", "etcd", "informer-sync", "shutdown"};

struct Probe {
  std::string_view name;
  std::span<const std::string_view> checks;
};
constexpr Probe kProbes[] = {
    {"healthz", kAliveChecks}, {"livez", kAliveChecks}, {"readyz", kReadyChecks}};

// The checks one by one, as ?verbose shows them.
std::string verbose_text(const Probe& probe, const Query& query) {
  std::vector<std::string> excluded;
  for (const auto& [key, value] : query) {
    if (key == "exclude") {
      excluded.push_back(value);
    }
  }
  std::string text;
  for (const std::string_view check : probe.checks) {
    const auto it = std::ranges::find(excluded, check);
    text.append("[+]").append(check).append(it == excluded.end() ? " ok\n" : " excluded: ok\n");
    if (it != excluded.end()) {
      excluded.erase(it);
    }
  }
  std::ranges::sort(excluded);
  for (const std::string& name : excluded) {
    text += (&name == &excluded.front()
                 ? "warn: some health checks cannot be excluded: no matches for \""
                 : ",\"") +
            name + "\"";
  }
  text += excluded.empty() ? "" : "\n";
  return text.append(probe.name).append(" check passed\n");
}

}  // namespace

std::optional<TextAnswer> answer_health(std::string_view path, std::string_view query_text) {
  const auto probe = std::ranges::find_if(
      kProbes, [&](const Probe& candidate) { return path.substr(1).starts_with(candidate.name); });
  if (probe == std::end(kProbes)) {
    return std::nullopt;
  }
  std::string_view below = path.substr(1 + probe->name.size());
  if (!below.empty()) {
    if (below.front() != '/' ||
        std::ranges::find(probe->checks, below.substr(1)) == probe->checks.end()) {
      return std::nullopt;
    }
    return plain_answer(200, "ok");
  }
  const Query query = parse_query(query_text);
  const bool is_verbose = std::ranges::any_of(
      query, [](const auto& parameter) { return parameter.first == "verbose"; });
  return plain_answer(200, is_verbose ? verbose_text(*probe, query) : "ok");
}

std::vector<std::string> health_paths() {
  std::vector<std::string> paths;
  for (const Probe& probe : kProbes) {
    const std::string root = "/" + std::string(probe.name);
    paths.push_back(root);
    for (const std::string_view check : probe.checks) {
      paths.push_back(root + "/" + std::string(check));
    }
  }
  return paths;
}

Doc version_document() {
#if defined(__clang__)
  constexpr std::string_view kCompiler = "clang";
#else
  constexpr std::string_view kCompiler = "gcc";
#endif
#if defined(__aarch64__)
  constexpr std::string_view kPlatform = "linux/arm64";
#else
  constexpr std::string_view kPlatform = "linux/amd64";
#endif
  Doc doc = Doc::object();
  doc.set("major", "1")
      .set("minor", "36")
      .set("emulationMajor", "1")
      .set("emulationMinor", "36")
      .set("minCompatibilityMajor", "1")
      .set("minCompatibilityMinor", "35")
      .set("gitVersion", "v1.36.3")  // the version whose behaviour this is
      .set("gitCommit", "jogak")
      .set("gitTreeState", "clean")
      .set("buildDate", "1970-01-01T00:00:00Z")
      .set("goVersion", "c++23")
      .set("compiler", kCompiler)
      .set("platform", kPlatform);
  return doc;
}

}  // namespace jogak::api
