// SPDX-License-Identifier: Apache-2.0
//
// A Loop under virtual time: a queue of tasks ordered by time, then by age. Time moves only when
// there is nothing left to do at the present moment, so a run is a function of its inputs.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/loop.h"

namespace jogak {

class SimLoop : public Loop {
 public:
  explicit SimLoop(TimeUs start = 1'700'000'000 * kSecondInUs) : now_(start) {}

  TimeUs now() const override { return now_; }
  void post(Task task) override { ready_.push_back({0, std::move(task)}); }
  TimerId at(TimeUs when, Task task) override;
  void cancel(TimerId timer) override;

  // Runs one task, moving the clock to its time if need be. False when nothing is left.
  bool step();
  // Runs everything due up to `end`, and leaves the clock there.
  void run_until(TimeUs end);
  void run_for(TimeUs span) { run_until(now_ + span); }
  // Runs until nothing is ready at the present moment; timers of later moments stay.
  void run_ready();
  bool idle() const { return ready_.empty() && timers_.empty(); }

 private:
  void fire_due();

  struct Ready {
    TimerId timer = 0;  // 0: posted
    Task task;
  };

  TimeUs now_;
  TimerId next_timer_ = 1;
  std::deque<Ready> ready_;
  std::set<TimerId> due_;  // timers in ready_ that nobody cancelled
  std::map<std::pair<TimeUs, TimerId>, Task> timers_;
  std::map<TimerId, TimeUs> deadlines_;
};

}  // namespace jogak
