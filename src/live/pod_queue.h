// SPDX-License-Identifier: Apache-2.0
//
// The pods that wait for a decision: those to try now, by priority and then by age, and those that
// wait. A refused pod waits until the cluster changes in a way that may help, but not less than a
// back-off of 1 s doubling to 10 s (kube-scheduler's, its defaults), and at most five minutes. A
// pod whose attempt failed for a reason outside (the server's) waits for its back-off alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/loop.h"

namespace jogak::live {

struct BackoffOptions {
  TimeUs first = kSecondInUs;
  TimeUs longest = 10 * kSecondInUs;
  TimeUs refused_max = 300 * kSecondInUs;  // then a refused pod is tried without a change
};

class PodQueue {
 public:
  explicit PodQueue(BackoffOptions backoff = {}) : backoff_(backoff) {}

  // Adds or updates; a pod that waits is tried again.
  void add(std::string_view key, std::int32_t priority, TimeUs now = 0);
  void remove(std::string_view key);
  // The pod to try next; it is in neither list until it is added, refused or retried again.
  std::optional<std::string> pop();
  // Nothing fits now: waits for release().
  void refuse(std::string_view key, std::int32_t priority, TimeUs now);
  // The attempt failed: waits for the end of its back-off.
  void retry(std::string_view key, std::int32_t priority, TimeUs now);
  // Whoever may be tried now becomes ready: failed ones past their back-off; refused ones past
  // theirs if the cluster changed (`has_changed` tells of a change since the last call) after they
  // were refused, or if they waited long enough. Returns when to ask again.
  std::optional<TimeUs> release(TimeUs now, bool has_changed);

  bool has_ready() const { return !ready_.empty(); }
  std::size_t ready() const { return ready_.size(); }
  std::size_t backing_off() const { return timed_.size(); }  // refused or failed not long ago
  std::size_t settled() const { return settled_.size(); }    // refused, past the back-off
  std::size_t waiting() const { return timed_.size() + settled_.size(); }
  std::size_t size() const { return ready_.size() + waiting(); }
  // Attempts that ended without a place, and when the pod was first seen; zeros when unknown.
  struct History {
    int attempts = 0;
    TimeUs since = 0;
  };
  History history(std::string_view key) const;

 private:
  enum class Where : std::uint8_t { Nowhere, Ready, Timed, Settled };
  struct Entry {
    std::int32_t priority = 0;
    Where where = Where::Nowhere;
    bool is_failed = false;  // Timed: tried again whatever changed
    std::uint64_t age = 0;   // order of first arrival
    TimeUs since = 0;
    int refusals = 0, failures = 0;  // failures in a row
    TimeUs due = 0;                  // Timed: end of the back-off; Settled: latest next attempt
    TimeUs refused_at = 0;
    std::uint64_t change = 0;  // the last one when it was refused
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  using Item = Entries::value_type*;  // stays where it is
  struct ReadyOrder {
    bool operator()(const Item& a, const Item& b) const {
      if (a->second.priority != b->second.priority) return a->second.priority > b->second.priority;
      return a->second.age < b->second.age;
    }
  };
  struct DueOrder {
    bool operator()(const Item& a, const Item& b) const {
      if (a->second.due != b->second.due) return a->second.due < b->second.due;
      return a->second.age < b->second.age;
    }
  };

  Item unlisted(std::string_view key, TimeUs now);
  void take_out(Item item);
  void make_ready(Item item);
  TimeUs backoff(int times) const;

  BackoffOptions backoff_;
  Entries entries_;  // all known, tried ones too
  std::set<Item, ReadyOrder> ready_;
  std::set<Item, DueOrder> timed_, settled_;
  std::uint64_t change_ = 0;
  std::uint64_t next_age_ = 0;
};

}  // namespace jogak::live
