// SPDX-License-Identifier: Apache-2.0
//
// The state machine of one GPU, walked by tables: what happens, after how many seconds, and which
// facts stand then.
#include "agent/health/gpu_health.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace jogak::agent {
namespace {

using nvml::GpuEvent;
using nvml::GpuEventKind;
using nvml::GpuSample;

// "Xid:79!" for a fact that stops use, "XidNoted:13" for one that does not.
std::string text_of(const GpuHealth& health) {
  std::string text;
  for (const HealthFact& fact : health.facts()) {
    if (!text.empty()) text += ' ';
    text += health_kind_text(fact.kind);
    if (fact.code != 0) text += fmt::format(":{}", fact.code);
    if (fact.gi_id >= 0) text += fmt::format("@{}", fact.gi_id);
    if (fact.stops_use) text += '!';
  }
  return text;
}

class Patient {
 public:
  explicit Patient(HealthOptions options = {}) : options_(std::move(options)), health(options_) {
    nvml::GpuFacts facts;
    facts.uuid = "GPU-1";
    facts.temperature_slowdown_c = 90;
    health.on_facts(facts, false, now);
  }

  // Seconds of samples, one each.
  void live(int seconds, const std::function<void(GpuSample&)>& change = {}) {
    for (int i = 0; i < seconds; ++i) {
      now += kSecondInUs;
      energy += 1000;
      GpuSample sample;
      sample.uuid = "GPU-1";
      sample.time = now;
      sample.energy_mj = energy;
      if (change) change(sample);
      health.on_sample(sample);
    }
  }
  void event(GpuEventKind kind, std::uint64_t code = 0, int gi_id = -1) {
    health.on_event({.uuid = "GPU-1", .kind = kind, .code = code, .gi_id = gi_id, .time = now});
  }
  void xid(std::uint64_t code, int gi_id = -1) { event(GpuEventKind::Xid, code, gi_id); }
  std::string text() const { return text_of(health); }

 private:
  HealthOptions options_;

 public:
  GpuHealth health;
  TimeUs now = 1'000 * kSecondInUs;
  std::int64_t energy = 1'000'000;
};

TEST(GpuHealth, IsQuietAboutAWellGpu) {
  Patient gpu;
  gpu.live(100);
  EXPECT_EQ(gpu.text(), "");
  EXPECT_EQ(gpu.health.changes(), 0U);
}

TEST(GpuHealth, SortsXidsIntoThoseThatStopUseAndThoseThatDoNot) {
  struct Case {
    std::uint64_t code;
    std::string_view fact;
  };
  constexpr Case kCases[] = {
      {13, "XidNoted:13"}, {31, "XidNoted:31"},   {43, "XidNoted:43"}, {45, "XidNoted:45"},
      {68, "XidNoted:68"}, {109, "XidNoted:109"}, {63, "XidNoted:63"}, {92, "XidNoted:92"},
      {94, "XidNoted:94"}, {154, "XidNoted:154"}, {48, "Xid:48!"},     {62, "Xid:62!"},
      {64, "Xid:64!"},     {74, "Xid:74!"},       {79, "Xid:79!"},     {95, "Xid:95!"},
      {119, "Xid:119!"},   {120, "Xid:120!"},     {140, "Xid:140!"},   {149, "Xid:149!"},
      {54, "Xid:54!"},     {9999, "Xid:9999!"},
  };
  for (const Case& example : kCases) {
    Patient gpu;
    gpu.xid(example.code);
    EXPECT_EQ(gpu.text(), example.fact);
  }
}

TEST(GpuHealth, ForgetsTheErrorOfAnApplicationAfterAWhile) {
  Patient gpu;
  gpu.xid(31);
  gpu.live(599);
  EXPECT_EQ(gpu.text(), "XidNoted:31");
  gpu.live(1);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, ARepeatedNoteLastsFromItsLastTime) {
  Patient gpu;
  gpu.xid(31);
  gpu.live(599);
  gpu.xid(31);
  gpu.live(599);
  EXPECT_EQ(gpu.text(), "XidNoted:31");
}

TEST(GpuHealth, ListsOfTheOptionsWinOverTheClass) {
  Patient gpu({.ignored_xids = {79}, .enforced_xids = {13}});
  gpu.xid(79);
  gpu.xid(13);
  EXPECT_EQ(gpu.text(), "Xid:13! XidNoted:79");
}

TEST(GpuHealth, XidsCanBeSwitchedOff) {
  Patient gpu({.watches_xids = false});
  gpu.xid(79);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, AnXidThatIsEnforcedCountsThoughTheOthersAreSwitchedOff) {
  Patient one({.enforced_xids = {48}, .watches_xids = false});
  one.xid(79);
  EXPECT_EQ(one.text(), "");
  one.xid(48);
  EXPECT_EQ(one.text(), "Xid:48!");
  Patient all({.enforces_all_xids = true});
  all.xid(13);  // of an application, and on the list of those that are ignored
  EXPECT_EQ(all.text(), "Xid:13!");
}

TEST(GpuHealth, AFatalXidStaysUntilAResetIsSeen) {
  struct Case {
    std::string_view name;
    std::function<void(Patient&)> happens;
    std::string_view after;
  };
  const Case cases[] = {
      {"a week of quiet", [](Patient& gpu) { gpu.live(7 * 24 * 3600); }, "Xid:62!"},
      {"energy counts anew",
       [](Patient& gpu) {
         gpu.energy = 0;
         gpu.live(1);
       },
       ""},
      {"the driver is loaded anew", [](Patient& gpu) { gpu.event(GpuEventKind::DriverReload); },
       ""},
      {"facts of a new generation",
       [](Patient& gpu) {
         nvml::GpuFacts facts;
         facts.uuid = "GPU-1";
         gpu.health.on_facts(facts, true, gpu.now);
       },
       ""},
      {"the operator says so", [](Patient& gpu) { gpu.health.clear(gpu.now); }, ""},
      {"gone and back",
       [](Patient& gpu) {
         gpu.event(GpuEventKind::GpuLost);
         gpu.live(11);
       },
       ""},
      {"just gone", [](Patient& gpu) { gpu.event(GpuEventKind::GpuLost); }, "Lost! Xid:62!"},
  };
  for (const Case& example : cases) {
    Patient gpu;
    gpu.live(3);
    gpu.xid(62);
    gpu.live(3);
    example.happens(gpu);
    EXPECT_EQ(gpu.text(), example.after) << example.name;
  }
}

TEST(GpuHealth, AFatalXidCanBeForgottenByTime) {
  Patient gpu({.xid_forgotten_after = 3600 * kSecondInUs});
  gpu.xid(62);
  gpu.live(3599);
  EXPECT_EQ(gpu.text(), "Xid:62!");
  gpu.live(1);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, TheDriversRecoveryActionIsBelievedOverTheTable) {
  Patient gpu;
  gpu.xid(62);
  const auto with_action = [](int action) {
    return [action](GpuSample& sample) { sample.recovery_action = action; };
  };
  gpu.live(4, with_action(0));  // may still be the answer from before
  EXPECT_EQ(gpu.text(), "Xid:62!");
  gpu.live(1, with_action(0));
  EXPECT_EQ(gpu.text(), "XidNoted:62");
  gpu.live(1, with_action(1));
  EXPECT_EQ(gpu.text(), "RecoveryAction:1! XidNoted:62");
  gpu.live(1, with_action(0));
  EXPECT_EQ(gpu.text(), "XidNoted:62");
}

TEST(GpuHealth, DrainingPeersLeavesTheGpuUsable) {
  Patient gpu;
  gpu.live(1, [](GpuSample& sample) { sample.recovery_action = 3; });
  EXPECT_EQ(gpu.text(), "RecoveryAction:3");
}

TEST(GpuHealth, AContainedErrorWaitsForAReset) {
  Patient gpu;
  gpu.live(1);
  gpu.xid(94);
  gpu.live(3600, [](GpuSample& sample) { sample.recovery_action = 0; });
  EXPECT_EQ(gpu.text(), "XidNoted:94");
  gpu.energy = 0;
  gpu.live(1);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, AnXidOfAnInstanceNamesIt) {
  Patient gpu;
  gpu.xid(62, 3);
  EXPECT_EQ(gpu.text(), "Xid:62@3!");
}

TEST(GpuHealth, LostNeedsAWhileOfAnswersToBeBack) {
  Patient gpu;
  gpu.event(GpuEventKind::GpuLost);
  EXPECT_EQ(gpu.text(), "Lost!");
  gpu.live(10);
  EXPECT_EQ(gpu.text(), "Lost!");
  gpu.live(1, [](GpuSample& sample) { sample.is_lost = true; });  // flaps
  gpu.live(10);
  EXPECT_EQ(gpu.text(), "Lost!");
  gpu.live(1);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, OneFailedCallIsNothingAndAHungDriverIs) {
  Patient gpu;
  const Error hung = {.code = Errc::Timeout, .what = "nvml did not answer for 5 s"};
  gpu.health.on_failure(hung, gpu.now);
  gpu.live(1);
  EXPECT_EQ(gpu.text(), "");
  for (int i = 0; i <= 15; ++i) gpu.health.on_failure(hung, gpu.now + i * kSecondInUs);
  EXPECT_EQ(gpu.text(), "Unresponsive!");
  EXPECT_EQ(gpu.health.facts()[0].text, "calls about it fail: nvml did not answer for 5 s");
  gpu.now += 15 * kSecondInUs;
  gpu.live(11);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, AFailureThatSaysGoneIsALoss) {
  Patient gpu;
  gpu.health.on_failure({.code = Errc::Gone, .what = "gpu is lost"}, gpu.now);
  EXPECT_EQ(gpu.text(), "Lost!");
}

TEST(GpuHealth, FlagsOfTheDriverHaveHysteresis) {
  struct Case {
    std::string_view fact;
    std::function<void(GpuSample&)> on;
    std::function<void(GpuSample&)> off;
    int raise_s, clear_s;
  };
  const auto bits = [](std::uint64_t value) {
    return [value](GpuSample& sample) { sample.throttle_reasons = value; };
  };
  const auto heat = [](int celsius) {
    return [celsius](GpuSample& sample) { sample.temperature_c = celsius; };
  };
  const auto pending = [](bool is) {
    return [is](GpuSample& sample) { sample.rows.is_pending = is; };
  };
  const auto failed = [](bool is) {
    return [is](GpuSample& sample) { sample.rows.has_failed = is; };
  };
  const auto retired = [](bool is) {
    return [is](GpuSample& sample) { sample.rows.retirement_pending = is; };
  };
  const Case cases[] = {
      {"ThermalHardware", bits(nvml::kThrottleHwThermal | nvml::kThrottleHwSlowdown), bits(0), 31,
       301},
      {"ThermalHardware", bits(nvml::kThrottleHwSlowdown), bits(nvml::kThrottleIdle), 31, 301},
      {"PowerBrake", bits(nvml::kThrottleHwPowerBrake | nvml::kThrottleHwSlowdown), bits(0), 31,
       301},
      {"ThermalSoftware", bits(nvml::kThrottleSwThermal), bits(nvml::kThrottleSwPowerCap), 1801,
       301},
      {"Temperature", heat(86), heat(83), 301, 301},
      {"RowRemapPending", pending(true), pending(false), 1, 61},
      {"RowRemapPending", retired(true), retired(false), 1, 61},
      {"RowRemapFailed!", failed(true), failed(false), 1, 61},
  };
  for (const Case& example : cases) {
    Patient gpu;
    gpu.live(example.raise_s - 1, example.on);
    EXPECT_EQ(gpu.text(), "") << example.fact;
    gpu.live(1, example.on);
    EXPECT_EQ(gpu.text(), example.fact);
    gpu.live(100);  // nothing read: nothing changes
    EXPECT_EQ(gpu.text(), example.fact);
    gpu.live(example.clear_s - 1, example.off);
    EXPECT_EQ(gpu.text(), example.fact);
    gpu.live(1, example.on);  // back: the wait begins anew
    gpu.live(example.clear_s - 1, example.off);
    EXPECT_EQ(gpu.text(), example.fact);
    gpu.live(1, example.off);
    EXPECT_EQ(gpu.text(), "") << example.fact;
  }
}

TEST(GpuHealth, ThePowerCapIsNoFault) {
  Patient gpu;
  gpu.live(3600, [](GpuSample& sample) { sample.throttle_reasons = nvml::kThrottleSwPowerCap; });
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, ATemperatureBetweenTheTwoBoundsKeepsWhatIs) {
  Patient gpu;
  gpu.live(400, [](GpuSample& sample) { sample.temperature_c = 84; });
  EXPECT_EQ(gpu.text(), "");
  gpu.live(301, [](GpuSample& sample) { sample.temperature_c = 86; });
  EXPECT_EQ(gpu.text(), "Temperature");
  gpu.live(1000, [](GpuSample& sample) { sample.temperature_c = 84; });
  EXPECT_EQ(gpu.text(), "Temperature");
}

TEST(GpuHealth, UncorrectableErrorsAreToldUntilAReset) {
  Patient gpu;
  const auto errors = [](std::int64_t count) {
    return [count](GpuSample& sample) { sample.ecc.uncorrected_volatile = count; };
  };
  gpu.live(5, errors(0));
  EXPECT_EQ(gpu.text(), "");
  gpu.live(1, errors(3));
  ASSERT_EQ(gpu.text(), "EccUncorrected");
  gpu.live(1, errors(5));
  EXPECT_EQ(gpu.health.facts()[0].text, "5 uncorrectable memory errors since the last reset");
  gpu.live(100, errors(5));
  EXPECT_EQ(gpu.text(), "EccUncorrected");
  gpu.live(1, errors(0));
  EXPECT_EQ(gpu.text(), "");
}

// A restart of the agent mends nothing.
TEST(GpuHealth, UncorrectableErrorsFromBeforeTheAgentCameAreToldToo) {
  Patient gpu;
  gpu.live(1, [](GpuSample& sample) { sample.ecc.uncorrected_volatile = 2; });
  ASSERT_EQ(gpu.text(), "EccUncorrected");
  EXPECT_EQ(gpu.health.facts()[0].text, "2 uncorrectable memory errors since the last reset");
  gpu.health.clear(gpu.now);
  const auto errors = [](std::int64_t count) {
    return [count](GpuSample& sample) { sample.ecc.uncorrected_volatile = count; };
  };
  gpu.live(5, errors(2));
  EXPECT_EQ(gpu.text(), "") << "whom the operator believes, the agent does";
  gpu.live(1, errors(3));
  EXPECT_EQ(gpu.text(), "EccUncorrected");
}

TEST(GpuHealth, ManyCorrectedErrorsInAnHourAreNoted) {
  Patient gpu;
  std::int64_t count = 7;
  const auto at_rate = [&](std::int64_t per_second) {
    return [&count, per_second](GpuSample& sample) {
      sample.ecc.corrected_volatile = count += per_second;
    };
  };
  gpu.live(900, at_rate(1));
  EXPECT_EQ(gpu.text(), "");
  gpu.live(200, at_rate(1));
  EXPECT_EQ(gpu.text(), "EccRate");
  gpu.live(2 * 3600 + 10, at_rate(0));
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, LinkErrorsCountWhenTheyKeepGrowing) {
  Patient gpu;
  std::int64_t count = 0;
  const auto grow = [&](GpuSample& sample) { sample.nvlink.replay_errors = ++count; };
  const auto rest = [&](GpuSample& sample) { sample.nvlink.replay_errors = count; };
  gpu.live(5, grow);
  gpu.live(1000, rest);
  EXPECT_EQ(gpu.text(), "");
  gpu.live(602, grow);
  EXPECT_EQ(gpu.text(), "NvlinkErrors");
  gpu.live(1859, rest);
  EXPECT_EQ(gpu.text(), "NvlinkErrors");
  gpu.live(10, rest);
  EXPECT_EQ(gpu.text(), "");
}

TEST(GpuHealth, ALinkThatCameUpAnewIsNewsAtOnce) {
  Patient gpu;
  gpu.live(1, [](GpuSample& sample) { sample.nvlink.recovery_errors = 4; });
  gpu.live(1, [](GpuSample& sample) { sample.nvlink.recovery_errors = 5; });
  EXPECT_EQ(gpu.text(), "NvlinkErrors");
}

TEST(GpuHealth, WorstComesFirst) {
  Patient gpu;
  gpu.xid(31);
  gpu.xid(79);
  gpu.xid(48);
  gpu.event(GpuEventKind::GpuLost);
  EXPECT_EQ(gpu.text(), "Lost! Xid:48! Xid:79! XidNoted:31");
}

// Whatever happens in whatever order: memory is bounded, and a reset with quiet after it ends in
// health.
TEST(GpuHealth, AnyHistoryEndsWellAfterAReset) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Patient gpu;
    for (int step = 0; step < 300; ++step) {
      switch (rng.below(5)) {
        case 0:
          gpu.xid(rng.below(200), static_cast<int>(rng.below(4)) - 1);
          break;
        case 1:
          gpu.event(GpuEventKind::GpuLost);
          break;
        case 2:
          gpu.health.on_failure({.code = Errc::Timeout, .what = "hung"}, gpu.now);
          break;
        default: {
          const std::uint64_t bits = rng.below(256);
          const auto action = static_cast<int>(rng.below(4));
          gpu.live(static_cast<int>(rng.below(40)), [&](GpuSample& sample) {
            sample.throttle_reasons = bits;
            sample.recovery_action = action;
          });
        }
      }
      ASSERT_LE(gpu.health.facts().size(), kHealthKinds + 32) << "seed " << seed;
    }
    gpu.health.clear(gpu.now);
    gpu.live(2000, [](GpuSample& sample) {
      sample.throttle_reasons = 0;
      sample.recovery_action = 0;
    });
    EXPECT_EQ(gpu.text(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace jogak::agent
