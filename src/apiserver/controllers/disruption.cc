// SPDX-License-Identifier: Apache-2.0
//
// The disruption controller (pkg/controller/disruption of Kubernetes is the model): counts the
// healthy pods of each budget against what its owner wants, so that evictions know what is left.
#include <algorithm>
#include <optional>
#include <utility>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/policy_controllers.h"
#include "apiserver/controllers/scale_target.h"
#include "apiserver/controllers/scaled.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "poddisruptionbudgets.policy";
constexpr std::string_view kComponent = "controllermanager";
constexpr TimeUs kDeletionTimeout = 2 * 60 * kSecondInUs;  // an evicted pod should be gone by then
// A pod that was marked for disruption and still stands after this is marked no more.
constexpr TimeUs kStaleMark = 2 * 60 * kSecondInUs;
// Budgets over very many pods are counted at intervals, not after every pod.
constexpr std::size_t kManyPods = 1000;
constexpr TimeUs kManyPodsPause = 200 * kMsInUs;

struct Expected {
  std::int64_t pods = 0, healthy = 0;
  bool has_unmanaged = false;
};

class Disruption : public Controller {
 public:
  explicit Disruption(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        marks_(api_->loop(), [this](const std::string& key) { return clear_mark(key); }) {
    following_ =
        api_->follow(kTable, [this](const api::Api::Change& change) { on_budget(change); });
    following_pods_ = api_->follow("pods", [this](const api::Api::Change& change) {
      if (change.type != store::EventType::Deleted) watch_mark(*change.object);
    });
    pods_.listen(
        [this, alive = alive_](store::EventType type, const PodViewPtr& pod, const PodViewPtr&) {
          if (*alive) on_pod(type, pod);
        });
  }
  ~Disruption() override { *alive_ = false; }

 private:
  struct Budget {
    Doc selector;  // as the object has it
    api::LabelSelector matcher;
    std::map<std::string, PodViewPtr, std::less<>> pods;  // that it selects, by name
    std::string said;                                     // the reason of the last event
    bool is_waiting = false;                              // for the end of a pause
  };

  void on_budget(const api::Api::Change& change) {
    const std::string& ns = api::namespace_of(*change.object);
    const std::string key = key_of(ns, api::name_of(*change.object));
    if (change.type == store::EventType::Deleted) {
      budgets_.erase(key);
      return;
    }
    const auto [it, is_new] = budgets_.try_emplace(key);
    const Doc& selector = change.object->get("spec", "selector");
    if (is_new || selector != it->second.selector) {
      it->second.selector = selector;
      it->second.matcher = api::LabelSelector::from_object(selector);
      it->second.pods.clear();
      for (const PodViewPtr& pod : pods_.in_namespace(ns)) {
        if (it->second.matcher.matches(pod->labels)) it->second.pods[pod->name] = pod;
      }
    }
    queue_.add(key);
  }

  void on_pod(store::EventType type, const PodViewPtr& pod) {
    const std::string prefix = pod->ns + "/";
    for (auto it = budgets_.lower_bound(prefix);
         it != budgets_.end() && it->first.starts_with(prefix); ++it) {
      Budget& budget = it->second;
      const bool was_in = budget.pods.contains(pod->name);
      const bool is_in = type != store::EventType::Deleted && budget.matcher.matches(pod->labels);
      if (is_in) {
        budget.pods[pod->name] = pod;
      } else {
        budget.pods.erase(pod->name);
      }
      if (was_in || is_in) ask(it->first, budget);
    }
  }

  void ask(const std::string& key, Budget& budget) {
    if (budget.pods.size() <= kManyPods) {
      queue_.add(key);
    } else if (!budget.is_waiting) {
      budget.is_waiting = true;
      queue_.add_after(kManyPodsPause, key);
    }
  }

  Outcome sync(const std::string& key) {
    const auto it = budgets_.find(key);
    if (it == budgets_.end()) return Outcome::Done;
    Budget& budget = it->second;
    budget.is_waiting = false;
    const auto [ns, name] = split_key(key);
    const auto object = api_->get(kTable, ns, name);
    if (!object.has_value()) return Outcome::Done;
    if (budget.pods.empty()) say(budget, *object, "Normal", "NoPods", "No matching pods found");
    const api::ApiResult<Expected> expected = expected_of(*object, budget);
    if (!expected.has_value()) {
      say(budget, *object, "Warning", "CalculateExpectedPodCountFailed",
          "Failed to calculate the number of expected pods: " + expected.error().message);
      return fail_safe(*object, expected.error().message);
    }
    if (expected->has_unmanaged) {
      say(budget, *object, "Warning", "UnmanagedPods",
          "This budget selects pods that no controller owns, so that its status cannot be right. "
          "An integer in spec.minAvailable counts them.");
    }
    return write_status(key, *object, budget, *expected);
  }

  // One event a state, not one a count.
  void say(Budget& budget, const Doc& object, std::string_view type, std::string_view reason,
           const std::string& message) {
    if (std::exchange(budget.said, std::string(reason)) == reason) return;
    write_event(*api_, kComponent, object, type, reason, message);
  }

  api::ApiResult<Expected> expected_of(const Doc& object, const Budget& budget) const {
    Expected expected;
    const Doc& most = object.get("spec", "maxUnavailable");
    const Doc& least = object.get("spec", "minAvailable");
    if (most.is_null() && !least.is_string()) {
      expected.pods = least.is_null() ? 0 : static_cast<std::int64_t>(budget.pods.size());
      expected.healthy = least.as_int();
      return expected;
    }
    JOGAK_TRY_VOID(add_scales(budget, expected));
    if (most.is_null()) {
      expected.healthy = scaled_value(least, expected.pods, true);
    } else {
      expected.healthy =
          std::max<std::int64_t>(expected.pods - scaled_value(most, expected.pods, true), 0);
    }
    return expected;
  }

  // The wanted sizes of all owners of the pods, each once.
  api::ApiResult<void> add_scales(const Budget& budget, Expected& expected) const {
    std::set<std::string, std::less<>> owners, scaled;
    for (const auto& [name, pod] : budget.pods) {
      if (pod->owner_uid.empty()) {
        expected.has_unmanaged = true;
        continue;
      }
      if (!owners.insert(pod->owner_uid).second) continue;
      JOGAK_TRY(const auto scale, scale_of(*pod));
      if (scaled.insert(scale.first).second) expected.pods += scale.second;
    }
    return {};
  }

  // Whose size it is, by uid, and the size.
  api::ApiResult<std::pair<std::string, std::int64_t>> scale_of(const PodView& pod) const {
    const auto none = [&]() -> api::Refusal {
      return api::bare_error(500, "found no controllers for pod \"" + pod.name + "\"");
    };
    for (const api::Api::Table& table : api_->tables()) {
      if (table.kind != pod.owner_kind || !table.is_namespaced) continue;
      const auto owner = api_->get(table.name, pod.ns, pod.owner_name);
      if (!owner.has_value() || api::uid_of(*owner) != pod.owner_uid) continue;
      const Doc& above = api::controller_of(*owner);
      if (table.name == "replicasets.apps" && above["kind"].as_string() == "Deployment") {
        const auto deployment = api_->get("deployments.apps", pod.ns, above["name"].as_string());
        if (!deployment.has_value() || api::uid_of(*deployment) != above["uid"].as_string()) {
          return none();
        }
        return std::pair(api::uid_of(*deployment), deployment->get("spec", "replicas").as_int(1));
      }
      const std::optional<std::string> path = replicas_path(*api_, table.name);
      if (!path.has_value()) {
        return api::bare_error(500, table.name + " does not implement the scale subresource");
      }
      return std::pair(pod.owner_uid, at_path(*owner, *path).as_int());
    }
    return none();
  }

  // Better no eviction than one that nobody counted.
  Outcome fail_safe(const Doc& object, const std::string& message) {
    Doc changed = object;
    changed.at("status").set("disruptionsAllowed", 0);
    set_allowed(changed, false, "SyncFailed", message,
                object.get("status", "observedGeneration").as_int());
    return write(object, std::move(changed));
  }

  void set_allowed(Doc& object, bool is_allowed, std::string_view reason,
                   const std::string& message, std::int64_t generation) {
    constexpr std::string_view kCondition = "DisruptionAllowed";
    api::set_condition(object, kCondition, is_allowed ? "True" : "False", reason, message,
                       api_->now());
    for (Doc& condition : object.at("status", "conditions").items()) {
      if (condition["type"].as_string() == kCondition) {
        condition.set("message", message).set("observedGeneration", generation);
      }
    }
  }

  Outcome write_status(const std::string& key, const Doc& object, const Budget& budget,
                       const Expected& expected) {
    const TimeUs now = api_->now();
    Doc disrupted = Doc::object();
    std::int64_t healthy = 0;
    for (const auto& [name, pod] : budget.pods) {
      if (pod->is_deleting) continue;
      const auto marked = api::parse_time(object.get("status", "disruptedPods", name).as_string());
      if (marked.has_value() && *marked + kDeletionTimeout >= now) {
        disrupted.set(name, object.get("status", "disruptedPods", name));
        queue_.add_at(*marked + kDeletionTimeout + kMsInUs, key);
      } else if (pod->is_ready) {
        ++healthy;
      }
    }
    const std::int64_t spare = expected.pods <= 0 ? 0 : healthy - expected.healthy;
    const std::int64_t allowed = std::max<std::int64_t>(spare, 0);
    const std::int64_t generation = api::meta(object)["generation"].as_int();
    Doc changed = object;
    Doc& status = changed.at("status");
    status.set("currentHealthy", healthy)
        .set("desiredHealthy", expected.healthy)
        .set("expectedPods", expected.pods)
        .set("disruptionsAllowed", allowed);
    put_count(status, "observedGeneration", generation);
    status.erase("disruptedPods");
    if (!disrupted.empty()) status.set("disruptedPods", std::move(disrupted));
    set_allowed(changed, allowed > 0, allowed > 0 ? "SufficientPods" : "InsufficientPods", "",
                generation);
    return write(object, std::move(changed));
  }

  Outcome write(const Doc& before, Doc changed) {
    if (changed["status"] == before["status"]) return Outcome::Done;
    const auto written = api_->update(kTable, std::move(changed), "status");
    return written.has_value() || written.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  // When the mark of disruption on a pod that stays becomes stale; nullopt: it has none.
  static std::optional<TimeUs> stale_at(const Doc& pod) {
    const Doc& mark = api::condition_of(pod, "DisruptionTarget");
    const std::string& phase = pod.get("status", "phase").as_string();
    const bool counts = mark["status"].as_string() == "True" && !api::is_deleting(pod) &&
                        mark["reason"].as_string() != "TerminationByKubelet" &&
                        phase != "Succeeded" && phase != "Failed";
    if (!counts) return std::nullopt;
    return api::parse_time(mark["lastTransitionTime"].as_string()).value_or(0) + kStaleMark;
  }

  void watch_mark(const Doc& pod) {
    if (const auto when = stale_at(pod)) {
      marks_.add_at(*when, key_of(pod));
    }
  }

  Outcome clear_mark(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto pod = api_->get("pods", ns, name);
    if (!pod.has_value()) return Outcome::Done;
    const auto when = stale_at(*pod);
    if (!when.has_value() || *when > api_->now()) return Outcome::Done;
    api::set_condition(*pod, "DisruptionTarget", "False", "", "", api_->now());
    const auto written = api_->update("pods", *std::move(pod), "status");
    return written.has_value() ? Outcome::Done : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_, marks_;
  std::map<std::string, Budget, std::less<>> budgets_;  // by ns/name
  std::shared_ptr<void> following_, following_pods_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Controller> disruption_controller(const ControllerContext& context) {
  return std::make_unique<Disruption>(context);
}

}  // namespace jogak::controllers
