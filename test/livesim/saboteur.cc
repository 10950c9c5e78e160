// SPDX-License-Identifier: Apache-2.0
//
// Objects are changed as text: compact JSON as the server writes it.
#include "test/livesim/saboteur.h"

#include <set>
#include <utility>

#include "base/digest.h"

namespace jogak::livesim {

namespace {

constexpr std::array<SabotageName, 17> kNames = {{
    {Sabotage::BindWithoutUid, "BindWithoutUid", "bind-without-uid"},
    {Sabotage::BindTwice, "BindTwice", "bind-twice"},
    {Sabotage::BindToTwoNodes, "BindToTwoNodes", "bind-twice"},
    {Sabotage::BindToFullNode, "BindToFullNode", "node-overcommitted"},
    {Sabotage::BindGated, "BindGated", "bind-gated"},
    {Sabotage::BindForeign, "BindForeign", "bind-foreign"},
    {Sabotage::GiveSameDevice, "GiveSameDevice", "gpu-owned-twice"},
    {Sabotage::GiveFewerDevices, "GiveFewerDevices", "gpu-holds-wrong"},
    {Sabotage::ForgetPods, "ForgetPods", "lost-pod"},
    {Sabotage::HideBindErrors, "HideBindErrors", "lost-pod"},
    {Sabotage::RetryForEver, "RetryForEver", "endless-retry"},
    {Sabotage::DeleteTwice, "DeleteTwice", "deleted-twice"},
    {Sabotage::DeleteWithoutUid, "DeleteWithoutUid", "delete-without-uid"},
    {Sabotage::EvictWithoutPlacing, "EvictWithoutPlacing", "evicted-for-nothing"},
    {Sabotage::SayNothing, "SayNothing", "no-reason"},
    {Sabotage::NeverRest, "NeverRest", "writes-at-rest"},
    {Sabotage::IgnoreLease, "IgnoreLease", "wrote-without-lease"},
}};

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

bool is_chosen(std::string_view name) { return Digest().add(name).value() % 3 == 0; }

}  // namespace

std::span<const SabotageName> sabotages() { return kNames; }

struct Saboteur::State {
  std::string node;                // the one that gets everything
  std::set<std::string> promised;  // uids of pods that victims were deleted for
};

Saboteur::Saboteur(live::ClusterApi& inner, Sabotage sabotage)
    : inner_(inner), sabotage_(sabotage), state_(std::make_shared<State>()) {}

Saboteur::~Saboteur() = default;

std::shared_ptr<void> Saboteur::follow(std::string_view resource, Follower follower) {
  if (resource != "pods") return inner_.follow(resource, std::move(follower));
  Follower changed = follower;
  changed.on_change = [sabotage = sabotage_,
                       on_change = follower.on_change](const ObjectChange& change) {
    if (sabotage == Sabotage::ForgetPods && is_chosen(change.name)) return;
    std::string json(change.json);
    if (sabotage == Sabotage::BindGated) {
      replace(json, R"("schedulingGates":[{"name":"example.com/wait"}])",
              R"("schedulingGates":[])");
    }
    if (sabotage == Sabotage::BindForeign) {
      replace(json, R"("schedulerName":"other")", R"("schedulerName":"jogak")");
    }
    ObjectChange seen = change;
    seen.json = json;
    on_change(seen);
  };
  return inner_.follow(resource, std::move(changed));
}

void Saboteur::bind(const live::Binding& binding, Done done) {
  live::Binding sent = binding;
  switch (sabotage_) {
    case Sabotage::BindWithoutUid:
      sent.pod.uid.clear();
      break;
    case Sabotage::BindTwice:
      return inner_.bind(sent, [this, sent, done = std::move(done),
                                state = std::weak_ptr(state_)](const Result<void>& outcome) {
        if (outcome.has_value() && !state.expired()) inner_.bind(sent, [](const Result<void>&) {});
        done(outcome);
      });
    case Sabotage::BindToTwoNodes:
      if (state_->node.empty()) state_->node = sent.node;
      if (state_->node != sent.node) {
        live::Binding other = sent;
        other.node = state_->node;
        inner_.bind(other, [](const Result<void>&) {});
      }
      break;
    case Sabotage::BindToFullNode:
      if (state_->node.empty()) state_->node = sent.node;
      sent.node = state_->node;
      sent.gpu_holds.clear();
      break;
    case Sabotage::GiveSameDevice:
      if (sent.gpu_holds.find("milli") == std::string::npos && sent.gpu_holds.size() < 12 &&
          !sent.gpu_holds.empty()) {
        sent.gpu_holds = R"([{"gpu":0}])";
      }
      break;
    case Sabotage::GiveFewerDevices:
      if (const std::size_t at = sent.gpu_holds.rfind(",{"); at != std::string::npos) {
        sent.gpu_holds = sent.gpu_holds.substr(0, at) + "]";
      }
      break;
    case Sabotage::HideBindErrors:
      return inner_.bind(sent, [done = std::move(done)](const Result<void>&) { done({}); });
    case Sabotage::RetryForEver:
      return retry(sent, std::move(done), 200);
    case Sabotage::EvictWithoutPlacing:
      if (state_->promised.contains(sent.pod.uid)) return;
      break;
    default:
      break;
  }
  inner_.bind(sent, std::move(done));
}

void Saboteur::retry(const live::Binding& binding, Done done, int left) {
  inner_.bind(binding, [this, binding, done = std::move(done), left,
                        state = std::weak_ptr(state_)](const Result<void>& outcome) {
    if (outcome.has_value() || left == 0 || state.expired()) return done(outcome);
    retry(binding, done, left - 1);
  });
}

void Saboteur::refuse(const Refusal& refusal, Done done) {
  if (sabotage_ == Sabotage::SayNothing) {
    // as if it had been said, a moment later
    loop().post([done = std::move(done)] { done({}); });
    return;
  }
  if (refusal.nominated_node != nullptr && !refusal.nominated_node->empty()) {
    state_->promised.insert(refusal.pod.uid);
  }
  if (sabotage_ == Sabotage::NeverRest) {
    struct Again {
      Refusal refusal;
      std::string node;
    };
    const auto again = std::make_shared<Again>(Again{.refusal = refusal, .node = {}});
    again->refusal.nominated_node = nullptr;
    loop().after(60 * kSecondInUs, [this, again, state = std::weak_ptr(state_)] {
      if (!state.expired()) refuse(again->refusal, [](const Result<void>&) {});
    });
  }
  inner_.refuse(refusal, std::move(done));
}

void Saboteur::preempt(const live::PodRef& victim, const std::string& message, Done done) {
  live::PodRef sent = victim;
  if (sabotage_ == Sabotage::DeleteWithoutUid) sent.uid.clear();
  if (sabotage_ == Sabotage::DeleteTwice) {
    inner_.preempt(sent, message, [](const Result<void>&) {});
  }
  inner_.preempt(sent, message, std::move(done));
}

void Saboteur::plan_claim(const live::ClaimPlan& plan, Done done) {
  inner_.plan_claim(plan, std::move(done));
}

void Saboteur::read_pod(const live::PodRef& pod,
                        std::function<void(Result<std::string> json)> done) {
  inner_.read_pod(pod, std::move(done));
}

void Saboteur::note(const live::PodNote& note) { inner_.note(note); }

}  // namespace jogak::livesim
