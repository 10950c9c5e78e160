// SPDX-License-Identifier: Apache-2.0
//
// The live side whole, through every fault, from many seeds. JOGAK_ROUNDS=1000000 runs a million
// and shows how far it is; a failure prints its seed, what the run was made of, and how to repeat
// it.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/mono_clock.h"
#include "base/parallel.h"
#include "core/testing/random_world.h"
#include "test/livesim/run.h"

namespace jogak::livesim {
namespace {

constexpr std::uint64_t kRounds = 1000;
constexpr std::uint64_t kRepeatEvery = 50;  // such a seed is run twice

// What runs now: a check that fails ends the program, and must not take the seed with it.
std::array<std::atomic<std::uint64_t>, 64> running_seeds{};

extern "C" void show_seeds(int) {
  for (const auto& seed : running_seeds) {
    if (seed.load() == 0) continue;
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "under way: JOGAK_SEED=%llu JOGAK_ROUNDS=1\n",
                  static_cast<unsigned long long>(seed.load()));
    std::fputs(line.data(), stderr);
  }
}

class Seeds {
 public:
  explicit Seeds(core::testing::Trial trial) : trial_(trial), began_ns_(mono_now_ns()) {}

  void run_all() {
    std::signal(SIGABRT, show_seeds);
    parallel_for(trial_.rounds, 0, [this](std::size_t round) { run_one(round); });
    std::signal(SIGABRT, SIG_DFL);
  }
  const std::vector<std::string>& failures() const { return failures_; }
  const RunResult& sum() const { return sum_; }

 private:
  void run_one(std::uint64_t round) {
    if (has_failed_enough()) return;
    const std::uint64_t seed = trial_.seed_of(round);
    auto& slot = running_seeds[round % running_seeds.size()];
    slot = seed;
    const bool is_told = std::getenv("JOGAK_TELL") != nullptr && trial_.rounds == 1;
    const RunResult result = run({.seed = seed, .is_told = is_told});
    std::string wrong = result.failure();
    if (wrong.empty() && round % kRepeatEvery == 0) {
      const RunResult again = run({.seed = seed});
      if (again.digest != result.digest) {
        wrong = fmt::format("not-deterministic: {} changes, then {} with another digest",
                            result.revision, again.revision);
      }
    }
    slot = 0;
    note(seed, result, wrong);
  }

  bool has_failed_enough() {
    const std::lock_guard lock(mutex_);
    return failures_.size() >= 10;
  }

  void note(std::uint64_t seed, const RunResult& result, const std::string& wrong) {
    const std::lock_guard lock(mutex_);
    if (!wrong.empty()) {
      failures_.push_back(
          fmt::format("{}\n  {}\n  {}", wrong, result.options, repeat_command(seed)));
    }
    sum_.counts.bound += result.counts.bound;
    sum_.counts.calls += result.counts.calls;
    sum_.counts.evicted += result.counts.evicted;
    sum_.driver.refused += result.driver.refused;
    sum_.driver.bind_errors += result.driver.bind_errors;
    sum_.crashes += result.crashes;
    sum_.stalls += result.stalls;
    sum_.stops += result.stops;
    sum_.leaders += result.leaders;
    ++done_;
    constexpr std::int64_t kEveryNs = 10'000'000'000;
    const std::int64_t now = mono_now_ns();
    if (trial_.rounds > kRounds && now - shown_ns_ > kEveryNs) {
      shown_ns_ = now;
      fmt::print(stderr, "{} of {} seeds, {} failed, {} s\n", done_, trial_.rounds,
                 failures_.size(), (now - began_ns_) / 1'000'000'000);
    }
  }

  core::testing::Trial trial_;
  std::int64_t began_ns_, shown_ns_ = 0;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  std::vector<std::string> failures_;
  RunResult sum_;
};

TEST(LiveSim, Seeds) {
  const auto trial = core::testing::Trial::from_env(kRounds);
  Seeds seeds(trial);
  seeds.run_all();
  for (const std::string& failure : seeds.failures()) ADD_FAILURE() << failure;
  const RunResult& sum = seeds.sum();
  fmt::print(
      "{} seeds: {} calls, {} pods bound, {} refused, {} evicted, {} bindings failed, {} "
      "crashes, {} stalls, {} stops, {} leaders\n",
      trial.rounds, sum.counts.calls, sum.counts.bound, sum.driver.refused, sum.counts.evicted,
      sum.driver.bind_errors, sum.crashes, sum.stalls, sum.stops, sum.leaders);
  if (trial.rounds < kRounds || !seeds.failures().empty()) return;
  // a simulation that never meets the hard cases proves little
  EXPECT_GT(sum.counts.bound, 8000U);
  EXPECT_GT(sum.counts.evicted, 200U);
  EXPECT_GT(sum.driver.bind_errors, 20U);
  EXPECT_GT(sum.crashes, 300U);
  EXPECT_GT(sum.stalls, 500U);
  EXPECT_GT(sum.leaders, 1000U);
}

}  // namespace
}  // namespace jogak::livesim
