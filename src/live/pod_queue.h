// SPDX-License-Identifier: Apache-2.0
//
// The pods that wait for a decision: those to try now, by priority and then by age, and those that
// were refused and wait until the cluster changes, but not less than a back-off of 1 s doubling to
// 10 s (kube-scheduler's queue, its defaults).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/loop.h"

namespace jogak::live {

class PodQueue {
 public:
  // Adds or updates; a pod that waits after a refusal is tried again.
  void add(std::string_view key, std::int32_t priority);
  void remove(std::string_view key);
  // The pod to try next; it is in neither list until it is added or refused again.
  std::optional<std::string> pop();
  // Nothing fits now: waits for release().
  void refuse(std::string_view key, std::int32_t priority, TimeUs now);
  // The cluster changed in a way that may help: whoever is past the back-off may be tried, the rest
  // when it ends. Returns when that is for the first of them.
  std::optional<TimeUs> release(TimeUs now);

  bool has_ready() const { return !ready_.empty(); }
  std::size_t waiting() const { return refused_.size(); }
  std::size_t size() const { return ready_.size() + refused_.size(); }

 private:
  struct Entry {
    std::int32_t priority = 0;
    std::uint64_t age = 0;  // order of first arrival
    int refusals = 0;
    TimeUs not_before = 0;  // end of the back-off
  };
  using Ready = std::pair<std::pair<std::int64_t, std::uint64_t>, std::string>;

  Ready ready_key(const std::string& key, const Entry& entry) const {
    return {{-static_cast<std::int64_t>(entry.priority), entry.age}, key};
  }

  std::map<std::string, Entry, std::less<>> entries_;  // all known, tried ones too
  std::set<Ready> ready_;
  std::set<std::string, std::less<>> refused_;
  std::uint64_t next_age_ = 0;
};

}  // namespace jogak::live
