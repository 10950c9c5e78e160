// SPDX-License-Identifier: Apache-2.0
//
// See worker.h. All of a worker but thread_main lives on the loop's thread.
#include "nvml/worker.h"

#include <algorithm>

namespace jogak::nvml {

Worker::Worker(Loop& loop, std::unique_ptr<GpuSource> source, Options options)
    : loop_(loop), options_(options), state_(std::make_shared<State>()) {
  state_->source = std::move(source);
  state_->worker = this;
  state_->loop = &loop;
  if (options_.has_thread) thread_ = std::thread([state = state_] { thread_main(state); });
}

Worker::~Worker() {
  *is_alive_ = false;
  loop_.cancel(timer_);
  loop_.cancel(beat_timer_);
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_stopping = true;
    state_->worker = nullptr;
    state_->jobs.clear();
    state_->changed.notify_all();
  }
  if (!thread_.joinable()) return;
  if (is_hung_) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Worker::run_here(const Job& job) {
  loop_.post([alive = is_alive_, deliver = job.work(*state_->source)] {
    if (*alive) deliver();
  });
}

void Worker::add(Job job) {
  if (!options_.has_thread) return run_here(job);
  if (is_hung_ || waiting_.size() >= options_.jobs_max) {
    Error error{.code = is_hung_ ? Errc::Timeout : Errc::Unavailable,
                .what = is_hung_ ? "an earlier call to NVML hangs" : "too many calls to NVML wait"};
    loop_.post([alive = is_alive_, give_up = std::move(job.give_up), error = std::move(error)] {
      if (*alive) give_up(error);
    });
    return;
  }
  job.number = next_number_++;
  waiting_.push_back({.number = job.number, .limit = job.limit, .give_up = job.give_up});
  if (waiting_.size() == 1) watch();
  const std::scoped_lock lock(state_->mutex);
  state_->jobs.push_back(std::move(job));
  state_->changed.notify_all();
}

void Worker::each(TimeUs every, Beat beat) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->beat = std::move(beat);
    state_->every = every;
    state_->next_beat = std::chrono::steady_clock::now();
    state_->changed.notify_all();
  }
  if (!options_.has_thread) beat_here();
}

void Worker::beat_here() {
  if (auto deliver = state_->beat(*state_->source)) {
    loop_.post([alive = is_alive_, deliver = std::move(deliver)] {
      if (*alive) deliver();
    });
  }
  beat_timer_ = loop_.after(state_->every, [this] { beat_here(); });
}

// The oldest job is the one that runs, or waits for a beat that began before it came.
void Worker::watch() {
  loop_.cancel(timer_);
  std::uint64_t beat = 0;
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->is_beating) beat = state_->beats;
  }
  timer_ = loop_.after(waiting_.front().limit, [this, beat, number = waiting_.front().number] {
    if (waiting_.empty() || waiting_.front().number != number) return;
    {
      const std::scoped_lock lock(state_->mutex);
      state_->has_beat_hung = state_->is_beating && state_->beats == beat;
      // Not begun, or done and its answer on the way: the machine is slow, the call does not hang.
      const bool is_running = state_->running == number || state_->has_beat_hung;
      // What waits behind a hanging call will not be run: its callers get to know now.
      if (is_running) state_->jobs.clear();
      is_hung_ = is_running;
    }
    if (!is_hung_) return watch();
    const auto given_up = std::exchange(waiting_, {});
    for (const Waiting& waiting : given_up) {
      waiting.give_up({.code = Errc::Timeout, .what = "a call to NVML hangs"});
    }
  });
}

void Worker::finished(std::uint64_t number, const std::function<void()>& deliver) {
  is_hung_ = false;
  // An answer that came too late was given up before.
  if (waiting_.empty() || waiting_.front().number != number) return;
  waiting_.pop_front();
  loop_.cancel(timer_);
  timer_ = 0;
  if (!waiting_.empty()) watch();
  deliver();
}

void Worker::thread_main(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  const auto has_job = [&] { return state->is_stopping || !state->jobs.empty(); };
  // A thread that was left behind finds no worker when its call comes back.
  while (state->worker != nullptr) {
    bool is_job = true;
    if (state->beat) {
      is_job = state->changed.wait_until(lock, state->next_beat, has_job);
    } else {
      state->changed.wait(lock, [&] { return has_job() || state->beat; });
      is_job = has_job();
    }
    if (state->is_stopping) return;
    if (is_job) {
      run_job(*state, lock);
    } else {
      run_beat(*state, lock);
    }
  }
}

void Worker::run_job(State& state, std::unique_lock<std::mutex>& lock) {
  Job job = std::move(state.jobs.front());
  state.jobs.pop_front();
  state.running = job.number;
  lock.unlock();
  std::function<void()> deliver = job.work(*state.source);
  lock.lock();
  state.running = 0;
  // The loop outlives the worker, but not a thread that was left behind.
  Worker* const worker = state.worker;
  if (worker == nullptr) return;
  state.loop->post(
      [worker, alive = worker->is_alive_, number = job.number, deliver = std::move(deliver)] {
        if (*alive) worker->finished(number, deliver);
      });
}

void Worker::run_beat(State& state, std::unique_lock<std::mutex>& lock) {
  ++state.beats;
  state.is_beating = true;
  lock.unlock();
  std::function<void()> deliver = state.beat(*state.source);
  lock.lock();
  state.is_beating = false;
  state.next_beat = std::chrono::steady_clock::now() + std::chrono::microseconds(state.every);
  Worker* const worker = state.worker;
  if (worker == nullptr) return;
  const bool is_back = std::exchange(state.has_beat_hung, false);
  if (!deliver && !is_back) return;
  state.loop->post([worker, alive = worker->is_alive_, is_back, deliver = std::move(deliver)] {
    if (!*alive) return;
    if (is_back) worker->is_hung_ = false;
    if (deliver) deliver();
  });
}

}  // namespace jogak::nvml
