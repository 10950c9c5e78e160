// SPDX-License-Identifier: Apache-2.0
//
// The life of a pod on a simulated node: admitted, started, ready, ended, started again, stopped.
#include <algorithm>

#include <fmt/core.h>

#include "apiserver/kubelet/kubelets.h"
#include "apiserver/kubelet/pod_events.h"
#include "apiserver/object/meta.h"

namespace jogak::kubelet {

namespace {

constexpr TimeUs kFirstBackoff = 10 * kSecondInUs;  // between runs of a failing container
constexpr TimeUs kLongestBackoff = 300 * kSecondInUs;
constexpr std::int32_t kTerminatedExit = 143;  // ended by SIGTERM
constexpr std::int32_t kKilledExit = 137;      // ended by SIGKILL

TimeUs readiness_delay(const Doc& pod) {
  std::int64_t seconds = 0;
  for (const Doc& container : pod.get("spec", "containers").items()) {
    seconds = std::max(seconds, container.get("readinessProbe", "initialDelaySeconds").as_int());
  }
  return seconds * kSecondInUs;
}

// Whether a pod whose containers ended with that code runs them again.
bool restarts(const Doc& pod, std::int32_t exit_code) {
  const std::string& policy = pod.get("spec", "restartPolicy").as_string();
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

std::string pod_ip(std::uint32_t node, std::uint32_t pod) {
  return fmt::format("10.{}.{}.{}", 128 + (node >> 6U) % 128, ((node << 2U) + (pod >> 8U)) & 255U,
                     pod & 255U);
}

// What its status says that the containers of a pod hold: this process may be younger than the pod.
std::vector<HeldDevices> remembered(const Doc& pod) {
  std::vector<HeldDevices> held;
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Doc& status : pod["status"][list].items()) {
      for (const Doc& resource : status["allocatedResourcesStatus"].items()) {
        HeldDevices devices{.container = status["name"].as_string(),
                            .resource = resource["name"].as_string(),
                            .ids = {}};
        for (const Doc& device : resource["resources"].items()) {
          devices.ids.push_back(device["resourceID"].as_string());
        }
        held.push_back(std::move(devices));
      }
    }
  }
  return held;
}

}  // namespace

void Kubelets::later(const NodeState& node, PodRun& run, TimeUs when, Step step) {
  api_->loop().cancel(run.timer);
  run.timer = api_->loop().at(when, [this, alive = alive_, name = node.name, uid = run.uid, step] {
    if (!*alive) return;
    NodeState* at = find_node(name);
    if (at == nullptr) return;
    const auto it = at->runs.find(uid);
    if (it == at->runs.end()) return;
    it->second.timer = 0;
    if (at->is_down) {  // nobody at home: look again when the node may be back
      later(*at, it->second, api_->now() + kSecondInUs, step);
      return;
    }
    (this->*step)(*at, it->second);
  });
}

bool Kubelets::write_status(NodeState& node, PodRun& run) {
  const auto pod = api_->get("pods", run.ns, run.name);
  if (!pod.has_value() || api::uid_of(*pod) != run.uid) return false;
  run.facts.host_ip = node.ip;
  const auto written = api_->patch("pods", run.ns, run.name, api::PatchType::Merge,
                                   status_patch(*pod, run.facts, api_->now()), "status");
  return written.has_value();
}

void Kubelets::take_devices(NodeState& node, PodRun& run, const Doc& pod) {
  const std::vector<HeldDevices>& held = node.ledger.held_by(run.uid);
  if (held.empty()) return;
  for (const HeldDevices& devices : held) {
    for (const std::string& id : devices.ids) {
      run.facts.devices.push_back({.container = devices.container,
                                   .resource = devices.resource,
                                   .id = id,
                                   .is_healthy = node.ledger.is_healthy(devices.resource, id)});
    }
  }
  run.devices =
      DevicePod{.ns = run.ns, .name = run.name, .uid = run.uid, .annotations = {}, .held = held};
  for (const auto& [key, value] : api::meta(pod)["annotations"].members()) {
    if (key.starts_with("jogak.io/")) run.devices->annotations[key] = value.as_string();
  }
  node.devices->set_pod(*run.devices);
}

void Kubelets::tell_running(NodeState& node, PodRun& run) {
  if (!run.devices.has_value()) return;
  run.devices->is_running = run.facts.stage == Stage::Running;
  node.devices->set_pod(*run.devices);
}

void Kubelets::release(NodeState& node, const std::string& uid) {
  if (!node.ledger.held_by(uid).empty()) node.devices->forget_pod(uid);
  node.ledger.release(uid);
}

void Kubelets::forget(NodeState& node, const std::string& uid) {
  const auto it = node.runs.find(uid);
  if (it == node.runs.end()) return;
  api_->loop().cancel(it->second.timer);
  release(node, uid);
  node.runs.erase(it);
}

void Kubelets::begin(NodeState& node, const Doc& pod) {
  const std::string& uid = api::uid_of(pod);
  PodRun& run = node.runs[uid];
  run.ns = api::namespace_of(pod);
  run.name = api::name_of(pod);
  run.uid = uid;
  run.plan = plan_of(pod, options_.run);
  run.facts.admitted = api_->now();
  if (api::is_deleting(pod)) {  // it never ran here
    finish_stop(node, run);
    return;
  }
  const std::vector<HeldDevices> before = remembered(pod);
  if (const auto rejection = node.ledger.admit(uid, pod, before)) {
    const auto written = api_->patch(
        "pods", run.ns, run.name, api::PatchType::Merge,
        rejected_patch(pod, rejection->reason, rejection->message, api_->now()), "status");
    node.runs.erase(uid);
    static_cast<void>(written);  // gone meanwhile: nothing left to refuse
    return;
  }
  run.is_admitted = true;
  take_devices(node, run, pod);
  run.facts.pod_ip = pod_ip(node.number, node.next_pod++);
  if (pod.get("status", "phase").as_string() == "Running") {
    adopt(node, run, pod);
    // It may have got other devices than it had, where those are gone.
    if (node.ledger.held_by(uid) != before) write_status(node, run);
    return;
  }
  write_status(node, run);
  later(node, run, run.facts.admitted + run.plan.start_delay, &Kubelets::start_running);
}

// A pod that ran before this process did: its clock goes on.
void Kubelets::adopt(NodeState& node, PodRun& run, const Doc& pod) {
  const auto started = api::parse_time(pod.get("status", "startTime").as_string());
  run.facts.stage = Stage::Running;
  run.facts.is_ready = true;
  tell_running(node, run);
  run.facts.started = started.value_or(api_->now());
  run.facts.admitted = run.facts.started;
  if (const std::string& ip = pod.get("status", "podIP").as_string(); !ip.empty()) {
    run.facts.pod_ip = ip;
  }
  for (const Doc& status : pod.get("status", "containerStatuses").items()) {
    run.facts.restarts =
        std::max(run.facts.restarts, static_cast<std::int32_t>(status["restartCount"].as_int()));
  }
  if (run.plan.run_time.has_value()) {
    later(node, run, run.facts.started + *run.plan.run_time, &Kubelets::end_run);
  }
}

void Kubelets::start_running(NodeState& node, PodRun& run) {
  const auto pod = api_->get("pods", run.ns, run.name);
  if (!pod.has_value() || api::uid_of(*pod) != run.uid) return;
  run.facts.stage = Stage::Running;
  tell_running(node, run);
  run.facts.started = api_->now();
  const TimeUs until_ready = readiness_delay(*pod) + options_.ready_delay;
  run.facts.is_ready = until_ready == 0;
  tell_started(*api_, *pod, node.name);
  write_status(node, run);
  if (!run.facts.is_ready) {
    later(node, run, api_->now() + until_ready, &Kubelets::become_ready);
  } else if (run.plan.run_time.has_value()) {
    later(node, run, run.facts.started + *run.plan.run_time, &Kubelets::end_run);
  }
}

void Kubelets::become_ready(NodeState& node, PodRun& run) {
  const TimeUs end = run.plan.run_time.has_value() ? run.facts.started + *run.plan.run_time : 0;
  if (end != 0 && end <= api_->now()) return end_run(node, run);
  run.facts.is_ready = true;
  write_status(node, run);
  if (end != 0) later(node, run, end, &Kubelets::end_run);
}

void Kubelets::end_run(NodeState& node, PodRun& run) {
  const auto pod = api_->get("pods", run.ns, run.name);
  if (!pod.has_value() || api::uid_of(*pod) != run.uid) return;
  run.facts.exit_code = run.plan.exit_code;
  run.facts.finished = api_->now();
  run.facts.is_ready = false;
  if (!restarts(*pod, run.plan.exit_code)) {
    run.facts.stage = run.plan.exit_code == 0 ? Stage::Succeeded : Stage::Failed;
    write_status(node, run);
    release(node, run.uid);
    return;
  }
  const std::int32_t runs_before = run.facts.restarts++;
  run.facts.has_run = true;
  run.facts.stage = Stage::Waiting;
  tell_running(node, run);
  write_status(node, run);
  tell_backoff(*api_, *pod, node.name);
  const TimeUs backoff = std::min(kLongestBackoff, kFirstBackoff << std::min(runs_before, 8));
  later(node, run, api_->now() + backoff, &Kubelets::start_running);
}

void Kubelets::begin_stop(NodeState& node, PodRun& run, TimeUs deletion_end) {
  const bool is_first = !run.is_stopping;
  run.is_stopping = true;
  run.deletion_end = deletion_end;
  const bool is_running = run.facts.stage == Stage::Running || run.facts.stage == Stage::Waiting;
  TimeUs end = api_->now();
  if (is_running) {
    if (const auto pod = api_->get("pods", run.ns, run.name); pod.has_value() && is_first) {
      tell_killing(*api_, *pod, node.name);
    }
    end = run.plan.ignores_term ? deletion_end
                                : std::min(deletion_end, api_->now() + options_.stop_delay);
  }
  later(node, run, end, &Kubelets::finish_stop);
}

void Kubelets::finish_stop(NodeState& node, PodRun& run) {
  const std::string ns = run.ns;
  const std::string name = run.name;
  const std::string uid = run.uid;
  const bool is_over = run.facts.stage == Stage::Succeeded || run.facts.stage == Stage::Failed;
  if (run.is_admitted && !is_over) {
    run.facts.finished = api_->now();
    run.facts.started = std::max(run.facts.started, run.facts.admitted);
    run.facts.exit_code = run.plan.ignores_term ? kKilledExit : kTerminatedExit;
    run.facts.is_ready = false;
    run.facts.stage = Stage::Failed;
    write_status(node, run);
  }
  release(node, uid);
  const auto removed = api_->remove("pods", ns, name,
                                    Doc::object()
                                        .set("gracePeriodSeconds", 0)
                                        .set("preconditions", Doc::object().set("uid", uid)));
  // Deleted comes back as a change and forgets the run; with a finalizer left it stays, stopped.
  if (!removed.has_value() && removed.error().code == 404) forget(node, uid);
}

}  // namespace jogak::kubelet
