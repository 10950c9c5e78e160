// SPDX-License-Identifier: Apache-2.0
//
// The NVML thread: runs jobs on a GpuSource one after the other and posts their answers to a loop.
// A call into a broken driver cannot be cancelled, so a job that takes longer than the limit is
// given up: its answer becomes Errc::Timeout at once, the thread counts as hung until it comes
// back, and jobs meanwhile are answered with Timeout, too.
//
// What is asked again and again and has mostly no answer (events) is a beat: the thread asks by
// itself between jobs, and the loop is woken only when there is something to tell.
//
// Simulated machines need no thread: without one a job runs where it is asked for, and its answer
// is posted all the same, so that callers see one order of things.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/loop.h"
#include "nvml/gpu_source.h"

namespace jogak::nvml {

class Worker {
 public:
  struct Options {
    TimeUs call_limit = 30 * kSecondInUs;  // of a job; poll_events counts its wait
    std::size_t jobs_max = 256;            // waiting; more are answered Unavailable
    bool has_thread = true;  // else jobs run on the loop's; for sources that never wait
  };

  // The loop must outlive the worker.
  Worker(Loop& loop, std::unique_ptr<GpuSource> source, Options options);
  // Waits for the running job unless it hangs; then the thread is left alone with the source.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `job` runs on the NVML thread, `done` on the loop with its answer, never within this call. On
  // the loop's thread. `limit`: of a job of many calls; 0: as the options say.
  template <class T>
  void run(std::function<Result<T>(GpuSource&)> job, std::function<void(Result<T>)> done,
           TimeUs limit = 0);

  // `beat` runs on the NVML thread now and `every` after it was done, while no job waits. What it
  // gives is run on the loop, if it gives anything. Once in a worker's life, on the loop's thread.
  using Beat = std::function<std::function<void()>(GpuSource&)>;
  void each(TimeUs every, Beat beat);

  bool is_hung() const { return is_hung_; }  // on the loop's thread

 private:
  struct Job {
    std::uint64_t number = 0;
    TimeUs limit = 0;
    std::function<std::function<void()>(GpuSource&)> work;  // gives what to call on the loop
    std::function<void(Error)> give_up;
  };
  struct Waiting {
    std::uint64_t number = 0;
    TimeUs limit = 0;
    std::function<void(Error)> give_up;
  };
  // Shared with the thread, which may outlive the worker when it hangs.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> jobs;
    std::uint64_t running = 0;  // number of the job that runs, 0: none
    Beat beat;                  // null: none
    TimeUs every = 0;
    std::chrono::steady_clock::time_point next_beat;
    std::uint64_t beats = 0;  // begun
    bool is_beating = false;
    bool has_beat_hung = false;  // it was given up and has not come back
    bool is_stopping = false;
    std::unique_ptr<GpuSource> source;
    Worker* worker = nullptr;  // null once it is gone
    Loop* loop = nullptr;
  };
  static void thread_main(const std::shared_ptr<State>& state);
  static void run_beat(State& state, std::unique_lock<std::mutex>& lock);
  static void run_job(State& state, std::unique_lock<std::mutex>& lock);
  void beat_here();
  void add(Job job);
  void run_here(const Job& job);
  void watch();
  void finished(std::uint64_t number, const std::function<void()>& deliver);

  Loop& loop_;
  Options options_;
  std::shared_ptr<State> state_;
  // Answers posted but not yet run find out here that the worker is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
  std::thread thread_;
  std::uint64_t next_number_ = 1;
  std::deque<Waiting> waiting_;
  TimerId timer_ = 0, beat_timer_ = 0;
  bool is_hung_ = false;
};

template <class T>
void Worker::run(std::function<Result<T>(GpuSource&)> job, std::function<void(Result<T>)> done,
                 TimeUs limit) {
  const auto shared = std::make_shared<std::function<void(Result<T>)>>(std::move(done));
  add({.number = 0,
       .limit = limit > 0 ? limit : options_.call_limit,
       .work = [job = std::move(job), shared](GpuSource& source) -> std::function<void()> {
         auto answer = std::make_shared<Result<T>>(job(source));
         return [answer, shared] { (*shared)(std::move(*answer)); };
       },
       .give_up = [shared](Error error) { (*shared)(std::unexpected(std::move(error))); }});
}

}  // namespace jogak::nvml
