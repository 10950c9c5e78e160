// SPDX-License-Identifier: Apache-2.0
//
// What must never happen, counted anew from the server's store and from what left and reached the
// network. Each rule has a name, and a broken one is reported by it:
//
//   gpu-owned-twice      a device, or more than all of it, is held by pods on its node
//   gpu-holds-wrong      a pod holds another number of devices than it asks for, or none that are
//   node-overcommitted   pods that we bound take more than the node has
//   bind-without-uid     a binding that would take any pod of the name
//   bind-gated, bind-foreign   of a pod whose gates stand, or that asks for another scheduler
//   bind-twice           a pod is bound again by one who knows, or before the first answer
//   deleted-twice, delete-without-uid   of victims
//   evicted-for-nothing  no pod of higher priority waited, or none was placed in the end
//   wrote-without-lease  a write left while the lease was another's, or over
//   endless-retry        one pod takes more than its share of requests
//   lost-pod             at rest a pod waits although a node has room, or could be given it
//   no-reason            at rest a pod waits and its condition does not say why
//   writes-at-rest       nothing changes and yet something is written
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/livesim/facts.h"
#include "test/livesim/faulty_client.h"

namespace jogak::livesim {

struct Violation {
  std::string rule;
  std::string what;
};

struct CheckOptions {
  // How old a process's picture of the cluster may be.
  TimeUs stale_max = 300 * kSecondInUs;
  // Requests about one pod by one process in a minute.
  int requests_max = 60;
  bool has_lease = true;
};

class Checkers : public CallObserver, public FactsListener {
 public:
  Checkers(Facts& facts, CheckOptions options);

  // By that name the process holds the lease.
  void add_process(int process, std::string identity);
  // From now on nothing but leases may be written.
  void begin_rest() { is_at_rest_ = true; }
  // When faults are long over and nothing happens: nobody waits in vain.
  void check_rest();

  const std::vector<Violation>& violations() const { return violations_; }

  struct Counts {
    std::uint64_t calls = 0, writes = 0, binds = 0, bound = 0, evicted = 0, events = 0,
                  refusals = 0;
  };
  const Counts& counts() const { return counts_; }
  // For long runs: forgets what can no longer matter.
  void forget();

  void on_sent(const Call& call) override;
  void on_handled(const Call& call) override;
  void on_answered(const Call& call) override;
  void on_told(const Call& call) override;
  void on_ended(const Call& call) override;
  void on_bound(PodFacts& pod, bool is_outside) override;

 private:
  enum class Verb : std::uint8_t { Other, Bind, Delete, Patch, Lease };
  // A write about a pod, read from the call.
  struct Write {
    Verb verb = Verb::Other;
    int process = 0;
    std::string ns, name, uid;
    std::string node;  // Bind
  };
  struct Eviction {
    std::string victim, node;
    TimeUs at = 0;
    std::int64_t priority = 0;          // of the victim
    std::vector<std::string> for_whom;  // uids of pods that may have needed it
  };

  void fail(std::string_view rule, std::string what);
  static Write read(const Call& call);
  void check_lease(const Call& call);
  void check_pace(const Write& write);
  void check_bind_sent(const Call& call, const Write& write);
  void check_delete_sent(const Write& write);
  void check_devices(const PodFacts& pod);
  void check_room(const PodFacts& pod);
  void note_eviction(const Write& write);
  bool was_of_use(const Eviction& eviction) const;
  // A node that has room for the pod when only pods of at least `floor` stay; "" for none.
  std::string room_for(const PodFacts& pod, std::int64_t floor) const;
  bool has_room(const NodeFacts& node, const PodFacts& pod, std::int64_t floor) const;
  bool has_devices(const NodeFacts& node, const PodFacts& pod, std::int64_t floor) const;

  Facts& facts_;
  CheckOptions options_;
  std::vector<Violation> violations_;
  std::map<int, std::string> identities_;
  std::map<std::uint64_t, Write> open_;  // calls of ours that are not over for the client
  std::map<std::uint64_t, Write> at_server_;
  std::set<std::pair<int, std::string>> known_bound_, known_deleted_;  // (process, uid) was told
  std::map<std::pair<int, std::string>, std::pair<TimeUs, int>> pace_;
  std::vector<Eviction> evictions_;
  bool is_at_rest_ = false;
  Counts counts_;
};

}  // namespace jogak::livesim
