// SPDX-License-Identifier: Apache-2.0
//
// A cluster behind an API server: one watch a resource, and writes as kube-scheduler makes them.
// Retries of a write are the driver's; here it is made once, and its outcome told as it is: an
// answer that leaves open whether the write happened is a Timeout.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api_client.h"
#include "kube/reflector.h"
#include "live/cluster_api.h"

namespace jogak::live {

struct KubeClusterOptions {
  std::string host = "jogak";  // of this process, in the events it writes
  TimeUs request_limit = 30 * kSecondInUs;
  // Writes are sent before this time only, and given up `write_grace` after it; empty: always.
  // With leader election it is LeaderElection::valid_until(), and the grace what is left of the
  // lease then, so that no write of a former leader lands beside those of the next.
  std::function<TimeUs()> write_until = {};
  TimeUs write_grace = 5 * kSecondInUs;
  std::size_t notes_max = 10'000;  // events that wait to be written; more are dropped
  std::uint64_t seed = 1;
};

struct KubeClusterCounts {
  std::uint64_t notes_sent = 0, notes_dropped = 0, notes_failed = 0, writes_withheld = 0;
};

class KubeCluster : public ClusterApi {
 public:
  // `api` outlives it.
  KubeCluster(kube::ApiClient& api, KubeClusterOptions options);
  ~KubeCluster() override;

  Loop& loop() override { return api_.loop(); }
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override;
  void bind(const Binding& binding, Done done) override;
  void refuse(const Refusal& refusal, Done done) override;
  void preempt(const PodRef& victim, const std::string& message, Done done) override;
  void plan_claim(const ClaimPlan& plan, Done done) override;
  void read_pod(const PodRef& pod, std::function<void(Result<std::string> json)> done) override;
  void note(const PodNote& note) override;

  struct Informer {
    std::string resource;
    const kube::ReflectorState* state = nullptr;
    std::size_t objects = 0;
  };
  // Of the resources that are followed now, in the order in which they were asked for.
  std::vector<Informer> informers() const;
  const KubeClusterCounts& counts() const { return counts_; }
  std::size_t notes_waiting() const { return notes_.size(); }

  // Told of each failure to list or watch; it goes on by itself.
  std::function<void(const std::string& resource, const Error&)> on_watch_error;

 private:
  struct Series {
    std::string name;  // of the Event object
    int count = 1;
    TimeUs last = 0;  // the last time it happened
    TimeUs told = 0;  // when the server heard of the series
  };

  void write(kube::ApiRequest request, Done done);
  void delete_victim(const PodRef& victim, Done done);
  void claim_volume(const ClaimPlan& plan, Done done);
  struct QueuedNote {
    PodNote note;
    int tries = 0;
  };

  void pump_notes();
  void send_note(QueuedNote queued);
  void note_answered(const std::string& key, QueuedNote queued,
                     const Result<kube::ApiAnswer>& answer);
  std::string note_key(const PodNote& note) const;
  void forget_old_series();
  bool take_note_token();

  kube::ApiClient& api_;
  KubeClusterOptions options_;
  struct Following;
  std::vector<std::weak_ptr<Following>> following_;
  KubeClusterCounts counts_;
  std::deque<QueuedNote> notes_;
  std::size_t notes_open_ = 0;
  TimerId note_timer_ = 0;
  TimeUs last_write_ = 0;
  std::int64_t note_tokens_us_ = 0;  // token bucket: one note costs kNoteCostUs
  TimeUs note_tokens_at_ = 0;
  std::map<std::string, Series> series_;
  std::deque<std::pair<TimeUs, std::string>> series_by_age_;
  std::uint64_t next_event_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Path of the collection of a resource, "/apis/apps/v1/replicasets" for "replicasets.apps"; "" for
// one that the scheduler does not read.
std::string_view collection_path(std::string_view resource);

}  // namespace jogak::live
