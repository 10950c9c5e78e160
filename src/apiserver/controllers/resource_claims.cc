// SPDX-License-Identifier: Apache-2.0
//
// The resource claim controller (pkg/controller/resourceclaim of Kubernetes is the model): claims
// from the templates that pods name, and the end of reservations and allocations.
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

constexpr std::string_view kClaims = "resourceclaims.resource.k8s.io";
constexpr std::string_view kTemplates = "resourceclaimtemplates.resource.k8s.io";
constexpr std::string_view kPodClaim = "resource.kubernetes.io/pod-claim-name";
constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";
constexpr std::string_view kManager = "ResourceClaimController";
constexpr std::size_t kReservedMax = 256;
constexpr std::size_t kBaseMax = 57;  // of a generated name, before the dash and five letters

const Doc* named(const Doc& list, std::string_view name) {
  const auto it = std::ranges::find_if(
      list.items(), [&](const Doc& item) { return item["name"].as_string() == name; });
  return it == list.items().end() ? nullptr : &*it;
}

bool is_pod_reference(const Doc& consumer) {
  return consumer["resource"].as_string() == "pods" && consumer["apiGroup"].as_string().empty();
}

// Such a pod gets no claims any more.
bool is_over(const Doc& pod) {
  const std::string& phase = pod.get("status", "phase").as_string();
  return phase == "Succeeded" || phase == "Failed" || api::is_deleting(pod);
}

class ResourceClaims : public Controller {
 public:
  explicit ResourceClaims(const ControllerContext& context)
      : api_(context.make_api(std::string(kManager))),
        pods_(context.pods),
        pod_queue_(api_->loop(), [this](const std::string& key) { return sync_pod(key); }),
        claim_queue_(api_->loop(), [this](const std::string& key) { return sync_claim(key); }) {
    pods_handle_ = api_->follow("pods", [this](const api::Api::Change& change) { on_pod(change); });
    claims_handle_ =
        api_->follow(kClaims, [this](const api::Api::Change& change) { on_claim(change); });
    templates_handle_ = api_->follow(kTemplates, [this](const api::Api::Change& change) {
      if (change.type == store::EventType::Deleted) return;
      const auto it = waiting_.find(key_of(*change.object));
      if (it == waiting_.end()) return;
      for (const std::string& pod : it->second) pod_queue_.add(pod);
      waiting_.erase(it);
    });
  }

 private:
  void on_pod(const api::Api::Change& change) {
    const Doc& pod = *change.object;
    if (pod.get("spec", "resourceClaims").empty()) return;
    const std::string& ns = api::namespace_of(pod);
    if (change.type != store::EventType::Deleted && !is_over(pod)) {
      pod_queue_.add(key_of(ns, api::name_of(pod)));
      return;
    }
    for (const Doc& wanted : pod.get("spec", "resourceClaims").items()) {
      const std::string claim = claim_of(pod, wanted);
      if (!claim.empty()) claim_queue_.add(key_of(ns, claim));
    }
  }

  void on_claim(const api::Api::Change& change) {
    const Doc& claim = *change.object;
    const std::string key = key_of(claim);
    const Doc& owner = api::controller_of(claim);
    if (owner["kind"].as_string() == "Pod") {
      auto& names = generated_[owner["uid"].as_string()];
      if (change.type == store::EventType::Deleted) {
        names.erase(api::name_of(claim));
        if (names.empty()) generated_.erase(owner["uid"].as_string());
        pod_queue_.add(key_of(api::namespace_of(claim), owner["name"].as_string()));
      } else {
        names.insert(api::name_of(claim));
      }
    }
    if (change.type != store::EventType::Deleted) claim_queue_.add(key);
  }

  // The name of the claim behind an entry of spec.resourceClaims; "" when there is none yet.
  static std::string claim_of(const Doc& pod, const Doc& wanted) {
    const std::string& direct = wanted["resourceClaimName"].as_string();
    if (!direct.empty()) return direct;
    const Doc* status =
        named(pod.get("status", "resourceClaimStatuses"), wanted["name"].as_string());
    return status == nullptr ? "" : (*status)["resourceClaimName"].as_string();
  }

  static bool is_owned(const Doc& claim, const Doc& pod) {
    return api::controller_of(claim)["uid"].as_string() == api::uid_of(pod);
  }

  Outcome sync_pod(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto pod = api_->get("pods", ns, name);
    if (!pod.has_value() || is_over(*pod)) return Outcome::Done;
    Doc made = Doc::array();
    for (const Doc& wanted : pod->get("spec", "resourceClaims").items()) {
      const auto claim = have_claim(*pod, wanted);
      if (!claim.has_value()) {
        write_event(*api_, "resource_claim", *pod, "Warning", "FailedResourceClaimCreation",
                    fmt::format("PodResourceClaim {}: {}", wanted["name"].as_string(),
                                claim.error().message));
        const std::string& source = wanted["resourceClaimTemplateName"].as_string();
        if (claim.error().code != 404) return Outcome::Retry;
        waiting_[key_of(ns, source)].insert(key);  // until the template is there
        return Outcome::Done;
      }
      if (claim->empty()) continue;
      made.push(Doc::object().set("name", wanted["name"]).set("resourceClaimName", *claim));
    }
    if (!made.empty() && !write_statuses(*pod, std::move(made))) return Outcome::Retry;
    if (pod->get("spec", "nodeName").as_string().empty()) return Outcome::Done;
    return reserve(*pod);
  }

  // The name of a claim to be noted in the pod's status; "" when nothing is to be noted.
  api::ApiResult<std::string> have_claim(const Doc& pod, const Doc& wanted) {
    const std::string& ns = api::namespace_of(pod);
    const std::string& source = wanted["resourceClaimTemplateName"].as_string();
    if (source.empty()) return std::string();
    const std::string& claim_key = wanted["name"].as_string();
    const Doc* status = named(pod.get("status", "resourceClaimStatuses"), claim_key);
    if (status != nullptr) {
      const std::string& noted = (*status)["resourceClaimName"].as_string();
      if (noted.empty()) return std::string();  // it needs none
      const auto claim = api_->get(kClaims, ns, noted);
      if (claim.has_value() && is_owned(*claim, pod)) return std::string();
    }
    if (const auto names = generated_.find(api::uid_of(pod)); names != generated_.end()) {
      for (const std::string& name : names->second) {  // made, but not noted
        const auto claim = api_->get(kClaims, ns, name);
        const bool is_it = claim.has_value() &&
                           api::meta(*claim)["annotations"][kPodClaim].as_string() == claim_key;
        if (is_it) return name;
      }
    }
    const auto from = api_->get(kTemplates, ns, source);
    if (!from.has_value()) {
      api::ApiError error = from.error();
      error.message = fmt::format("resource claim template \"{}\": {}", source, error.message);
      return std::unexpected(std::move(error));
    }
    JOGAK_TRY(const Doc claim, api_->create(kClaims, ns, claim_from(*from, pod, claim_key)));
    generated_[api::uid_of(pod)].insert(api::name_of(claim));
    return api::name_of(claim);
  }

  static Doc claim_from(const Doc& from, const Doc& pod, const std::string& claim_key) {
    const Doc& metadata = from.get("spec", "metadata");
    const std::string& pod_name = api::name_of(pod);
    std::string base = pod_name + "-" + claim_key + "-";
    if (base.size() > kBaseMax) {  // both parts in proportion
      base = pod_name.substr(0, pod_name.size() * kBaseMax / base.size()) + "-" +
             claim_key.substr(0, claim_key.size() * kBaseMax / base.size());
    }
    Doc owner = controller_reference(pod);
    owner.erase("blockOwnerDeletion");
    Doc claim = Doc::object();
    claim.set("kind", "ResourceClaim").set("apiVersion", "resource.k8s.io/v1");
    Doc& made = claim.at("metadata");
    made.set("generateName", base).set("namespace", api::namespace_of(pod));
    if (!metadata["labels"].empty()) made.set("labels", metadata["labels"]);
    made.set("annotations", metadata["annotations"]);
    made.at("annotations").set(kPodClaim, claim_key);
    made.set("ownerReferences", Doc::array().push(std::move(owner)));
    claim.set("spec", from.get("spec", "spec"));
    return claim;
  }

  bool write_statuses(Doc& pod, Doc made) {
    Doc statuses = pod.get("status", "resourceClaimStatuses");
    for (Doc& status : made.items()) {
      const std::string name = status["name"].as_string();
      bool is_there = false;
      if (statuses.is_array()) {
        for (Doc& known : statuses.items()) {
          if (known["name"].as_string() != name) continue;
          known = status;
          is_there = true;
        }
      }
      if (!is_there) statuses.push(std::move(status));
    }
    Doc changed = pod;
    changed.at("status").set("resourceClaimStatuses", std::move(statuses));
    auto written = api_->update("pods", std::move(changed), "status");
    if (!written.has_value()) return written.error().code == 404;
    pod = *std::move(written);
    return true;
  }

  // A pod that came to its node without the scheduler holds its claims all the same.
  Outcome reserve(const Doc& pod) {
    for (const Doc& wanted : pod.get("spec", "resourceClaims").items()) {
      const std::string name = claim_of(pod, wanted);
      if (name.empty()) continue;
      auto claim = api_->get(kClaims, api::namespace_of(pod), name);
      if (!claim.has_value() || !claim->get("status").has("allocation")) continue;
      const bool is_template = wanted.has("resourceClaimTemplateName");
      if (is_template && !is_owned(*claim, pod)) continue;
      const Doc& holders = claim->get("status", "reservedFor");
      const bool is_held = std::ranges::any_of(holders.items(), [&](const Doc& holder) {
        return holder["uid"].as_string() == api::uid_of(pod);
      });
      if (is_held || holders.size() >= kReservedMax) continue;
      claim->at("status", "reservedFor")
          .push(Doc::object()
                    .set("resource", "pods")
                    .set("name", api::name_of(pod))
                    .set("uid", api::uid_of(pod)));
      if (!api_->update(kClaims, *std::move(claim), "status").has_value()) return Outcome::Retry;
    }
    return Outcome::Done;
  }

  static bool is_done(const PodView& pod) {
    return pod.is_finished() || (pod.is_deleting && pod.node.empty());
  }

  bool still_holds(const std::string& ns, const Doc& holder) const {
    if (!is_pod_reference(holder)) return true;  // of kinds that are not known here
    const PodViewPtr pod = pods_.find(ns, holder["name"].as_string());
    if (pod != nullptr) return pod->uid == holder["uid"].as_string() && !is_done(*pod);
    const auto object = api_->get("pods", ns, holder["name"].as_string());  // a new one, perhaps
    return object.has_value() && api::uid_of(*object) == holder["uid"].as_string();
  }

  Outcome sync_claim(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto claim = api_->get(kClaims, ns, name);
    if (!claim.has_value()) return Outcome::Done;
    const Doc before = claim->get("status", "reservedFor");
    Doc holders = Doc::array();
    for (const Doc& holder : before.items()) {
      if (still_holds(ns, holder)) holders.push(holder);
    }
    const bool is_free = holders.empty();
    const bool has_finalizer = api::has_finalizer(*claim, kFinalizer);
    const bool has_shrunk = holders.size() < before.size();
    const bool may_deallocate =
        is_free && has_finalizer && (has_shrunk || api::is_deleting(*claim));
    const bool loses_allocation = may_deallocate && claim->get("status").has("allocation");
    if (has_shrunk || loses_allocation) {
      Doc& status = claim->at("status");
      if (is_free) {
        status.erase("reservedFor");
      } else {
        status.set("reservedFor", std::move(holders));
      }
      if (loses_allocation) status.erase("allocation");
      auto written = api_->update(kClaims, *std::move(claim), "status");
      if (!written.has_value()) return Outcome::Retry;
      claim = std::move(written);
    }
    if (may_deallocate && !drop_finalizer(*claim)) return Outcome::Retry;
    return is_free ? drop_unused(*claim) : Outcome::Done;
  }

  bool drop_finalizer(Doc claim) {
    Doc kept = Doc::array();
    for (const Doc& one : api::meta(claim)["finalizers"].items()) {
      if (one.as_string() != kFinalizer) kept.push(one);
    }
    claim.at("metadata").set("finalizers", std::move(kept));
    const auto written = api_->update(kClaims, std::move(claim));
    return written.has_value() || written.error().code == 404;
  }

  // The claim of a pod that will not run goes before the pod itself does.
  Outcome drop_unused(const Doc& claim) {
    const Doc& owner = api::controller_of(claim);
    if (owner["kind"].as_string() != "Pod" || api::is_deleting(claim)) return Outcome::Done;
    const std::string& ns = api::namespace_of(claim);
    const PodViewPtr pod = pods_.find(ns, owner["name"].as_string());
    if (pod == nullptr) return Outcome::Done;  // garbage collection
    if (pod->uid == owner["uid"].as_string() && !is_done(*pod)) return Outcome::Done;
    const auto removed = api_->remove(kClaims, ns, api::name_of(claim));
    return removed.has_value() || removed.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue pod_queue_, claim_queue_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>>
      generated_;                                                                   // by pod's uid
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> waiting_;  // by template
  std::shared_ptr<void> pods_handle_, claims_handle_, templates_handle_;
};

}  // namespace

std::unique_ptr<Controller> resource_claim_controller(const ControllerContext& context) {
  return std::make_unique<ResourceClaims>(context);
}

}  // namespace jogak::controllers
