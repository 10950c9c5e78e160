// SPDX-License-Identifier: Apache-2.0
//
// The live driver of the decision core, sibling of sim/: changes of the cluster to core events,
// decisions to bindings, refusals to conditions and events, preemption to deletions. One loop owns
// it all; every decision is checked by core/plan/validate before it leaves.
//
// A pod of ours, from its first sight to its end:
//
//                      +--- refused: condition, event, maybe nomination and victims <--+
//                      v                                                               |
//   seen --> Queued (ready, backing off, settled) --decide--> fits nowhere ------------+
//                      ^                                  \-> Claiming (its volumes) --> Binding
//                      +--- it did not happen ------------------------------------------/  |
//                                                   Checking (nobody knows) <--------------+
//                                                        \--> Bound, until the watch shows it
//
// From Claiming to Bound its room counts as taken. What is not known counts as taken too: a binding
// without an answer is asked about and repeated, never given up for another node.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "core/engine/scheduler.h"
#include "core/model/cluster.h"
#include "core/plan/evaluation.h"
#include "core/policy/policy.h"
#include "kube/decode.h"
#include "live/cluster_api.h"
#include "live/driver_observer.h"
#include "live/pod_queue.h"

namespace jogak::live {

struct Profile {
  std::string scheduler_name;  // pods that name it in spec.schedulerName are ours
  std::string policy = "jogak";
};

struct DriverOptions {
  std::vector<Profile> profiles = {{.scheduler_name = "default-scheduler"},
                                   {.scheduler_name = "jogak"}};
  std::uint64_t seed = 1;
  BackoffOptions backoff = {};
  // Bindings under way at once; more decisions wait for their answers.
  std::size_t bindings_max = 64;
  // Claims that wait for their first consumer must be bound within that time.
  TimeUs volume_bind_timeout = 600 * kSecondInUs;
  bool may_preempt = true;
  // A nomination whose room was never used ends after that time.
  TimeUs nomination_max = 300 * kSecondInUs;
  // True: follows the cluster, and decides nothing before lead().
  bool is_standby = false;
  DriverObserver* observer = nullptr;  // outlives the driver

  void set_policy(const std::string& policy) {
    for (Profile& profile : profiles) profile.policy = policy;
  }
};

struct DriverCounts {
  std::uint64_t decisions = 0, bound = 0, refused = 0, preempted = 0, bind_errors = 0;
  // Plans that the independent check stopped, and objects that could not be read: both are faults.
  std::uint64_t invalid_plans = 0, unreadable = 0;
};

class SchedulerDriver {
 public:
  // Error Invalid: no such policy, or no profile.
  static Result<std::unique_ptr<SchedulerDriver>> make(ClusterApi& api, DriverOptions options);
  ~SchedulerDriver();

  // Decisions begin, once everything has been seen. Before another may decide, destroy this.
  void lead();
  bool is_leading() const { return !options_.is_standby; }
  // All that was there at the start is known.
  bool is_synced() const { return is_synced_; }

  const core::Cluster& cluster() const { return cluster_; }
  const DriverCounts& counts() const { return counts_; }
  std::size_t waiting() const { return queue_.size(); }
  std::size_t binds_in_flight() const { return in_flight_; }
  // Its room counts as taken, and the watch does not show it there yet.
  bool is_assumed(std::string_view ns, std::string_view name) const;
  // The profile of a pod that waits here or is being bound; "" for any other.
  std::string_view scheduler_name_of(std::string_view ns, std::string_view name) const;
  // The last fault in words, "" for none.
  const std::string& last_fault() const { return last_fault_; }

 private:
  // Pods of one class are told the same.
  using SharedText = std::shared_ptr<const std::string>;

  enum class Stage : std::uint8_t { Queued, Claiming, Binding, Checking, Bound };

  struct Claim {
    ClaimPlan plan;
    bool is_volume_shown = false;  // the watch shows the volume claimed
    bool is_node_shown = false;    // the watch shows the node on the claim
    bool is_rejected = false;      // whoever provisions gave up on that node
  };

  // A pod that this driver has to place.
  struct Job {
    PodRef ref;
    std::size_t profile = 0;
    Stage stage = Stage::Queued;
    bool is_seen_bound = false;  // the watch has shown it
    bool is_noted = false;       // its Scheduled event was given out
    bool has_constraints = false;
    const char* blocked = nullptr;  // why it cannot be placed whatever the cluster looks like
    // Claiming and later.
    std::string node;
    std::string gpu_holds;
    std::vector<Claim> claims;
    std::size_t claims_open = 0;  // writes without an answer
    bool is_in_flight = false;    // counts towards bindings_max
    bool is_unsure = false;       // a binding was given up without an answer
    TimeUs sent = 0;              // the last binding
    TimeUs started = 0;           // of this attempt
    TimeUs decided_in = 0;
    int tries = 0;  // bindings and questions of this attempt
    TimerId timer = 0;
    // Digests of what the pod's status says, and of what it is to say.
    std::uint64_t told = 0, wanted = 0;
    std::string_view wanted_reason;
    SharedText wanted_message;   // null: the nomination alone
    bool is_telling = false;     // in line, under way, or waiting to be tried again
    bool has_condition = false;  // PodScheduled is False already
    int tell_failures = 0;
    std::string nominated;  // node promised to it by preemption, "" for none
    TimeUs nominated_at = 0;
    std::string gave_up_on;                    // node whose promised room never came
    std::vector<PodRef> victims;               // to be deleted once the nomination is written
    std::vector<std::string_view> refused_by;  // as told to the observer
  };
  struct Engine {
    std::unique_ptr<core::Policy> policy;
    std::unique_ptr<core::Scheduler> scheduler;
  };
  using Jobs = std::map<std::string, Job, std::less<>>;

  SchedulerDriver(ClusterApi& api, DriverOptions options);

  // ---- scheduler_driver.cc: the cluster as it is seen, and turns of decisions
  Result<void> make_schedulers();
  void follow_all();
  void follow_pods();
  void followed();
  void on_node(const ClusterApi::ObjectChange& change);
  void on_other(std::string_view kind, const ClusterApi::ObjectChange& change);
  void on_pod(const ClusterApi::ObjectChange& change);
  void take_pod(const std::string& key, kube::Pod&& pod);
  void take_own(const std::string& key, kube::Pod&& pod);
  void forget_pod(std::string_view ns, std::string_view name);
  void unreadable(std::string_view kind, std::string_view object, const std::string& why);
  Job& job_for(const std::string& key, const kube::Pod& pod);
  void drop_job(Jobs::iterator it);
  void requeue(const std::string& key, Job& job, core::PodId pod);
  void cluster_changed();
  void pod_placed();
  void wake();
  void turn();
  void wake_at(TimeUs when);
  void tell_queues();
  void schedule(const std::string& key);
  void collect_garbage();

  // ---- driver_bind.cc: from a decision to a pod on its node
  void start_binding(const std::string& key, Job& job, core::PodId pod,
                     const core::Decision& decision);
  Engine& engine_of(const Job& job);
  bool plan_claims(Job& job, core::PodId pod, core::NodeId node);
  void write_claims(const std::string& key, Job& job);
  void send_claims(const std::string& key, Job& job, const std::vector<ClaimPlan>& plans);
  void repeat_claims(const std::string& key, const std::string& uid);
  void claim_written(const std::string& key, const std::string& uid, const Result<void>& outcome);
  void check_claims(const std::string& key, Job& job);
  void check_all_claims();
  void assume_claims(std::string_view kind, std::string_view ns, std::string_view name);
  static bool assume_volume(core::Objects& objects, Claim& claim);
  static bool assume_node(core::Objects& objects, Claim& claim, const std::string& full);
  void release_claims(Job& job);
  void enter_flight(Job& job);
  void send_bind(const std::string& key, Job& job);
  void bind_answered(const std::string& key, const std::string& uid, const Result<void>& outcome);
  void ask_about(const std::string& key, Job& job);
  void asked_about(const std::string& key, const std::string& uid, const Result<std::string>& json);
  void later(const std::string& key, Job& job, std::function<void(const std::string&, Job&)> task);
  void bound(const std::string& key, Job& job);
  void bound_elsewhere(const std::string& key, Job& job, kube::Pod&& pod);
  void not_bound(const std::string& key, Job& job, Errc code, const std::string& why);
  void make_pending(core::PodId pod);
  void leave_flight(Job& job);
  Job* job_of(const std::string& key, const std::string& uid);

  // ---- driver_refuse.cc: what a pod that waits is told, and room made for it
  struct Refusal {
    SharedText message;
    std::vector<std::string_view> plugins;
    std::optional<core::PreemptionResult> preemption;
  };
  void refuse(const std::string& key, Job& job, core::PodId pod, std::uint64_t class_key);
  Refusal find_refusal(core::PodId pod, std::uint64_t class_key);
  const core::PreemptionCandidate& choose(const Job& job,
                                          const core::PreemptionResult& preemption) const;
  void plan_preemption(Job& job, core::PodId pod, const core::PreemptionResult& preemption);
  // `reason` is a literal.
  void tell(const std::string& key, Job& job, std::string_view reason, SharedText message);
  void tell(const std::string& key, Job& job, std::string_view reason, std::string message) {
    tell(key, job, reason, std::make_shared<const std::string>(std::move(message)));
  }
  static std::uint64_t digest_of(std::string_view reason, std::string_view message,
                                 std::string_view nominated) {
    return Digest().add(reason).add(message).add(nominated).value();
  }
  void queue_tell(const std::string& key, Job& job);
  void pump_tells();
  void send_told(const std::string& key, Job& job);
  void told(const std::string& key, const std::string& uid, std::uint64_t said,
            const Result<void>& outcome);
  void take_told(const std::string& key, Job& job, std::uint64_t said, const Result<void>& outcome);
  void preempt(const std::string& key, Job& job);
  void send_delete(const PodRef& victim, const std::string& why);
  void deleted(const PodRef& victim, const std::string& why, const Result<void>& outcome);
  void delete_later(const PodRef& victim, const std::string& why);
  void check_victim(const PodRef& victim, const std::string& why);
  void not_preempted(const PodRef& victim);
  void keep_nomination(const Job& job, core::PodId pod);
  void withdraw_nomination(core::PodId pod);
  void count_refusal(Job& job, const std::vector<std::string_view>& plugins);
  void note(const Job& job, std::string_view type, std::string_view reason, std::string_view action,
            std::string message);

  void fault(std::string what);
  PodRef ref_of(core::PodId pod) const;
  TimeUs now() const { return api_.loop().now(); }
  // Runs on the loop, later, if the driver is still there.
  template <class Task>
  auto guarded(Task task) {
    return [task = std::move(task), alive = std::weak_ptr<bool>(alive_)](const auto&... args) {
      if (!alive.expired()) task(args...);
    };
  }

  ClusterApi& api_;
  DriverOptions options_;
  core::Cluster cluster_;
  std::vector<Engine> engines_;  // one a policy
  std::map<std::string, std::pair<std::size_t, std::size_t>, std::less<>>
      profiles_;  // engine, profile
  kube::Decoder decoder_;
  PodQueue queue_;
  Jobs jobs_;                                                        // by ns/name
  std::map<std::string, std::string, std::less<>> assumed_volumes_;  // volume -> key of the job
  std::map<std::string, std::string, std::less<>> assumed_claims_;   // ns/claim -> key of the job
  std::map<std::string, int, std::less<>> preempting_;  // uid of a victim -> failed deletions
  // Refusals by class, as long as nothing changes.
  std::deque<std::pair<std::string, std::string>> tells_;  // key and uid of jobs that are telling
  std::size_t tells_open_ = 0;
  std::unordered_map<std::uint64_t, Refusal> refusals_;  // looked up only
  std::array<std::uint64_t, 4> refusals_at_{};
  DriverCounts counts_;
  std::string last_fault_;
  std::vector<std::shared_ptr<void>> following_;
  std::size_t unsynced_ = 0;
  bool is_synced_ = false;
  bool is_awake_ = false;
  bool has_changed_ = false;
  std::size_t in_flight_ = 0;
  std::size_t interned_after_collection_ = 0;
  std::size_t constrained_ = 0;  // jobs that wait and look at other pods
  TimeUs wake_time_ = 0;
  TimerId wake_timer_ = 0;
  std::array<std::size_t, kQueueKinds> lengths_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::live
