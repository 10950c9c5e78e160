// SPDX-License-Identifier: Apache-2.0
//
// Faults put into the driver on purpose, between it and its cluster: what it means is changed on
// the way. Each must be reported by the checker that it is for; a checker that misses its fault
// proves nothing by its silence.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "live/cluster_api.h"

namespace jogak::livesim {

enum class Sabotage : std::uint8_t {
  None,
  BindWithoutUid,    // names no uid
  BindTwice,         // once more after the server said yes
  BindToTwoNodes,    // at the same time
  BindToFullNode,    // always the same node
  BindGated,         // does not see gates
  BindForeign,       // takes every pod for its own
  GiveSameDevice,    // always device 0
  GiveFewerDevices,  // one less than asked for
  ForgetPods,        // never hears of every third pod
  HideBindErrors,    // every binding has worked
  RetryForEver,      // at once, as often as it is refused
  DeleteTwice,       // victims
  DeleteWithoutUid,
  EvictWithoutPlacing,  // pods that others made way for are never bound
  SayNothing,           // no conditions
  NeverRest,            // writes what is written already
  IgnoreLease,          // decides without it; done by the replica
};

struct SabotageName {
  Sabotage sabotage = Sabotage::None;
  std::string_view name;
  std::string_view rule;  // by which it is reported
};
std::span<const SabotageName> sabotages();

class Saboteur : public live::ClusterApi {
 public:
  // `inner` outlives it.
  Saboteur(live::ClusterApi& inner, Sabotage sabotage);
  ~Saboteur() override;

  Loop& loop() override { return inner_.loop(); }
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override;
  void bind(const live::Binding& binding, Done done) override;
  void refuse(const Refusal& refusal, Done done) override;
  void preempt(const live::PodRef& victim, const std::string& message, Done done) override;
  void plan_claim(const live::ClaimPlan& plan, Done done) override;
  void read_pod(const live::PodRef& pod,
                std::function<void(Result<std::string> json)> done) override;
  void note(const live::PodNote& note) override;

 private:
  struct State;
  void retry(const live::Binding& binding, Done done, int left);

  live::ClusterApi& inner_;
  Sabotage sabotage_;
  std::shared_ptr<State> state_;
};

}  // namespace jogak::livesim
