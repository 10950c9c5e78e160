// SPDX-License-Identifier: Apache-2.0
//
// How often each of a few things happened: within the last while, and ever. Bounded in memory
// whatever happens: at most kEventsMax events of a window and kKindsMax kinds; more are counted
// under kOther.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/loop.h"

namespace jogak::agent {

class EventWindow {
 public:
  static constexpr std::size_t kEventsMax = 2048;
  static constexpr std::size_t kKindsMax = 64;
  static constexpr std::uint64_t kOther = UINT64_MAX;
  using Counts = std::map<std::uint64_t, std::int64_t>;

  explicit EventWindow(TimeUs length) : length_(length) {}

  void add(std::uint64_t kind, TimeUs now) {
    if (!totals_.contains(kind) && totals_.size() >= kKindsMax) kind = kOther;
    ++totals_[kind];
    if (events_.size() == kEventsMax) forget_first();
    events_.emplace_back(now, kind);
    ++recent_[kind];
    expire(now);
  }
  void expire(TimeUs now) {
    while (!events_.empty() && now - events_.front().first >= length_) forget_first();
  }
  const Counts& recent() const { return recent_; }
  const Counts& totals() const { return totals_; }

 private:
  void forget_first() {
    const auto at = recent_.find(events_.front().second);
    if (--at->second == 0) recent_.erase(at);
    events_.pop_front();
  }

  TimeUs length_;
  std::deque<std::pair<TimeUs, std::uint64_t>> events_;
  Counts recent_;
  Counts totals_;
};

}  // namespace jogak::agent
