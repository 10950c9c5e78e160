// SPDX-License-Identifier: Apache-2.0
//
// The replica set controller (pkg/controller/replicaset of Kubernetes is the model).
#include <algorithm>

#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "replicasets.apps";
constexpr std::int64_t kPerTurn = 25;  // pods made or deleted before others get the loop

class ReplicaSets : public Controller {
 public:
  explicit ReplicaSets(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        control_(*api_, context.pods, "replicaset-controller", "ReplicaSet",
                 [this](const std::string& key) { queue_.add(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) {
      queue_.add(control_.note_owner(change));
    });
  }

 private:
  struct Counts {
    std::int64_t replicas = 0, labelled = 0, ready = 0, available = 0, terminating = 0;
  };

  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto set = api_->get(kTable, ns, name);
    if (!set.has_value()) return Outcome::Done;
    const auto selector = api::LabelSelector::from_object(set->get("spec", "selector"));
    std::vector<PodViewPtr> active, ending;
    for (const PodViewPtr& pod : control_.claim(*set, selector)) {
      if (pod->is_finished()) continue;
      (pod->is_deleting ? ending : active).push_back(pod);
    }
    std::string failure;
    if (control_.is_settled(key) && !api::is_deleting(*set)) {
      failure = scale(key, *set, active, ending);
    }
    const bool is_written = write_status(key, *set, active, ending, failure);
    return is_written && failure.empty() ? Outcome::Done : Outcome::Retry;
  }

  // Makes or deletes pods; why that failed, "" if it did not. Moves what it deletes to `ending`.
  std::string scale(const std::string& key, const Doc& set, std::vector<PodViewPtr>& active,
                    std::vector<PodViewPtr>& ending) {
    const std::int64_t wanted = set.get("spec", "replicas").as_int(1);
    const std::int64_t missing = wanted - static_cast<std::int64_t>(active.size());
    for (std::int64_t i = 0; i < std::min(missing, kPerTurn); ++i) {
      auto made = control_.create(key, set, pod_from_template(set.get("spec", "template"), set));
      if (!made.has_value()) {
        const bool ns_ends = made.error().code == 403 && !made.error().causes.empty() &&
                             made.error().causes[0].reason == "NamespaceTerminating";
        return ns_ends ? "" : made.error().message;
      }
      active.push_back(std::make_shared<const PodView>(view_of(*made)));
    }
    if (missing < 0) {
      std::map<std::string, int, std::less<>> ranks;
      for (const PodViewPtr& pod : active) ++ranks[pod->node];
      std::ranges::sort(active, [&](const PodViewPtr& a, const PodViewPtr& b) {
        return goes_first(*a, *b, ranks);
      });
      for (std::int64_t i = 0; i < std::min(-missing, kPerTurn); ++i) {
        const PodViewPtr pod = active.front();
        const auto removed = control_.remove(key, set, *pod);
        if (!removed.has_value()) return removed.error().message;
        active.erase(active.begin());
        if (!pod->node.empty()) ending.push_back(pod);  // one without a node is gone at once
      }
    }
    if (std::abs(missing) > kPerTurn) queue_.add(key);
    return "";
  }

  bool write_status(const std::string& key, const Doc& set, const std::vector<PodViewPtr>& active,
                    const std::vector<PodViewPtr>& ending, const std::string& failure) {
    Counts counts;
    TimeUs next = 0;
    const TimeUs min_ready = set.get("spec", "minReadySeconds").as_int() * kSecondInUs;
    const Doc& labels = set.get("spec", "template", "metadata", "labels");
    for (const PodViewPtr& pod : active) {
      ++counts.replicas;
      const bool has_all = std::ranges::all_of(labels.members(), [&](const Doc::Member& label) {
        return pod->label(label.key) == label.value.as_string();
      });
      if (has_all) ++counts.labelled;
      if (pod->is_ready) ++counts.ready;
      if (is_available(*pod, min_ready, api_->now(), next)) ++counts.available;
    }
    counts.terminating = static_cast<std::int64_t>(ending.size());
    if (next != 0) queue_.add_at(next, key);
    Doc changed = set;
    Doc& status = changed.at("status");
    const auto put = [&](std::string_view member, std::int64_t value, bool shows_zero) {
      if (value == 0 && !shows_zero) {
        status.erase(member);
      } else {
        status.set(member, value);
      }
    };
    put("replicas", counts.replicas, true);
    put("fullyLabeledReplicas", counts.labelled, false);
    put("readyReplicas", counts.ready, false);
    put("availableReplicas", counts.available, false);
    put("terminatingReplicas", counts.terminating, true);
    put("observedGeneration", api::meta(set)["generation"].as_int(), true);
    set_failure(changed, failure);
    if (changed["status"] == set["status"]) return true;
    return api_->update(kTable, std::move(changed), "status").has_value();
  }

  void set_failure(Doc& set, const std::string& failure) {
    if (!failure.empty()) {
      // The message names the pod that could not be made, another each time: were it renewed, every
      // look would cause the next.
      if (api::condition_of(set, "ReplicaFailure")["reason"].as_string() == "FailedCreate") return;
      api::set_condition(set, "ReplicaFailure", "True", "FailedCreate", failure, api_->now());
      return;
    }
    if (api::condition_of(set, "ReplicaFailure").is_null()) return;
    Doc kept = Doc::array();
    for (const Doc& condition : set.get("status", "conditions").items()) {
      if (condition["type"].as_string() != "ReplicaFailure") kept.push(condition);
    }
    set.at("status").set("conditions", std::move(kept));
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  PodControl control_;
  std::shared_ptr<void> following_;
};

}  // namespace

std::unique_ptr<Controller> replica_set_controller(const ControllerContext& context) {
  return std::make_unique<ReplicaSets>(context);
}

}  // namespace jogak::controllers
