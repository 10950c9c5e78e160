// SPDX-License-Identifier: Apache-2.0
//
// Every task goes through the world's loop, so that the order of all processes is that of one run.
#include "test/livesim/process_loop.h"

#include <algorithm>
#include <utility>

namespace jogak::livesim {

struct ProcessLoop::State : std::enable_shared_from_this<State> {
  State(Loop& of, TimeUs clock_offset) : world(of), offset(clock_offset) {}

  struct Timer {
    Task task;
    TimerId of_world = 0;
  };

  void run(Task task);
  void fire(TimerId timer);
  void resume();
  void die();
  bool step();

  Loop& world;
  TimeUs offset;
  TimerId next_timer = 1;
  std::map<TimerId, Timer> timers;
  std::deque<Task> backlog;  // came due during a stall
  TimeUs stalled_until = 0;
  bool is_dead = false;
  std::uint64_t steps = 0;
  std::uint64_t dies_at = UINT64_MAX;
  std::function<void()> on_dead;
};

void ProcessLoop::State::run(Task task) {
  if (is_dead) return;
  if (world.now() < stalled_until || !backlog.empty()) {
    backlog.push_back(std::move(task));
    return;
  }
  if (step()) task();
}

void ProcessLoop::State::resume() {
  if (is_dead || world.now() < stalled_until || backlog.empty()) return;
  const Task task = std::move(backlog.front());
  backlog.pop_front();
  if (!backlog.empty()) {
    world.post([self = shared_from_this()] { self->resume(); });
  }
  if (step()) task();
}

void ProcessLoop::State::fire(TimerId timer) {
  run([self = shared_from_this(), timer] {
    const auto it = self->timers.find(timer);  // cancelled meanwhile: gone
    if (it == self->timers.end()) return;
    const Task task = std::move(it->second.task);
    self->timers.erase(it);
    task();
  });
}

bool ProcessLoop::State::step() {
  if (is_dead) return false;
  if (++steps >= dies_at) die();
  return !is_dead;
}

void ProcessLoop::State::die() {
  if (std::exchange(is_dead, true)) return;
  for (const auto& [id, timer] : timers) world.cancel(timer.of_world);
  // what the tasks hold goes when the process goes: one of them may be running
  if (on_dead) {
    world.post([self = shared_from_this()] {
      const auto callback = std::exchange(self->on_dead, nullptr);
      if (callback) callback();
    });
  }
}

ProcessLoop::ProcessLoop(Loop& world, TimeUs clock_offset)
    : state_(std::make_shared<State>(world, clock_offset)) {}

ProcessLoop::~ProcessLoop() {
  state_->on_dead = nullptr;
  state_->die();
  state_->timers.clear();
  state_->backlog.clear();
}

TimeUs ProcessLoop::now() const { return state_->world.now() + state_->offset; }

void ProcessLoop::post(Task task) {
  if (state_->is_dead) return;
  state_->world.post(
      [state = state_, task = std::move(task)]() mutable { state->run(std::move(task)); });
}

TimerId ProcessLoop::at(TimeUs when, Task task) {
  const TimerId id = state_->next_timer++;
  if (state_->is_dead) return id;
  const TimerId of_world =
      state_->world.at(when - state_->offset, [state = state_, id] { state->fire(id); });
  state_->timers.emplace(id, State::Timer{.task = std::move(task), .of_world = of_world});
  return id;
}

void ProcessLoop::cancel(TimerId timer) {
  const auto it = state_->timers.find(timer);
  if (it == state_->timers.end()) return;
  state_->world.cancel(it->second.of_world);
  state_->timers.erase(it);
}

void ProcessLoop::stall_for(TimeUs span) {
  state_->stalled_until = std::max(state_->stalled_until, state_->world.now() + span);
  state_->world.at(state_->stalled_until, [state = state_] { state->resume(); });
}

bool ProcessLoop::is_stalled() const { return state_->world.now() < state_->stalled_until; }
void ProcessLoop::kill() { state_->die(); }
bool ProcessLoop::is_dead() const { return state_->is_dead; }

void ProcessLoop::kill_after(std::uint64_t steps, std::function<void()> on_dead) {
  state_->on_dead = std::move(on_dead);
  state_->dies_at = state_->steps + steps;
}

bool ProcessLoop::step() { return state_->step(); }
std::uint64_t ProcessLoop::steps() const { return state_->steps; }

}  // namespace jogak::livesim
