// SPDX-License-Identifier: Apache-2.0
//
// The node lifecycle controller (pkg/controller/nodelifecycle of Kubernetes is the model): every
// period it looks who renewed a lease or reported, and keeps the taints that follow from
// conditions.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/node_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kTtl = "node.alpha.kubernetes.io/ttl";

struct ConditionTaint {
  std::string_view condition, status, taint;
};
constexpr std::array<ConditionTaint, 6> kTaints = {{
    {"Ready", "False", kNotReady},
    {"Ready", "Unknown", kUnreachable},
    {"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
    {"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
    {"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
    {"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
}};
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";

struct Wanted {
  std::string_view key, effect;
};

bool is_managed(const Doc& taint) {
  const std::string& key = taint["key"].as_string();
  const std::string& effect = taint["effect"].as_string();
  if (effect == "NoExecute") return key == kNotReady || key == kUnreachable;
  if (effect != "NoSchedule") return false;
  return key == kUnschedulable ||
         std::ranges::any_of(kTaints, [&](const auto& entry) { return entry.taint == key; });
}

class NodeLifecycle : public Controller {
 public:
  explicit NodeLifecycle(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        options_(context.options),
        queue_(api_->loop(), [this](const std::string& name) { return sync(name); }) {
    nodes_ = api_->follow("nodes", [this](const api::Api::Change& change) { on_node(change); });
    leases_ = api_->follow("leases.coordination.k8s.io", [this](const api::Api::Change& change) {
      if (api::namespace_of(*change.object) != "kube-node-lease") return;
      if (change.type == store::EventType::Deleted) return;
      const std::string& name = api::name_of(*change.object);
      alive_at_[name] = api_->now();
      lease_us_[name] = change.object->get("spec", "leaseDurationSeconds").as_int() * kSecondInUs;
    });
    monitor();
  }
  ~NodeLifecycle() override { api_->loop().cancel(timer_); }

 private:
  void on_node(const api::Api::Change& change) {
    const std::string& name = api::name_of(*change.object);
    if (change.type == store::EventType::Deleted) {
      alive_at_.erase(name);
      lease_us_.erase(name);
      known_.erase(name);
      return;
    }
    observe(*change.object);
    queue_.add(name);
  }

  // A report of the kubelet is a sign of life; our own Unknown is not.
  void observe(const Doc& node) {
    const std::string& name = api::name_of(node);
    const Doc& ready = api::condition_of(node, "Ready");
    const auto [it, is_new] = known_.try_emplace(name);
    if (is_new || (ready["lastHeartbeatTime"] != it->second.heartbeat &&
                   ready["status"].as_string() != "Unknown")) {
      alive_at_[name] = api_->now();
    }
    it->second.heartbeat = ready["lastHeartbeatTime"];
    it->second.is_ready = ready["status"].as_string() == "True";
  }

  void monitor() {
    for (const auto& [name, known] : known_) {
      const TimeUs silence = api_->now() - alive_at_[name];
      if (silence > grace_of(name)) queue_.add(name);
    }
    timer_ = api_->loop().after(options_.node_monitor_period, [this] { monitor(); });
  }

  Outcome sync(const std::string& name) {
    const auto node = api_->get("nodes", "", name);
    if (!node.has_value()) return Outcome::Done;
    observe(*node);  // it may have come back since the change that brought us here
    announce(*node);
    const TimeUs silence = api_->now() - alive_at_[name];
    if (silence > grace_of(name) && !mark_unknown(*node)) return Outcome::Retry;
    return keep_taints(name);
  }

  // Once for each node this process meets, as the real controller does after each of its starts.
  void announce(const Doc& node) {
    const std::string& name = api::name_of(node);
    const auto known = known_.find(name);
    if (known == known_.end() || known->second.is_announced) return;
    known->second.is_announced = true;
    write_event(*api_, "node-controller", node, "Normal", "RegisteredNode",
                fmt::format("Node {0} event: Registered Node {0} in Controller", name));
  }

  // A quarter more than the lease lasts, and never less than the option says.
  TimeUs grace_of(const std::string& name) const {
    const auto lease = lease_us_.find(name);
    const TimeUs lasts = lease == lease_us_.end() ? 0 : lease->second;
    return std::max(options_.node_grace, lasts + lasts / 4);
  }

  // All conditions that a kubelet reports become Unknown.
  bool mark_unknown(const Doc& node) {
    if (api::condition_is(node, "Ready", "Unknown")) return true;
    Doc changed = node;
    for (const std::string_view type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
      api::set_condition(changed, type, "Unknown", "NodeStatusUnknown",
                         "Kubelet stopped posting node status.", api_->now());
    }
    if (!api_->update("nodes", std::move(changed), "status").has_value()) return false;
    mark_pods(api::name_of(node));
    return true;
  }

  // Nobody can say that they are ready: services and workloads must not count on them.
  void mark_pods(std::string_view node) {
    for (const PodViewPtr& view : pods_.on_node(node)) {
      if (view->is_finished() || !view->is_ready) continue;
      auto pod = api_->get("pods", view->ns, view->name);
      if (!pod.has_value() || api::uid_of(*pod) != view->uid) continue;
      const std::string reason = api::condition_of(*pod, "Ready")["reason"].as_string();
      api::set_condition(*pod, "Ready", "False", reason, "", api_->now());
      const auto marked = api_->update("pods", *pod, "status");
      if (!marked.has_value()) continue;  // it changed or went: somebody looks after it
      write_event(*api_, "node-controller", *pod, "Warning", "NodeNotReady", "Node is not ready");
    }
  }

  std::vector<Wanted> wanted_taints(const Doc& node) const {
    std::vector<Wanted> wanted;
    for (const ConditionTaint& entry : kTaints) {
      // of a node that never reported nothing is known yet
      if (!api::condition_is(node, entry.condition, entry.status)) continue;
      wanted.push_back({entry.taint, "NoSchedule"});
      if (entry.condition == "Ready" && has_healthy_node()) {
        wanted.push_back({entry.taint, "NoExecute"});
      }
    }
    if (node.get("spec", "unschedulable").as_bool()) {
      wanted.push_back({kUnschedulable, "NoSchedule"});
    }
    return wanted;
  }

  // Nobody is evicted while no node is ready: then it is the network, not the nodes.
  bool has_healthy_node() const {
    return std::ranges::any_of(known_, [](const auto& entry) { return entry.second.is_ready; });
  }

  Outcome keep_taints(const std::string& name) {
    auto node = api_->get("nodes", "", name);
    if (!node.has_value()) return Outcome::Done;
    const std::vector<Wanted> wanted = wanted_taints(*node);
    Doc taints = Doc::array();
    const auto is_wanted = [&](const Doc& taint) {
      return std::ranges::any_of(wanted, [&](const Wanted& want) {
        return want.key == taint["key"].as_string() && want.effect == taint["effect"].as_string();
      });
    };
    const Doc::Items& old = node->get("spec", "taints").items();
    for (const Doc& taint : old) {
      if (!is_managed(taint) || is_wanted(taint)) taints.push(taint);
    }
    for (const Wanted& want : wanted) {
      const bool is_there = std::ranges::any_of(old, [&](const Doc& taint) {
        return taint["key"].as_string() == want.key && taint["effect"].as_string() == want.effect;
      });
      if (is_there) continue;
      taints.push(Doc::object()
                      .set("key", want.key)
                      .set("effect", want.effect)
                      .set("timeAdded", api::format_time(api_->now())));
    }
    const bool has_ttl = api::meta(*node)["annotations"].has(kTtl);
    if (taints.items() == old && has_ttl) return Outcome::Done;
    node->at("metadata", "annotations").set(kTtl, "0");
    node->at("spec").set("taints", std::move(taints));
    return api_->update("nodes", *std::move(node)).has_value() ? Outcome::Done : Outcome::Retry;
  }

  struct Known {
    Doc heartbeat;  // lastHeartbeatTime of Ready, last seen
    bool is_ready = false;
    bool is_announced = false;
  };

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  ControllerOptions options_;
  WorkQueue queue_;
  std::map<std::string, TimeUs, std::less<>> alive_at_;  // the last sign of life of each node
  std::map<std::string, TimeUs, std::less<>> lease_us_;  // how long each node's lease lasts
  std::map<std::string, Known, std::less<>> known_;
  std::shared_ptr<void> nodes_, leases_;
  TimerId timer_ = 0;
};

}  // namespace

std::unique_ptr<Controller> node_lifecycle_controller(const ControllerContext& context) {
  return std::make_unique<NodeLifecycle>(context);
}

}  // namespace jogak::controllers
