// SPDX-License-Identifier: Apache-2.0
//
// The loop of one process among several under one virtual clock: it may stall while time goes on,
// die between any two steps, and its wall clock may differ from the server's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "base/loop.h"

namespace jogak::livesim {

class ProcessLoop : public Loop {
 public:
  // `world` outlives it. The process reads `clock_offset` more than the world's clock shows.
  ProcessLoop(Loop& world, TimeUs clock_offset);
  ~ProcessLoop() override;

  TimeUs now() const override;
  void post(Task task) override;
  TimerId at(TimeUs when, Task task) override;
  void cancel(TimerId timer) override;

  // No task runs for that long; what comes due meanwhile runs afterwards, in order.
  void stall_for(TimeUs span);
  bool is_stalled() const;
  // No task runs ever again.
  void kill();
  bool is_dead() const;
  // Dies at that many steps from now: a task or a request sent is one. `on_dead` is called by the
  // world, when nothing of the process runs.
  void kill_after(std::uint64_t steps, std::function<void()> on_dead);
  // Counts a step; false: the process is dead, and what it wanted to do does not happen.
  bool step();
  std::uint64_t steps() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the world's tasks of a process that is gone find it dead
};

}  // namespace jogak::livesim
