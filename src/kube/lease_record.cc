// SPDX-License-Identifier: Apache-2.0
// A Lease is read and written as a document, not as a struct: what this version of ours does not
// know of it must survive a renewal.
#include "kube/lease_record.h"

#include <nlohmann/json.hpp>

#include "base/utc_time.h"

namespace jogak::kube {

namespace {

using Json = nlohmann::json;

const Json kNothing;

const Json& at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return object.is_object() && it != object.end() ? *it : kNothing;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::int64_t number_at(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

Result<Json> parse_lease(std::string_view json) {
  Json result = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (result.is_discarded() || !at(result, "metadata").is_object()) {
    return invalid("the answer is no Lease: {}", json.substr(0, 60));
  }
  return result;
}

}  // namespace

Result<LeaseRecord> read_lease(std::string_view json) {
  JOGAK_TRY(const Json lease, parse_lease(json));
  const Json& spec = at(lease, "spec");
  LeaseRecord record{.holder = text_at(spec, "holderIdentity"),
                     .duration_seconds = number_at(spec, "leaseDurationSeconds"),
                     .transitions = number_at(spec, "leaseTransitions"),
                     .acquire_time = text_at(spec, "acquireTime"),
                     .version = text_at(at(lease, "metadata"), "resourceVersion")};
  if (record.version.empty()) return invalid("a Lease without metadata.resourceVersion");
  return record;
}

Result<std::string> write_lease(std::string_view base, std::string_view ns, std::string_view name,
                                const LeaseRecord& record, TimeUs now) {
  Json lease = Json::object();
  if (base.empty()) {
    lease["metadata"] = {{"namespace", ns}, {"name", name}};
  } else {
    JOGAK_TRY(lease, parse_lease(base));
  }
  lease["apiVersion"] = "coordination.k8s.io/v1";
  lease["kind"] = "Lease";
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration_seconds;
  spec["leaseTransitions"] = record.transitions;
  spec["acquireTime"] = record.acquire_time;
  spec["renewTime"] = utc_micros(now);
  return lease.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace jogak::kube
