// SPDX-License-Identifier: Apache-2.0
//
// The pod garbage collector (pkg/controller/podgc of Kubernetes is the model): every period it
// removes pods whose node has been gone for a while, pods that end without a node, and the oldest
// of too many finished ones.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "apiserver/controllers/object_controllers.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr TimeUs kQuarantine = 40 * kSecondInUs;
constexpr std::size_t kFinishedMax = 12'500;

class PodGc : public Controller {
 public:
  explicit PodGc(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        period_(context.options.pod_gc_period) {
    nodes_ = api_->follow("nodes", [this](const api::Api::Change& change) {
      const std::string& name = api::name_of(*change.object);
      if (change.type == store::EventType::Deleted) {
        known_.erase(name);
      } else {
        known_.insert(name);
      }
    });
    timer_ = api_->loop().after(period_, [this] { collect(); });
  }
  ~PodGc() override { api_->loop().cancel(timer_); }

 private:
  void collect() {
    timer_ = api_->loop().after(period_, [this] { collect(); });
    const TimeUs now = api_->now();
    std::set<std::string> missing;
    std::vector<PodViewPtr> finished;
    for (const PodViewPtr& pod : pods_.all()) {
      if (pod->is_finished()) finished.push_back(pod);
      if (pod->node.empty()) {
        if (pod->is_deleting && !pod->is_finished()) remove(*pod, false);
      } else if (!known_.contains(pod->node)) {
        missing.insert(pod->node);
        const auto [it, is_new] = missing_since_.try_emplace(pod->node, now);
        if (!is_new && now - it->second >= kQuarantine) remove(*pod, true);
      }
    }
    std::erase_if(missing_since_,
                  [&](const auto& entry) { return !missing.contains(entry.first); });
    if (finished.size() <= kFinishedMax) return;
    std::ranges::sort(finished, {}, [](const PodViewPtr& pod) { return pod->created; });
    for (std::size_t i = 0; i < finished.size() - kFinishedMax; ++i) remove(*finished[i], false);
  }

  void remove(const PodView& pod, bool mark_failed) {
    auto object = api_->get("pods", pod.ns, pod.name);
    if (!object.has_value() || api::uid_of(*object) != pod.uid) return;
    if (mark_failed && !pod.is_finished()) {
      object->at("status").set("phase", "Failed");
      api::set_condition(*object, "DisruptionTarget", "True", "DeletionByPodGC",
                         "PodGC: node no longer exists", api_->now());
      if (!api_->update("pods", *std::move(object), "status").has_value()) return;
    }
    // what fails is tried again in the next round
    static_cast<void>(api_->remove("pods", pod.ns, pod.name,
                                   Doc::object()
                                       .set("gracePeriodSeconds", 0)
                                       .set("preconditions", Doc::object().set("uid", pod.uid))));
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  TimeUs period_;
  std::set<std::string, std::less<>> known_;                  // nodes
  std::map<std::string, TimeUs, std::less<>> missing_since_;  // nodes that pods name
  std::shared_ptr<void> nodes_;
  TimerId timer_ = 0;
};

}  // namespace

std::unique_ptr<Controller> pod_gc_controller(const ControllerContext& context) {
  return std::make_unique<PodGc>(context);
}

}  // namespace jogak::controllers
