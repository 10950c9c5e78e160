// SPDX-License-Identifier: Apache-2.0
//
// Every field of the table on simulated boards: which of them have a value, and that the values are
// those of the readings.
#include "agent/exporter/fields.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/exporter/counters.h"
#include "agent/exporter/render.h"
#include "agent/model/node_model.h"
#include "nvml/testing/made_machine.h"

namespace jogak::agent {
namespace {

using nvml::testing::MadeMachine;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr nvml::SampleWants kEverything = {.processes = true,
                                           .pcie_throughput = true,
                                           .gpm = true,
                                           .gpm_engines = true,
                                           .gpm_links = true,
                                           .links = true,
                                           .held = true};

// The page of a machine after two samples, with every field that there is.
std::string page_of(MadeMachine& machine, RenderOptions options = {}) {
  NodeModel model;
  model.on_facts(machine.facts(), 0);
  for (const TimeUs time : {10 * kSecondInUs, 11 * kSecondInUs}) {
    machine.to(time);
    for (const nvml::GpuFacts& gpu : machine.facts().gpus) {
      auto sample = machine.source->sample(gpu.uuid, kEverything);
      EXPECT_TRUE(sample);
      if (sample) model.on_sample(*std::move(sample));
    }
  }
  std::string csv;
  for (const Field& field : fields()) {
    csv +=
        fmt::format("{}, {}, h\n", field.name, field.kind == FieldKind::Label ? "label" : "gauge");
  }
  options.counters = *parse_counters("all", csv);
  options.own_series = false;
  return Renderer(options).render(*model.snapshot(11 * kSecondInUs), ExpositionFormat::Text);
}

std::set<std::string> without_series(const std::string& page) {
  std::set<std::string> missing;
  for (const Field& field : fields()) {
    const bool is_there = field.kind == FieldKind::Label
                              ? page.find("," + field.name + "=\"") != std::string::npos
                              : page.find("\n" + field.name + "{") != std::string::npos;
    if (!is_there) missing.insert(field.name);
  }
  return missing;
}

double value_of(const std::string& page, std::string_view name) {
  const std::size_t at = page.find(fmt::format("\n{}{{", name));
  if (at == std::string::npos) return -1;
  const std::size_t end = page.find('\n', at + 1);
  return std::stod(page.substr(page.rfind(' ', end) + 1, end));
}

constexpr std::string_view kHopper =
    "gpus: [{model: H100-SXM5-80GB, count: 2, load: {high: 50}, powerLimitMw: 600000,"
    " fabric: {state: 3, clusterUuid: 01020304-0506-0708-090a-0b0c0d0e0f10, cliqueId: 7}}]\n";

TEST(Fields, EachNameOnce) {
  EXPECT_EQ(std::ranges::adjacent_find(fields(), {}, &Field::name), fields().end());
  for (const Field& field : fields()) {
    EXPECT_FALSE(is_known_elsewhere(field.name) && find_field(field.name) == nullptr);
  }
}

TEST(Fields, AHopperBoardHasAllButTheOldOnes) {
  MadeMachine machine(kHopper);
  for (const std::string& name : without_series(page_of(machine))) {
    // It has no video encoder, its fans are in the chassis, and pages are retired before Ampere.
    EXPECT_THAT(name, AnyOf(HasSubstr("_FAN_SPEED"), HasSubstr("RETIRED"), HasSubstr("retired"),
                            HasSubstr("_ENC_UTIL"), HasSubstr("dcgm_enc_")));
  }
}

TEST(Fields, AnOldBoardHasNoProfilingAndNoLinks) {
  MadeMachine machine("gpus: [{model: T4, load: {high: 50}}]\n");
  const std::string page = page_of(machine);
  for (const Field& field : fields()) {
    if (field.id < 1001 || field.id >= 1100) continue;
    EXPECT_EQ(page.find("\n" + field.name + "{"), std::string::npos) << field.name;
  }
  EXPECT_EQ(page.find("\nDCGM_FI_DEV_NVLINK"), std::string::npos);
  EXPECT_EQ(page.find("FABRIC_CLIQUE"), std::string::npos);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_GPM_SUPPORT"), 0);
}

TEST(Fields, ValuesAreThoseOfTheReadings) {
  MadeMachine machine(kHopper);
  const std::string page = page_of(machine);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), 600);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_POWER_MGMT_LIMIT"), 600);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_CUDA_COMPUTE_CAPABILITY"), 9 * 65536);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_FABRIC_MANAGER_STATUS"), 3);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_FABRIC_CLIQUE_ID"), 7);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"), 1);
  EXPECT_THAT(
      page, HasSubstr(R"(DCGM_FI_DEV_FABRIC_CLUSTER_UUID="01020304-0506-0708-090a-0b0c0d0e0f10")"));
  EXPECT_EQ(value_of(page, "DCGM_EXP_P2P_STATUS"), 0);
  // The links of a board add up to what the board says.
  double tx = 0;
  double both = 0;
  double profiled = 0;
  for (int link = 0; link < 18; ++link) {
    tx += value_of(page, fmt::format("DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_L{}", link));
    both += value_of(page, fmt::format("DCGM_FI_DEV_NVLINK_BANDWIDTH_L{}", link));
    profiled += value_of(page, fmt::format("DCGM_FI_PROF_NVLINK_L{}_TX_BYTES", link));
  }
  EXPECT_GT(tx, 0);
  EXPECT_NEAR(tx, value_of(page, "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL"), 18);
  EXPECT_NEAR(both, value_of(page, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), 18);
  EXPECT_NEAR(profiled, value_of(page, "DCGM_FI_PROF_NVLINK_TX_BYTES"), 1);
}

TEST(Fields, AnInstanceHasItsOwnEnginesAndNoLinks) {
  MadeMachine machine(
      "gpus: [{model: H100-SXM5-80GB, migEnabled: true, migInstances: [{profile: 1g.10gb}]}]\n");
  const std::string page = page_of(machine, {.devices = *parse_device_choice("i")});
  EXPECT_THAT(page, HasSubstr("\nDCGM_FI_PROF_NVDEC0_ACTIVE{"));
  EXPECT_EQ(page.find("\nDCGM_FI_PROF_NVLINK_L0_TX_BYTES{"), std::string::npos);
}

// With MIG on the links are down: the board counts nothing on them, and has no rate of them either.
TEST(Fields, ACutBoardTellsOfPcieAndOfNoDataOverItsLinks) {
  MadeMachine machine(
      "gpus: [{model: H100-SXM5-80GB, migEnabled: true, migInstances: [{profile: 1g.10gb}],\n"
      "  processes: [{pid: 7, memoryMib: 10, smPercent: 50, instance: 0}]}]\n");
  const std::string page = page_of(machine);
  EXPECT_GT(value_of(page, "DCGM_FI_PROF_PCIE_TX_BYTES"), 0);
  EXPECT_EQ(page.find("\nDCGM_FI_PROF_NVLINK_TX_BYTES{"), std::string::npos);
  EXPECT_EQ(value_of(page, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), 0);
}

TEST(SampleWantsOf, AskForWhatIsPublishedAndNoMore) {
  const auto wants = [](std::string_view field) {
    return sample_wants(*parse_counters("c", fmt::format("{}, gauge, h\n", field)));
  };
  EXPECT_EQ(wants("DCGM_FI_DEV_GPU_TEMP"), (nvml::SampleWants{.gpm = false}));
  EXPECT_EQ(wants("DCGM_FI_PROF_DRAM_ACTIVE"), (nvml::SampleWants{.gpm = true}));
  EXPECT_EQ(wants("DCGM_FI_PROF_NVJPG3_ACTIVE"), (nvml::SampleWants{.gpm_engines = true}));
  EXPECT_EQ(wants("DCGM_FI_PROF_NVLINK_L3_TX_BYTES"), (nvml::SampleWants{.gpm_links = true}));
  EXPECT_EQ(wants("DCGM_FI_DEV_NVLINK_BANDWIDTH_L0"),
            (nvml::SampleWants{.gpm = false, .links = true}));
  EXPECT_EQ(wants("DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION"),
            (nvml::SampleWants{.gpm = false, .held = true}));
  EXPECT_EQ(wants("DCGM_FI_DEV_PCIE_TX_THROUGHPUT"),
            (nvml::SampleWants{.pcie_throughput = true, .gpm = false}));
  EXPECT_EQ(sample_wants(default_counters(Naming::Classic)), nvml::SampleWants{});
}

}  // namespace
}  // namespace jogak::agent
