// SPDX-License-Identifier: Apache-2.0
//
// Bodies are written out, not made from objects read: nothing of the server's can get lost in them.
#include "live/kube_requests.h"

#include <utility>

#include <fmt/core.h>

#include "base/json_writer.h"
#include "base/utc_time.h"
#include "kube/event.h"
#include "kube/object_claim.h"

namespace jogak::live {

namespace {

constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";

void write_uid(JsonWriter& json, std::string_view uid) {
  json.key("metadata").begin_object().field("uid", uid).end_object();
}

kube::ApiRequest patch(std::string target, std::string_view type, std::string body) {
  return {.method = "PATCH",
          .target = std::move(target),
          .body = std::move(body),
          .content_type = std::string(type)};
}

kube::EventObject event_object(const PodRef& pod) {
  return {.kind = "Pod", .ns = pod.ns, .name = pod.name, .uid = pod.uid};
}

}  // namespace

std::string pod_target(const PodRef& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", kube::escape(pod.ns), kube::escape(pod.name));
}

kube::ApiRequest binding_request(const Binding& binding) {
  JsonWriter json;
  json.begin_object().field("apiVersion", "v1").field("kind", "Binding");
  json.key("metadata")
      .begin_object()
      .field("name", binding.pod.name)
      .field("namespace", binding.pod.ns)
      .field("uid", binding.pod.uid);
  if (!binding.gpu_holds.empty()) {
    json.key("annotations")
        .begin_object()
        .field("jogak.io/gpu-holds", binding.gpu_holds)
        .end_object();
  }
  json.end_object();
  json.key("target")
      .begin_object()
      .field("apiVersion", "v1")
      .field("kind", "Node")
      .field("name", binding.node)
      .end_object()
      .end_object();
  return {.method = "POST", .target = pod_target(binding.pod) + "/binding", .body = json.take()};
}

kube::ApiRequest refusal_request(const ClusterApi::Refusal& refusal, TimeUs now) {
  JsonWriter json;
  json.begin_object();
  write_uid(json, refusal.pod.uid);
  json.key("status").begin_object();
  if (refusal.has_condition) {
    json.key("conditions").begin_array().begin_object();
    json.field("type", "PodScheduled")
        .field("status", "False")
        .field("reason", refusal.reason)
        .field("message", refusal.message);
    // It changes with the status alone, which was False before.
    if (!refusal.is_update) json.field("lastTransitionTime", utc_seconds(now));
    json.end_object().end_array();
  }
  if (refusal.nominated_node != nullptr) {
    json.key("nominatedNodeName");
    if (refusal.nominated_node->empty()) {
      json.null();
    } else {
      json.value(*refusal.nominated_node);
    }
  }
  json.end_object().end_object();
  return patch(pod_target(refusal.pod) + "/status", kStrategicPatch, json.take());
}

kube::ApiRequest disruption_request(const PodRef& victim, std::string_view message, TimeUs now) {
  JsonWriter json;
  json.begin_object();
  write_uid(json, victim.uid);
  json.key("status").begin_object().key("conditions").begin_array().begin_object();
  json.field("type", "DisruptionTarget")
      .field("status", "True")
      .field("reason", "PreemptionByScheduler")
      .field("message", message)
      .field("lastTransitionTime", utc_seconds(now));
  json.end_object().end_array().end_object().end_object();
  return patch(pod_target(victim) + "/status", kStrategicPatch, json.take());
}

kube::ApiRequest deletion_request(const PodRef& victim) {
  JsonWriter json;
  json.begin_object().field("apiVersion", "v1").field("kind", "DeleteOptions");
  json.key("preconditions").begin_object().field("uid", victim.uid).end_object().end_object();
  return {.method = "DELETE", .target = pod_target(victim), .body = json.take()};
}

kube::ApiRequest selected_node_request(const ClaimPlan& plan) {
  JsonWriter json;
  json.begin_object().key("metadata").begin_object().field("uid", plan.uid);
  json.key("annotations")
      .begin_object()
      .field("volume.kubernetes.io/selected-node", plan.node)
      .end_object();
  json.end_object().end_object();
  return patch(fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims/{}", kube::escape(plan.ns),
                           kube::escape(plan.name)),
               kMergePatch, json.take());
}

Result<kube::ApiRequest> claim_request(const ClaimPlan& plan, std::string_view volume_json) {
  JOGAK_TRY(const kube::VolumeClaimed volume, kube::volume_claimed(volume_json));
  const bool is_free = volume.claim_name.empty();
  const bool is_ours = volume.claim_ns == plan.ns && volume.claim_name == plan.name &&
                       (volume.claim_uid.empty() || volume.claim_uid == plan.uid);
  if (!is_free && !is_ours) {
    return fail(Errc::Conflict, "volume {} is claimed by {}/{}", plan.volume, volume.claim_ns,
                volume.claim_name);
  }
  JsonWriter json;
  json.begin_object().key("metadata").begin_object();
  json.field("resourceVersion", volume.version);
  // The volume controller frees a volume again only if a controller bound it.
  if (is_free) {
    json.key("annotations")
        .begin_object()
        .field("pv.kubernetes.io/bound-by-controller", "yes")
        .end_object();
  }
  json.end_object().key("spec").begin_object().key("claimRef").begin_object();
  json.field("apiVersion", "v1")
      .field("kind", "PersistentVolumeClaim")
      .field("namespace", plan.ns)
      .field("name", plan.name)
      .field("uid", plan.uid);
  json.end_object().end_object().end_object();
  return patch("/api/v1/persistentvolumes/" + kube::escape(plan.volume), kMergePatch, json.take());
}

std::string event_json(const PodNote& note, std::string_view ns, std::string_view name,
                       std::string_view host, TimeUs now) {
  return kube::event_json({.ns = ns,
                           .name = name,
                           .reporter = note.reporter,
                           .instance = fmt::format("{}-{}", note.reporter, host),
                           .action = note.action,
                           .reason = note.reason,
                           .type = note.type,
                           .note = note.message,
                           .regarding = event_object(note.pod),
                           .related = event_object(note.related)},
                          now);
}

Result<void> outcome_of_write(const Result<kube::ApiAnswer>& answer) {
  if (!answer.has_value()) return std::unexpected(answer.error());
  if (answer->status < 300) return {};
  Error error = kube::error_of(kube::problem_of(*answer));
  if (answer->status >= 500) error.code = Errc::Timeout;
  return std::unexpected(std::move(error));
}

Result<void> outcome_of_read(const Result<kube::ApiAnswer>& answer) {
  if (!answer.has_value()) return std::unexpected(answer.error());
  if (answer->status < 300) return {};
  return std::unexpected(kube::error_of(kube::problem_of(*answer)));
}

}  // namespace jogak::live
