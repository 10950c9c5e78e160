// SPDX-License-Identifier: Apache-2.0
//
// Random lives of an MPS control daemon: it dies, hangs, forgets its limits, refuses to start, and
// the wanted limits change. Shares are only ready with the limits that are wanted or were told
// before, two daemons never run at once, and left in peace it becomes ready and stays so.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "agent/mig/testing/trial.h"
#include "agent/mps/machine.h"
#include "base/rng.h"

namespace jogak::agent {
namespace {

using testing::MigTrial;

MpsDaemon daemon_of(int percent) {
  return {.resource = "nvidia.com/gpu",
          .gpus = {{.uuid = "GPU-0", .index = 0, .limit_mib = 100}},
          .thread_percent = percent};
}

class Life {
 public:
  explicit Life(std::uint64_t seed) : rng_(seed, "mps"), machine_(daemon_of(25), {}, true) {
    is_running_ = rng_.chance(1, 3);  // of an earlier agent
    step_ = machine_.begin();
  }

  void live(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      if (rng_.chance(1, 4)) disturb();
      take_step();
    }
  }

  // Nothing happens any more but what the machine does.
  void settle() {
    is_hung_ = refuses_ = false;
    // A pause, a start after the longest rest, the limits, and questions.
    for (const TimeUs end = now_ + 200 * kSecondInUs; now_ < end;) take_step();
    EXPECT_TRUE(machine_.is_ready()) << machine_.problem();
    EXPECT_TRUE(is_running_);
    EXPECT_EQ(percent_, wanted_);
    EXPECT_TRUE(has_memory_limit_);
    const std::uint64_t starts = machine_.starts();
    for (const TimeUs end = now_ + 200 * kSecondInUs; now_ < end;) {
      take_step();
      EXPECT_TRUE(machine_.is_ready());
    }
    EXPECT_EQ(machine_.starts(), starts);
  }

 private:
  void stop() {
    is_running_ = is_hung_ = false;
    is_missed_ = true;
  }

  void disturb() {
    switch (rng_.below(6)) {
      case 0:
        if (is_running_) stop();
        return;
      case 1:
        is_hung_ = is_running_;
        return;
      case 2:
        is_hung_ = false;
        return;
      case 3:
        refuses_ = !refuses_;
        return;
      case 4:
        // Somebody else started it anew.
        percent_ = 100;
        has_memory_limit_ = false;
        return;
      default:
        wanted_ = static_cast<int>(rng_.between(1, 50));
        // Only a wait can be cut short.
        EXPECT_TRUE(!machine_.want(daemon_of(wanted_)) || step_.kind == MpsStep::Kind::Wait);
        return;
    }
  }

  Result<std::string> say(const std::string& command) {
    if (!is_running_) return fail(Errc::Unavailable, "nobody there");
    if (is_hung_) return fail(Errc::Timeout, "silent");
    const std::string set_percent = "set_default_active_thread_percentage ";
    if (command.starts_with(set_percent)) percent_ = std::stoi(command.substr(set_percent.size()));
    has_memory_limit_ |= command.starts_with("set_default_device_pinned_mem_limit 0 100M");
    return std::to_string(percent_) + ".0\n";
  }

  Result<std::string> start() {
    EXPECT_FALSE(is_hung_) << "a second one beside one that hangs";
    if (refuses_) return fail(Errc::Unavailable, "refused");
    // It may have come back to life since it was asked.
    if (is_running_) return fail(Errc::Unavailable, "already running");
    is_running_ = true;
    percent_ = 100;
    has_memory_limit_ = false;
    return std::string();
  }

  void take_step() {
    // The end of the process is told sooner or later, or found by asking.
    if (is_missed_ && rng_.chance(1, 2)) {
      is_missed_ = false;
      machine_.on_gone();
      EXPECT_FALSE(machine_.is_ready());
    }
    Result<std::string> outcome = std::string();
    switch (step_.kind) {
      case MpsStep::Kind::Ask:
      case MpsStep::Kind::Tell:
        outcome = say(step_.command);
        now_ += outcome ? kMsInUs : 5 * kSecondInUs;
        break;
      case MpsStep::Kind::Start:
        outcome = start();
        break;
      case MpsStep::Kind::End:
        stop();
        break;
      case MpsStep::Kind::Wait:
        now_ += step_.wait;
        break;
      case MpsStep::Kind::Modes:
        break;
    }
    step_ = machine_.on_done(outcome, now_);
    now_ += kMsInUs;
    EXPECT_EQ(machine_.is_ready(), machine_.problem().empty());
  }

  Rng rng_;
  MpsMachine machine_;
  MpsStep step_;
  TimeUs now_ = 1000 * kSecondInUs;
  int wanted_ = 25;
  // The daemon.
  bool is_running_ = false, is_hung_ = false, refuses_ = false;
  bool is_missed_ = false;  // its end is not told yet
  int percent_ = 100;
  bool has_memory_limit_ = false;
};

TEST(MpsMachineProp, LeftInPeaceItBecomesReadyAndStaysSo) {
  const auto trial = MigTrial::from_env(400);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    SCOPED_TRACE(trial.repeat(round));
    Life life(trial.seed_of(round));
    life.live(200);
    life.settle();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace jogak::agent
