// SPDX-License-Identifier: Apache-2.0
//
// Shares are rounded up for a surge and down for what may be missing, and a rolling update always
// may do one of the two.
#include "apiserver/controllers/deployment_parts.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

// "25%" of `total`, or a plain number.
std::int64_t share_of(const Doc& value, std::int64_t total, bool rounds_up) {
  if (value.is_int()) return value.as_int();
  const std::string& text = value.as_string();
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::int64_t hundredfold = percent * total;
  return rounds_up ? (hundredfold + 99) / 100 : hundredfold / 100;
}

bool is_complete(const Doc& deployment, const Doc& status) {
  const std::int64_t wanted = replicas_of(deployment);
  return status["updatedReplicas"].as_int() == wanted && status["replicas"].as_int() == wanted &&
         status["availableReplicas"].as_int() == wanted &&
         status["observedGeneration"].as_int() >= api::meta(deployment)["generation"].as_int();
}

// Whether there is more of the new, or less of the old, than before.
bool has_progressed(const Doc& before, const Doc& after) {
  const auto old_count = [](const Doc& status) {
    return status["replicas"].as_int() - status["updatedReplicas"].as_int();
  };
  return after["updatedReplicas"].as_int() > before["updatedReplicas"].as_int() ||
         old_count(after) < old_count(before) ||
         after["readyReplicas"].as_int() > before["readyReplicas"].as_int() ||
         after["availableReplicas"].as_int() > before["availableReplicas"].as_int();
}

}  // namespace

Limits limits_of(const Doc& deployment) {
  const Doc& strategy = deployment.get("spec", "strategy");
  if (strategy["type"].as_string() != "RollingUpdate") return {};
  const std::int64_t replicas = replicas_of(deployment);
  if (replicas == 0) return {};
  Limits limits{
      .surge = share_of(strategy.get("rollingUpdate", "maxSurge"), replicas, true),
      .unavailable = share_of(strategy.get("rollingUpdate", "maxUnavailable"), replicas, false)};
  if (limits.surge == 0 && limits.unavailable == 0) limits.unavailable = 1;  // or it never moves
  limits.unavailable = std::min(limits.unavailable, replicas);
  return limits;
}

std::int64_t replicas_of(const Doc& object) { return object.get("spec", "replicas").as_int(1); }

std::int64_t status_of_set(const Doc& set, std::string_view member) {
  return set["status"][member].as_int();
}

std::int64_t revision_of(const Doc& object) {
  const std::string& text = api::meta(object)["annotations"][kRevision].as_string();
  std::int64_t revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

std::int64_t total_replicas(const std::vector<Doc>& sets) {
  std::int64_t total = 0;
  for (const Doc& set : sets) total += replicas_of(set);
  return total;
}

bool is_same_template(const Doc& deployment, const Doc& set) {
  Doc of_set = set.get("spec", "template");
  of_set.at("metadata").at("labels").erase(kHashLabel);
  if (of_set.get("metadata", "labels").empty()) of_set.at("metadata").erase("labels");
  return of_set == deployment.get("spec", "template");
}

std::int64_t new_set_replicas(const Doc& deployment, const std::vector<Doc>& all,
                              const Doc& current) {
  const std::int64_t wanted = replicas_of(deployment);
  if (deployment.get("spec", "strategy", "type").as_string() != "RollingUpdate") return wanted;
  const std::int64_t now = current.is_null() ? 0 : replicas_of(current);
  const std::int64_t most = wanted + limits_of(deployment).surge;
  const std::int64_t total = total_replicas(all);
  if (total >= most) return now;
  return now + std::min(most - total, std::max<std::int64_t>(wanted - now, 0));
}

void set_deployment_condition(Doc& deployment, std::string_view type, std::string_view status,
                              std::string_view reason, std::string_view message, TimeUs now,
                              bool renew) {
  const Doc before = api::condition_of(deployment, type);
  const bool is_same =
      before["status"].as_string() == status && before["reason"].as_string() == reason;
  if (is_same && !renew) return;
  Doc kept = Doc::array();
  for (const Doc& condition : deployment.get("status", "conditions").items()) {
    if (condition["type"].as_string() != type) kept.push(condition);
  }
  const std::string time = api::format_time(now);
  const bool keeps_transition = before["status"].as_string() == status;
  kept.push(
      Doc::object()
          .set("type", type)
          .set("status", status)
          .set("lastUpdateTime", time)
          .set("lastTransitionTime", keeps_transition ? before["lastTransitionTime"] : Doc(time))
          .set("reason", reason)
          .set("message", message));
  deployment.at("status").set("conditions", std::move(kept));
}

Doc deployment_status(const Doc& deployment, const std::vector<Doc>& all, const Doc& current,
                      TimeUs now) {
  Doc changed = deployment;
  Doc& status = changed.at("status");
  const Doc before = status;
  std::int64_t replicas = 0, ready = 0, available = 0, terminating = 0;
  for (const Doc& set : all) {
    replicas += status_of_set(set, "replicas");
    ready += status_of_set(set, "readyReplicas");
    available += status_of_set(set, "availableReplicas");
    terminating += status_of_set(set, "terminatingReplicas");
  }
  const std::int64_t unavailable = std::max<std::int64_t>(total_replicas(all) - available, 0);
  const auto put = [&](std::string_view member, std::int64_t value) {
    if (value == 0) {
      status.erase(member);
    } else {
      status.set(member, value);
    }
  };
  put("observedGeneration", api::meta(deployment)["generation"].as_int());
  put("replicas", replicas);
  put("updatedReplicas", current.is_null() ? 0 : status_of_set(current, "replicas"));
  put("readyReplicas", ready);
  put("availableReplicas", available);
  put("unavailableReplicas", unavailable);
  status.set("terminatingReplicas", terminating);

  const bool has_minimum = available >= replicas_of(deployment) - limits_of(deployment).unavailable;
  set_deployment_condition(changed, "Available", has_minimum ? "True" : "False",
                           has_minimum ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                           has_minimum ? "Deployment has minimum availability."
                                       : "Deployment does not have minimum availability.",
                           now);
  const Doc progress = api::condition_of(changed, "Progressing");
  const bool was_complete = changed["status"]["replicas"] == changed["status"]["updatedReplicas"] &&
                            progress["reason"].as_string() == "NewReplicaSetAvailable";
  const Doc* deadline = deployment["spec"].find("progressDeadlineSeconds");
  if (deadline == nullptr || was_complete || deployment.get("spec", "paused").as_bool()) {
    return changed["status"];
  }
  const std::string name = current.is_null() ? api::name_of(deployment) : api::name_of(current);
  const std::string what =
      fmt::format("{} \"{}\"", current.is_null() ? "Deployment" : "ReplicaSet", name);
  if (is_complete(deployment, changed["status"])) {
    set_deployment_condition(changed, "Progressing", "True", "NewReplicaSetAvailable",
                             what + " has successfully progressed.", now);
  } else if (has_progressed(before, changed["status"])) {
    set_deployment_condition(changed, "Progressing", "True", "ReplicaSetUpdated",
                             what + " is progressing.", now, true);
  } else if (!progress.is_null()) {
    const TimeUs since = api::parse_time(progress["lastUpdateTime"].as_string()).value_or(now);
    if (now - since >= deadline->as_int() * kSecondInUs &&
        progress["reason"].as_string() != "NewReplicaSetAvailable") {
      set_deployment_condition(changed, "Progressing", "False", "ProgressDeadlineExceeded",
                               what + " has timed out progressing.", now);
    }
  }
  return changed["status"];
}

}  // namespace jogak::controllers
