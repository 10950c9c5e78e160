// SPDX-License-Identifier: Apache-2.0
// One maker per kind; facts of names, labels and counts: kube-controller-manager.
#include "cli/new_objects.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "import/import.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kReplicasMax = 100'000;

constexpr std::array<std::string_view, 8> kWithoutNamespace = {
    "Node",         "Namespace", "PriorityClass", "PersistentVolume",
    "StorageClass", "CSINode",   "CSIDriver",     "VolumeAttachment"};
// Read as they are; the rest of the kinds is for the makers below, or left out.
constexpr std::array<std::string_view, 12> kPlainKinds = {"Node",
                                                          "Namespace",
                                                          "PriorityClass",
                                                          "PersistentVolume",
                                                          "StorageClass",
                                                          "CSINode",
                                                          "CSIDriver",
                                                          "VolumeAttachment",
                                                          "Service",
                                                          "PersistentVolumeClaim",
                                                          "PodDisruptionBudget",
                                                          "CSIStorageCapacity"};

bool is_one_of(std::span<const std::string_view> kinds, std::string_view kind) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

class Maker {
 public:
  Maker(std::string_view file_name, const NewObjectOptions& options, NewObjects& into)
      : file_name_(file_name), options_(options), into_(into) {}

  Result<void> take(Doc object);

 private:
  struct Owner {
    std::string_view kind, name;
  };

  std::unexpected<Error> wrong(std::string_view what) const {
    return invalid("{}: {} {}: {}", file_name_, kind_, full_name_, what);
  }
  Result<void> take_pod(Doc object);
  Result<void> take_replicas(Doc object);
  Result<void> take_deployment(const Doc& object);
  Result<void> take_stateful_set(Doc object);
  Result<void> take_job(const Doc& object);
  void leave_out(std::string_view why) {
    into_.left_out.push_back(fmt::format("{} {} ({})", kind_, full_name_, why));
  }

  Result<std::int64_t> count(const Doc& value, std::string_view field, std::int64_t fallback) const;
  Result<void> check_pod_spec(const Doc& spec, std::string_view field) const;
  Doc pod_of(const Doc& templ, const Owner& owner) const;
  void add(Doc object) { into_.objects.push_back({std::move(object), std::string(file_name_)}); }
  void add_pod(Doc pod, std::string name);
  bool is_taken(std::string_view name) const;
  std::string free_name(std::string_view base);
  void default_claim(Doc& claim) const;

  std::string_view file_name_;
  const NewObjectOptions& options_;
  NewObjects& into_;
  std::string kind_, ns_, name_, full_name_;  // of the object at hand
  std::int64_t next_number_ = 0;
};

bool Maker::is_taken(std::string_view name) const {
  return options_.has_pod(ns_, name) || into_.pod_names.contains(fmt::format("{}/{}", ns_, name));
}

// "web-0": the controllers draw letters, which nobody could repeat.
std::string Maker::free_name(std::string_view base) {
  std::string name;
  do {
    name = fmt::format("{}-{}", base, next_number_++);
  } while (is_taken(name));
  return name;
}

Result<std::int64_t> Maker::count(const Doc& value, std::string_view field,
                                  std::int64_t fallback) const {
  const std::int64_t number = value.is_null() ? fallback : value.as_int(-1);
  if (number < 0 || number > kReplicasMax) {
    return wrong(fmt::format("{}: must be a whole number from 0 to {}", field, kReplicasMax));
  }
  return number;
}

Result<void> Maker::check_pod_spec(const Doc& spec, std::string_view field) const {
  if (spec["containers"].empty()) {
    return wrong(fmt::format("{}.containers: is required, at least one", field));
  }
  if (!spec["nodeName"].as_string().empty()) {
    return wrong(
        fmt::format("{}.nodeName: goes past every scheduler; leave it out (the state of a "
                    "whole cluster goes to --cluster)",
                    field));
  }
  return {};
}

Doc Maker::pod_of(const Doc& templ, const Owner& owner) const {
  Doc pod = Doc::object();
  pod.set("apiVersion", "v1").set("kind", "Pod");
  Doc& meta = pod.at("metadata");
  meta.set("namespace", ns_);
  for (const char* key : {"labels", "annotations"}) {
    if (templ.get("metadata", key).is_object()) meta.set(key, templ.get("metadata", key));
  }
  meta.at("ownerReferences")
      .push(Doc::object().set("kind", owner.kind).set("name", owner.name).set("controller", true));
  pod.set("spec", templ["spec"]);
  return pod;
}

void Maker::add_pod(Doc pod, std::string name) {
  into_.pods.push_back(fmt::format("{}/{}", ns_, name));
  into_.pod_names.insert(into_.pods.back());
  pod.at("metadata").set("name", std::move(name));
  add(std::move(pod));
}

Result<void> Maker::take_pod(Doc object) {
  JOGAK_TRY_VOID(check_pod_spec(object["spec"], "spec"));
  const std::string& base = object.get("metadata", "generateName").as_string();
  if (name_.empty() && !base.empty()) {
    next_number_ = 0;
    name_ = free_name(base.ends_with('-') ? base.substr(0, base.size() - 1) : base);
    full_name_ = fmt::format("{}/{}", ns_, name_);
  }
  if (name_.empty()) return wrong("metadata.name: is required");
  if (is_taken(name_)) return wrong("is there already; give the new one another name");
  object.erase("status");
  object.at("metadata").erase("deletionTimestamp");
  object.at("metadata").erase("uid");
  add_pod(std::move(object), name_);
  return {};
}

// ReplicaSet and ReplicationController.
Result<void> Maker::take_replicas(Doc object) {
  const Doc& spec = object["spec"];
  JOGAK_TRY_VOID(check_pod_spec(spec.get("template", "spec"), "spec.template.spec"));
  JOGAK_TRY(const std::int64_t replicas, count(spec["replicas"], "spec.replicas", 1));
  const Doc pod = pod_of(spec["template"], {kind_, name_});
  add(std::move(object));
  for (std::int64_t i = 0; i < replicas; ++i) add_pod(pod, free_name(name_));
  return {};
}

Result<void> Maker::take_deployment(const Doc& object) {
  constexpr std::string_view kHash = "pod-template-hash";
  const Doc& spec = object["spec"];
  JOGAK_TRY_VOID(check_pod_spec(spec.get("template", "spec"), "spec.template.spec"));
  JOGAK_TRY(const std::int64_t replicas, count(spec["replicas"], "spec.replicas", 1));
  if (spec["selector"].empty()) return wrong("spec.selector: is required");
  const std::string set_name = name_ + "-new";
  Doc set = Doc::object();
  set.set("apiVersion", "apps/v1").set("kind", "ReplicaSet");
  set.at("metadata").set("name", set_name).set("namespace", ns_);
  set.at("spec").set("selector", spec["selector"]).set("template", spec["template"]);
  set.at("spec", "selector", "matchLabels").set(kHash, "new");
  set.at("spec", "template", "metadata", "labels").set(kHash, "new");
  const Doc pod = pod_of(set.get("spec", "template"), {"ReplicaSet", set_name});
  add(std::move(set));
  for (std::int64_t i = 0; i < replicas; ++i) add_pod(pod, free_name(name_));
  return {};
}

void Maker::default_claim(Doc& claim) const {
  if (options_.default_storage_class.empty() || claim["spec"].has("storageClassName")) return;
  claim.at("spec").set("storageClassName", options_.default_storage_class);
}

// Pods of ordinals that are there already are not made again, nor are their claims.
Result<void> Maker::take_stateful_set(Doc object) {
  const Doc& spec = object["spec"];
  JOGAK_TRY_VOID(check_pod_spec(spec.get("template", "spec"), "spec.template.spec"));
  JOGAK_TRY(const std::int64_t replicas, count(spec["replicas"], "spec.replicas", 1));
  JOGAK_TRY(const std::int64_t start,
            count(spec.get("ordinals", "start"), "spec.ordinals.start", 0));
  const Doc base = pod_of(spec["template"], {kind_, name_});
  for (std::int64_t i = start; i < start + replicas; ++i) {
    std::string name = fmt::format("{}-{}", name_, i);
    if (is_taken(name)) continue;
    Doc pod = base;
    pod.at("metadata", "labels")
        .set("statefulset.kubernetes.io/pod-name", name)
        .set("apps.kubernetes.io/pod-index", std::to_string(i));
    for (const Doc& claim_template : spec["volumeClaimTemplates"].items()) {
      const std::string& volume = claim_template.get("metadata", "name").as_string();
      const std::string claim_name = fmt::format("{}-{}", volume, name);
      Doc claim = claim_template;
      claim.set("apiVersion", "v1").set("kind", "PersistentVolumeClaim");
      claim.at("metadata").set("name", claim_name).set("namespace", ns_);
      default_claim(claim);
      add(std::move(claim));
      pod.at("spec", "volumes")
          .push(Doc::object()
                    .set("name", volume)
                    .set("persistentVolumeClaim", Doc::object().set("claimName", claim_name)));
    }
    add_pod(std::move(pod), std::move(name));
  }
  add(std::move(object));
  return {};
}

Result<void> Maker::take_job(const Doc& object) {
  const Doc& spec = object["spec"];
  JOGAK_TRY_VOID(check_pod_spec(spec.get("template", "spec"), "spec.template.spec"));
  JOGAK_TRY(const std::int64_t at_once, count(spec["parallelism"], "spec.parallelism", 1));
  JOGAK_TRY(const std::int64_t in_all,
            count(spec["completions"], "spec.completions", kReplicasMax));
  if (spec["suspend"].as_bool()) {
    leave_out("it is suspended");
    return {};
  }
  Doc pod = pod_of(spec["template"], {kind_, name_});
  pod.at("metadata", "labels").set("batch.kubernetes.io/job-name", name_).set("job-name", name_);
  const bool is_indexed = spec["completionMode"].as_string() == "Indexed";
  for (std::int64_t i = 0; i < std::min(at_once, in_all); ++i) {
    if (is_indexed) {
      pod.at("metadata", "labels")
          .set("batch.kubernetes.io/job-completion-index", std::to_string(i));
    }
    add_pod(pod, free_name(name_));
  }
  return {};
}

Result<void> Maker::take(Doc object) {
  kind_ = object["kind"].as_string();
  name_ = object.get("metadata", "name").as_string();
  ns_ = object.get("metadata", "namespace").as_string();
  const bool has_namespace = !is_one_of(kWithoutNamespace, kind_);
  if (ns_.empty()) ns_ = options_.ns;
  full_name_ = has_namespace ? fmt::format("{}/{}", ns_, name_) : name_;
  next_number_ = 0;
  if (kind_.empty()) {
    return invalid("{}: an object without a kind; want Kubernetes manifests", file_name_);
  }
  if (has_namespace) object.at("metadata").set("namespace", ns_);
  if (kind_ == "Pod") return take_pod(std::move(object));
  if (name_.empty()) return wrong("metadata.name: is required");
  if (is_one_of(kPlainKinds, kind_)) {
    if (kind_ == "PersistentVolumeClaim") default_claim(object);
    add(std::move(object));
    return {};
  }
  if (kind_ == "Deployment") return take_deployment(object);
  if (kind_ == "ReplicaSet" || kind_ == "ReplicationController") {
    return take_replicas(std::move(object));
  }
  if (kind_ == "StatefulSet") return take_stateful_set(std::move(object));
  if (kind_ == "Job") return take_job(object);
  leave_out(kind_ == "DaemonSet" || kind_ == "CronJob"
                ? "its pods are not made here; give them, or a Deployment or Job"
                : "no pods are made of this kind");
  return {};
}

}  // namespace

Result<void> add_new_objects(std::vector<Doc> documents, std::string_view file_name,
                             const NewObjectOptions& options, NewObjects& into) {
  Maker maker(file_name, options, into);
  for (Doc& document : documents) {
    if (document["kind"].as_string().ends_with("List") && document["items"].is_array()) {
      for (Doc& item : document.at("items").items()) JOGAK_TRY_VOID(maker.take(std::move(item)));
    } else {
      JOGAK_TRY_VOID(maker.take(std::move(document)));
    }
  }
  return {};
}

Result<std::vector<core::PodId>> create_objects(const NewObjects& objects,
                                                std::string_view priority_classes,
                                                core::Cluster& cluster) {
  importer::ImportBatch batch;
  // Pods name the classes that the cluster has.
  if (!priority_classes.empty()) {
    JOGAK_TRY_VOID(batch.add(priority_classes, "cluster"));
  }
  for (const NewObjects::Object& object : objects.objects) {
    std::string json;
    object.doc.append_json(json);
    JOGAK_TRY_VOID(batch.add_object(json, "", object.file_name));
  }
  JOGAK_TRY_VOID(batch.apply(cluster));
  std::vector<core::PodId> pods;
  for (const std::string& full_name : objects.pods) {
    const std::size_t slash = full_name.find('/');
    const auto pod = cluster.find_pod(full_name.substr(0, slash), full_name.substr(slash + 1));
    if (pod) pods.push_back(*pod);
  }
  return pods;
}

}  // namespace jogak::cli
