// SPDX-License-Identifier: Apache-2.0
//
// What the server's store holds of pods, nodes, volumes and leases, and held before: read from the
// store itself at every write, in the order of revisions. The ground that checkers stand on; it
// shares no code with what they check.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/server/server.h"
#include "base/digest.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::livesim {

// One device held by a pod, of the annotation jogak.io/gpu-holds.
struct Holding {
  std::int64_t gpu = 0;
  std::int64_t milli = 1000;
};

struct PodFacts {
  std::string ns, name, uid;
  std::string scheduler;  // spec.schedulerName
  std::string zone;       // node selector, "" for any
  std::vector<std::string> claims;
  std::int64_t cpu_milli = 0, gpus = 0;
  std::int64_t share_milli = 0, share_count = 0;  // parts of devices
  std::int64_t priority = 0;
  bool is_gated = false;

  std::string node;
  std::vector<Holding> holds;
  std::string nominated;
  std::string condition, reason, message;  // PodScheduled
  bool is_deleting = false, is_over = false;
  bool is_bound_by_us = false;
  TimeUs created_at = 0, ungated_at = 0, bound_at = 0, deleting_at = 0, gone_at = 0;

  bool is_gone() const { return gone_at != 0; }
  bool is_ours() const { return scheduler == "jogak" || scheduler == "default-scheduler"; }
  // On a node and not over: what it asks for is taken there.
  bool takes_room() const { return !node.empty() && !is_over && !is_gone(); }
  bool waits() const { return node.empty() && !is_over && !is_gone() && !is_deleting; }
};

struct Room {
  std::int64_t cpu_milli = 0, gpus = 0, pods = 0;
  friend bool operator==(const Room&, const Room&) = default;
};

struct NodeFacts {
  std::string name, zone;
  Room allocatable;
  bool has_devices = false;   // states its devices one by one
  std::vector<bool> devices;  // healthy?
  bool is_open = false;       // schedulable, ready, no taints
  bool is_gone = false;
  TimeUs changed_at = 0;  // any of the above
  // Since when it was otherwise: what a process may still believe. Oldest first.
  std::vector<std::pair<TimeUs, Room>> rooms;
  std::vector<std::pair<TimeUs, std::vector<bool>>> device_states;

  // The most of each that it had at any time since.
  Room most_since(TimeUs since) const;
};

struct LeaseFacts {
  std::string holder;
  TimeUs renewed_at = 0;  // when the server took the record
  std::int64_t duration_s = 0;
};

class FactsListener {
 public:
  virtual ~FactsListener() = default;
  // The pod has just got its node. `is_outside`: by the test itself.
  virtual void on_bound(PodFacts&, bool /*is_outside*/) {}
};

class Facts {
 public:
  // Follows the store of `server` from its beginning.
  Facts(Loop& loop, api::Server& server);
  ~Facts();

  const std::map<std::string, PodFacts>& pods() const { return pods_; }  // by uid, gone ones too
  // The one of that name that is not gone.
  const PodFacts* find_pod(std::string_view ns, std::string_view name) const;
  PodFacts* find_uid(std::string_view uid);
  const std::map<std::string, NodeFacts>& nodes() const { return nodes_; }
  const LeaseFacts& lease() const { return lease_; }
  // How often it came to somebody else.
  std::uint64_t lease_changes() const { return lease_changes_; }
  // Zone of the volume that serves the claim, nullopt while it has none.
  std::optional<std::string> claim_zone(std::string_view ns, std::string_view name) const;

  TimeUs now() const { return loop_.now(); }
  // When a pod last came, got its node, ended or went, or a node changed.
  TimeUs last_move() const { return last_move_; }
  // Of every change of every table followed.
  std::uint64_t digest() const { return digest_.value(); }
  std::uint64_t changes() const { return changes_; }
  // Drops pods that are gone for longer than that (for long runs).
  void forget_gone(TimeUs older_than);

  FactsListener* listener = nullptr;
  // Told the story line by line, for people; empty: nobody asked.
  std::function<void(const std::string&)> trace;
  bool is_outside = false;  // the test itself writes now

 private:
  void on_pod(const store::Event& event, const Doc& object);
  void on_node(const store::Event& event, const Doc& object);
  void on_volume(const store::Event& event, const Doc& object);
  void on_claim(const store::Event& event, const Doc& object);
  void on_lease(const store::Event& event, const Doc& object);
  using Reader = void (Facts::*)(const store::Event&, const Doc&);
  void follow(std::string_view table, Reader reader);

  Loop& loop_;
  api::Server& server_;
  std::vector<store::WatchId> watches_;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, std::string, std::less<>> names_;  // ns/name -> uid
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, std::string, std::less<>> claim_zones_;  // ns/name
  LeaseFacts lease_;
  std::uint64_t lease_changes_ = 0;
  TimeUs last_move_ = 0;
  Digest digest_;
  std::uint64_t changes_ = 0;
};

}  // namespace jogak::livesim
