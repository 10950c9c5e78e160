// SPDX-License-Identifier: Apache-2.0
//
// Pods: the one word that sums up the state of all containers, and how often they restarted.
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kPodColumns[] = {
    kNameColumn,
    {.name = "Ready", .description = "Ready containers of all containers"},
    {.name = "Status", .description = "What the containers are doing, in one word"},
    {.name = "Restarts", .description = "Restarts of all containers, and when the last one was"},
    kAgeColumn,
    {.name = "IP", .priority = 1, .description = "First IP address of the pod"},
    {.name = "Node", .priority = 1, .description = "Node the pod is bound to"},
    {.name = "Nominated Node",
     .priority = 1,
     .description = "Node where preemption makes room for the pod"},
    {.name = "Readiness Gates",
     .priority = 1,
     .description = "Readiness gates that are true, of all of them"},
};

bool is_set(const Doc& value) { return !value.is_null(); }

// What is counted while the containers are walked.
struct Summary {
  std::string word;
  std::size_t total = 0, ready = 0;
  std::int64_t restarts = 0;
  std::optional<TimeUs> last_restart;

  void add_restarts(const Doc& status) {
    restarts += status["restartCount"].as_int();
    const auto end = parse_time(status.get("lastState", "terminated", "finishedAt").as_string());
    if (end && (!last_restart || *last_restart < *end)) {
      last_restart = end;
    }
  }
};

// "OOMKilled", "Signal:9", "ExitCode:1".
std::string why_terminated(const Doc& terminated) {
  if (!terminated["reason"].as_string().empty()) {
    return terminated["reason"].as_string();
  }
  if (terminated["signal"].as_int() != 0) {
    return "Signal:" + std::to_string(terminated["signal"].as_int());
  }
  return "ExitCode:" + std::to_string(terminated["exitCode"].as_int());
}

// An init container that keeps running beside the others.
bool is_sidecar(const Doc& pod, std::string_view name) {
  for (const Doc& container : pod.get("spec", "initContainers").items()) {
    if (container["name"].as_string() == name) {
      return container["restartPolicy"].as_string() == "Always";
    }
  }
  return false;
}

// Walks the init containers up to the first that is not done. Returns whether there is one; its
// state is then the pod's. `sidecars` counts the restarts of sidecars alone.
bool walk_init_containers(const Doc& pod, Summary& sum, Summary& sidecars) {
  const Doc::Items& statuses = pod.get("status", "initContainerStatuses").items();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Doc& status = statuses[i];
    const bool sidecar = is_sidecar(pod, status["name"].as_string());
    sum.add_restarts(status);
    if (sidecar) {
      sidecars.add_restarts(status);
    }
    const Doc& terminated = status.get("state", "terminated");
    const std::string& waiting = status.get("state", "waiting", "reason").as_string();
    if (is_set(terminated) && terminated["exitCode"].as_int() == 0) {
      continue;
    }
    if (sidecar && status["started"].as_bool()) {
      sum.ready += status["ready"].as_bool() ? 1 : 0;
      continue;
    }
    if (is_set(terminated)) {
      sum.word = "Init:" + why_terminated(terminated);
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      sum.word = "Init:" + waiting;
    } else {
      sum.word = "Init:" + std::to_string(i) + "/" +
                 std::to_string(pod.get("spec", "initContainers").size());
    }
    return true;
  }
  return false;
}

// The last container that is not simply running names the state; the first ones win over later.
void walk_containers(const Doc& pod, Summary& sum) {
  bool has_running = false;
  std::string failure;
  const Doc::Items& statuses = pod.get("status", "containerStatuses").items();
  for (auto it = statuses.rbegin(); it != statuses.rend(); ++it) {
    const Doc& status = *it;
    sum.add_restarts(status);
    const Doc& terminated = status.get("state", "terminated");
    const std::string& waiting = status.get("state", "waiting", "reason").as_string();
    if (!waiting.empty()) {
      sum.word = waiting;
    } else if (is_set(terminated)) {
      sum.word = why_terminated(terminated);
      if (terminated["exitCode"].as_int() != 0) {
        failure = sum.word;
      }
    } else if (status["ready"].as_bool() && is_set(status.get("state", "running"))) {
      has_running = true;
      ++sum.ready;
    }
  }
  if (sum.word != "Completed") {
    return;
  }
  // One container is done, but that need not be the whole story.
  if (has_running && condition_is(pod, "Ready", "True")) {
    sum.word = "Running";
  } else if (!failure.empty()) {
    sum.word = failure;
  } else if (has_running) {
    sum.word = "NotReady";
  }
}

std::string first_word(const Doc& pod) {
  const Doc& status = pod["status"];
  std::string word = text_or(status["reason"], status["phase"].as_string());
  for (const Doc& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["reason"].as_string() == "SchedulingGated") {
      word = "SchedulingGated";
    }
  }
  return word;
}

Summary summarise(const Doc& pod) {
  Summary sum;
  sum.word = first_word(pod);
  sum.total = pod.get("spec", "containers").size();
  for (const Doc& container : pod.get("spec", "initContainers").items()) {
    sum.total += container["restartPolicy"].as_string() == "Always" ? 1 : 0;
  }
  Summary sidecars;
  const bool is_initializing = walk_init_containers(pod, sum, sidecars);
  if (!is_initializing || condition_is(pod, "Initialized", "True")) {
    sum.restarts = sidecars.restarts;
    sum.last_restart = sidecars.last_restart;
    walk_containers(pod, sum);
  }
  const std::string& phase = pod.get("status", "phase").as_string();
  if (is_deleting(pod)) {
    if (pod.get("status", "reason").as_string() == "NodeLost") {
      sum.word = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      sum.word = "Terminating";
    }
  }
  return sum;
}

std::string gates_text(const Doc& pod) {
  const Doc& gates = pod.get("spec", "readinessGates");
  if (gates.empty()) {
    return "<none>";
  }
  std::size_t open = 0;
  for (const Doc& gate : gates.items()) {
    open += condition_is(pod, gate["conditionType"].as_string(), "True") ? 1 : 0;
  }
  return std::to_string(open) + "/" + std::to_string(gates.size());
}

void print_pod(const Doc& pod, TimeUs now, Doc::Items& cells) {
  const Summary sum = summarise(pod);
  std::string restarts = std::to_string(sum.restarts);
  if (sum.restarts != 0 && sum.last_restart) {
    restarts += " (" + human_duration(now - *sum.last_restart) + " ago)";
  }
  const Doc::Items& ips = pod.get("status", "podIPs").items();
  cells.emplace_back(name_of(pod));
  cells.emplace_back(std::to_string(sum.ready) + "/" + std::to_string(sum.total));
  cells.emplace_back(sum.word);
  cells.emplace_back(restarts);
  cells.emplace_back(age_of(pod, now));
  cells.emplace_back(ips.empty() ? "<none>" : text_or(ips.front()["ip"], "<none>"));
  cells.emplace_back(text_or(pod.get("spec", "nodeName"), "<none>"));
  cells.emplace_back(text_or(pod.get("status", "nominatedNodeName"), "<none>"));
  cells.emplace_back(gates_text(pod));
}

constexpr ColumnFact kTemplateColumns[] = {
    kNameColumn,
    {.name = "Containers", .description = "Names of the containers"},
    {.name = "Images", .description = "Images of the containers"},
    {.name = "Pod Labels", .description = "Labels that the pods get"},
};

void print_pod_template(const Doc& object, TimeUs, Doc::Items& cells) {
  const Doc& containers = object.get("template", "spec", "containers");
  cells.emplace_back(name_of(object));
  cells.emplace_back(containers_text(containers, "name"));
  cells.emplace_back(containers_text(containers, "image"));
  cells.emplace_back(labels_text(object.get("template", "metadata", "labels")));
}

constexpr Printer kPrinters[] = {
    {"", "Pod", kPodColumns, print_pod},
    {"", "PodTemplate", kTemplateColumns, print_pod_template},
};

}  // namespace

std::span<const Printer> pod_printers() { return kPrinters; }

}  // namespace jogak::api
