// SPDX-License-Identifier: Apache-2.0
//
// Lines of standing faults, and what a machine makes of them as they come and go.
#include "nvml/sim/standing.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "nvml/sim/machine.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

using sim::FaultKind;
using sim::parse_standing_faults;
using testing::MadeMachine;

constexpr std::string_view kTwo = "gpus: [{model: H100-SXM5-80GB, count: 2}]\n";

std::vector<sim::FaultSpec> faults(std::string_view text) {
  auto parsed = parse_standing_faults(text, 2);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().what;
  return parsed.value_or(std::vector<sim::FaultSpec>{});
}

sim::FaultSpec fault(FaultKind kind, int gpu, std::int64_t code = 0, std::int64_t count = 1) {
  sim::FaultSpec made;
  made.kind = kind;
  made.gpu = gpu;
  made.code = code;
  made.count = count;
  return made;
}

TEST(StandingFaults, ALineNamesGpusKindsAndNumbers) {
  const auto parsed = faults(" 0=xid:79, 1 = lost,\nall=thermal:95,0=ecc:4,1=ecc,0=lost,0=lost,");
  ASSERT_EQ(parsed.size(), 6U);
  EXPECT_EQ(parsed[0], fault(FaultKind::Xid, 0, 79));
  EXPECT_EQ(parsed[1], fault(FaultKind::Lost, 1));
  EXPECT_EQ(parsed[2], fault(FaultKind::Thermal, -1, 95));
  EXPECT_EQ(parsed[3], fault(FaultKind::Ecc, 0, 1, 4));
  EXPECT_EQ(parsed[4], fault(FaultKind::Ecc, 1, 1));
  EXPECT_TRUE(faults("").empty());
  EXPECT_TRUE(faults(" , \n").empty());
}

TEST(StandingFaults, MistakesNameTheItemAndTheCure) {
  const auto why = [](std::string_view text) {
    const auto parsed = parse_standing_faults(text, 2);
    return parsed ? std::string() : parsed.error().what;
  };
  EXPECT_EQ(why("lost"), "fault \"lost\": expected GPU=KIND, like 0=xid:79 or all=lost");
  EXPECT_EQ(why("0=lost,2=lost"), "fault \"2=lost\": there is no GPU \"2\"; give 0 to 1, or all");
  EXPECT_EQ(why("0=xid"), "fault \"0=xid\": xid needs a number, like xid:1");
  EXPECT_EQ(why("0=xid:x"), "fault \"0=xid:x\": xid takes a number from 0 to 100000");
  EXPECT_EQ(why("0=lost:3"), "fault \"0=lost:3\": lost takes no number");
  EXPECT_TRUE(why("0=burning").starts_with("fault \"0=burning\": no kind \"burning\"; there are "));
}

TEST(StandingFaults, WhatIsNewHappensAndWhatIsGoneIsHealed) {
  MadeMachine made(kTwo);
  made.to(60 * kSecondInUs);
  ASSERT_TRUE(made.source->poll_events(0).has_value());
  made.machine->stand(faults("0=xid:79,1=lost"));
  const auto events = made.source->poll_events(0);
  ASSERT_TRUE(events.has_value());
  bool has_xid = false;
  bool is_lost = false;
  for (const GpuEvent& event : *events) {
    has_xid |= event.kind == GpuEventKind::Xid && event.code == 79 && event.uuid == made.uuid(0);
    is_lost |= event.kind == GpuEventKind::GpuLost && event.uuid == made.uuid(1);
  }
  EXPECT_TRUE(has_xid);
  EXPECT_TRUE(is_lost);
  EXPECT_EQ(made.sample(0).recovery_action.value_or(-1), 1);

  // The same line again changes nothing.
  made.machine->stand(faults("1=lost,0=xid:79"));
  const auto again = made.source->poll_events(0);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->empty());

  made.to(70 * kSecondInUs);
  const auto energy = made.sample(0).energy_mj.value_or(0);
  made.machine->stand({});
  made.to(71 * kSecondInUs);
  EXPECT_LT(made.sample(0).energy_mj.value_or(0), energy);
  EXPECT_EQ(made.sample(0).recovery_action.value_or(-1), 0);
  const auto after = made.source->poll_events(0);
  ASSERT_TRUE(after.has_value());
  ASSERT_EQ(after->size(), 1U);
  EXPECT_EQ(after->front().kind, GpuEventKind::GpuRecovered);
}

TEST(StandingFaults, EndsOnAClockThatNeverStandsStill) {
  auto spec = sim::read_machine("m.yaml", testing::machine_text(kTwo));
  ASSERT_TRUE(spec.has_value());
  auto made = sim::Machine::create(*std::move(spec),
                                   {.now = [time = TimeUs{0}]() mutable { return ++time; }});
  ASSERT_TRUE(made.has_value());
  sim::Machine& machine = **made;
  for (int round = 0; round < 3; ++round) {
    machine.stand(faults("1=lost"));
    EXPECT_TRUE(machine.is_lost(1));
    machine.stand({});
    EXPECT_FALSE(machine.is_lost(1));
  }
}

TEST(StandingFaults, HealingKeepsInstancesAndProcesses) {
  MadeMachine made(R"(gpus:
- model: A100-SXM4-80GB
  migEnabled: true
  migInstances: [{profile: 3g.40gb}]
  processes: [{pid: 7, memoryMib: 100, instance: 0}]
)");
  made.machine->stand(*parse_standing_faults("0=ecc:3", 1));
  made.to(kSecondInUs);
  EXPECT_EQ(made.sample().ecc.uncorrected_volatile.value_or(-1), 3);
  made.machine->stand({});
  made.to(2 * kSecondInUs);
  const GpuSample sample = made.sample();
  EXPECT_EQ(sample.ecc.uncorrected_volatile.value_or(-1), 0);
  EXPECT_EQ(sample.ecc.uncorrected_aggregate.value_or(-1), 3);
  EXPECT_EQ(made.facts().gpus[0].mig_instances.size(), 1U);
  ASSERT_TRUE(sample.processes.has_value());
  EXPECT_EQ(sample.processes->size(), 1U);
}

TEST(StandingFaults, AFileSaysThem) {
  const std::string path = ::testing::TempDir() + "/jogak-standing-faults";
  std::filesystem::remove(path);
  sim::FaultsFile file(path);
  const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
  EXPECT_FALSE(file.changed(0).has_value());
  write("0=lost\n");
  EXPECT_FALSE(file.changed(1).has_value()) << "it was looked at just now";
  EXPECT_EQ(file.changed(kSecondInUs).value_or("none"), "0=lost\n");
  EXPECT_FALSE(file.changed(2 * kSecondInUs).has_value());
  std::filesystem::remove(path);
  EXPECT_EQ(file.changed(3 * kSecondInUs).value_or("none"), "");
}

}  // namespace
}  // namespace jogak::nvml
