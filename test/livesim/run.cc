// SPDX-License-Identifier: Apache-2.0
//
// Everything random comes from named streams of the seed, so that a change in one part does not
// shift another.
#include "test/livesim/run.h"

#include <array>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "base/rng.h"
#include "test/livesim/replica.h"
#include "test/livesim/world.h"

namespace jogak::livesim {

namespace {

constexpr TimeUs kStepMax = 6 * kSecondInUs;
// Silent watches are noticed, leases end, back-offs of all kinds pass.
constexpr TimeUs kHealing = 360 * kSecondInUs;
// The longest that a refused pod waits before it is looked at again, whatever happened.
constexpr TimeUs kLastLook = 310 * kSecondInUs;
constexpr TimeUs kHealingMax = 3600 * kSecondInUs;  // pods that end by themselves make room
constexpr TimeUs kRest = 120 * kSecondInUs;

FateRates draw_fate(Rng& rng) {
  FateRates fate;
  fate.replicas = rng.chance(1, 2) ? 2 : 1;
  fate.crashes = rng.chance(1, 2);
  fate.stalls = rng.chance(1, 3);
  fate.stops = rng.chance(1, 3);
  fate.clocks_differ = rng.chance(1, 2);
  return fate;
}

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options),
        rng_(options.seed, "run"),
        world_({.seed = options.seed}),
        checkers_(world_.facts(), {}) {
    if (options.is_told) {
      const TimeUs began = world_.loop().now();
      world_.facts().trace = [this, began](const std::string& line) {
        fmt::print(stderr, "{:9.3f} {}\n", static_cast<double>(world_.loop().now() - began) / 1e6,
                   line);
      };
    }
    fate_ = draw_fate(rng_);
    Rng faults(options.seed, "faults");
    world_.network().rates = draw_faults(faults);
    world_.network().observer = &checkers_;
    Rng workload(options.seed, "workload-kinds");
    workload_options_ = draw_workload(workload);
    steps_ = static_cast<int>(rng_.between(20, 60));
    for (int slot = 0; slot < fate_.replicas; ++slot) {
      replicas_.push_back(std::make_unique<Replica>(
          world_, checkers_,
          ReplicaOptions{.slot = slot, .seed = options.seed, .sabotage = options.sabotage}));
    }
  }

  ~Run() {
    replicas_.clear();
    world_.loop().run_ready();
    world_.network().observer = nullptr;
  }

  RunResult go() {
    Workload workload(world_, workload_options_, options_.seed);
    workload.start();
    for (const auto& replica : replicas_) start(*replica);
    for (int step = 0; step < steps_ && !is_broken(); ++step) {
      workload.act();
      for (const auto& replica : replicas_) befall(*replica);
      world_.run_for(static_cast<TimeUs>(rng_.below(kStepMax)));
    }
    if (!is_broken()) settle(workload);
    return result();
  }

 private:
  void tell(const std::string& line) {
    if (world_.facts().trace) world_.facts().trace(line);
  }

  void start(Replica& replica) {
    tell(fmt::format("a process starts: {}", processes_ + 1));
    const TimeUs offset = fate_.clocks_differ ? rng_.between(-600, 600) * kSecondInUs : TimeUs{0};
    std::uint64_t dies_after = 0;
    if (is_faulty_ && fate_.crashes && rng_.chance(3, 4)) {
      // early, while it reads the cluster; or when it has much under way
      constexpr std::array<std::uint64_t, 3> kLives = {120, 500, 2000};
      const std::uint64_t longest = kLives[rng_.below(kLives.size())];
      dies_after = 1 + rng_.below(longest);
    }
    replica.start({.process = ++processes_, .clock_offset = offset, .dies_after = dies_after});
  }

  // A replica that is down comes back; one that runs may be stalled or stopped.
  void befall(Replica& replica) {
    if (!replica.is_running()) {
      if (rng_.chance(1, 3)) start(replica);
      return;
    }
    if (fate_.stalls && rng_.chance(1, 12)) {
      ++stalls_;
      const auto span = static_cast<TimeUs>(rng_.below(60 * kSecondInUs));
      tell(fmt::format("a process stalls for {} s", span / kSecondInUs));
      replica.stall_for(span);
    }
    if (fate_.stops && rng_.chance(1, 25)) {
      ++stops_;
      tell("a process stops");
      replica.stop();
    }
  }

  void settle(Workload& workload) {
    is_faulty_ = false;
    world_.network().is_faulty = false;
    workload.heal();
    for (const auto& replica : replicas_) replica->spare();
    const TimeUs healed = world_.loop().now();
    const auto is_settled = [&] {
      const TimeUs now = world_.loop().now();
      if (now > healed + kHealingMax) return true;
      return now > healed + kHealing && now > world_.facts().last_move() + kLastLook;
    };
    while (!is_settled() && !is_broken()) {
      for (const auto& replica : replicas_) {
        if (!replica->is_running()) start(*replica);
      }
      world_.run_for(10 * kSecondInUs);
    }
    checkers_.begin_rest();
    for (const auto& replica : replicas_) replica->compare();
    world_.run_for(kRest);
    checkers_.check_rest();
  }

  bool is_broken() {
    for (const auto& replica : replicas_) {
      if (const std::string fault = replica->fault(); !fault.empty()) fault_ = fault;
    }
    return !fault_.empty() || !checkers_.violations().empty();
  }

  RunResult result() {
    RunResult result;
    result.options = fmt::format("{}; {}; faults: {}; {} steps", workload_options_.text(),
                                 fate_.text(), world_.network().rates.text(), steps_);
    static_cast<void>(is_broken());
    if (!fault_.empty()) result.violations.push_back({"complaint", fault_});
    for (const Violation& violation : checkers_.violations()) {
      result.violations.push_back(violation);
    }
    result.digest = world_.facts().digest();
    result.revision = world_.server().store().revision();
    result.counts = checkers_.counts();
    result.leaders = world_.facts().lease_changes();
    result.stalls = stalls_;
    result.stops = stops_;
    for (const auto& replica : replicas_) {
      const live::DriverCounts counts = replica->counts();
      result.driver.decisions += counts.decisions;
      result.driver.bound += counts.bound;
      result.driver.refused += counts.refused;
      result.driver.preempted += counts.preempted;
      result.driver.bind_errors += counts.bind_errors;
      result.crashes += replica->deaths();
    }
    return result;
  }

  RunOptions options_;
  Rng rng_;
  World world_;
  Checkers checkers_;
  FateRates fate_;
  WorkloadOptions workload_options_;
  int steps_ = 0;
  int processes_ = 0;
  bool is_faulty_ = true;
  std::uint64_t stalls_ = 0, stops_ = 0;
  std::string fault_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace

std::string FateRates::text() const {
  std::string text = fmt::format("{} replica{}", replicas, replicas == 1 ? "" : "s");
  if (crashes) text += " crashes";
  if (stalls) text += " stalls";
  if (stops) text += " stops";
  if (clocks_differ) text += " clocks";
  return text;
}

std::string RunResult::failure() const {
  if (violations.empty()) return "";
  return fmt::format("{}: {}", violations.front().rule, violations.front().what);
}

RunResult run(const RunOptions& options) { return Run(options).go(); }

std::string repeat_command(std::uint64_t seed) {
  return fmt::format(
      "repeat with JOGAK_SEED={} JOGAK_ROUNDS=1 jogak_test_livesim --gtest_filter=LiveSim.Seeds",
      seed);
}

}  // namespace jogak::livesim
