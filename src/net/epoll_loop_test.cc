// SPDX-License-Identifier: Apache-2.0
//
// The real loop: order of tasks and timers, wake-ups from other threads, descriptors.
#include "net/epoll_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/testing/loop_thread.h"

namespace jogak::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EpollLoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK), 0); }
  void TearDown() override {
    for (const int fd : pipe_) ::close(fd);
  }
  Loop::Task say(std::string word) {
    return [this, word] { said_.push_back(word); };
  }
  void fill() const { ASSERT_EQ(::write(pipe_[1], "x", 1), 1); }

  EpollLoop loop_;
  std::vector<std::string> said_;
  std::array<int, 2> pipe_{};
};

TEST_F(EpollLoopTest, ShowsTheTimeOfDayAndNeverGoesBack) {
  const TimeUs wall = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  TimeUs last = loop_.now();
  EXPECT_NEAR(static_cast<double>(last), static_cast<double>(wall), 5e6);
  for (int i = 0; i < 10'000; ++i) {
    const TimeUs next = loop_.now();
    ASSERT_GE(next, last);
    last = next;
  }
}

TEST(EpollLoopClock, OutlivesTheLoop) {
  auto loop = std::make_unique<EpollLoop>();
  const auto clock = loop->clock();
  const TimeUs before = loop->now();
  const TimeUs between = clock();
  EXPECT_LE(before, between);
  EXPECT_LE(between, loop->now());
  loop.reset();
  EXPECT_LE(between, clock());
}

TEST_F(EpollLoopTest, RunsTasksInOrderUntilStopped) {
  loop_.post(say("a"));
  loop_.post(say("b"));
  loop_.post([this] { loop_.stop(); });
  loop_.post(say("c"));  // of the same turn
  loop_.run();
  EXPECT_THAT(said_, ElementsAre("a", "b", "c"));
}

TEST_F(EpollLoopTest, ATaskPostedByATaskWaitsForTheNextTurn) {
  loop_.post([this] { loop_.post(say("inner")); });
  loop_.post(say("outer"));
  loop_.turn(0);
  EXPECT_THAT(said_, ElementsAre("outer"));
  loop_.turn(kSecondInUs);  // does not wait
  EXPECT_THAT(said_, ElementsAre("outer", "inner"));
}

TEST_F(EpollLoopTest, TimersFireByDeadlineThenAgeAndNotBefore) {
  const TimeUs start = loop_.now();
  loop_.at(start + 3000, say("late"));
  loop_.at(start + 1000, say("first"));
  loop_.at(start + 1000, say("second"));
  loop_.at(start + 3000, [this] { loop_.stop(); });
  loop_.at(1, say("past"));
  loop_.run();
  EXPECT_THAT(said_, ElementsAre("past", "first", "second", "late"));
  EXPECT_GE(loop_.now(), start + 3000);
}

TEST_F(EpollLoopTest, ATimerMayCancelAnotherOfTheSameMoment) {
  const TimeUs due = loop_.now();
  TimerId second = 0;
  loop_.at(due, [&] { loop_.cancel(second); });
  second = loop_.at(due, say("cancelled"));
  loop_.at(due, say("third"));
  loop_.turn(0);
  EXPECT_THAT(said_, ElementsAre("third"));
}

TEST_F(EpollLoopTest, ACancelledTimerIsForgotten) {
  const TimerId timer = loop_.after(1000, say("cancelled"));
  loop_.cancel(timer);
  loop_.cancel(timer);
  loop_.cancel(0);
  loop_.after(2000, [this] { loop_.stop(); });
  loop_.run();
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(EpollLoopTest, OtherThreadsPostInTheirOrder) {
  constexpr int kThreads = 4, kTasks = 5000;
  std::array<std::vector<int>, kThreads> seen;
  LoopThread loop;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kTasks; ++i) loop.loop().post([&seen, t, i] { seen[t].push_back(i); });
      });
    }
  }
  loop.call([] {});
  for (const auto& numbers : seen) {
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kTasks));
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  }
}

TEST_F(EpollLoopTest, StopsFromASignalHandler) {
  static EpollLoop* loop = nullptr;
  loop = &loop_;
  struct sigaction action{};
  action.sa_handler = [](int) { loop->stop(); };
  struct sigaction before{};
  ::sigaction(SIGUSR1, &action, &before);
  loop_.post([] { ::raise(SIGUSR1); });
  loop_.run();  // ends
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(EpollLoopTest, RunsAgainAfterAStop) {
  loop_.post([this] { loop_.stop(); });
  loop_.run();
  loop_.post(say("again"));
  loop_.post([this] { loop_.stop(); });
  loop_.run();
  EXPECT_THAT(said_, ElementsAre("again"));
}

TEST_F(EpollLoopTest, ADescriptorCallsWhileItIsReady) {
  int calls = 0;
  loop_.add_fd(pipe_[0], EPOLLIN, [&](std::uint32_t events) {
    EXPECT_EQ(events, static_cast<std::uint32_t>(EPOLLIN));
    ++calls;
  });
  loop_.turn(0);
  EXPECT_EQ(calls, 0);
  fill();
  loop_.turn(0);
  loop_.turn(0);  // nobody has read it
  EXPECT_EQ(calls, 2);
  loop_.change_fd(pipe_[0], 0);
  loop_.turn(0);
  EXPECT_EQ(calls, 2);
  loop_.change_fd(pipe_[0], EPOLLIN);
  loop_.turn(0);
  EXPECT_EQ(calls, 3);
  loop_.remove_fd(pipe_[0]);
  loop_.turn(0);
  EXPECT_EQ(calls, 3);
}

TEST_F(EpollLoopTest, ARemovedDescriptorIsNotCalledInTheSameTurn) {
  std::array<int, 2> other{};
  ASSERT_EQ(::pipe2(other.data(), O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_EQ(::write(other[1], "x", 1), 1);
  fill();
  int calls = 0;
  const auto remove_both = [&](std::uint32_t) {
    ++calls;
    loop_.remove_fd(pipe_[0]);
    loop_.remove_fd(other[0]);
  };
  loop_.add_fd(pipe_[0], EPOLLIN, remove_both);
  loop_.add_fd(other[0], EPOLLIN, remove_both);
  loop_.turn(0);
  EXPECT_EQ(calls, 1);
  loop_.remove_fd(other[0]);  // nothing happens
  for (const int fd : other) ::close(fd);
}

TEST_F(EpollLoopTest, TimersAndTasksComeBehindDescriptors) {
  fill();
  loop_.post(say("task"));
  loop_.at(0, say("timer"));
  loop_.add_fd(pipe_[0], EPOLLIN, [&](std::uint32_t) {
    said_.emplace_back("fd");
    loop_.remove_fd(pipe_[0]);
  });
  loop_.turn(0);
  EXPECT_THAT(said_, ElementsAre("fd", "timer", "task"));
}

TEST_F(EpollLoopTest, ATaskIsDestroyedOnceItHasRun) {
  const auto held = std::make_shared<int>(0);
  long after_first = 0;
  loop_.post([held] {});
  loop_.post([&] { after_first = held.use_count(); });
  loop_.turn(0);
  EXPECT_EQ(after_first, 1);
}

}  // namespace
}  // namespace jogak::net
