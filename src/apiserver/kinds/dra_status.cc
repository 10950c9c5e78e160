// SPDX-License-Identifier: Apache-2.0
//
// The status of a resource claim: who holds it, what was allocated, what drivers say of devices.
#include <algorithm>
#include <set>
#include <string>

#include "apiserver/kinds/dra_rules.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kReservedMax = 256;
constexpr std::size_t kResultsMax = 32;
constexpr std::size_t kConfigMax = 64;  // of class and claim together
constexpr std::size_t kConditionsMax = 8;
constexpr std::size_t kInterfaceNameMax = 256;
constexpr std::size_t kHardwareAddressMax = 128;
constexpr std::size_t kIpsMax = 16;

// driver/pool/device, with the share behind it where there is one.
std::string device_id(const Doc& device) {
  std::string id = device["driver"].as_string() + "/" + device["pool"].as_string() + "/" +
                   device["device"].as_string();
  if (device.has("shareID")) id += "/" + device["shareID"].as_string();
  return id;
}

std::set<std::string> allocated_devices(const Doc& claim) {
  std::set<std::string> ids;
  for (const Doc& result : claim.get("status", "allocation", "devices", "results").items()) {
    ids.insert(device_id(result));
  }
  return ids;
}

void validate_consumer(const Doc& consumer, const Path& at, FieldErrors& errors) {
  for (const std::string_view member : {"resource", "name", "uid"}) {
    if (consumer[member].as_string().empty()) errors.required(at.child(member));
  }
}

void validate_device(const Doc& device, const Path& at, FieldErrors& errors) {
  validate_driver_name(device["driver"].as_string(), at.child("driver"), errors);
  validate_pool_name(device["pool"].as_string(), at.child("pool"), errors);
  validate_name(device["device"].as_string(), check_dns1123_label, at.child("device"), errors);
}

void validate_network(const Doc& data, const Path& at, FieldErrors& errors) {
  if (data["interfaceName"].as_string().size() > kInterfaceNameMax) {
    errors.too_long(at.child("interfaceName"), kInterfaceNameMax);
  }
  if (data["hardwareAddress"].as_string().size() > kHardwareAddressMax) {
    errors.too_long(at.child("hardwareAddress"), kHardwareAddressMax);
  }
  validate_list(data["ips"], at.child("ips"),
                {.max = kIpsMax,
                 .check =
                     [](const Doc& item, const Path& here, FieldErrors& errors_of_item) {
                       if (is_cidr(item.as_string())) return;
                       errors_of_item.invalid(here, item,
                                              "must be a valid address in CIDR form, (e.g. "
                                              "10.9.8.7/24 or 2001:db8::1/64)");
                     },
                 .key = [](const Doc& item) { return item; }},
                errors);
}

void validate_device_status(const Doc& device, const Path& at,
                            const std::set<std::string>& allocated, FieldErrors& errors) {
  validate_device(device, at, errors);
  if (device.has("shareID")) {
    validate_uuid(device["shareID"].as_string(), at.child("shareID"), errors);
  }
  if (!allocated.contains(device_id(device))) {
    errors.invalid(at, device_id(device), "must be an allocated device in the claim");
  }
  const Doc& conditions = device["conditions"];
  if (conditions.size() > kConditionsMax) {
    errors.too_many(at.child("conditions"), conditions.size(), kConditionsMax);
  }
  validate_conditions(conditions, at.child("conditions"), errors);
  if (device.has("data")) validate_raw_object(device["data"], at.child("data"), errors);
  validate_network(device["networkData"], at.child("networkData"), errors);
}

void validate_result(const Doc& result, const Path& at, const RequestNames& names,
                     FieldErrors& errors) {
  validate_request_reference(result["request"].as_string(), at.child("request"), names, errors);
  validate_device(result, at, errors);
  validate_binding_conditions(result, at, errors);
  if (result.has("shareID")) {
    validate_uuid(result["shareID"].as_string(), at.child("shareID"), errors);
  }
}

void validate_config(const Doc& config, const Path& at, const RequestNames& names,
                     FieldErrors& errors) {
  const std::string& source = config["source"].as_string();
  if (source.empty()) {
    errors.required(at.child("source"));
  } else if (source != "FromClaim" && source != "FromClass") {
    errors.not_supported(at.child("source"), source, {"FromClaim", "FromClass"});
  }
  validate_list(config["requests"], at.child("requests"),
                {.max = kResultsMax,
                 .check =
                     [&](const Doc& item, const Path& here, FieldErrors& found) {
                       validate_request_reference(item.as_string(), here, names, found);
                     },
                 .key = [](const Doc& item) { return item; }},
                errors);
  validate_device_config(config, at, errors);
}

void validate_allocation(const Doc& allocation, const Path& at, const RequestNames& names,
                         FieldErrors& errors) {
  const Doc& devices = allocation["devices"];
  validate_list(devices["results"], at.child("devices", "results"),
                {.max = kResultsMax,
                 .check = [&](const Doc& item, const Path& here,
                              FieldErrors& found) { validate_result(item, here, names, found); },
                 .key = {}},
                errors);
  validate_list(devices["config"], at.child("devices", "config"),
                {.max = kConfigMax,
                 .check = [&](const Doc& item, const Path& here,
                              FieldErrors& found) { validate_config(item, here, names, found); },
                 .key = {}},
                errors);
  if (allocation.has("nodeSelector")) {
    validate_node_selector(allocation["nodeSelector"], at.child("nodeSelector"), errors);
  }
}

// Whoever holds a claim that goes away may leave it, nobody may join.
bool has_new_consumer(const Doc& status, const Doc& old_status) {
  const auto& before = old_status["reservedFor"].items();
  return std::ranges::any_of(status["reservedFor"].items(), [&](const Doc& consumer) {
    return std::ranges::none_of(before, [&](const Doc& old) { return same(consumer, old); });
  });
}

}  // namespace

void validate_resource_claim_status(const Doc& claim, const Doc& old, FieldErrors& errors) {
  const Doc& status = claim["status"];
  const Doc& old_status = old["status"];
  const Path at("status");
  validate_list(status["reservedFor"], at.child("reservedFor"),
                {.max = kReservedMax,
                 .check = validate_consumer,
                 .key = [](const Doc& consumer) { return consumer["uid"]; }},
                errors);
  const std::set<std::string> allocated = allocated_devices(claim);
  validate_list(
      status["devices"], at.child("devices"),
      {.max = 0,
       .check = [&](const Doc& item, const Path& here,
                    FieldErrors& found) { validate_device_status(item, here, allocated, found); },
       .key = [](const Doc& item) { return Doc(device_id(item)); }},
      errors);
  const bool is_allocated = status.has("allocation");
  if (!status["reservedFor"].empty() && !is_allocated) {
    errors.forbidden(at.child("reservedFor"), "may not be specified when `allocated` is not set");
  } else if (is_deleting(claim) && has_new_consumer(status, old_status)) {
    errors.forbidden(at.child("reservedFor"),
                     "new entries may not be added while `deallocationRequested` or "
                     "`deletionTimestamp` are set");
  }
  if (!is_allocated) return;
  if (old_status.has("allocation")) {
    require_same(status["allocation"], old_status["allocation"], at.child("allocation"), errors);
  } else {
    validate_allocation(status["allocation"], at.child("allocation"),
                        request_names_of(claim.get("spec", "devices")), errors);
  }
}

void drop_deallocated_devices(Doc& claim, const Doc& old) {
  if (claim.get("status", "devices").empty()) return;
  const std::set<std::string> now = allocated_devices(claim);
  const std::set<std::string> before = allocated_devices(old);
  Doc kept = Doc::array();
  for (const Doc& device : claim.get("status", "devices").items()) {
    const std::string id = device_id(device);
    if (before.contains(id) && !now.contains(id)) continue;
    kept.push(device);
  }
  if (kept.empty()) {
    claim.at("status").erase("devices");
  } else {
    claim.at("status").set("devices", std::move(kept));
  }
}

}  // namespace jogak::api
