// SPDX-License-Identifier: Apache-2.0
//
// Claims and volumes that are in use do not go (pkg/controller/volume/pvcprotection, pvprotection
// and ephemeral of Kubernetes are the models).
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/storage_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kVolumes = "persistentvolumes";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection";
constexpr std::string_view kVolumeFinalizer = "kubernetes.io/pv-protection";

class VolumeProtection : public Controller {
 public:
  explicit VolumeProtection(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        claim_queue_(api_->loop(), [this](const std::string& key) { return sync_claim(key); }),
        volume_queue_(api_->loop(), [this](const std::string& name) { return sync_volume(name); }),
        pod_queue_(api_->loop(), [this](const std::string& key) { return make_claims(key); }) {
    claims_handle_ = api_->follow(kClaims, [this](const api::Api::Change& change) {
      const Doc& claim = *change.object;
      const bool needs_look =
          api::is_deleting(claim) || !api::has_finalizer(claim, kClaimFinalizer);
      if (needs_look) claim_queue_.add(key_of(claim));
    });
    volumes_handle_ = api_->follow(kVolumes, [this](const api::Api::Change& change) {
      const Doc& volume = *change.object;
      const bool needs_look =
          api::is_deleting(volume) || !api::has_finalizer(volume, kVolumeFinalizer);
      if (needs_look) volume_queue_.add(api::name_of(volume));
    });
    pods_handle_ = api_->follow("pods", [this](const api::Api::Change& change) { on_pod(change); });
  }

 private:
  void on_pod(const api::Api::Change& change) {
    const Doc& pod = *change.object;
    const std::string& ns = api::namespace_of(pod);
    const bool is_gone = change.type == store::EventType::Deleted;
    for (const Doc& volume : pod.get("spec", "volumes").items()) {
      std::string claim = volume.get("persistentVolumeClaim", "claimName").as_string();
      const bool is_ephemeral = volume.has("ephemeral");
      if (is_ephemeral) claim = api::name_of(pod) + "-" + volume["name"].as_string();
      if (claim.empty()) continue;
      const std::string key = key_of(ns, claim);
      std::set<std::string, std::less<>>& users = users_[key];
      if (is_gone) {
        users.erase(api::name_of(pod));
        if (users.empty()) users_.erase(key);
      } else {
        users.insert(api::name_of(pod));
        if (is_ephemeral) pod_queue_.add(key_of(ns, api::name_of(pod)));
      }
      claim_queue_.add(key);
    }
  }

  // Pods that run, or may still run, with the claim; those without a node have not begun.
  bool is_used(const std::string& key) const {
    const auto users = users_.find(key);
    if (users == users_.end()) return false;
    const std::string ns = split_key(key).first;
    return std::ranges::any_of(users->second, [&](const std::string& name) {
      const PodViewPtr pod = pods_.find(ns, name);
      return pod != nullptr && !pod->node.empty() && !pod->is_finished();
    });
  }

  Outcome sync_claim(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto claim = api_->get(kClaims, ns, name);
    if (!claim.has_value()) return Outcome::Done;
    const bool may_go = api::is_deleting(*claim) && !is_used(key);
    return keep_finalizer(kClaims, *std::move(claim), kClaimFinalizer, may_go);
  }

  Outcome sync_volume(const std::string& name) {
    auto volume = api_->get(kVolumes, "", name);
    if (!volume.has_value()) return Outcome::Done;
    const bool may_go =
        api::is_deleting(*volume) && volume->get("status", "phase").as_string() != "Bound";
    return keep_finalizer(kVolumes, *std::move(volume), kVolumeFinalizer, may_go);
  }

  Outcome keep_finalizer(std::string_view table, Doc object, std::string_view finalizer,
                         bool may_go) {
    const bool has_it = api::has_finalizer(object, finalizer);
    if (may_go && has_it) {
      Doc kept = Doc::array();
      for (const Doc& one : api::meta(object)["finalizers"].items()) {
        if (one.as_string() != finalizer) kept.push(one);
      }
      object.at("metadata").set("finalizers", std::move(kept));
    } else if (!api::is_deleting(object) && !has_it) {
      object.at("metadata", "finalizers").push(finalizer);
    } else {
      return Outcome::Done;
    }
    const auto written = api_->update(table, std::move(object));
    return written.has_value() || written.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  // The claims of a pod's ephemeral volumes.
  Outcome make_claims(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto pod = api_->get("pods", ns, name);
    if (!pod.has_value() || api::is_deleting(*pod)) return Outcome::Done;
    Outcome outcome = Outcome::Done;
    for (const Doc& volume : pod->get("spec", "volumes").items()) {
      const Doc& wanted = volume.get("ephemeral", "volumeClaimTemplate");
      if (wanted.is_null()) continue;
      const std::string claim_name = name + "-" + volume["name"].as_string();
      const auto there = api_->get(kClaims, ns, claim_name);
      if (there.has_value()) {
        if (api::controller_of(*there)["uid"].as_string() == api::uid_of(*pod)) continue;
        outcome = Outcome::Retry;  // another's claim is in the way
        continue;
      }
      Doc claim = Doc::object();
      claim.set("kind", "PersistentVolumeClaim").set("apiVersion", "v1");
      claim.set("metadata", wanted["metadata"]).set("spec", wanted["spec"]);
      claim.at("metadata")
          .set("name", claim_name)
          .set("namespace", ns)
          .set("ownerReferences", Doc::array().push(controller_reference(*pod)));
      const auto made = api_->create(kClaims, ns, std::move(claim));
      if (made.has_value()) continue;
      write_event(*api_, "ephemeral_volume", *pod, "Warning", "FailedBinding",
                  fmt::format("ephemeral volume {}: create PVC {}: {}", volume["name"].as_string(),
                              claim_name, made.error().message));
      outcome = Outcome::Retry;
    }
    return outcome;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue claim_queue_, volume_queue_, pod_queue_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> users_;  // of each claim
  std::shared_ptr<void> claims_handle_, volumes_handle_, pods_handle_;
};

}  // namespace

std::unique_ptr<Controller> volume_protection(const ControllerContext& context) {
  return std::make_unique<VolumeProtection>(context);
}

}  // namespace jogak::controllers
