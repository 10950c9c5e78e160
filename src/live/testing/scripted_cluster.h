// SPDX-License-Identifier: Apache-2.0
//
// A cluster for tests of the live driver: it keeps objects, hands on their changes late and in
// order, answers writes as an API server would, and can be told to refuse some.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/sim_loop.h"
#include "live/cluster_api.h"

namespace jogak::live::testing {

class ScriptedCluster : public ClusterApi {
 public:
  explicit ScriptedCluster(SimLoop& loop) : loop_(loop) {}

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override;
  void bind(const Binding& binding, Done done) override;
  void refuse(const Refusal& refusal, Done done) override;
  void preempt(const PodRef& victim, const std::string& message, Done done) override;
  void plan_claim(const ClaimPlan& plan, Done done) override;
  void read_pod(const PodRef& pod, std::function<void(Result<std::string>)> done) override;
  void note(const PodNote& note) override { notes.push_back(note); }

  // What users and other components do.
  void put(std::string_view resource, Doc object);
  void remove(std::string_view resource, std::string_view ns, std::string_view name);
  void put_node(std::string_view name, int cpu, int pods = 100);
  Doc* find(std::string_view resource, std::string_view ns, std::string_view name);
  const std::map<std::string, Doc, std::less<>>& all(std::string_view resource) {
    return objects_[std::string(resource)];
  }
  std::string node_of(std::string_view pod);  // of namespace ns

  TimeUs answer_delay = 0;         // 0: writes are answered before the call returns
  TimeUs change_delay = 0;         // from a write to the change that followers see
  TimeUs stop_time = kSecondInUs;  // from a preemption to the end of the victim
  // Errors of the next calls of bind(), preempt(), refuse(); nullopt lets one through.
  std::deque<std::optional<Errc>> bind_errors, preempt_errors, refuse_errors;
  int bind_answers_lost = 0;  // so many bindings are carried out and answered Timeout
  // Called before a bind() is carried out.
  std::function<void(const Binding&)> on_bind;

  std::vector<Binding> bindings;              // asked for
  std::vector<std::string> bound;             // names of pods whose binding was accepted
  std::vector<std::string> refused;           // name: message [-> nominated node]
  std::vector<std::string> preempted;         // names, asked for
  std::vector<std::string> accepted_victims;  // uids
  std::vector<PodNote> notes;
  std::vector<ClaimPlan> claim_plans;
  int reads = 0;  // calls of read_pod()

 private:
  void emit(std::string_view resource, const Doc& object, bool is_deleted);
  void answer(Done done, Result<void> outcome);
  Result<void> try_bind(const Binding& binding);
  Result<Doc*> pod_of(const PodRef& ref);

  SimLoop& loop_;
  std::map<std::string, std::map<std::string, Doc, std::less<>>, std::less<>> objects_;
  std::map<std::string, std::vector<std::weak_ptr<Follower>>, std::less<>> followers_;
};

// A pod of namespace "ns" for the scheduler "default-scheduler"; its uid is "<name>-uid".
Doc pod(std::string_view name, int cpu, int priority = 0);

}  // namespace jogak::live::testing
