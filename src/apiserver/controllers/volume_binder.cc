// SPDX-License-Identifier: Apache-2.0
//
// The persistent volume controller (pkg/controller/volume/persistentvolume of Kubernetes is the
// model) without provisioners: volumes that exist are bound to claims, set free, and recycled.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/storage_controllers.h"
#include "apiserver/controllers/volume_match.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kVolumes = "persistentvolumes";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kClasses = "storageclasses.storage.k8s.io";
constexpr std::string_view kComponent = "persistentvolume-controller";
constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr std::string_view kProvisioner = "volume.kubernetes.io/storage-provisioner";
constexpr std::string_view kOldProvisioner = "volume.beta.kubernetes.io/storage-provisioner";
constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

class VolumeBinder : public Controller {
 public:
  explicit VolumeBinder(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        volume_queue_(api_->loop(), [this](const std::string& name) { return sync_volume(name); }),
        claim_queue_(api_->loop(), [this](const std::string& key) { return sync_claim(key); }) {
    volumes_handle_ =
        api_->follow(kVolumes, [this](const api::Api::Change& change) { on_volume(change); });
    claims_handle_ =
        api_->follow(kClaims, [this](const api::Api::Change& change) { on_claim(change); });
    classes_handle_ = api_->follow(kClasses, [this](const api::Api::Change& change) {
      ask_waiting(api::name_of(*change.object));
    });
  }

 private:
  void on_volume(const api::Api::Change& change) {
    VolumeView view = volume_view(*change.object);
    if (!view.claim_name.empty()) claim_queue_.add(key_of(view.claim_ns, view.claim_name));
    if (change.type == store::EventType::Deleted) {
      volumes_.erase(view.name);
      return;
    }
    volume_queue_.add(view.name);
    if (view.claim_name.empty() && view.phase == "Available") ask_waiting(view.storage_class);
    volumes_[view.name] = std::move(view);
  }

  void on_claim(const api::Api::Change& change) {
    const Doc& claim = *change.object;
    const std::string key = key_of(claim);
    const std::string& volume = claim.get("spec", "volumeName").as_string();
    if (!volume.empty()) volume_queue_.add(volume);
    const auto known = waiting_.find(key);
    const bool waits = change.type != store::EventType::Deleted && volume.empty();
    if (waits) {
      waiting_[key] = storage_class_of(claim);
    } else if (known != waiting_.end()) {
      waiting_.erase(known);
    }
    if (change.type == store::EventType::Deleted) {
      said_.erase(key);
    } else {
      claim_queue_.add(key);
    }
  }

  void ask_waiting(const std::string& storage_class) {
    for (const auto& [key, wanted] : waiting_) {
      if (wanted == storage_class) claim_queue_.add(key);
    }
  }

  void say(const Doc& claim, std::string_view type, std::string_view reason,
           const std::string& message) {
    const std::string key = key_of(claim);
    std::string& last = said_[key];
    if (last == reason) return;
    last = reason;
    write_event(*api_, kComponent, claim, type, reason, message);
  }

  // Claims.

  Outcome sync_claim(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto claim = api_->get(kClaims, ns, name);
    if (!claim.has_value()) return Outcome::Done;
    const bool was_bound = api::meta(*claim)["annotations"].has(kBindCompleted);
    if (was_bound) return check_bound(*claim);
    const std::string& wanted = claim->get("spec", "volumeName").as_string();
    if (wanted.empty()) return find_and_bind(*claim);
    const auto volume = volumes_.find(wanted);
    if (volume == volumes_.end()) return set_claim_phase(*claim, "Pending");
    if (volume->second.claim_name.empty() && !can_serve(volume->second, *claim)) {
      say(*claim, "Warning", "VolumeMismatch",
          fmt::format("Cannot bind to requested volume \"{}\": it does not fit the claim", wanted));
      return set_claim_phase(*claim, "Pending");
    }
    const bool is_free = volume->second.claim_name.empty() || is_bound_to(volume->second, *claim);
    return is_free ? bind(*claim, volume->second) : set_claim_phase(*claim, "Pending");
  }

  Outcome find_and_bind(const Doc& claim) {
    const std::string class_name = storage_class_of(claim);
    const auto storage_class = api_->get(kClasses, "", class_name);
    const bool is_late =
        storage_class.has_value() &&
        (*storage_class)["volumeBindingMode"].as_string() == "WaitForFirstConsumer";
    const bool is_chosen = api::meta(claim)["annotations"].has(kSelectedNode);
    if (const VolumeView* volume = find_volume(volumes_, claim, is_late)) {
      return bind(claim, *volume);
    }
    if (is_late && !is_chosen) {
      say(claim, "Normal", "WaitForFirstConsumer",
          "waiting for first consumer to be created before binding");
    } else if (class_name.empty()) {
      say(claim, "Normal", "FailedBinding",
          "no persistent volumes available for this claim and no storage class is set");
    } else if (!storage_class.has_value()) {
      say(claim, "Warning", "ProvisioningFailed",
          fmt::format("storageclass.storage.k8s.io \"{}\" not found", class_name));
    } else {
      return wait_for_provisioner(claim, (*storage_class)["provisioner"].as_string());
    }
    return set_claim_phase(claim, "Pending");
  }

  Outcome wait_for_provisioner(const Doc& claim, const std::string& provisioner) {
    if (provisioner == kNoProvisioner) {
      say(claim, "Warning", "ProvisioningFailed", "no volume plugin matched");
      return set_claim_phase(claim, "Pending");
    }
    if (api::meta(claim)["annotations"][kProvisioner].as_string() != provisioner) {
      Doc changed = claim;
      changed.at("metadata", "annotations")
          .set(kProvisioner, provisioner)
          .set(kOldProvisioner, provisioner);
      if (!api_->update(kClaims, std::move(changed)).has_value()) return Outcome::Retry;
    }
    say(claim, "Normal", "ExternalProvisioning",
        fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or "
                    "manually by the system administrator.",
                    provisioner));
    return Outcome::Done;
  }

  Outcome check_bound(const Doc& claim) {
    const std::string& name = claim.get("spec", "volumeName").as_string();
    const auto lost = [&](std::string_view reason, const std::string& message) {
      say(claim, "Warning", reason, message);
      return set_claim_phase(claim, "Lost");
    };
    if (name.empty()) {
      return lost("ClaimLost",
                  "Bound claim has lost reference to PersistentVolume. Data on the "
                  "volume is lost!");
    }
    const auto volume = volumes_.find(name);
    if (volume == volumes_.end()) {
      if (api_->get(kVolumes, "", name).has_value()) return Outcome::Done;  // asked again
      return lost("ClaimLost",
                  "Bound claim has lost its PersistentVolume. Data on the volume is "
                  "lost!");
    }
    if (volume->second.claim_name.empty() || is_bound_to(volume->second, claim)) {
      return bind(claim, volume->second);
    }
    return lost("ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound "
                "incorrectly");
  }

  Outcome set_claim_phase(const Doc& claim, std::string_view phase) {
    if (claim.get("status", "phase").as_string() == phase) return Outcome::Done;
    Doc changed = claim;
    changed.at("status").set("phase", phase);
    if (phase != "Bound") {
      changed.at("status").erase("accessModes");
      changed.at("status").erase("capacity");
    }
    return api_->update(kClaims, std::move(changed), "status").has_value() ? Outcome::Done
                                                                           : Outcome::Retry;
  }

  // Both sides, each step only where it is not done already.
  Outcome bind(const Doc& claim, const VolumeView& view) {
    auto volume = api_->get(kVolumes, "", view.name);
    if (!volume.has_value()) return Outcome::Done;
    if (!bind_volume(claim, *volume) || !set_volume_phase(*volume, "Bound")) return Outcome::Retry;
    volumes_[api::name_of(*volume)] = volume_view(*volume);
    const std::string name = api::name_of(*volume);
    Doc changed = claim;
    const bool was_asked = claim.get("spec", "volumeName").as_string() == name;
    changed.at("spec").set("volumeName", name);
    Doc& annotations = changed.at("metadata", "annotations");
    if (!was_asked) annotations.set(kBoundByController, "yes");
    annotations.set(kBindCompleted, "yes");
    if (changed != claim) {
      auto written = api_->update(kClaims, std::move(changed));
      if (!written.has_value()) return Outcome::Retry;
      changed = *std::move(written);
    }
    return fill_status(std::move(changed), *volume);
  }

  Outcome fill_status(Doc claim, const Doc& volume) {
    Doc& status = claim.at("status");
    if (status["phase"].as_string() == "Bound" && status.has("capacity")) return Outcome::Done;
    status.set("phase", "Bound")
        .set("accessModes", volume.get("spec", "accessModes"))
        .set("capacity", Doc::object().set("storage", volume.get("spec", "capacity", "storage")));
    const Doc& attributes = volume.get("spec", "volumeAttributesClassName");
    if (!attributes.is_null()) status.set("currentVolumeAttributesClassName", attributes);
    return api_->update(kClaims, std::move(claim), "status").has_value() ? Outcome::Done
                                                                         : Outcome::Retry;
  }

  bool bind_volume(const Doc& claim, Doc& volume) {
    const VolumeView view = volume_view(volume);
    if (is_bound_to(view, claim) && !view.claim_uid.empty()) return true;
    if (!view.claim_name.empty() && !is_bound_to(view, claim)) return false;
    Doc changed = volume;
    if (view.claim_name.empty()) {
      changed.at("metadata", "annotations").set(kBoundByController, "yes");
    }
    changed.at("spec").set("claimRef",
                           Doc::object()
                               .set("kind", "PersistentVolumeClaim")
                               .set("namespace", api::namespace_of(claim))
                               .set("name", api::name_of(claim))
                               .set("uid", api::uid_of(claim))
                               .set("apiVersion", "v1")
                               .set("resourceVersion", api::meta(claim)["resourceVersion"]));
    auto written = api_->update(kVolumes, std::move(changed));
    if (!written.has_value()) return false;
    volume = *std::move(written);
    return true;
  }

  // Volumes.

  bool set_volume_phase(Doc& volume, std::string_view phase, const std::string& message = "") {
    if (volume.get("status", "phase").as_string() == phase) return true;
    Doc changed = volume;
    changed.at("status").set("phase", phase);
    if (message.empty()) {
      changed.at("status").erase("message");
    } else {
      changed.at("status").set("message", message);
    }
    auto written = api_->update(kVolumes, std::move(changed), "status");
    if (!written.has_value()) return written.error().code == 404;
    volume = *std::move(written);
    return true;
  }

  Outcome sync_volume(const std::string& name) {
    auto volume = api_->get(kVolumes, "", name);
    if (!volume.has_value()) return Outcome::Done;
    const VolumeView view = volume_view(*volume);
    if (view.claim_name.empty() || view.claim_uid.empty()) {
      if (!view.claim_name.empty()) claim_queue_.add(key_of(view.claim_ns, view.claim_name));
      return set_volume_phase(*volume, "Available") ? Outcome::Done : Outcome::Retry;
    }
    const auto claim = api_->get(kClaims, view.claim_ns, view.claim_name);
    if (!claim.has_value() || api::uid_of(*claim) != view.claim_uid) return release(*volume);
    const std::string& bound = claim->get("spec", "volumeName").as_string();
    if (bound == name) return set_volume_phase(*volume, "Bound") ? Outcome::Done : Outcome::Retry;
    if (bound.empty()) {
      claim_queue_.add(key_of(view.claim_ns, view.claim_name));
      return Outcome::Done;
    }
    const Doc& annotations = api::meta(*volume)["annotations"];
    return annotations.has(kBoundByController) ? set_free(*volume) : Outcome::Done;
  }

  // Back to nobody's, as it was before the controller bound it.
  Outcome set_free(Doc& volume) {
    Doc changed = volume;
    changed.at("spec").erase("claimRef");
    changed.at("metadata", "annotations").erase(kBoundByController);
    auto written = api_->update(kVolumes, std::move(changed));
    if (!written.has_value()) return Outcome::Retry;
    volume = *std::move(written);
    return set_volume_phase(volume, "Available") ? Outcome::Done : Outcome::Retry;
  }

  Outcome release(Doc& volume) {
    // a copy: the volume is another one once its phase is written
    const std::string phase = volume.get("status", "phase").as_string();
    if (phase != "Released" && phase != "Failed" && !set_volume_phase(volume, "Released")) {
      return Outcome::Retry;
    }
    if (phase == "Failed" || api::is_deleting(volume)) return Outcome::Done;
    const std::string& policy = volume.get("spec", "persistentVolumeReclaimPolicy").as_string();
    const std::string& path = volume.get("spec", "hostPath", "path").as_string();
    if (policy == "Recycle") return set_free(volume);
    if (policy != "Delete") return Outcome::Done;
    if (api::meta(volume)["annotations"].has(kProvisionedBy)) return Outcome::Done;  // who made it
    // the one plugin that deletes by itself does so for scratch folders of the host alone
    if (path.starts_with('/') && path.substr(1).starts_with("tmp/")) {
      const auto removed = api_->remove(kVolumes, "", api::name_of(volume));
      return removed.has_value() || removed.error().code == 404 ? Outcome::Done : Outcome::Retry;
    }
    const std::string why = fmt::format(
        "error getting deleter volume plugin for volume \"{}\": no deletable volume "
        "plugin matched",
        api::name_of(volume));
    write_event(*api_, kComponent, volume, "Warning", "VolumeFailedDelete", why);
    return set_volume_phase(volume, "Failed", why) ? Outcome::Done : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue volume_queue_, claim_queue_;
  Volumes volumes_;
  std::map<std::string, std::string, std::less<>> waiting_;  // claims without a volume: their class
  std::map<std::string, std::string, std::less<>> said_;     // the last event of each claim
  std::shared_ptr<void> volumes_handle_, claims_handle_, classes_handle_;
};

}  // namespace

std::unique_ptr<Controller> volume_binder(const ControllerContext& context) {
  return std::make_unique<VolumeBinder>(context);
}

}  // namespace jogak::controllers
