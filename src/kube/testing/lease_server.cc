// SPDX-License-Identifier: Apache-2.0
// Documents in and out, as the API server keeps them.
#include "kube/testing/lease_server.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "kube/lease_record.h"

namespace jogak::kube::testing {

namespace {

Answer refusal(int code, const char* reason) {
  return {.status = code,
          .body = nlohmann::json{{"kind", "Status"}, {"code", code}, {"reason", reason}}.dump()};
}

}  // namespace

void LeaseServer::put(const std::string& json) {
  auto lease = nlohmann::json::parse(json);
  lease["metadata"]["resourceVersion"] = std::to_string(++version_);
  json_ = lease.dump();
}

Answer LeaseServer::serve(const net::ClientRequest& request) {
  if (request.method == "POST") {
    if (!json_.empty()) return refusal(409, "AlreadyExists");
    put(request.body);
    return {.status = 201, .body = json_};
  }
  if (json_.empty()) return refusal(404, "NotFound");
  if (request.method == "PUT") {
    const auto mine = read_lease(request.body);
    if (!mine) return refusal(422, "Invalid");
    if (mine->version != read_lease(json_)->version) return refusal(409, "Conflict");
    put(request.body);
  }
  return {.body = json_};
}

void LeaseServer::handle(const ScriptedHttp::ExchangePtr& exchange) {
  if (is_silent_) return;
  Answer answer = serve(exchange->request());
  answer.delay = delay_;
  exchange->answer(answer);
}

}  // namespace jogak::kube::testing
