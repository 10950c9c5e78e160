// SPDX-License-Identifier: Apache-2.0
//
// The live driver of the decision core, sibling of sim/: changes of the cluster to core events,
// decisions to bindings, refusals to conditions and events, preemption to deletions. One loop owns
// it all; every decision is checked by core/plan/validate before it leaves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/engine/scheduler.h"
#include "core/model/cluster.h"
#include "core/policy/policy.h"
#include "import/import.h"
#include "live/cluster_api.h"
#include "live/pod_queue.h"

namespace jogak::live {

struct DriverOptions {
  std::string policy = "jogak";
  std::uint64_t seed = 1;
  // Pods that name one of these schedulers are ours; others only take room.
  std::set<std::string, std::less<>> scheduler_names = {"default-scheduler", "jogak"};
};

struct DriverCounts {
  std::uint64_t decisions = 0, bound = 0, refused = 0, preempted = 0, bind_errors = 0;
  // Plans that the independent check stopped, and objects that could not be read: both are faults.
  std::uint64_t invalid_plans = 0, unreadable = 0;
};

class SchedulerDriver {
 public:
  // Error Invalid: no such policy.
  static Result<std::unique_ptr<SchedulerDriver>> make(ClusterApi& api, DriverOptions options);
  ~SchedulerDriver();

  const core::Cluster& cluster() const { return cluster_; }
  const DriverCounts& counts() const { return counts_; }
  std::size_t waiting() const { return queue_.size(); }
  // The last fault in words, "" for none.
  const std::string& last_fault() const { return last_fault_; }

 private:
  SchedulerDriver(ClusterApi& api, DriverOptions options, std::unique_ptr<core::Policy> policy);

  void follow_all();
  void on_pod(const ClusterApi::ObjectChange& change);
  void on_node(const ClusterApi::ObjectChange& change);
  void on_other(std::string_view kind, const ClusterApi::ObjectChange& change);
  void read(std::string_view kind, const ClusterApi::ObjectChange& change);
  void forget_pod(std::string_view ns, std::string_view name);
  void cluster_changed();
  void wake();
  void turn();
  void wake_at(TimeUs when);

  void schedule(const std::string& key);
  void bind(const std::string& key, core::PodId pod, const core::Decision& decision);
  void make_pending(core::PodId pod);
  void bound(const std::string& key, const PodRef& ref, const std::string& node,
             const Result<void>& outcome);
  void refuse(const std::string& key, core::PodId pod);
  void preempt(const PodRef& preemptor, const std::vector<core::PodId>& victims);
  void not_preempted(const PodRef& victim, const Error& error);
  void fault(std::string what);
  PodRef ref_of(core::PodId pod) const;

  ClusterApi& api_;
  DriverOptions options_;
  std::unique_ptr<core::Policy> policy_;
  core::Cluster cluster_;
  core::Scheduler scheduler_;
  PodQueue queue_;
  DriverCounts counts_;
  std::string last_fault_;
  std::map<std::string, std::string, std::less<>> assumed_;  // ns/name -> uid, binding under way
  std::map<std::string, std::string, std::less<>> told_;     // ns/name -> last message written
  std::vector<std::shared_ptr<void>> following_;
  bool is_awake_ = false;
  bool has_changed_ = false;
  TimeUs wake_time_ = 0;
  TimerId wake_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::live
