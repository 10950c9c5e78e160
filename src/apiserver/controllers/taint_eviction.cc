// SPDX-License-Identifier: Apache-2.0
//
// NoExecute taints: who does not tolerate one goes at once, who tolerates it for a while goes then
// (pkg/controller/tainteviction of Kubernetes is the model).
#include <algorithm>
#include <map>
#include <optional>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/node_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kComponent = "taint-eviction-controller";

bool tolerates(const Doc& toleration, const Doc& taint) {
  const std::string& effect = toleration["effect"].as_string();
  if (!effect.empty() && effect != taint["effect"].as_string()) return false;
  const std::string& key = toleration["key"].as_string();
  if (!key.empty() && key != taint["key"].as_string()) return false;
  if (toleration["operator"].as_string() == "Exists") return true;
  return !key.empty() && toleration["value"].as_string() == taint["value"].as_string();
}

// How long the pod may stay: nullopt for ever, 0 not at all.
std::optional<TimeUs> patience(const Doc& pod, const std::vector<Doc>& taints) {
  std::optional<TimeUs> shortest;
  for (const Doc& taint : taints) {
    bool is_tolerated = false;
    for (const Doc& toleration : pod.get("spec", "tolerations").items()) {
      if (!tolerates(toleration, taint)) continue;
      is_tolerated = true;
      const Doc* seconds = toleration.find("tolerationSeconds");
      if (seconds == nullptr) continue;
      const TimeUs span = std::max<std::int64_t>(seconds->as_int(), 0) * kSecondInUs;
      shortest = std::min(shortest.value_or(span), span);
    }
    if (!is_tolerated) return 0;
  }
  return shortest;
}

class TaintEviction : public Controller {
 public:
  explicit TaintEviction(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }) {
    nodes_ = api_->follow("nodes", [this](const api::Api::Change& change) { on_node(change); });
    pods_.listen(
        [this, alive = alive_](store::EventType type, const PodViewPtr& pod, const PodViewPtr&) {
          if (!*alive) return;
          const bool is_due = type != store::EventType::Deleted && taints_.contains(pod->node);
          if (is_due) queue_.add(pod->key());
        });
  }
  ~TaintEviction() override { *alive_ = false; }

 private:
  struct NodeTaints {
    std::vector<Doc> taints;
    TimeUs since = 0;
  };

  void on_node(const api::Api::Change& change) {
    const std::string& name = api::name_of(*change.object);
    std::vector<Doc> taints;
    if (change.type != store::EventType::Deleted) {
      for (const Doc& taint : change.object->get("spec", "taints").items()) {
        if (taint["effect"].as_string() == "NoExecute") taints.push_back(taint);
      }
    }
    if (taints.empty()) {
      taints_.erase(name);
      return;
    }
    NodeTaints& known = taints_[name];
    if (known.taints == taints) return;
    known = {.taints = std::move(taints), .since = api_->now()};
    for (const PodViewPtr& pod : pods_.on_node(name)) queue_.add(pod->key());
  }

  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const PodViewPtr view = pods_.find(ns, name);
    if (view == nullptr || view->is_deleting) return Outcome::Done;
    const auto tainted = taints_.find(view->node);
    if (tainted == taints_.end()) return Outcome::Done;
    auto pod = api_->get("pods", ns, name);
    if (!pod.has_value() || api::uid_of(*pod) != view->uid) return Outcome::Done;
    const auto span = patience(*pod, tainted->second.taints);
    if (!span.has_value()) return Outcome::Done;
    const TimeUs end = tainted->second.since + *span;
    if (end > api_->now()) {
      queue_.add_at(end, key);
      return Outcome::Done;
    }
    return evict(*std::move(pod));
  }

  Outcome evict(Doc pod) {
    write_event(*api_, kComponent, pod, "Normal", "TaintManagerEviction",
                "Marking for deletion Pod " + api::namespace_of(pod) + "/" + api::name_of(pod));
    api::set_condition(pod, "DisruptionTarget", "True", "DeletionByTaintManager",
                       "Taint manager: deleting due to NoExecute taint", api_->now());
    for (Doc& condition : pod.at("status", "conditions").items()) {
      if (condition["type"].as_string() != "DisruptionTarget") continue;
      condition.set("observedGeneration", api::meta(pod)["generation"]);
    }
    const std::string ns = api::namespace_of(pod);
    const std::string name = api::name_of(pod);
    const std::string uid = api::uid_of(pod);
    if (!api_->update("pods", std::move(pod), "status").has_value()) return Outcome::Retry;
    const auto removed = api_->remove(
        "pods", ns, name, Doc::object().set("preconditions", Doc::object().set("uid", uid)));
    return removed.has_value() || removed.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_;
  std::map<std::string, NodeTaints, std::less<>> taints_;  // of nodes with NoExecute taints
  std::shared_ptr<void> nodes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Controller> taint_eviction_controller(const ControllerContext& context) {
  return std::make_unique<TaintEviction>(context);
}

}  // namespace jogak::controllers
