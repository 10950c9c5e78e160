// SPDX-License-Identifier: Apache-2.0
//
// services/NAME/proxy: finds the endpoint that the real server would pass the request to. There the
// way ends, since the pods behind it are simulated.
#include <optional>
#include <string>
#include <vector>

#include "apiserver/kinds/service_rules.h"
#include "apiserver/ops/ops.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

constexpr int kUnavailable = 503;

// What the name in the URL says: "web", "web:80", "https:web:https".
struct Target {
  std::string service, port;
};

std::optional<Target> read_target(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(':');
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (parts.size() > 3) return std::nullopt;
  if (parts.size() == 3) {
    const std::string& scheme = parts.front();
    if (!scheme.empty() && scheme != "http" && scheme != "https") return std::nullopt;
    parts.erase(parts.begin());
  }
  if (parts.front().empty()) return std::nullopt;
  return Target{.service = parts[0], .port = parts.size() > 1 ? parts[1] : std::string()};
}

Refusal unavailable(std::string message) {
  ApiError error;
  error.code = kUnavailable;
  error.reason = "ServiceUnavailable";
  error.message = std::move(message);
  return Refusal(std::move(error));
}

// The name of the port that carries that number.
ApiResult<std::string> port_name(const Ops& ops, const Call& call, const Target& target,
                                 std::int64_t number) {
  const auto service = ops.get("services", call.ns, target.service);
  if (!service.has_value()) return not_found({"services", ""}, target.service);
  for (const Doc& port : (*service)["spec"]["ports"].items()) {
    if (port["port"].as_int() == number) return port["name"].as_string();
  }
  return unavailable("no service port " + target.port + " found for service \"" + target.service +
                     "\"");
}

bool has_address(const Doc& endpoints, std::string_view port) {
  for (const Doc& subset : endpoints["subsets"].items()) {
    if (subset["addresses"].empty()) continue;
    for (const Doc& entry : subset["ports"].items()) {
      if (entry["name"].as_string() == port) return true;
    }
  }
  return false;
}

}  // namespace

ApiResult<Answer> refuse_service_proxy(Ops& ops, Call& call) {
  auto target = read_target(call.name);
  if (!target.has_value()) return bad_request("invalid service request \"" + call.name + "\"");
  if (const auto number = parse_int(target->port)) {
    JOGAK_TRY(target->port, port_name(ops, call, *target, *number));
  }
  const auto endpoints = ops.get("endpoints", call.ns, target->service);
  if (!endpoints.has_value()) return not_found({"endpoints", ""}, target->service);
  if (!has_address(*endpoints, target->port)) {
    return unavailable("no endpoints available for service \"" + call.name + "\"");
  }
  return unavailable("error trying to reach service: simulated pods listen on no address");
}

}  // namespace jogak::api
