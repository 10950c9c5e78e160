// SPDX-License-Identifier: Apache-2.0
//
// storage.k8s.io: classes, what drivers say of nodes and of themselves, capacities, attachments.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/storage_rules.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kParametersMax = 512;
constexpr std::size_t kParametersBytesMax = 256 * 1024;
constexpr std::size_t kNodeIdMax = 256;
constexpr std::size_t kErrorMessageMax = 1024;

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::size_t bytes_of(const Doc& map) {
  std::size_t size = 0;
  for (const auto& [key, value] : map.members()) size += key.size() + value.as_string().size();
  return size;
}

void validate_parameters(const Doc& parameters, const Path& at, FieldErrors& errors) {
  if (parameters.size() > kParametersMax) {
    errors.too_long(at, kParametersMax);
    return;
  }
  if (parameters.has("")) errors.invalid(at, "", "field can not be empty.");
  if (bytes_of(parameters) > kParametersBytesMax) errors.too_long(at, kParametersBytesMax);
}

using Expressions = std::map<std::string, std::set<std::string>>;

Expressions validate_topology(const Doc& term, const Path& at, FieldErrors& errors) {
  Expressions expressions;
  const Doc& list = term["matchLabelExpressions"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Doc& expression = list.items()[i];
    const Path here = at.child("matchLabelExpressions").index(i);
    const std::string& key = expression["key"].as_string();
    if (expression["values"].empty()) errors.required(here.child("values"));
    validate_unique(
        expression["values"], here.child("values"), [](const Doc& value) { return value; }, errors);
    validate_label_key(key, here.child("key"), errors);
    if (expressions.contains(key)) errors.duplicate(here.child("key"), key);
    for (const Doc& value : expression["values"].items()) {
      expressions[key].insert(value.as_string());
    }
  }
  return expressions;
}

class StorageClassStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& object) const override {
    object.set_default("reclaimPolicy", "Delete");
    object.set_default("volumeBindingMode", "Immediate");
  }
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const std::string& provisioner = object["provisioner"].as_string();
    if (provisioner.empty()) {
      errors.required(Path("provisioner"));
    } else {
      add_problems(errors, Path("provisioner"), lower_case(provisioner),
                   check_qualified_name(lower_case(provisioner)));
    }
    validate_parameters(object["parameters"], Path("parameters"), errors);
    const std::string& policy = object["reclaimPolicy"].as_string();
    if (!policy.empty() && policy != "Delete" && policy != "Retain") {
      errors.not_supported(Path("reclaimPolicy"), policy, {"Delete", "Retain"});
    }
    const std::string& mode = object["volumeBindingMode"].as_string();
    if (mode != "Immediate" && mode != "WaitForFirstConsumer") {
      errors.not_supported(Path("volumeBindingMode"), mode, {"Immediate", "WaitForFirstConsumer"});
    }
    const Doc& topologies = object["allowedTopologies"];
    std::set<Expressions> seen;
    for (std::size_t i = 0; i < topologies.size(); ++i) {
      const Path at = Path("allowedTopologies").index(i);
      if (!seen.insert(validate_topology(topologies.items()[i], at, errors)).second) {
        errors.duplicate(at.child("matchLabelExpressions"), "");
      }
    }
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(object, context, errors);
    for (const std::string_view member :
         {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
      require_same(object[member], old[member], Path(member), errors);
    }
  }
  bool returns_deleted_object() const override { return true; }
};

void validate_node_driver(const Doc& driver, const Path& at, FieldErrors& errors) {
  validate_driver_name(driver["name"].as_string(), at.child("name"), errors);
  const std::string& id = driver["nodeID"].as_string();
  if (id.empty()) errors.required(at.child("nodeID"));
  if (id.size() > kNodeIdMax) {
    errors.invalid(at.child("nodeID"), id, "must be 256 characters or less");
  }
  const Doc& count = driver.get("allocatable", "count");
  if (count.as_int() < 0) {
    errors.invalid(at.child("allocatable", "count"), count, "must be greater than or equal to 0");
  }
}

void validate_topology_keys(const Doc& keys, const Path& at, FieldErrors& errors) {
  std::set<std::string> seen;
  for (const Doc& key : keys.items()) {
    if (key.as_string().empty()) errors.required(at);
    if (!seen.insert(key.as_string()).second) errors.duplicate(at, key);
    add_problems(errors, at, key, check_qualified_name(key.as_string()));
  }
}

class CsiNodeStrategy : public PlainStrategy {
 public:
  void validate_create(const Doc& node, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& drivers = node.get("spec", "drivers");
    std::set<std::string> names;
    for (std::size_t i = 0; i < drivers.size(); ++i) {
      const Doc& driver = drivers.items()[i];
      const Path at = Path("spec.drivers").index(i);
      validate_node_driver(driver, at, errors);
      if (!names.insert(driver["name"].as_string()).second) {
        errors.duplicate(at.child("name"), driver["name"]);
      }
      validate_topology_keys(driver["topologyKeys"], at, errors);
    }
  }
  void validate_update(const Doc& node, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(node, context, errors);
    for (const Doc& before : old.get("spec", "drivers").items()) {
      for (const Doc& now : node.get("spec", "drivers").items()) {
        if (now["name"] != before["name"]) continue;
        require_same(without_allocatable(now), without_allocatable(before), Path("spec.drivers"),
                     errors);
      }
    }
  }
  bool allows_unconditional_update() const override { return false; }
  bool returns_deleted_object() const override { return true; }

 private:
  static Doc without_allocatable(Doc driver) {
    driver.erase("allocatable");
    return driver;
  }
};

class CsiDriverStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& driver) const override {
    Doc& spec = driver.at("spec");
    if (!spec.is_object()) spec = Doc::object();
    spec.set_default("attachRequired", true);
    for (const std::string_view member :
         {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"}) {
      spec.set_default(member, false);
    }
    spec.set_default("fsGroupPolicy", "ReadWriteOnceWithFSType");
    if (spec["volumeLifecycleModes"].empty()) {
      spec.set("volumeLifecycleModes", Doc::array({"Persistent"}));
    }
  }
  void prepare_create(Doc& driver, WriteContext& context) const override {
    driver.at("spec").erase("preventPodSchedulingIfMissing");  // behind a gate that is off
    warn(driver, context);
  }
  void validate_create(const Doc& driver, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& spec = driver["spec"];
    const Path at("spec");
    static const std::vector<std::string_view> kPolicies = {"File", "None",
                                                            "ReadWriteOnceWithFSType"};
    const std::string& policy = spec["fsGroupPolicy"].as_string();
    if (std::ranges::find(kPolicies, policy) == kPolicies.end()) {
      errors.not_supported(at.child("fsGroupPolicy"), policy, kPolicies);
    }
    validate_tokens(spec["tokenRequests"], at.child("tokenRequests"), errors);
    for (const Doc& mode : spec["volumeLifecycleModes"].items()) {
      if (mode.as_string() == "Persistent" || mode.as_string() == "Ephemeral") continue;
      errors.not_supported(at.child("volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
    }
    const Doc* period = spec.find("nodeAllocatableUpdatePeriodSeconds");
    if (period != nullptr && period->as_int() < 10) {
      errors.invalid(at.child("nodeAllocatableUpdatePeriodSeconds"), *period,
                     "must be greater than or equal to 10 seconds");
    }
    if (spec.has("serviceAccountTokenInSecrets") && spec["tokenRequests"].empty()) {
      errors.invalid(at.child("serviceAccountTokenInSecrets"), spec["serviceAccountTokenInSecrets"],
                     "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
  }
  void prepare_update(Doc& driver, const Doc& old, WriteContext& context) const override {
    driver.at("spec").erase("preventPodSchedulingIfMissing");
    if (!same(driver["spec"], old["spec"])) {
      driver.at("metadata").set("generation", meta(old)["generation"].as_int() + 1);
    }
    if (!same(driver["spec"]["tokenRequests"], old["spec"]["tokenRequests"])) {
      warn(driver, context);
    }
  }
  void validate_update(const Doc& driver, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(driver, context, errors);
    require_same(driver["spec"]["attachRequired"], old["spec"]["attachRequired"],
                 Path("spec.attachedRequired"), errors);  // the name upstream gives it
    require_same(driver["spec"]["volumeLifecycleModes"], old["spec"]["volumeLifecycleModes"],
                 Path("spec.volumeLifecycleModes"), errors);
  }
  bool allows_unconditional_update() const override { return false; }
  bool returns_deleted_object() const override { return true; }

 private:
  static void validate_tokens(const Doc& requests, const Path& at, FieldErrors& errors) {
    constexpr std::int64_t kMin = 600;
    constexpr std::int64_t kMax = std::int64_t{1} << 32;
    std::set<std::string> audiences;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Doc& request = requests.items()[i];
      const Doc& seconds = request["expirationSeconds"];
      const Path seconds_at = at.index(i).child("expirationSeconds");
      if (!audiences.insert(request["audience"].as_string()).second) {
        errors.duplicate(at.index(i).child("audience"), request["audience"]);
        continue;
      }
      if (seconds.is_null()) continue;
      if (seconds.as_int() < kMin) {
        errors.invalid(seconds_at, seconds, "may not specify a duration less than 10 minutes");
      }
      if (seconds.as_int() > kMax) {
        errors.invalid(seconds_at, seconds, "may not specify a duration larger than 2^32 seconds");
      }
    }
  }
  static void warn(const Doc& driver, WriteContext& context) {
    const Doc& spec = driver["spec"];
    if (spec["tokenRequests"].empty() || spec.has("serviceAccountTokenInSecrets")) return;
    context.warnings.emplace_back(
        "spec.serviceAccountTokenInSecrets is unset; with it set to true, tokens stay out of "
        "volume attributes and their logs, where the driver supports that");
  }
};

class CsiCapacityStrategy : public PlainStrategy {
 public:
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    if (object.has("nodeTopology")) {
      validate_label_selector(object["nodeTopology"], Path("nodeTopology"), errors);
    }
    validate_name(object["storageClassName"].as_string(), check_dns1123_subdomain,
                  Path("storageClassName"), errors);
    if (object.has("capacity")) validate_nonnegative(object["capacity"], Path("capacity"), errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(object, context, errors);
    require_same(object["nodeTopology"], old["nodeTopology"], Path("nodeTopology"), errors);
    require_same(object["storageClassName"], old["storageClassName"], Path("storageClassName"),
                 errors);
  }
  bool allows_unconditional_update() const override { return false; }
};

class AttachmentStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& object) const override {
    if (Doc* source = object.at("spec").find("source")) {
      if (Doc* spec = source->find("inlineVolumeSpec")) default_volume_spec(*spec);
    }
  }
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& spec = object["spec"];
    validate_driver_name(spec["attacher"].as_string(), Path("spec.attacher"), errors);
    const Doc& source = spec["source"];
    const Path at("spec.source");
    const bool is_inline = source.has("inlineVolumeSpec");
    const bool is_named = source.has("persistentVolumeName");
    constexpr std::string_view kOne =
        "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    if (!is_inline && !is_named) {
      errors.required(at, kOne);
    } else if (is_inline && is_named) {
      errors.forbidden(at, kOne);
    } else if (is_inline) {
      validate_volume_spec(source["inlineVolumeSpec"], true, at.child("inlineVolumeSpec"), errors);
    } else if (source["persistentVolumeName"].as_string().empty()) {
      errors.required(at.child("persistentVolumeName"),
                      "must specify non empty persistentVolumeName");
    }
    validate_name(spec["nodeName"].as_string(), check_dns1123_subdomain, Path("spec.nodeName"),
                  errors);
    validate_status(object["status"], errors);
    if (is_named) {
      validate_name(source["persistentVolumeName"].as_string(), check_dns1123_subdomain,
                    at.child("persistentVolumeName"), errors);
    }
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(object, context, errors);
    require_same(object["spec"], old["spec"], Path("spec"), errors);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& context,
                                   FieldErrors& errors) const override {
    validate_update(object, old, context, errors);
  }
  bool allows_unconditional_update() const override { return false; }
  bool returns_deleted_object() const override { return true; }

 private:
  static void validate_status(const Doc& status, FieldErrors& errors) {
    if (bytes_of(status["attachmentMetadata"]) > kParametersBytesMax) {
      errors.too_long(Path("status.attachmentMetadata"), kParametersBytesMax);
    }
    for (const std::string_view member : {"attachError", "detachError"}) {
      const Doc& error = status[member];
      const Path at = Path("status").child(member);
      if (error["message"].as_string().size() > kErrorMessageMax) {
        errors.too_long(at.child("message"), kErrorMessageMax);
      }
      if (error["errorCode"].as_int() < 0) {
        errors.invalid(at.child("errorCode"), error["errorCode"],
                       "must be between 0 and 2147483647, inclusive");
      }
    }
  }
};

}  // namespace

StrategyPtr storage_class_strategy() { return std::make_shared<StorageClassStrategy>(); }
StrategyPtr csi_node_strategy() { return std::make_shared<CsiNodeStrategy>(); }
StrategyPtr csi_driver_strategy() { return std::make_shared<CsiDriverStrategy>(); }
StrategyPtr csi_capacity_strategy() { return std::make_shared<CsiCapacityStrategy>(); }
StrategyPtr attachment_strategy() { return std::make_shared<AttachmentStrategy>(); }

}  // namespace jogak::api
