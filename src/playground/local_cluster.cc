// SPDX-License-Identifier: Apache-2.0
//
// Each wish of the driver is one call of the API, as a scheduler outside would make it.
#include "playground/local_cluster.h"

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::playground {

namespace {

Error error_of(const api::ApiError& refusal) {
  Errc code = Errc::Invalid;
  if (refusal.code == 404) code = Errc::NotFound;
  if (refusal.code == 409) code = Errc::Conflict;
  if (refusal.code == 429 || refusal.code >= 500) code = Errc::Unavailable;
  return {.code = code, .what = refusal.message};
}

template <class T>
Result<void> outcome_of(const api::ApiResult<T>& result) {
  if (result.has_value()) return {};
  return std::unexpected(error_of(result.error()));
}

Doc metadata_of(const live::PodRef& pod) {
  return Doc::object().set("name", pod.name).set("namespace", pod.ns).set("uid", pod.uid);
}

}  // namespace

std::shared_ptr<void> LocalCluster::follow(std::string_view resource, Follower follower) {
  auto handle = api_.follow(resource, [follower](const api::Api::Change& change) {
    std::string json;
    change.object->append_json(json);
    follower.on_change({.is_deleted = change.type == store::EventType::Deleted,
                        .ns = api::namespace_of(*change.object),
                        .name = api::name_of(*change.object),
                        .json = json});
  });
  if (follower.on_synced) {
    api_.loop().post([weak = std::weak_ptr(handle), on_synced = std::move(follower.on_synced)] {
      if (!weak.expired()) on_synced();
    });
  }
  return handle;
}

void LocalCluster::bind(const live::Binding& binding, Done done) {
  Doc object = Doc::object();
  object.set("kind", "Binding").set("apiVersion", "v1").set("metadata", metadata_of(binding.pod));
  if (!binding.gpu_holds.empty()) {
    object.at("metadata").at("annotations").set("jogak.io/gpu-holds", binding.gpu_holds);
  }
  object.set("target",
             Doc::object().set("apiVersion", "v1").set("kind", "Node").set("name", binding.node));
  done(outcome_of(
      api_.create("pods", binding.pod.ns, std::move(object), "binding", binding.pod.name)));
}

void LocalCluster::refuse(const Refusal& refusal, Done done) {
  Doc condition = Doc::object();
  condition.set("type", "PodScheduled")
      .set("status", "False")
      .set("reason", refusal.reason)
      .set("message", refusal.message)
      .set("lastTransitionTime", api::format_time(api_.now()));
  Doc patch = Doc::object();
  patch.set("metadata", Doc::object().set("uid", refusal.pod.uid));
  patch.at("status").set("conditions", Doc::array().push(std::move(condition)));
  if (refusal.nominated_node != nullptr) {
    patch.at("status").set("nominatedNodeName",
                           refusal.nominated_node->empty() ? Doc() : Doc(*refusal.nominated_node));
  }
  done(outcome_of(api_.patch("pods", refusal.pod.ns, refusal.pod.name, api::PatchType::Strategic,
                             patch, "status")));
}

void LocalCluster::preempt(const live::PodRef& victim, const std::string& message, Done done) {
  Doc condition = Doc::object();
  condition.set("type", "DisruptionTarget")
      .set("status", "True")
      .set("reason", "PreemptionByScheduler")
      .set("message", message)
      .set("lastTransitionTime", api::format_time(api_.now()));
  Doc patch = Doc::object();
  patch.set("metadata", Doc::object().set("uid", victim.uid));
  patch.at("status").set("conditions", Doc::array().push(std::move(condition)));
  auto marked = outcome_of(
      api_.patch("pods", victim.ns, victim.name, api::PatchType::Strategic, patch, "status"));
  if (!marked.has_value()) return done(std::move(marked));
  const Doc options = Doc::object().set("preconditions", Doc::object().set("uid", victim.uid));
  done(outcome_of(api_.remove("pods", victim.ns, victim.name, options)));
}

void LocalCluster::plan_claim(const live::ClaimPlan& plan, Done done) {
  if (plan.volume.empty()) {
    Doc patch = Doc::object();
    patch.at("metadata").set("uid", plan.uid);
    patch.at("metadata", "annotations").set("volume.kubernetes.io/selected-node", plan.node);
    return done(outcome_of(
        api_.patch("persistentvolumeclaims", plan.ns, plan.name, api::PatchType::Merge, patch)));
  }
  Doc patch = Doc::object();
  patch.at("spec").set("claimRef", Doc::object()
                                       .set("apiVersion", "v1")
                                       .set("kind", "PersistentVolumeClaim")
                                       .set("namespace", plan.ns)
                                       .set("name", plan.name)
                                       .set("uid", plan.uid));
  done(outcome_of(api_.patch("persistentvolumes", "", plan.volume, api::PatchType::Merge, patch)));
}

void LocalCluster::read_pod(const live::PodRef& pod,
                            std::function<void(Result<std::string> json)> done) {
  const auto found = api_.get("pods", pod.ns, pod.name);
  if (!found.has_value()) return done(std::unexpected(error_of(found.error())));
  done(found->json(JsonWriter::Style::Compact));
}

void LocalCluster::note(const live::PodNote& note) {
  Doc event = Doc::object();
  event.set("metadata",
            Doc::object().set("generateName", note.pod.name + ".").set("namespace", note.pod.ns));
  event.set("eventTime", api::format_micro_time(api_.now()))
      .set("reportingComponent", note.reporter)
      .set("reportingInstance", note.reporter + "-playground")
      .set("action", note.action)
      .set("reason", note.reason)
      .set("type", note.type)
      .set("message", note.message)
      .set("involvedObject", Doc::object()
                                 .set("kind", "Pod")
                                 .set("apiVersion", "v1")
                                 .set("namespace", note.pod.ns)
                                 .set("name", note.pod.name)
                                 .set("uid", note.pod.uid));
  // An event tells people something; when it is refused there is nobody to tell.
  static_cast<void>(api_.create("events", note.pod.ns, std::move(event)));
}

}  // namespace jogak::playground
