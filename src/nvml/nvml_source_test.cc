// SPDX-License-Identifier: Apache-2.0
//
// The source on simulated machines: facts, samples, events, MIG, and what goes wrong.
#include "nvml/nvml_source.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "nvml/abi_constants.h"
#include "nvml/record.h"
#include "nvml/sim/shipped.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

using testing::MadeMachine;

std::vector<GpuEventKind> kinds(const Result<std::vector<GpuEvent>>& events) {
  std::vector<GpuEventKind> found;
  if (events) {
    for (const GpuEvent& event : *events) found.push_back(event.kind);
  }
  return found;
}

TEST(NvmlSource, AnA100InFull) {
  MadeMachine made("gpus:\n- {model: A100-SXM4-40GB, count: 8}\n");
  const NodeFacts node = made.facts();
  EXPECT_EQ(node.driver_version, "550.90.07");
  EXPECT_EQ(node.cuda_major, 12);
  ASSERT_EQ(node.gpus.size(), 8U);
  const GpuFacts& gpu = node.gpus[3];
  EXPECT_EQ(gpu.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpu.architecture, "Ampere");
  EXPECT_EQ(gpu.brand, "NVIDIA");
  EXPECT_EQ(gpu.pci_bus_id, "00000000:4E:00.0");
  EXPECT_EQ(gpu.memory_mib, 40960);
  EXPECT_EQ(gpu.numa_node, Reading<int>(0));
  EXPECT_TRUE(gpu.mig_capable);
  EXPECT_FALSE(gpu.mig_enabled);
  EXPECT_EQ(gpu.mig_profiles.size(), 7U);
  EXPECT_EQ(gpu.nvlinks, 12);
  EXPECT_EQ(gpu.links[0].nvlinks, 12);
  EXPECT_EQ(gpu.links[3].pcie, LinkKind::Self);
  EXPECT_EQ(gpu.links[2].pcie, LinkKind::MultipleSwitches);
  EXPECT_EQ(gpu.links[1].pcie, LinkKind::Node);
  EXPECT_EQ(gpu.links[7].pcie, LinkKind::System);
}

TEST(NvmlSource, NotSupportedIsNotFailed) {
  MadeMachine made("gpus:\n- {model: T4}\n");
  EXPECT_FALSE(made.facts().gpus[0].mig_capable);
  const GpuSample sample = made.sample();
  EXPECT_EQ(sample.rows.corrected.missing(), Missing::NotSupported);
  EXPECT_EQ(sample.memory_temperature_c.missing(), Missing::NotSupported);
  EXPECT_EQ(sample.rows.retired_single_bit, Reading<std::int64_t>(0));
  EXPECT_EQ(sample.fan_percent.missing(), Missing::NotSupported);
}

TEST(NvmlSource, AnOldLibraryFallsBack) {
  MadeMachine made(
      "driver: {missingSymbols: [nvmlDeviceGetMemoryInfo_v2, nvmlInitWithFlags,"
      " nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetTemperatureV,"
      " nvmlDeviceGetGpuFabricInfoV, nvmlDeviceGetGpuInstanceProfileInfoV]}\n"
      "gpus:\n- {model: A100-SXM4-40GB, processes: [{pid: 3, memoryMib: 9}]}\n");
  const GpuSample sample = made.sample();
  EXPECT_TRUE(sample.memory.used_bytes.has_value());
  EXPECT_EQ(sample.memory.reserved_bytes.missing(), Missing::NotSupported);
  EXPECT_TRUE(sample.temperature_c.has_value());
  ASSERT_TRUE(sample.processes.has_value());
  EXPECT_EQ(sample.processes->size(), 1U);
  // Names are computed where the driver gives none.
  const auto profiles = made.facts().gpus[0].mig_profiles;
  EXPECT_EQ(profiles.front().name, "1g.5gb");
  EXPECT_EQ(profiles.back().name, "1g.10gb");
}

TEST(NvmlSource, LongAndShortProcessRecordsReadAlike) {
  const std::string gpus =
      "gpus:\n- {model: T4, processes: [{pid: 3, memoryMib: 9, smPercent: 4}, {pid: 4}]}\n";
  MadeMachine plain(gpus);
  MadeMachine odd("driver: {longProcessRecords: true}\n" + gpus);
  EXPECT_EQ(*plain.sample().processes, *odd.sample().processes);
  EXPECT_EQ(plain.sample().processes->at(0).sm_percent, Reading<int>(4));
}

TEST(NvmlSourceProcesses, OneInTwoListsIsToldOnce) {
  MadeMachine made(
      "gpus:\n- model: T4\n  processes: [{pid: 3, memoryMib: 9}, {pid: 3, memoryMib: 9, kind: "
      "graphics},\n    {pid: 4, memoryMib: 1}, {pid: 4, memoryMib: 7, kind: mps}]\n");
  const auto processes = *made.sample().processes;
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].memory_bytes, Reading<std::int64_t>(std::int64_t{9} << 20));
  EXPECT_EQ(processes[1].memory_bytes, Reading<std::int64_t>(std::int64_t{7} << 20));
  EXPECT_EQ(processes[1].kind, ProcessFacts::Kind::Mps);
}

TEST(NvmlSource, ALostGpuLeavesTheOthersAlone) {
  MadeMachine made(R"(gpus:
- {model: T4, count: 2}
faults:
- {kind: lost, at: 10s, for: 20s, gpu: 0}
)");
  made.facts();
  EXPECT_EQ(kinds(made.source->poll_events(0)), std::vector<GpuEventKind>{});
  made.to(10 * kSecondInUs);
  const auto lost = made.source->poll_events(0);
  EXPECT_EQ(kinds(lost), (std::vector{GpuEventKind::GpuLost, GpuEventKind::Xid}));
  EXPECT_EQ(lost->at(1).code, 79U);
  const NodeFacts node = made.facts();
  EXPECT_TRUE(node.gpus[0].is_lost);
  EXPECT_EQ(node.gpus[0].name, "Tesla T4");
  EXPECT_FALSE(node.gpus[1].is_lost);
  EXPECT_TRUE(made.sample(0).is_lost);
  EXPECT_EQ(made.sample(0).power_mw.missing(), Missing::Lost);
  EXPECT_TRUE(made.sample(1).power_mw.has_value());
  made.to(30 * kSecondInUs);
  EXPECT_EQ(kinds(made.source->poll_events(0)), std::vector{GpuEventKind::GpuRecovered});
  EXPECT_FALSE(made.sample(0).is_lost);
}

TEST(NvmlSource, AGpuLostFromTheStartIsListed) {
  MadeMachine made("gpus:\n- {model: T4, count: 2}\nfaults:\n- {kind: lost, gpu: 1}\n");
  const NodeFacts node = made.facts();
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_TRUE(node.gpus[1].is_lost);
  EXPECT_FALSE(node.gpus[1].lost_reason.empty());
  EXPECT_FALSE(node.gpus[0].is_lost);
}

TEST(NvmlSource, WhatAGpuWithoutANameTellsIsNoXidOfEveryGpu) {
  MadeMachine made(
      "gpus:\n- {model: T4, count: 2}\nfaults:\n- {kind: lost, at: 5s, gpu: 1}\n"
      "- {kind: failCall, call: nvmlDeviceGetUUID, code: 15, gpu: 1}\n");
  made.facts();
  made.source->poll_events(0);
  made.to(5 * kSecondInUs);
  const auto events = made.source->poll_events(0);
  EXPECT_EQ(kinds(events), (std::vector{GpuEventKind::GpuLost, GpuEventKind::Other}));
}

TEST(NvmlSource, ADriverReloadIsSurvived) {
  MadeMachine made(R"(gpus:
- {model: T4}
faults:
- {kind: driverReload, at: 10s, for: 5s, driverVersion: 555.1}
)");
  EXPECT_EQ(made.facts().generation, 1U);
  made.to(11 * kSecondInUs);
  const auto away = made.source->facts();
  ASSERT_FALSE(away.has_value());
  EXPECT_EQ(away.error().code, Errc::Unavailable);
  EXPECT_EQ(made.source->poll_events(0).error().code, Errc::Unavailable);
  made.to(15 * kSecondInUs);
  EXPECT_EQ(kinds(made.source->poll_events(0)), std::vector{GpuEventKind::DriverReload});
  const NodeFacts node = made.facts();
  EXPECT_EQ(node.generation, 2U);
  EXPECT_EQ(node.driver_version, "555.1");
}

TEST(NvmlSource, EventsCarryTheirInstance) {
  MadeMachine made(R"(gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 3g.20gb}]
faults:
- {kind: xid, at: 1s, gpu: 0, instance: 0, code: 94}
- {kind: ecc, at: 1s, gpu: 0, code: 1, count: 2}
)");
  made.facts();
  made.to(kSecondInUs);
  const auto events = made.source->poll_events(0);
  EXPECT_EQ(kinds(events),
            (std::vector{GpuEventKind::Xid, GpuEventKind::EccDoubleBit, GpuEventKind::Xid}));
  EXPECT_EQ(events->at(0).code, 94U);
  EXPECT_EQ(events->at(0).gi_id, 1);
  EXPECT_EQ(events->at(0).uuid, made.uuid());
  EXPECT_EQ(made.sample().ecc.uncorrected_volatile, Reading<std::int64_t>(2));
}

TEST(NvmlSource, HotGpusAreSlowAndSaySo) {
  MadeMachine made(R"(gpus:
- {model: A100-SXM4-40GB, load: {shape: constant, high: 80}}
faults:
- {kind: thermal, at: 10s, for: 5s, gpu: 0, code: 93}
)");
  const GpuSample cool = made.sample();
  made.to(12 * kSecondInUs);
  const GpuSample hot = made.sample();
  EXPECT_EQ(hot.temperature_c, Reading<int>(93));
  EXPECT_LT(*hot.clocks.sm, *cool.clocks.sm);
  EXPECT_NE(*hot.throttle_reasons & kThrottleHwThermal, 0U);
  EXPECT_EQ(hot.violation_thermal_ns, Reading<std::int64_t>(2'000'000'000));
  EXPECT_GT(*hot.energy_mj, *cool.energy_mj);
}

TEST(NvmlSource, DriversWithoutFieldsTellTheTimeHeldBackTheOldWay) {
  MadeMachine made(R"(driver: {missingSymbols: [nvmlDeviceGetFieldValues]}
gpus:
- {model: A100-SXM4-40GB}
faults:
- {kind: thermal, at: 10s, for: 5s, gpu: 0, code: 93}
)");
  made.to(12 * kSecondInUs);
  const GpuSample hot = made.sample();
  EXPECT_EQ(hot.violation_thermal_ns, Reading<std::int64_t>(2'000'000'000));
  EXPECT_EQ(hot.violation_power_ns, Reading<std::int64_t>(0));
  EXPECT_EQ(hot.power_instant_mw.missing(), Missing::NotSupported);
}

TEST(NvmlSource, InstancesAreMadeAndUnmade) {
  MadeMachine made("gpus:\n- {model: A100-SXM4-40GB, migEnabled: true}\n");
  made.facts();
  const auto rows = made.source->create_instance(made.uuid(), 9, {.start = 4, .size = 4}, {});
  ASSERT_TRUE(rows.has_value()) << rows.error().what;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().profile, "3g.20gb");
  EXPECT_EQ(rows->front().placement, (MigPlacement{.start = 4, .size = 4}));
  EXPECT_EQ(made.facts().gpus[0].mig_instances, *rows);
  const auto taken = made.source->create_instance(made.uuid(), 0, {.start = 0, .size = 8}, {});
  EXPECT_EQ(taken.error().code, Errc::Conflict);
  EXPECT_EQ(made.source->create_instance(made.uuid(), 77, {}, {}).error().code, Errc::NotFound);
  ASSERT_TRUE(made.source->destroy_instance(made.uuid(), rows->front().gi_id).has_value());
  EXPECT_TRUE(made.facts().gpus[0].mig_instances.empty());
  EXPECT_EQ(made.source->destroy_instance(made.uuid(), 1).error().code, Errc::NotFound);
}

TEST(NvmlSource, AHalfMadeInstanceIsTakenBack) {
  MadeMachine made("gpus:\n- {model: A100-SXM4-40GB, migEnabled: true}\n");
  made.facts();
  // Two compute instances of three slices do not fit into a GPU instance of three.
  const auto rows = made.source->create_instance(made.uuid(), 9, {.start = 0, .size = 4}, {2, 2});
  EXPECT_EQ(rows.error().code, Errc::Conflict);
  EXPECT_TRUE(made.facts().gpus[0].mig_instances.empty());
}

TEST(NvmlSource, SeveralComputeInstancesInOne) {
  MadeMachine made("gpus:\n- {model: A100-SXM4-40GB, migEnabled: true}\n");
  made.facts();
  const auto rows = made.source->create_instance(made.uuid(), 9, {.start = 0, .size = 4}, {0, 0});
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->front().profile, "1c.3g.20gb");
  const auto third = made.source->create_compute_instance(made.uuid(), rows->front().gi_id, 0);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->ci_id, 2);
  for (const int ci_id : {0, 1, 2}) {
    EXPECT_TRUE(
        made.source->destroy_compute_instance(made.uuid(), third->gi_id, ci_id).has_value());
  }
  // A bare GPU instance is a row of its own.
  const auto bare = made.facts().gpus[0].mig_instances;
  ASSERT_EQ(bare.size(), 1U);
  EXPECT_EQ(bare[0].ci_id, -1);
}

TEST(NvmlSource, AComputeModeIsSetAndShown) {
  MadeMachine made("gpus:\n- {model: T4, count: 2}\n");
  EXPECT_EQ(made.facts().gpus[0].compute_mode, nvml::Reading<int>(0));
  EXPECT_TRUE(made.source->set_compute_mode(made.uuid(0), abi::kComputeExclusiveProcess));
  EXPECT_EQ(made.facts().gpus[0].compute_mode, nvml::Reading<int>(3));
  EXPECT_EQ(made.facts().gpus[1].compute_mode, nvml::Reading<int>(0));
  EXPECT_EQ(made.source->set_compute_mode(made.uuid(0), 7).error().code, Errc::Invalid);
  EXPECT_EQ(made.source->set_compute_mode("GPU-none", 0).error().code, Errc::NotFound);
}

TEST(NvmlSource, TheModeIsPendingOnAmpere) {
  MadeMachine made("gpus:\n- {model: A30}\n- {model: H100-SXM5-80GB}\n- {model: T4}\n");
  EXPECT_EQ(made.source->set_mig_mode(made.uuid(0), true), Result<bool>(false));
  EXPECT_EQ(made.source->set_mig_mode(made.uuid(1), true), Result<bool>(true));
  EXPECT_EQ(made.source->set_mig_mode(made.uuid(2), true).error().code, Errc::Invalid);
  EXPECT_TRUE(made.facts().gpus[0].mig_pending);
  EXPECT_FALSE(made.facts().gpus[0].mig_enabled);
}

TEST(NvmlSource, GpmNeedsTwoSamples) {
  MadeMachine made("gpus:\n- {model: H100-SXM5-80GB, load: {shape: constant, high: 60}}\n");
  made.facts();
  EXPECT_FALSE(made.sample().gpm.graphics_active.has_value());
  made.to(kSecondInUs);
  const GpuSample second = made.sample();
  ASSERT_TRUE(second.gpm.graphics_active.has_value());
  EXPECT_NEAR(*second.gpm.graphics_active, 0.6, 0.001);
}

TEST(NvmlSource, NoDriverIsUnavailable) {
  MadeMachine made("driver: {hasDriver: false}\n");
  EXPECT_EQ(made.source->facts().error().code, Errc::Unavailable);
  const auto none = NvmlSource::open("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Errc::Unavailable);
}

TEST(NvmlSource, ANodeWithoutGpusIsANode) {
  MadeMachine made("gpus: []\n");
  EXPECT_TRUE(made.facts().gpus.empty());
}

// Facts without what a new session must change.
NodeFacts comparable(NodeFacts node) {
  for (GpuFacts& gpu : node.gpus) {
    for (MigInstanceFacts& row : gpu.mig_instances) row.uuid.clear();
  }
  return node;
}

TEST(Record, ARecordingOfASimulationEqualsIt) {
  for (const std::string& name : sim::shipped_names()) {
    MadeMachine original(
        std::string(sim::shipped_text(name)).substr(sim::shipped_text(name).find("identity:")));
    const auto read = [](MadeMachine& made) {
      std::vector<GpuSample> samples;
      const NodeFacts node = made.facts();
      for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        samples.push_back(made.sample(static_cast<int>(i)));
      }
      return std::pair(node, samples);
    };
    const auto [node, samples] = read(original);
    const std::string text = sim::write_machine(record_machine(node, samples), "");
    MadeMachine copy(text.substr(text.find("driver:")));
    const auto [node_again, samples_again] = read(copy);
    EXPECT_EQ(comparable(node), comparable(node_again)) << name;
    EXPECT_EQ(sim::write_machine(record_machine(node_again, samples_again), "").size(), text.size())
        << name;
  }
}

}  // namespace
}  // namespace jogak::nvml
