// SPDX-License-Identifier: Apache-2.0
//
// The one thread that owns a server's state, and its clock. Code written against Loop runs
// unchanged on a real clock (net/epoll_loop.h) and under virtual time (base/sim_loop.h).
#pragma once

#include <cstdint>
#include <functional>

namespace jogak {

// Microseconds since 1970, UTC. On one loop it never goes back.
using TimeUs = std::int64_t;
constexpr TimeUs kMsInUs = 1'000;
constexpr TimeUs kSecondInUs = 1'000'000;

using TimerId = std::uint64_t;  // 0 is no timer

class Loop {
 public:
  using Task = std::function<void()>;

  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  virtual ~Loop() = default;

  virtual TimeUs now() const = 0;
  // Runs the task on the loop, after what is running now and in the order of the calls. May be
  // called from any thread of a real loop.
  virtual void post(Task task) = 0;
  // Runs the task once the clock shows `when` (at once when that has passed). Timers of equal
  // deadlines fire in the order they were made. On the loop's thread only.
  virtual TimerId at(TimeUs when, Task task) = 0;
  TimerId after(TimeUs delay, Task task) { return at(now() + delay, std::move(task)); }
  // Forgets a timer; nothing happens when it has fired or is 0.
  virtual void cancel(TimerId timer) = 0;
};

}  // namespace jogak
