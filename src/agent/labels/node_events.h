// SPDX-License-Identifier: Apache-2.0
//
// Events of this Node (events.k8s.io/v1, shown by `kubectl describe node`). What is told again
// becomes a series with a count, and there are only so many: a GPU that raises thousands of XIDs
// costs the API server a write a minute. Events are told at best effort: what cannot be written in
// a few tries is dropped, and counted.
//
// Least privilege: create and patch of events in the namespace "default", where those of Nodes are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "agent/health/node_note.h"
#include "base/log.h"
#include "base/loop.h"
#include "kube/api_client.h"

namespace jogak::agent {

struct NodeEventsOptions {
  std::string node;
  int burst = 25;                                // new events at once,
  TimeUs refill = 30 * kSecondInUs;              // and then one each
  TimeUs series_every = 60 * kSecondInUs;        // a count is written at most so often
  TimeUs series_ends_after = 600 * kSecondInUs;  // without another one
  std::size_t queue_max = 64;                    // what waits for the server, or its turn
  std::size_t series_max = 256;
  int tries_max = 5;
  TimeUs retry = 2 * kSecondInUs;  // doubles
};

class NodeEvents {
 public:
  // `api` and `log` outlive it. Nothing is called after its end.
  NodeEvents(kube::ApiClient& api, Log& log, NodeEventsOptions options);
  ~NodeEvents();
  NodeEvents(const NodeEvents&) = delete;
  NodeEvents& operator=(const NodeEvents&) = delete;

  void tell(NodeNote note);

  struct Counts {
    std::uint64_t told = 0, created = 0, patched = 0, dropped = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Series {
    std::string name = {};  // "": its event is not written yet
    int count = 0, written = 0;
    TimeUs last = 0, written_at = 0;
  };
  struct Waiting {
    std::string key;
    NodeNote note;
    TimeUs time = 0;  // when it happened
    int tries = 0;
  };

  void pump();
  void create(Waiting event);
  void on_created(Waiting event, const std::string& name, const Result<std::string>& answer);
  bool patch_one();
  void forget_old();
  void refill();
  void wake_after(TimeUs delay);
  void drop(const std::string& key, const std::string& why);
  template <class Fn>
  auto guarded(Fn fn);

  kube::ApiClient& api_;
  Log& log_;
  const NodeEventsOptions options_;
  std::map<std::string, Series> series_;  // by reason, type and what it is about
  std::deque<Waiting> queue_;
  int tokens_ = 0;
  TimeUs refilled_at_ = 0;
  bool is_busy_ = false;
  TimeUs not_before_ = 0;
  TimerId timer_ = 0;
  std::uint64_t last_name_ = 0;
  std::string problem_;  // "" the last write went well
  Counts counts_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::agent
