// SPDX-License-Identifier: Apache-2.0
//
// One status from a few facts: phase, conditions and the state of each container follow from the
// stage, and times that were written before are kept.
#include "apiserver/kubelet/pod_status.h"

#include <algorithm>

#include "apiserver/object/meta.h"

namespace jogak::kubelet {

namespace {

using api::format_time;

std::string_view phase_of(Stage stage) {
  switch (stage) {
    case Stage::Starting:
      return "Pending";
    case Stage::Running:
    case Stage::Waiting:
      return "Running";
    case Stage::Succeeded:
      return "Succeeded";
    case Stage::Failed:
      return "Failed";
  }
  return "Unknown";
}

bool is_over(Stage stage) { return stage == Stage::Succeeded || stage == Stage::Failed; }

std::string container_id(const Doc& pod, std::string_view name, std::int32_t run) {
  // stable and unique: the pod's uid without dashes, the container, the run
  std::string id = "sim://";
  for (const char c : api::uid_of(pod)) {
    if (c != '-') id += c;
  }
  return id.append("-").append(name).append("-").append(std::to_string(run));
}

Doc terminated(const PodFacts& facts, std::string id) {
  Doc state = Doc::object();
  state.set("exitCode", facts.exit_code)
      .set("reason", facts.exit_code == 0 ? "Completed" : "Error")
      .set("startedAt", format_time(facts.started))
      .set("finishedAt", format_time(facts.finished))
      .set("containerID", std::move(id));
  return Doc::object().set("terminated", std::move(state));
}

Doc waiting(std::string_view reason, std::string_view message = "") {
  Doc state = Doc::object().set("reason", reason);
  if (!message.empty()) state.set("message", message);
  return Doc::object().set("waiting", std::move(state));
}

Doc state_of(const PodFacts& facts, const std::string& id) {
  if (is_over(facts.stage)) return terminated(facts, id);
  if (facts.stage == Stage::Running) {
    return Doc::object().set("running", Doc::object().set("startedAt", format_time(facts.started)));
  }
  if (facts.stage == Stage::Waiting) {
    return waiting("CrashLoopBackOff", "back-off restarting failed container");
  }
  return waiting("ContainerCreating");
}

// allocatedResourcesStatus of a container; null where it holds no plugin's device.
Doc devices_of(const PodFacts& facts, std::string_view container) {
  Doc list;
  for (const DeviceStatus& device : facts.devices) {
    if (device.container != container) continue;
    if (list.is_null()) list = Doc::array();
    const auto same = std::ranges::find_if(list.items(), [&](const Doc& entry) {
      return entry["name"].as_string() == device.resource;
    });
    Doc* entry = nullptr;
    if (same == list.items().end()) {
      list.push(Doc::object().set("name", device.resource).set("resources", Doc::array()));
      entry = &list.items().back();
    } else {
      entry = &*same;
    }
    entry->at("resources")
        .push(Doc::object()
                  .set("resourceID", device.id)
                  .set("health", device.is_healthy ? "Healthy" : "Unhealthy"));
  }
  return list;
}

Doc container_status(const Doc& pod, const Doc& container, const PodFacts& facts) {
  const std::string& name = container["name"].as_string();
  const bool has_id = facts.stage != Stage::Starting;
  const std::string id = has_id ? container_id(pod, name, facts.restarts) : "";
  Doc status = Doc::object();
  status.set("name", name).set("state", state_of(facts, id));
  Doc last = Doc::object();
  if (facts.has_run && !is_over(facts.stage)) {
    last = terminated(facts, container_id(pod, name, facts.restarts - 1));
  }
  status.set("lastState", std::move(last))
      .set("ready", facts.stage == Stage::Running && facts.is_ready)
      .set("restartCount", facts.restarts)
      .set("image", container["image"])
      .set("imageID", has_id ? Doc("sim://" + container["image"].as_string()) : Doc(""))
      .set("started", facts.stage == Stage::Running);
  if (has_id) {
    status.set("containerID", id);
    // what runs is what was asked for: a resize is seen as done
    status.set("resources", container["resources"]);
    if (const Doc& requests = container["resources"]["requests"]; !requests.empty()) {
      status.set("allocatedResources", requests);
    }
  }
  if (Doc devices = devices_of(facts, name); !devices.is_null()) {
    status.set("allocatedResourcesStatus", std::move(devices));
  }
  return status;
}

Doc init_status(const Doc& pod, const Doc& container, const PodFacts& facts) {
  PodFacts of_init = facts;
  const bool is_sidecar = container["restartPolicy"].as_string() == "Always";
  if (!is_sidecar && facts.stage != Stage::Starting) {
    of_init.stage = Stage::Succeeded;  // it ran before the others
    of_init.exit_code = 0;
    of_init.restarts = 0;
    of_init.started = facts.admitted;
    of_init.finished = facts.admitted;
  }
  Doc status = container_status(pod, container, of_init);
  if (!is_sidecar && facts.stage != Stage::Starting) status.set("ready", true);
  return status;
}

void put_condition(Doc& status, std::string_view type, bool is_true, std::string_view reason,
                   TimeUs now) {
  // set_condition works on an object with a status
  Doc holder = Doc::object().set("status", std::move(status));
  api::set_condition(holder, type, is_true ? "True" : "False", reason, "", now);
  status = std::move(holder.at("status"));
}

}  // namespace

Doc status_patch(const Doc& pod, const PodFacts& facts, TimeUs now) {
  Doc status = Doc::object();
  status.set("phase", phase_of(facts.stage));
  if (const Doc* conditions = pod["status"].find("conditions")) {
    status.set("conditions", *conditions);
  }
  const bool has_started = facts.stage != Stage::Starting;
  const bool is_ready = facts.stage == Stage::Running && facts.is_ready;
  const std::string_view why =
      is_over(facts.stage) ? (facts.stage == Stage::Succeeded ? "PodCompleted" : "PodFailed")
                           : (is_ready ? "" : "ContainersNotReady");
  put_condition(status, "PodReadyToStartContainers", has_started && !is_over(facts.stage), "", now);
  put_condition(status, "Initialized", has_started || pod.get("spec", "initContainers").empty(),
                facts.stage == Stage::Succeeded ? "PodCompleted" : "", now);
  put_condition(status, "Ready", is_ready, why, now);
  put_condition(status, "ContainersReady", is_ready, why, now);
  status.set("hostIP", facts.host_ip)
      .set("hostIPs", Doc::array().push(Doc::object().set("ip", facts.host_ip)))
      .set("startTime", format_time(facts.admitted));
  if (has_started) {
    status.set("podIP", facts.pod_ip)
        .set("podIPs", Doc::array().push(Doc::object().set("ip", facts.pod_ip)));
  }
  Doc containers = Doc::array();
  for (const Doc& container : pod.get("spec", "containers").items()) {
    containers.push(container_status(pod, container, facts));
  }
  status.set("containerStatuses", std::move(containers));
  if (const Doc& inits = pod.get("spec", "initContainers"); !inits.empty()) {
    Doc statuses = Doc::array();
    for (const Doc& container : inits.items()) statuses.push(init_status(pod, container, facts));
    status.set("initContainerStatuses", std::move(statuses));
  }
  const Doc& generation = api::meta(pod)["generation"];
  if (generation.is_int()) status.set("observedGeneration", generation);
  return Doc::object().set("status", std::move(status));
}

Doc rejected_patch(const Doc& pod, std::string_view reason, std::string_view message, TimeUs now) {
  Doc status = Doc::object();
  status.set("phase", "Failed")
      .set("reason", reason)
      .set("message", message)
      .set("startTime", format_time(now));
  const Doc& generation = api::meta(pod)["generation"];
  if (generation.is_int()) status.set("observedGeneration", generation);
  return Doc::object().set("status", std::move(status));
}

}  // namespace jogak::kubelet
