// SPDX-License-Identifier: Apache-2.0
//
// A daemon's life as a list of steps: what was to be done, and how it went.
#include "agent/mps/machine.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = MpsStep::Kind;

MpsDaemon daemon_of(int percent, std::optional<int> mode = 0) {
  return {.resource = "nvidia.com/gpu",
          .gpus = {{.uuid = "GPU-0", .index = 0, .limit_mib = 100, .compute_mode = mode}},
          .thread_percent = percent};
}

class MpsMachineTest : public ::testing::Test {
 protected:
  std::string text(const MpsStep& step) {
    switch (step.kind) {
      case Kind::Ask:
        return "ask";
      case Kind::Tell:
        return "tell " + step.command;
      case Kind::Modes:
        return "modes";
      case Kind::Start:
        return "start";
      case Kind::End:
        return "end";
      case Kind::Wait:
        return "wait " + std::to_string(step.wait / kMsInUs);
    }
    return "?";
  }
  // Time passes only in waits.
  std::string done(const Result<std::string>& outcome) {
    if (step_.kind == Kind::Wait) now_ += step_.wait;
    step_ = machine_.on_done(outcome, now_);
    return text(step_);
  }
  std::string good(const std::string& answer = "") { return done(answer); }
  std::string nobody() { return done(fail(Errc::Unavailable, "nobody there")); }
  std::string silent() { return done(fail(Errc::Timeout, "silent")); }
  // From a question that nobody answered.
  void start() {
    EXPECT_EQ(nobody(), "modes");
    EXPECT_EQ(good(), "start");
    setup();
  }
  void setup() {
    EXPECT_EQ(good(), "tell set_default_active_thread_percentage 25");
    EXPECT_EQ(good(), "tell set_default_device_pinned_mem_limit 0 100M");
    EXPECT_FALSE(machine_.is_ready());
    EXPECT_EQ(good(), "wait 5000");
    EXPECT_TRUE(machine_.is_ready());
  }
  void begin() {
    step_ = machine_.begin();
    EXPECT_EQ(text(step_), "ask");
  }

  TimeUs now_ = 1000 * kSecondInUs;
  MpsStep step_;
  MpsMachine machine_{daemon_of(25), {}, true};
};

TEST_F(MpsMachineTest, WhereNobodyAnswersOneIsStarted) {
  begin();
  EXPECT_FALSE(machine_.was_asked());
  start();
  EXPECT_EQ(machine_.starts(), 1U);
  EXPECT_EQ(machine_.problem(), "");
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("25.0\n"), "wait 5000");
}

TEST_F(MpsMachineTest, OneThatAnswersIsTakenOver) {
  begin();
  EXPECT_EQ(good("100.0"), "modes");
  setup();
  EXPECT_EQ(machine_.starts(), 0U);
}

TEST_F(MpsMachineTest, OneThatEndedIsStartedAgain) {
  begin();
  start();
  machine_.on_gone();
  EXPECT_FALSE(machine_.is_ready());
  EXPECT_THAT(machine_.problem(), HasSubstr("has ended"));
  EXPECT_EQ(good(), "ask");
  // It did not live for a minute.
  EXPECT_EQ(nobody(), "wait 1000");
  EXPECT_EQ(good(), "modes");
  EXPECT_EQ(good(), "start");
  setup();
  EXPECT_EQ(machine_.starts(), 2U);
}

TEST_F(MpsMachineTest, OneThatEndedAfterLongIsStartedAtOnce) {
  begin();
  start();
  for (int i = 0; i < 13; ++i) {
    EXPECT_EQ(good(), "ask");
    EXPECT_EQ(good("25.0"), "wait 5000");
  }
  machine_.on_gone();
  EXPECT_EQ(good(), "ask");
  start();
}

TEST_F(MpsMachineTest, StartsThatFailComeLaterAndLater) {
  begin();
  EXPECT_EQ(nobody(), "modes");
  EXPECT_EQ(good(), "start");
  EXPECT_EQ(nobody(), "wait 1000");  // the doubt
  std::vector<std::string> rests;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(good(), "ask");
    rests.push_back(nobody());
    EXPECT_EQ(good(), "modes");
    EXPECT_EQ(good(), "start");
    EXPECT_EQ(nobody(), "wait 1000");
  }
  EXPECT_THAT(rests, ElementsAre("wait 1000", "wait 2000", "wait 4000", "wait 8000", "wait 16000",
                                 "wait 32000", "wait 60000", "wait 60000"));
}

TEST_F(MpsMachineTest, WhyAStartFailedIsToldUntilOneGoesWell) {
  begin();
  EXPECT_EQ(nobody(), "modes");
  EXPECT_EQ(machine_.problem(), "nobody there");
  EXPECT_EQ(good(), "start");
  EXPECT_EQ(done(fail(Errc::Unavailable, "no GPU of mine")), "wait 1000");
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(nobody(), "wait 1000");
  EXPECT_EQ(machine_.problem(), "no GPU of mine");
  EXPECT_EQ(good(), "modes");
  EXPECT_EQ(good(), "start");
  setup();
  EXPECT_EQ(machine_.problem(), "");
}

TEST_F(MpsMachineTest, OneMissedAnswerIsNoEnd) {
  begin();
  start();
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(silent(), "wait 1000");
  EXPECT_TRUE(machine_.is_ready());
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("25"), "wait 5000");
  EXPECT_TRUE(machine_.is_ready());
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(silent(), "wait 1000") << "the doubt begins anew";
}

TEST_F(MpsMachineTest, OneThatStaysSilentIsEndedAfterAWhile) {
  begin();
  start();
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(silent(), "wait 1000");
  EXPECT_EQ(good(), "ask");
  const TimeUs since = now_;
  EXPECT_EQ(silent(), "wait 5000");
  EXPECT_FALSE(machine_.is_ready());
  EXPECT_EQ(machine_.problem(), "silent");
  std::string step;
  while (step != "end" && now_ < since + 100 * kSecondInUs) {
    EXPECT_EQ(good(), "ask");
    step = silent();
  }
  EXPECT_EQ(now_ - since, 30 * kSecondInUs);
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(nobody(), "wait 1000");
}

TEST_F(MpsMachineTest, SilentAndThenWellAgain) {
  begin();
  EXPECT_EQ(silent(), "wait 5000");
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("25"), "modes");
  setup();
}

TEST_F(MpsMachineTest, LimitsThatWereLostAreSetAgain) {
  begin();
  start();
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("100.0"), "wait 0");
  EXPECT_TRUE(machine_.is_ready());
  EXPECT_EQ(good(), "modes");
  EXPECT_EQ(good(), "tell set_default_active_thread_percentage 25");
  EXPECT_EQ(good(), "tell set_default_device_pinned_mem_limit 0 100M");
  EXPECT_EQ(good(), "wait 5000");
}

TEST_F(MpsMachineTest, AnAnswerThatIsNoNumberIsAnAnswer) {
  begin();
  start();
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("\x01 junk"), "wait 5000");
  EXPECT_TRUE(machine_.is_ready());
}

TEST_F(MpsMachineTest, OtherLimitsAreToldAtOnce) {
  begin();
  start();
  EXPECT_FALSE(machine_.want(daemon_of(25, 3))) << "nothing to do";
  EXPECT_TRUE(machine_.want(daemon_of(50, 3)));
  EXPECT_EQ(good(), "modes");
  EXPECT_EQ(good(), "tell set_default_active_thread_percentage 50");
  EXPECT_EQ(good(), "tell set_default_device_pinned_mem_limit 0 100M");
  EXPECT_EQ(good(), "wait 5000");
}

TEST_F(MpsMachineTest, AGpuThatLeftTheModeGetsItAgain) {
  begin();
  start();
  EXPECT_FALSE(machine_.want(daemon_of(25, 3)));
  EXPECT_TRUE(machine_.want(daemon_of(25, 0)));
  EXPECT_EQ(good(), "modes");
}

TEST_F(MpsMachineTest, WantedOtherwiseWhileItStarts) {
  begin();
  EXPECT_EQ(nobody(), "modes");
  EXPECT_FALSE(machine_.want(daemon_of(50)));
  EXPECT_EQ(good(), "start");
  setup();
  EXPECT_EQ(good(), "modes");
  EXPECT_EQ(good(), "tell set_default_active_thread_percentage 50");
  EXPECT_EQ(good(), "tell set_default_device_pinned_mem_limit 0 100M");
}

TEST_F(MpsMachineTest, WhatIsNotOursIsOnlyAsked) {
  machine_ = MpsMachine(daemon_of(25), {}, false);
  begin();
  EXPECT_EQ(nobody(), "wait 5000");
  EXPECT_FALSE(machine_.is_ready());
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("100.0"), "wait 5000");
  EXPECT_TRUE(machine_.is_ready());
  EXPECT_FALSE(machine_.want(daemon_of(50)));
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(good("100.0"), "wait 5000");
  machine_.on_gone();
  EXPECT_FALSE(machine_.is_ready());
  EXPECT_EQ(good(), "ask");
  EXPECT_EQ(silent(), "wait 5000");
}

}  // namespace
}  // namespace jogak::agent
