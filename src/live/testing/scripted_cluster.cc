// SPDX-License-Identifier: Apache-2.0
//
// Objects in a map; changes reach the follower in a later turn of the loop, as over a network.
#include "live/testing/scripted_cluster.h"

#include <utility>

#include <fmt/core.h>

namespace jogak::live::testing {

namespace {

std::string key_of(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

std::string key_of(const Doc& object) {
  return key_of(object.get("metadata", "namespace").as_string(),
                object.get("metadata", "name").as_string());
}

std::unexpected<Error> error(Errc code) {
  return std::unexpected(Error{.code = code, .what = "as told"});
}

std::optional<Errc> next_error(std::deque<std::optional<Errc>>& errors) {
  if (errors.empty()) return std::nullopt;
  const std::optional<Errc> next = errors.front();
  errors.pop_front();
  return next;
}

}  // namespace

std::shared_ptr<void> ScriptedCluster::follow(std::string_view resource, Follower follower) {
  auto handle = std::make_shared<Follower>(std::move(follower));
  followers_[std::string(resource)].push_back(handle);
  for (const auto& [key, object] : objects_[std::string(resource)]) emit(resource, object, false);
  loop_.after(change_delay, [weak = std::weak_ptr(handle)] {
    if (const auto told = weak.lock(); told != nullptr && told->on_synced) told->on_synced();
  });
  return handle;
}

// Followers are told in later turns, as of an API server.
void ScriptedCluster::emit(std::string_view resource, const Doc& object, bool is_deleted) {
  for (const std::weak_ptr<Follower>& weak : followers_[std::string(resource)]) {
    loop_.after(
        change_delay, [weak, is_deleted, ns = object.get("metadata", "namespace").as_string(),
                       name = object.get("metadata", "name").as_string(),
                       json = object.json(JsonWriter::Style::Compact)] {
          if (const auto follower = weak.lock()) {
            follower->on_change({.is_deleted = is_deleted, .ns = ns, .name = name, .json = json});
          }
        });
  }
}

void ScriptedCluster::answer(Done done, Result<void> outcome) {
  if (answer_delay == 0) return done(std::move(outcome));
  loop_.after(answer_delay, [done = std::move(done), outcome] { done(outcome); });
}

void ScriptedCluster::put(std::string_view resource, Doc object) {
  Doc& kept = objects_[std::string(resource)][key_of(object)];
  kept = std::move(object);
  emit(resource, kept, false);
}

void ScriptedCluster::remove(std::string_view resource, std::string_view ns,
                             std::string_view name) {
  auto& objects = objects_[std::string(resource)];
  const auto it = objects.find(key_of(ns, name));
  if (it == objects.end()) return;
  const Doc last = std::move(it->second);
  objects.erase(it);
  emit(resource, last, true);
}

void ScriptedCluster::put_node(std::string_view name, int cpu, int pods) {
  Doc node = Doc::object();
  node.set("apiVersion", "v1").set("kind", "Node");
  node.at("metadata").set("name", name).set("uid", fmt::format("{}-uid", name));
  node.at("status", "allocatable")
      .set("cpu", std::to_string(cpu))
      .set("memory", "64Gi")
      .set("pods", std::to_string(pods));
  node.at("status").set("capacity", node.get("status", "allocatable"));
  put("nodes", std::move(node));
}

Doc* ScriptedCluster::find(std::string_view resource, std::string_view ns, std::string_view name) {
  auto& objects = objects_[std::string(resource)];
  const auto it = objects.find(key_of(ns, name));
  return it == objects.end() ? nullptr : &it->second;
}

std::string ScriptedCluster::node_of(std::string_view pod) {
  const Doc* found = find("pods", "ns", pod);
  return found == nullptr ? "" : found->get("spec", "nodeName").as_string();
}

Result<Doc*> ScriptedCluster::pod_of(const PodRef& ref) {
  Doc* found = find("pods", ref.ns, ref.name);
  if (found == nullptr) return error(Errc::NotFound);
  if (found->get("metadata", "uid").as_string() != ref.uid) return error(Errc::Conflict);
  return found;
}

Result<void> ScriptedCluster::try_bind(const Binding& binding) {
  if (const auto told = next_error(bind_errors)) return error(*told);
  JOGAK_TRY(Doc* const found, pod_of(binding.pod));
  if (!found->get("spec", "nodeName").as_string().empty() ||
      found->get("metadata").has("deletionTimestamp")) {
    return error(Errc::Conflict);
  }
  found->at("spec").set("nodeName", binding.node);
  bound.push_back(binding.pod.name);
  emit("pods", *found, false);
  return {};
}

void ScriptedCluster::bind(const Binding& binding, Done done) {
  bindings.push_back(binding);
  if (on_bind) on_bind(binding);
  Result<void> outcome = try_bind(binding);
  if (outcome.has_value() && bind_answers_lost > 0) {
    --bind_answers_lost;
    outcome = error(Errc::Timeout);
  }
  answer(std::move(done), std::move(outcome));
}

void ScriptedCluster::refuse(const Refusal& refusal, Done done) {
  refused.push_back(fmt::format("{}: {}{}", refusal.pod.name, refusal.message,
                                refusal.nominated_node == nullptr || refusal.nominated_node->empty()
                                    ? ""
                                    : " -> " + *refusal.nominated_node));
  if (const auto told = next_error(refuse_errors)) return answer(std::move(done), error(*told));
  const auto found = pod_of(refusal.pod);
  if (!found.has_value()) return answer(std::move(done), std::unexpected(found.error()));
  Doc& status = (*found)->at("status");
  status.set("conditions", Doc::array().push(Doc::object()
                                                 .set("type", "PodScheduled")
                                                 .set("status", "False")
                                                 .set("reason", refusal.reason)
                                                 .set("message", refusal.message)));
  if (refusal.nominated_node != nullptr) {
    status.set("nominatedNodeName", *refusal.nominated_node);
  }
  emit("pods", **found, false);
  answer(std::move(done), {});
}

void ScriptedCluster::preempt(const PodRef& victim, const std::string& /*message*/, Done done) {
  preempted.push_back(victim.name);
  if (const auto told = next_error(preempt_errors)) return answer(std::move(done), error(*told));
  const auto found = pod_of(victim);
  if (!found.has_value()) return answer(std::move(done), std::unexpected(found.error()));
  accepted_victims.push_back(victim.uid);
  (*found)->at("metadata").set("deletionTimestamp", "2030-01-01T00:00:00Z");
  emit("pods", **found, false);
  loop_.after(stop_time, [this, victim] {
    if (pod_of(victim).has_value()) remove("pods", victim.ns, victim.name);
  });
  answer(std::move(done), {});
}

void ScriptedCluster::plan_claim(const ClaimPlan& plan, Done done) {
  claim_plans.push_back(plan);
  Doc* claim = find("persistentvolumeclaims", plan.ns, plan.name);
  if (claim == nullptr) return answer(std::move(done), error(Errc::NotFound));
  if (plan.volume.empty()) {
    claim->at("metadata", "annotations").set("volume.kubernetes.io/selected-node", plan.node);
    emit("persistentvolumeclaims", *claim, false);
    return answer(std::move(done), {});
  }
  Doc* volume = find("persistentvolumes", "", plan.volume);
  if (volume == nullptr) return answer(std::move(done), error(Errc::NotFound));
  volume->at("spec").set(
      "claimRef",
      Doc::object().set("namespace", plan.ns).set("name", plan.name).set("uid", plan.uid));
  emit("persistentvolumes", *volume, false);
  answer(std::move(done), {});
}

void ScriptedCluster::read_pod(const PodRef& pod, std::function<void(Result<std::string>)> done) {
  ++reads;
  const auto found = pod_of(pod);
  Result<std::string> outcome = fail(Errc::NotFound, "no such pod");
  if (found.has_value()) outcome = (*found)->json(JsonWriter::Style::Compact);
  if (answer_delay == 0) return done(std::move(outcome));
  loop_.after(answer_delay, [done = std::move(done), outcome] { done(outcome); });
}

Doc pod(std::string_view name, int cpu, int priority) {
  Doc object = Doc::object();
  object.set("apiVersion", "v1").set("kind", "Pod");
  object.at("metadata")
      .set("name", name)
      .set("namespace", "ns")
      .set("uid", fmt::format("{}-uid", name))
      .set("creationTimestamp", "2023-11-14T22:13:20Z");
  Doc container = Doc::object().set("name", "main");
  container.at("resources", "requests").set("cpu", std::to_string(cpu));
  object.at("spec")
      .set("schedulerName", "default-scheduler")
      .set("priority", priority)
      .set("containers", Doc::array().push(std::move(container)));
  object.at("status").set("phase", "Pending");
  return object;
}

}  // namespace jogak::live::testing
