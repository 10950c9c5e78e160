// SPDX-License-Identifier: Apache-2.0
//
// Pods between request and store: what the server fills in and keeps, and which rules apply at
// which door. The rules themselves are in pod_validate, pod_update, pod_status and pod_resize.
#include "apiserver/kinds/pod_strategy.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/pod_update.h"
#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/names.h"

namespace jogak::api {

namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";

// Annotations of a time before init containers had a field.
constexpr std::array<std::string_view, 4> kLostAnnotations = {
    "pod.beta.kubernetes.io/init-containers", "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses"};

void drop_lost_annotations(Doc& object) {
  if (Doc* annotations = object.at("metadata").find("annotations")) {
    for (const std::string_view key : kLostAnnotations) {
      annotations->erase(key);
    }
  }
}

// The pod's own labels of those keys become part of the selector, as `op` says.
void merge_keys(Doc& holder, std::string_view keys, std::string_view op, const Doc& labels) {
  Doc* selector = holder.find("labelSelector");
  if (selector == nullptr || holder[keys].empty()) {
    return;
  }
  const Doc list = holder[keys];
  for (const Doc& key : list.items()) {
    const Doc* value = labels.find(key.as_string());
    if (value == nullptr) {
      continue;
    }
    Doc rule = Doc::object();
    rule.set("key", key).set("operator", op);
    rule.at("values").push(*value);
    // The selector moves when the holder grows, so it is looked up again.
    holder.find("labelSelector")->at("matchExpressions").push(std::move(rule));
  }
}

void merge_term(Doc& term, const Doc& labels) {
  merge_keys(term, "matchLabelKeys", "In", labels);
  merge_keys(term, "mismatchLabelKeys", "NotIn", labels);
}

void merge_label_keys(Doc& spec, const Doc& labels) {
  if (Doc* affinity = spec.find("affinity")) {
    for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
      Doc* terms = affinity->find(kind);
      if (terms == nullptr) {
        continue;
      }
      if (Doc* preferred = terms->find(kPreferred); preferred != nullptr && !preferred->empty()) {
        for (Doc& term : preferred->items()) {
          merge_term(term.at("podAffinityTerm"), labels);
        }
      }
      if (Doc* required = terms->find(kRequired); required != nullptr && !required->empty()) {
        for (Doc& term : required->items()) {
          merge_term(term, labels);
        }
      }
    }
  }
  Doc* constraints = spec.find("topologySpreadConstraints");
  if (constraints != nullptr && !constraints->empty()) {
    for (Doc& constraint : constraints->items()) {
      merge_keys(constraint, "matchLabelKeys", "In", labels);
    }
  }
}

// The field that an old annotation means, or null when it means none.
Doc profile_of(const std::string& annotation) {
  constexpr std::string_view kLocalhost = "localhost/";
  if (annotation == "unconfined") {
    return Doc::object().set("type", "Unconfined");
  }
  if (annotation == "runtime/default") {
    return Doc::object().set("type", "RuntimeDefault");
  }
  if (annotation.starts_with(kLocalhost) && annotation.size() > kLocalhost.size()) {
    return Doc::object()
        .set("type", "Localhost")
        .set("localhostProfile", annotation.substr(kLocalhost.size()));
  }
  return {};
}

void take_app_armor(Doc& spec, const Doc& annotations, std::vector<std::string>& warnings) {
  if (annotations.empty() || spec["os"]["name"].as_string() == "windows") {
    return;
  }
  const Doc of_pod = spec["securityContext"]["appArmorProfile"];
  for (const std::string_view list : {"initContainers", "containers"}) {
    Doc* containers = spec.find(list);
    if (containers == nullptr || containers->empty()) {
      continue;
    }
    for (Doc& container : containers->items()) {
      const std::string key = std::string(kAppArmor) + container["name"].as_string();
      if (!annotations.has(key) || container["securityContext"].has("appArmorProfile")) {
        continue;
      }
      const Doc profile = profile_of(annotations[key].as_string());
      if (!profile.is_null() && profile != of_pod) {
        container.at("securityContext").set("appArmorProfile", profile);
      }
      if (profile.is_null() || profile != of_pod) {
        warnings.push_back("metadata.annotations[" + key +
                           "]: deprecated since v1.30; use the \"appArmorProfile\" field instead");
      }
    }
  }
}

void add_gated_condition(Doc& pod, TimeUs now) {
  if (!pod["spec"]["schedulingGates"].empty()) {
    set_condition(pod, "PodScheduled", "False", "SchedulingGated",
                  "Scheduling is blocked due to non-empty scheduling gates", now);
  }
}

// Subresources that change the spec leave what a main write could change in metadata.
void keep_metadata(Doc& object, const Doc& old) {
  Doc& metadata = object.at("metadata");
  for (const std::string_view key :
       {"labels", "annotations", "finalizers", "ownerReferences", "generation", "deletionTimestamp",
        "deletionGracePeriodSeconds"}) {
    if (const Doc* kept = meta(old).find(key)) {
      metadata.set(key, *kept);
    } else {
      metadata.erase(key);
    }
  }
}

void validate_whole_spec(const Doc& object, FieldErrors& errors) {
  const Path metadata("metadata");
  const Spot meta_spot(metadata);
  const Path path("spec");
  const Spot at(path);
  const Doc& spec = object["spec"];
  const PodSpecView view = {.spec = spec, .metadata = object["metadata"], .is_pod = true};
  validate_pod_annotations(view, meta_spot.child("annotations"), errors);
  validate_pod_spec(view, at, errors);
  if (spec["serviceAccountName"].as_string().empty()) {
    const Spot volumes = at.child("volumes");
    for (std::size_t i = 0; i < spec["volumes"].size(); ++i) {
      const Doc& sources = spec["volumes"].items()[i]["projected"]["sources"];
      const Spot volume = volumes.index(i);
      const Spot list = volume.child("projected.sources");
      for (std::size_t k = 0; k < sources.size(); ++k) {
        if (sources.items()[k].has("serviceAccountToken")) {
          errors.forbidden(list.index(k).child("serviceAccountToken"),
                           "must not be specified when serviceAccountName is not set");
        }
      }
    }
  }
  validate_images_of_pod(spec, at, errors);
}

void warn_about_name(const std::string& name, std::vector<std::string>& warnings) {
  const Problems problems = check_dns1123_label(name);
  if (problems.empty()) {
    return;
  }
  std::string all;
  for (const std::string& problem : problems) {
    all.append(all.empty() ? "" : " ").append(problem);
  }
  warnings.push_back(
      "metadata.name: this is used in the Pod's hostname, which can result in surprising "
      "behavior; a DNS label is recommended: [" +
      all + "]");
}

void warn_about_addresses(const Doc& status, std::vector<std::string>& warnings) {
  const Path root("status");
  const Spot at(root);
  for (const std::string_view list : {"podIPs", "hostIPs"}) {
    const Spot spot = at.child(list);
    for (std::size_t i = 0; i < status[list].size(); ++i) {
      warn_about_address(status[list].items()[i]["ip"].as_string(), spot.index(i).child("ip"),
                         warnings);
    }
  }
}

class PodStrategy : public Strategy {
 public:
  MetaChecks meta_checks_on_update() const override { return MetaChecks::ByItself; }
  explicit PodStrategy(const KindOptions& options) : has_pod_groups_(options.has_pod_groups) {}

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    if (spec.is_null()) {
      spec = Doc::object();
    }
    default_pod_only(spec);
    default_pod_spec(spec);
    if (spec["terminationGracePeriodSeconds"].as_int() < 0) {
      spec.set("terminationGracePeriodSeconds", 1);
    }
    if (Doc* status = object.find("status"); status != nullptr && status->is_object()) {
      equal_pod_ips(*status);
    }
    drop_lost_annotations(object);
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    Doc& spec = object.at("spec");
    drop_gated_pod_fields(spec, has_pod_groups_);
    Doc status = Doc::object();
    status.set("phase", "Pending").set("qosClass", pod_qos_class(spec));
    object.set("status", std::move(status));
    add_gated_condition(object, context.now);
    const Doc& metadata = meta(object);
    merge_label_keys(object.at("spec"), metadata["labels"]);
    take_app_armor(object.at("spec"), metadata["annotations"], context.warnings);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_whole_spec(object, errors);
    const Doc& spec = object["spec"];
    const Path root("spec");
    const Spot at(root);
    if (!spec["ephemeralContainers"].empty()) {
      errors.forbidden(at.child("ephemeralContainers"), "cannot be set on create");
    }
    if (!spec["nodeName"].as_string().empty() && !spec["schedulingGates"].empty()) {
      errors.forbidden(at.child("nodeName"),
                       "cannot be set until all schedulingGates have been cleared");
    }
    validate_profiles_match({.spec = spec, .metadata = object["metadata"], .is_pod = true}, at,
                            errors);
    if (errors.empty()) {
      warn_about_name(name_of(object), context.warnings);
      warn_about_pod_template(object, {}, Path(), context.warnings);
    }
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(object, old, context);
    drop_gated_pod_fields(object.at("spec"), has_pod_groups_);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_again(object, old, errors);
    validate_pod_annotation_update(object, old, errors);
    validate_pod_update(object, old, errors);
  }

  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& /*context*/) const override {
    if (subresource == "binding") {
      return;  // made by the server from the stored pod
    }
    if (subresource == "status") {
      prepare_pod_status(object, old);
      keep_owners(object, old);
      return;
    }
    if (subresource == "ephemeralcontainers") {
      prepare_ephemeral_containers(object, old);
    } else {
      prepare_pod_resize(object, old);
    }
    keep_metadata(object, old);
    drop_gated_pod_fields(object.at("spec"), has_pod_groups_);
  }

  void validate_subresource_update(std::string_view subresource, const Doc& object, const Doc& old,
                                   WriteContext& context, FieldErrors& errors) const override {
    if (subresource == "binding") {
      return;
    }
    if (subresource == "status") {
      validate_meta_update(meta(object), meta(old), Path("metadata"), errors);
      validate_pod_annotation_update(object, old, errors);
      validate_pod_status(object, old, errors);
      if (errors.empty()) {
        warn_about_addresses(object["status"], context.warnings);
      }
      return;
    }
    validate_again(object, old, errors);
    if (subresource == "ephemeralcontainers") {
      validate_pod_annotation_update(object, old, errors);
      validate_ephemeral_containers(object, old, errors);
    } else {
      validate_pod_resize(object, old, errors);
    }
  }

  // Being bound is no change of what was asked for; and only a binding can name another node.
  bool spec_changed(const Doc& object, const Doc& old) const override {
    if (object["spec"] == old["spec"]) {
      return false;
    }
    Doc spec = object["spec"];
    if (const Doc* node = old["spec"].find("nodeName")) {
      spec.set("nodeName", *node);
    } else {
      spec.erase("nodeName");
    }
    return !is_same_pod_spec(spec, old["spec"]);
  }

  std::vector<std::string_view> selectable_fields() const override {
    return {"spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName"};
  }

  std::string field(const Doc& object, std::string_view path) const override {
    if (path == "spec.hostNetwork") {
      return object["spec"]["hostNetwork"].as_bool() ? "true" : "false";
    }
    if (path == "status.podIPs") {
      return "";  // may be asked for, but the server compares with nothing
    }
    return Strategy::field(object, path);
  }

  std::optional<std::int64_t> deletion_grace(const Doc& object,
                                             std::optional<std::int64_t> asked) const override {
    const Doc& spec = object["spec"];
    const std::string& phase = object["status"]["phase"].as_string();
    if (spec["nodeName"].as_string().empty() || phase == "Failed" || phase == "Succeeded") {
      return 0;
    }
    const std::int64_t grace = asked.value_or(spec["terminationGracePeriodSeconds"].as_int());
    return grace < 0 ? 1 : grace;
  }

  bool returns_deleted_object() const override { return true; }

 private:
  static void keep_owners(Doc& object, const Doc& old) {
    if (const Doc* owners = meta(old).find("ownerReferences")) {
      object.at("metadata").set("ownerReferences", *owners);
    } else {
      object.at("metadata").erase("ownerReferences");
    }
  }

  // The server looks at metadata twice on updates of pods, once as of any object and once as of a
  // pod, and reports what it finds both times.
  void validate_again(const Doc& object, const Doc& old, FieldErrors& errors) const {
    validate_meta_update(meta(object), meta(old), Path("metadata"), errors);
    validate_meta(meta(object), true, name_check(), Path("metadata"), errors);
    validate_whole_spec(object, errors);
  }

  bool has_pod_groups_;
};

// Pod templates as objects of their own, which nothing uses any more.
class PodTemplateStrategy : public Strategy {
 public:
  explicit PodTemplateStrategy(const KindOptions& options)
      : has_pod_groups_(options.has_pod_groups) {}

  void set_defaults(Doc& object) const override { default_pod_template(object.at("template")); }

  void prepare_create(Doc& object, WriteContext& /*context*/) const override { drop_gated(object); }
  void prepare_update(Doc& object, const Doc& /*old*/, WriteContext& /*context*/) const override {
    drop_gated(object);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    check(object, {}, context, errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_meta_update(meta(object), meta(old), Path("metadata"), errors);
    check(object, old["template"], context, errors);
  }

 private:
  static void check(const Doc& object, const Doc& old, WriteContext& context, FieldErrors& errors) {
    const Path at("template");
    validate_pod_template(object["template"], at, errors);
    if (errors.empty()) {
      warn_about_pod_template(object["template"], old, at, context.warnings);
    }
  }

  void drop_gated(Doc& object) const {
    drop_gated_pod_fields(object.at("template").at("spec"), has_pod_groups_);
  }

  bool has_pod_groups_;
};

}  // namespace

std::shared_ptr<const Strategy> pod_strategy(const KindOptions& options) {
  return std::make_shared<PodStrategy>(options);
}

std::shared_ptr<const Strategy> pod_template_strategy(const KindOptions& options) {
  return std::make_shared<PodTemplateStrategy>(options);
}

}  // namespace jogak::api
