// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of resource.k8s.io check alike.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/kinds/core_rules.h"

namespace jogak::api {

// Each item by its own rule, then keys that stand twice. Too many: one error, no item is looked at.
// `max` 0: any number. No key: any number of equals.
struct ListRule {
  std::size_t max = 0;
  std::function<void(const Doc& item, const Path& at, FieldErrors& errors)> check;
  std::function<Doc(const Doc& item)> key;
};
void validate_list(const Doc& list, const Path& at, const ListRule& rule, FieldErrors& errors);

// "node-1/pool", each part a subdomain.
void validate_pool_name(std::string_view name, const Path& at, FieldErrors& errors);
// "model" or "gpu.example/model".
void validate_device_member_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_fully_qualified_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_uuid(std::string_view text, const Path& at, FieldErrors& errors);
// {cel: {expression}} of classes and requests.
void validate_device_selectors(const Doc& selectors, const Path& at, FieldErrors& errors);
// {opaque: {driver, parameters}}.
void validate_device_config(const Doc& config, const Path& at, FieldErrors& errors);
// Any JSON object of at most 10 KiB.
void validate_raw_object(const Doc& value, const Path& at, FieldErrors& errors);
void validate_binding_conditions(const Doc& owner, const Path& at, FieldErrors& errors);

// Requests of a claim, with the alternatives of each.
using RequestNames = std::map<std::string, std::set<std::string>, std::less<>>;
RequestNames request_names_of(const Doc& device_claim);
void validate_request_reference(std::string_view name, const Path& at, const RequestNames& names,
                                FieldErrors& errors);
// A claim's spec; templates have one too.
void validate_resource_claim_spec(const Doc& spec, const Path& at, FieldErrors& errors);
void default_resource_claim_spec(Doc& spec);
// The status of a claim against the stored one.
void validate_resource_claim_status(const Doc& claim, const Doc& old, FieldErrors& errors);
// Devices that are no longer allocated lose their status.
void drop_deallocated_devices(Doc& claim, const Doc& old);

}  // namespace jogak::api
