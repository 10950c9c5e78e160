// SPDX-License-Identifier: Apache-2.0
//
// What a resource claim asks for: requests, alternatives, constraints and configuration.
#include <array>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/dra_rules.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kRequestsMax = 32;
constexpr std::size_t kConstraintsMax = 32;
constexpr std::size_t kConfigMax = 32;
constexpr std::size_t kAlternativesMax = 8;
constexpr std::string_view kAdminLabel = "resource.kubernetes.io/admin-access";

void default_request(Doc& request) {
  if (request["allocationMode"].as_string().empty()) request.set("allocationMode", "ExactCount");
  if (request["allocationMode"].as_string() == "ExactCount" && request["count"].as_int() == 0) {
    request.set("count", 1);
  }
}

void validate_toleration(const Doc& toleration, const Path& at, FieldErrors& errors) {
  const std::string& key = toleration["key"].as_string();
  const std::string& op = toleration["operator"].as_string();
  const std::string& value = toleration["value"].as_string();
  const std::string& effect = toleration["effect"].as_string();
  if (!key.empty()) validate_label_key(key, at.child("key"), errors);
  if (op == "Exists") {
    if (!value.empty()) {
      errors.invalid(at.child("value"), value, "must be empty for operator `Exists`");
    }
  } else if (op == "Equal") {
    validate_name(value, check_label_value, at.child("value"), errors);
  } else if (op.empty()) {
    errors.required(at.child("operator"));
  } else {
    errors.not_supported(at.child("operator"), op, {"Equal", "Exists"});
  }
  if (!effect.empty() && effect != "NoSchedule" && effect != "NoExecute" && effect != "None") {
    errors.not_supported(at.child("effect"), effect, {"NoExecute", "NoSchedule", "None"});
  }
}

// The part that an exact request and an alternative share.
void validate_wish(const Doc& request, const Path& at, FieldErrors& errors) {
  const std::string& device_class = request["deviceClassName"].as_string();
  if (device_class.empty()) {
    errors.required(at.child("deviceClassName"));
  } else {
    validate_name(device_class, check_dns1123_subdomain, at.child("deviceClassName"), errors);
  }
  validate_device_selectors(request["selectors"], at.child("selectors"), errors);
  const std::string& mode = request["allocationMode"].as_string();
  const std::int64_t count = request["count"].as_int();
  if (mode == "All") {
    if (count != 0) {
      errors.invalid(at.child("count"), count,
                     "must not be specified when allocationMode is 'All'");
    }
  } else if (mode == "ExactCount") {
    if (count <= 0) errors.invalid(at.child("count"), count, "must be greater than zero");
  } else {
    errors.not_supported(at.child("allocationMode"), mode, {"All", "ExactCount"});
  }
  validate_list(request["tolerations"], at.child("tolerations"),
                {.max = 16, .check = validate_toleration, .key = {}}, errors);
}

void validate_alternative(const Doc& request, const Path& at, FieldErrors& errors) {
  validate_name(request["name"].as_string(), check_dns1123_label, at.child("name"), errors);
  validate_wish(request, at, errors);
}

Doc name_key(const Doc& item) { return item["name"]; }

void validate_request(const Doc& request, const Path& at, FieldErrors& errors) {
  validate_name(request["name"].as_string(), check_dns1123_label, at.child("name"), errors);
  const bool is_exact = request.has("exactly");
  const bool has_alternatives = !request["firstAvailable"].empty();
  if (!is_exact && !has_alternatives) {
    errors.required(at, "exactly one of `exactly` or `firstAvailable` is required");
  } else if (is_exact && has_alternatives) {
    errors.invalid(at, {},
                   "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                   "fields are set");
  } else if (is_exact) {
    validate_wish(request["exactly"], at.child("exactly"), errors);
  } else {
    validate_list(request["firstAvailable"], at.child("firstAvailable"),
                  {.max = kAlternativesMax, .check = validate_alternative, .key = name_key},
                  errors);
  }
}

// Requests that a constraint or a configuration is about.
void validate_references(const Doc& owner, const Path& at, const RequestNames& names,
                         FieldErrors& errors) {
  validate_list(owner["requests"], at.child("requests"),
                {.max = kRequestsMax,
                 .check =
                     [&](const Doc& item, const Path& here, FieldErrors& found) {
                       validate_request_reference(item.as_string(), here, names, found);
                     },
                 .key = [](const Doc& item) { return item; }},
                errors);
}

void validate_constraint(const Doc& constraint, const Path& at, const RequestNames& names,
                         FieldErrors& errors) {
  validate_references(constraint, at, names, errors);
  for (const std::string_view member : {"matchAttribute", "distinctAttribute"}) {
    if (!constraint.has(member)) continue;
    validate_fully_qualified_name(constraint[member].as_string(), at.child(member), errors);
    return;
  }
  errors.required(at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required");
}

// Requests with admin access need a namespace that an administrator has marked.
void authorize_admin(const Doc& claim, const Doc& requests, const WriteContext& context,
                     FieldErrors& errors) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests.items()[i].get("exactly", "adminAccess").as_bool()) continue;
    const auto owner = context.lookup.get("namespaces", "", namespace_of(claim));
    if (owner.has_value() && meta(*owner)["labels"][kAdminLabel].as_string() == "true") return;
    errors.forbidden(Path("spec.devices.requests").index(i).child("adminAccess"),
                     "admin access to devices requires the `" + std::string(kAdminLabel) +
                         ": true` label on the containing namespace");
    return;
  }
}

class ClaimTemplateStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& object) const override {
    if (Doc* spec = object.at("spec").find("spec")) default_resource_claim_spec(*spec);
  }
  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    authorize_admin(object, object.get("spec", "spec", "devices", "requests"), context, errors);
    const Doc& metadata = object.get("spec", "metadata");
    validate_labels(metadata["labels"], Path("spec.metadata.labels"), errors);
    validate_annotations(metadata["annotations"], Path("spec.metadata.annotations"), errors);
    validate_resource_claim_spec(object.get("spec", "spec"), Path("spec.spec"), errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_resource_claim_spec(object.get("spec", "spec"), Path("spec.spec"), errors);
    require_same(object["spec"], old["spec"], Path("spec"), errors);
  }
  bool returns_deleted_object() const override { return true; }
};

class ResourceClaimStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& claim) const override {
    if (Doc* spec = claim.find("spec")) default_resource_claim_spec(*spec);
  }
  void validate_create(const Doc& claim, WriteContext& context,
                       FieldErrors& errors) const override {
    authorize_admin(claim, claim.get("spec", "devices", "requests"), context, errors);
    validate_resource_claim_spec(claim["spec"], Path("spec"), errors);
  }
  void validate_update(const Doc& claim, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    require_same(claim["spec"], old["spec"], Path("spec"), errors);
  }
  void prepare_subresource_update(std::string_view subresource, Doc& claim, const Doc& old,
                                  WriteContext& context) const override {
    Strategy::prepare_subresource_update(subresource, claim, old, context);
    drop_deallocated_devices(claim, old);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& claim,
                                   const Doc& old, WriteContext& context,
                                   FieldErrors& errors) const override {
    authorize_admin_results(claim, old, context, errors);
    validate_resource_claim_status(claim, old, errors);
  }
  bool returns_deleted_object() const override { return true; }

 private:
  static std::size_t admin_result(const Doc& claim) {
    const Doc& results = claim.get("status", "allocation", "devices", "results");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results.items()[i]["adminAccess"].as_bool()) return i;
    }
    return SIZE_MAX;
  }
  static void authorize_admin_results(const Doc& claim, const Doc& old, const WriteContext& context,
                                      FieldErrors& errors) {
    const std::size_t index = admin_result(claim);
    if (index == SIZE_MAX || admin_result(old) != SIZE_MAX) return;
    const auto owner = context.lookup.get("namespaces", "", namespace_of(claim));
    if (owner.has_value() && meta(*owner)["labels"][kAdminLabel].as_string() == "true") return;
    errors.forbidden(Path("status.allocation.devices.results").index(index).child("adminAccess"),
                     "admin access to devices requires the `" + std::string(kAdminLabel) +
                         ": true` label on the containing namespace");
  }
};

}  // namespace

void default_resource_claim_spec(Doc& spec) {
  if (spec.get("devices", "requests").empty()) return;
  for (Doc& request : spec.at("devices", "requests").items()) {
    if (Doc* exactly = request.find("exactly")) default_request(*exactly);
    Doc* alternatives = request.find("firstAvailable");
    if (alternatives == nullptr || !alternatives->is_array()) continue;
    for (Doc& alternative : alternatives->items()) default_request(alternative);
  }
}

void validate_resource_claim_spec(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& devices = spec["devices"];
  const Path here = at.child("devices");
  const RequestNames names = request_names_of(devices);
  validate_list(devices["requests"], here.child("requests"),
                {.max = kRequestsMax, .check = validate_request, .key = name_key}, errors);
  validate_list(
      devices["constraints"], here.child("constraints"),
      {.max = kConstraintsMax,
       .check = [&](const Doc& item, const Path& item_at,
                    FieldErrors& found) { validate_constraint(item, item_at, names, found); },
       .key = {}},
      errors);
  validate_list(devices["config"], here.child("config"),
                {.max = kConfigMax,
                 .check =
                     [&](const Doc& item, const Path& item_at, FieldErrors& found) {
                       validate_references(item, item_at, names, found);
                       validate_device_config(item, item_at, found);
                     },
                 .key = {}},
                errors);
}

StrategyPtr resource_claim_strategy() { return std::make_shared<ResourceClaimStrategy>(); }

StrategyPtr resource_claim_template_strategy() { return std::make_shared<ClaimTemplateStrategy>(); }

}  // namespace jogak::api
