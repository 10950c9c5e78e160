// SPDX-License-Identifier: Apache-2.0
//
// The NVML thread with a loop by hand: order, a call that hangs, too many calls.
#include "nvml/worker.h"

#include <future>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

// A loop whose clock the test moves, and whose posts other threads may make.
class HandLoop final : public Loop {
 public:
  TimeUs now() const override { return now_; }
  void post(Task task) override {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  TimerId at(TimeUs when, Task task) override {
    timers_[++last_] = {when, std::move(task)};
    return last_;
  }
  void cancel(TimerId timer) override { timers_.erase(timer); }

  // Runs posted tasks until `is_done`; waits for those of other threads.
  void run_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }
  void advance(TimeUs by) {
    now_ += by;
    const auto timers = timers_;
    for (const auto& [id, timer] : timers) {
      if (timer.first <= now_ && timers_.erase(id) > 0) timer.second();
    }
  }

 private:
  TimeUs now_ = 0;
  TimerId last_ = 0;
  std::map<TimerId, std::pair<TimeUs, Task>> timers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
};

TEST(Worker, WithoutAThreadTheJobRunsHereAndTheAnswerIsPosted) {
  testing::MadeMachine machine("identity: t\ngpus: [{model: T4}]\n");
  HandLoop loop;
  Worker worker(loop, std::move(machine.source), {.has_thread = false});
  int jobs = 0;
  int answers = 0;
  worker.run<std::size_t>(
      [&](GpuSource& source) -> Result<std::size_t> {
        ++jobs;
        JOGAK_TRY(const NodeFacts facts, source.facts());
        return facts.gpus.size();
      },
      [&](const Result<std::size_t>& gpus) {
        ASSERT_TRUE(gpus);
        EXPECT_EQ(*gpus, 1U);
        ++answers;
      });
  EXPECT_EQ(jobs, 1);
  EXPECT_EQ(answers, 0);
  loop.run_until([&] { return answers == 1; });
}

TEST(Worker, WithoutAThreadNoAnswerComesAfterTheEnd) {
  testing::MadeMachine machine("identity: t\ngpus: [{model: T4}]\n");
  HandLoop loop;
  int answers = 0;
  {
    Worker worker(loop, std::move(machine.source), {.has_thread = false});
    worker.run<bool>([](GpuSource&) { return Result<bool>(true); },
                     [&](const Result<bool>&) { ++answers; });
  }
  bool is_last = false;
  loop.post([&] { is_last = true; });
  loop.run_until([&] { return is_last; });
  EXPECT_EQ(answers, 0);
}

TEST(Worker, JobsRunInOrderAndAnswerOnTheLoop) {
  HandLoop loop;
  testing::MadeMachine made("gpus:\n- {model: T4}\n");
  Worker worker(loop, std::move(made.source), {});
  std::vector<int> order;
  worker.run<NodeFacts>([](GpuSource& source) { return source.facts(); },
                        [&](Result<NodeFacts> node) {
                          EXPECT_EQ(node->gpus.size(), 1U);
                          order.push_back(1);
                        });
  worker.run<int>([](GpuSource&) { return Result<int>(5); },
                  [&](Result<int> five) { order.push_back(*five); });
  loop.run_until([&] { return order.size() == 2; });
  EXPECT_EQ(order, (std::vector{1, 5}));
}

TEST(Worker, AHangingCallIsGivenUpAndComesBack) {
  HandLoop loop;
  testing::MadeMachine made("gpus:\n- {model: T4}\n");
  std::promise<void> begun;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  Worker worker(loop, std::move(made.source), {.call_limit = kSecondInUs});
  std::vector<Errc> errors;
  const auto note = [&](Result<int> answer) {
    if (!answer) errors.push_back(answer.error().code);
  };
  worker.run<int>(
      [&begun, released](GpuSource&) {
        begun.set_value();
        released.wait();
        return Result<int>(1);
      },
      note);
  worker.run<int>([](GpuSource&) { return Result<int>(2); }, note);
  begun.get_future().wait();
  loop.advance(kSecondInUs);
  EXPECT_TRUE(worker.is_hung());
  EXPECT_EQ(errors, (std::vector{Errc::Timeout, Errc::Timeout}));
  worker.run<int>([](GpuSource&) { return Result<int>(3); }, note);
  loop.run_until([&] { return errors.size() == 3; });
  release.set_value();
  loop.run_until([&] { return !worker.is_hung(); });
  int answered = 0;
  worker.run<int>([](GpuSource&) { return Result<int>(4); },
                  [&](Result<int> answer) { answered = *answer; });
  loop.run_until([&] { return answered == 4; });
}

TEST(Worker, ABeatWakesTheLoopOnlyWithNews) {
  HandLoop loop;
  testing::MadeMachine made("gpus:\n- {model: T4}\n");
  Worker worker(loop, std::move(made.source), {});
  int beats = 0;  // on the thread
  std::vector<int> told;
  worker.each(kMsInUs, [&](GpuSource&) -> std::function<void()> {
    const int beat = ++beats;
    if (beat % 3 != 0) return nullptr;
    return [&told, beat] { told.push_back(beat); };
  });
  int answered = 0;
  worker.run<int>([](GpuSource&) { return Result<int>(4); },
                  [&](Result<int> answer) { answered = *answer; });
  loop.run_until([&] { return told.size() == 2; });
  EXPECT_EQ(told, (std::vector{3, 6}));
  loop.run_until([&] { return answered == 4; });
}

TEST(Worker, WithoutAThreadABeatIsATimer) {
  testing::MadeMachine machine("identity: t\ngpus: [{model: T4}]\n");
  HandLoop loop;
  int beats = 0;
  int told = 0;
  {
    Worker worker(loop, std::move(machine.source), {.has_thread = false});
    worker.each(10, [&](GpuSource&) -> std::function<void()> {
      if (++beats != 2) return nullptr;
      return [&told] { ++told; };
    });
    EXPECT_EQ(beats, 1);
    loop.advance(10);
    EXPECT_EQ(beats, 2);
    EXPECT_EQ(told, 0);
    loop.run_until([&] { return told == 1; });
  }
  loop.advance(10);
  EXPECT_EQ(beats, 2);
}

TEST(Worker, ABeatThatHangsIsSeenByTheJobBehindIt) {
  HandLoop loop;
  testing::MadeMachine made("gpus:\n- {model: T4}\n");
  std::promise<void> begun;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  Worker worker(loop, std::move(made.source), {.call_limit = kSecondInUs});
  bool is_first = true;
  worker.each(3600 * kSecondInUs, [&, released](GpuSource&) -> std::function<void()> {
    if (std::exchange(is_first, false)) begun.set_value();
    released.wait();
    return nullptr;
  });
  begun.get_future().wait();
  std::vector<Errc> errors;
  worker.run<int>([](GpuSource&) { return Result<int>(1); },
                  [&](Result<int> answer) { errors.push_back(answer.error().code); });
  loop.advance(kSecondInUs);
  EXPECT_TRUE(worker.is_hung());
  EXPECT_EQ(errors, (std::vector{Errc::Timeout}));
  release.set_value();
  loop.run_until([&] { return !worker.is_hung(); });
  int answered = 0;
  worker.run<int>([](GpuSource&) { return Result<int>(4); },
                  [&](Result<int> answer) { answered = *answer; });
  loop.run_until([&] { return answered == 4; });
}

TEST(Worker, TooManyJobsAreRefused) {
  HandLoop loop;
  testing::MadeMachine made("gpus:\n- {model: T4}\n");
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  Worker worker(loop, std::move(made.source), {.jobs_max = 1});
  int done = 0;
  Errc refused = Errc::Invalid;
  worker.run<int>(
      [released](GpuSource&) {
        released.wait();
        return Result<int>(1);
      },
      [&](Result<int>) { ++done; });
  worker.run<int>([](GpuSource&) { return Result<int>(2); },
                  [&](Result<int> answer) { refused = answer.error().code; });
  loop.run_until([&] { return refused == Errc::Unavailable; });
  release.set_value();
  loop.run_until([&] { return done == 1; });
}

}  // namespace
}  // namespace jogak::nvml
