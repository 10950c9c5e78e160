// SPDX-License-Identifier: Apache-2.0
//
// What is due moves to the queue of tasks in one go, so that a moment's timers keep their order.
#include "base/sim_loop.h"

#include <algorithm>

namespace jogak {

TimerId SimLoop::at(TimeUs when, Task task) {
  const TimerId timer = next_timer_++;
  const TimeUs due = std::max(when, now_);
  timers_.emplace(std::pair(due, timer), std::move(task));
  deadlines_.emplace(timer, due);
  return timer;
}

void SimLoop::cancel(TimerId timer) {
  due_.erase(timer);
  const auto it = deadlines_.find(timer);
  if (it == deadlines_.end()) return;
  timers_.erase({it->second, timer});
  deadlines_.erase(it);
}

// Moves the timers that are due to the ready queue.
void SimLoop::fire_due() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    const auto it = timers_.begin();
    const TimerId timer = it->first.second;
    deadlines_.erase(timer);
    due_.insert(timer);
    ready_.push_back({timer, std::move(it->second)});
    timers_.erase(it);
  }
}

bool SimLoop::step() {
  fire_due();
  if (ready_.empty()) {
    if (timers_.empty()) return false;
    now_ = timers_.begin()->first.first;
    fire_due();
  }
  const Ready next = std::move(ready_.front());
  ready_.pop_front();
  if (next.timer == 0 || due_.erase(next.timer) > 0) next.task();
  return true;
}

void SimLoop::run_ready() {
  for (fire_due(); !ready_.empty(); fire_due()) step();
}

void SimLoop::run_until(TimeUs end) {
  for (;;) {
    run_ready();
    if (timers_.empty() || timers_.begin()->first.first > end) break;
    step();
  }
  now_ = std::max(now_, end);
}

}  // namespace jogak
