// SPDX-License-Identifier: Apache-2.0
//
// Virtual time: order, moments, and what a task may do to the loop that runs it.
#include "base/sim_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jogak {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SimLoopTest : public testing::Test {
 protected:
  Loop::Task say(std::string word) {
    return [this, word] { said_.push_back(word + "@" + std::to_string(loop_.now())); };
  }

  SimLoop loop_{1000};
  std::vector<std::string> said_;
};

TEST_F(SimLoopTest, StartsAtTheGivenMoment) {
  EXPECT_EQ(loop_.now(), 1000);
  EXPECT_TRUE(loop_.idle());
  EXPECT_FALSE(loop_.step());
  EXPECT_EQ(SimLoop().now() % kSecondInUs, 0);
}

TEST_F(SimLoopTest, PostedTasksRunInOrderAtThePresent) {
  loop_.post(say("a"));
  loop_.post(say("b"));
  EXPECT_FALSE(loop_.idle());
  EXPECT_THAT(said_, IsEmpty());
  loop_.run_ready();
  EXPECT_THAT(said_, ElementsAre("a@1000", "b@1000"));
  EXPECT_TRUE(loop_.idle());
}

TEST_F(SimLoopTest, TimersFireInOrderOfTimeThenAge) {
  loop_.at(1200, say("late"));
  loop_.at(1100, say("first"));
  loop_.at(1100, say("second"));
  loop_.after(150, say("between"));
  loop_.run_until(2000);
  EXPECT_THAT(said_, ElementsAre("first@1100", "second@1100", "between@1150", "late@1200"));
  EXPECT_EQ(loop_.now(), 2000);
}

TEST_F(SimLoopTest, ATimerOfThePastFiresNow) {
  loop_.at(5, say("past"));
  loop_.run_ready();
  EXPECT_THAT(said_, ElementsAre("past@1000"));
}

TEST_F(SimLoopTest, TimersDueComeBehindTasksPostedBefore) {
  loop_.post(say("posted"));
  loop_.at(1000, say("timer"));
  loop_.post(say("posted later"));
  loop_.run_ready();
  EXPECT_THAT(said_, ElementsAre("posted@1000", "posted later@1000", "timer@1000"));
}

TEST_F(SimLoopTest, RunReadyLeavesLaterTimers) {
  loop_.after(1, say("soon"));
  loop_.post(say("now"));
  loop_.run_ready();
  EXPECT_THAT(said_, ElementsAre("now@1000"));
  EXPECT_FALSE(loop_.idle());
}

TEST_F(SimLoopTest, RunUntilIncludesItsEnd) {
  loop_.at(1500, say("at the end"));
  loop_.at(1501, say("behind it"));
  loop_.run_until(1500);
  EXPECT_THAT(said_, ElementsAre("at the end@1500"));
  loop_.run_for(1);
  EXPECT_EQ(said_.size(), 2U);
}

TEST_F(SimLoopTest, TimeNeverGoesBack) {
  loop_.run_until(1500);
  loop_.run_until(1200);
  EXPECT_EQ(loop_.now(), 1500);
}

TEST_F(SimLoopTest, ACancelledTimerDoesNotFire) {
  const TimerId kept = loop_.after(10, say("kept"));
  const TimerId gone = loop_.after(10, say("gone"));
  EXPECT_NE(kept, gone);
  EXPECT_NE(kept, 0U);
  loop_.cancel(gone);
  loop_.cancel(gone);
  loop_.cancel(0);
  loop_.run_for(10);
  EXPECT_THAT(said_, ElementsAre("kept@1010"));
  loop_.cancel(kept);  // fired already
}

TEST_F(SimLoopTest, ATimerMayCancelAnotherOfTheSameMoment) {
  TimerId second = 0;
  loop_.after(5, [&] { loop_.cancel(second); });
  second = loop_.after(5, say("cancelled"));
  loop_.after(5, say("third"));
  loop_.run_for(10);
  EXPECT_THAT(said_, ElementsAre("third@1005"));
}

TEST_F(SimLoopTest, TasksMayPostAndCancel) {
  const TimerId later = loop_.after(5, say("cancelled"));
  loop_.after(1, [this, later] {
    loop_.cancel(later);
    loop_.post(say("posted"));
    loop_.after(2, say("timer"));
  });
  loop_.run_for(100);
  EXPECT_THAT(said_, ElementsAre("posted@1001", "timer@1003"));
}

TEST_F(SimLoopTest, ATaskThatPostsItselfAgainGivesWayToOthers) {
  int rounds = 0;
  std::function<void()> again = [&] {
    if (++rounds < 3) loop_.post(again);
  };
  loop_.post(again);
  loop_.post(say("other"));
  loop_.step();
  loop_.step();
  EXPECT_THAT(said_, ElementsAre("other@1000"));
  loop_.run_ready();
  EXPECT_EQ(rounds, 3);
}

TEST_F(SimLoopTest, StepMovesTimeToTheNextTimer) {
  loop_.after(7, say("x"));
  loop_.after(9, say("y"));
  EXPECT_TRUE(loop_.step());
  EXPECT_EQ(loop_.now(), 1007);
  EXPECT_TRUE(loop_.step());
  EXPECT_FALSE(loop_.step());
  EXPECT_EQ(loop_.now(), 1009);
}

TEST_F(SimLoopTest, ARepeatedTimerKeepsItsPace) {
  std::function<void()> tick = [&] {
    say("tick")();
    loop_.after(10, tick);
  };
  loop_.after(10, tick);
  loop_.run_for(35);
  EXPECT_THAT(said_, ElementsAre("tick@1010", "tick@1020", "tick@1030"));
}

}  // namespace
}  // namespace jogak
