// SPDX-License-Identifier: Apache-2.0
//
// Counters files, good ones and each way to go wrong.
#include "agent/exporter/counters.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string error_of(std::string_view text) {
  const auto counters = parse_counters("c.csv", text);
  return counters ? "no error" : counters.error().what;
}

TEST(Counters, ReadsFieldsTypesAndHelp) {
  const auto counters = parse_counters("c.csv",
                                       "# Format\n"
                                       "\n"
                                       "  # a comment, with commas, too\r\n"
                                       "DCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder (in %).\r\n"
                                       "DCGM_FI_DEV_PCIE_REPLAY_COUNTER,counter,Retries, all\n"
                                       "DCGM_FI_DRIVER_VERSION, label, Driver Version");
  ASSERT_TRUE(counters) << counters.error().what;
  ASSERT_EQ(counters->specs.size(), 3U);
  EXPECT_EQ(counters->specs[0].name, "DCGM_FI_DEV_DEC_UTIL");
  EXPECT_EQ(counters->specs[0].type, CounterType::Gauge);
  EXPECT_EQ(counters->specs[0].help, "Decoder (in %).");
  EXPECT_EQ(counters->specs[0].field->id, 207);
  EXPECT_EQ(counters->specs[1].type, CounterType::Counter);
  EXPECT_EQ(counters->specs[1].help, "Retries, all");
  EXPECT_EQ(counters->specs[2].type, CounterType::Label);
  EXPECT_THAT(counters->warnings, IsEmpty());
}

TEST(Counters, ReadsQuotedHelp) {
  const auto counters =
      parse_counters("c.csv", "DCGM_FI_DEV_GPU_TEMP, gauge, \"the \"\"core\"\", in C\"\n");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->specs[0].help, "the \"core\", in C");
}

// dcgm-exporter reads such a line; Prometheus' lint wants a text.
TEST(Counters, AnEmptyHelpIsTheName) {
  const auto counters = parse_counters("c.csv", "DCGM_FI_DEV_GPU_TEMP, gauge,  \n");
  ASSERT_TRUE(counters) << counters.error().what;
  EXPECT_EQ(counters->specs[0].help, "DCGM_FI_DEV_GPU_TEMP");
}

TEST(Counters, SkipsAByteOrderMark) {
  EXPECT_TRUE(parse_counters("c.csv",
                             "\xEF\xBB\xBF"
                             "DCGM_FI_DEV_GPU_TEMP, gauge, t"));
}

TEST(Counters, ErrorsNameTheLineAndTheCure) {
  struct Case {
    std::string_view text, error;
  };
  constexpr Case kCases[] = {
      {"", "c.csv: no counter in it; name at least one field"},
      {"# only\n", "c.csv: no counter in it; name at least one field"},
      {"\n\nDCGM_FI_DEV_GPU_UTLI, gauge, x",
       "c.csv:3: no such field \"DCGM_FI_DEV_GPU_UTLI\"; did you mean DCGM_FI_DEV_GPU_UTIL?"},
      {"temperature, gauge, x", "c.csv:1: no such field \"temperature\""},
      {"DCGM_FI_DEV_GPU_TEMP, guage, x",
       "c.csv:1: type \"guage\" of DCGM_FI_DEV_GPU_TEMP: use gauge, counter or label"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge",
       "c.csv:1: \"DCGM_FI_DEV_GPU_TEMP, gauge\" has not three columns; write FIELD, "
       "gauge|counter|label, help text"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, \"x",
       "c.csv:1: the help text of DCGM_FI_DEV_GPU_TEMP begins with a quote that does not end"},
      {"DCGM_FI_DRIVER_VERSION, gauge, x",
       "c.csv:1: DCGM_FI_DRIVER_VERSION is text: its type can only be label"},
      {"DCGM_FI_DEV_GPU_TEMP, label, x",
       "c.csv:1: DCGM_FI_DEV_GPU_TEMP is a number that changes: its type is gauge or counter"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, x\n\nDCGM_FI_DEV_GPU_TEMP, gauge, y",
       "c.csv:3: DCGM_FI_DEV_GPU_TEMP a second time; remove one of the two lines"},
      {"\xff\xfe", "c.csv: not UTF-8; save it as such"},
  };
  for (const Case& example : kCases) EXPECT_EQ(error_of(example.text), example.error);
}

TEST(Counters, FieldsOfOtherHardwareAreAllowedAndWarnedOf) {
  const auto counters = parse_counters("c.csv",
                                       "DCGM_FI_DEV_GPU_TEMP, gauge, t\n"
                                       "DCGM_FI_DEV_NVSWITCH_LINK_THROUGHPUT_RX, counter, x\n");
  ASSERT_TRUE(counters) << counters.error().what;
  EXPECT_EQ(counters->specs[1].field, nullptr);
  EXPECT_THAT(counters->warnings,
              ElementsAre("c.csv:2: DCGM_FI_DEV_NVSWITCH_LINK_THROUGHPUT_RX cannot be had through "
                          "NVML and has no series"));
}

TEST(Counters, AFileThatIsTooLargeIsRefused) {
  EXPECT_THAT(error_of(std::string(kCountersBytesMax + 1, 'x')), HasSubstr("no counters file"));
}

TEST(Counters, BothDefaultsAreWellFormed) {
  const Counters classic = default_counters(Naming::Classic);
  const Counters modern = default_counters(Naming::Modern);
  EXPECT_EQ(classic.specs.size(), 26U);
  EXPECT_THAT(classic.warnings, IsEmpty());
  EXPECT_THAT(modern.warnings, IsEmpty());
  for (const CounterSpec& spec : classic.specs) EXPECT_NE(spec.field, nullptr) << spec.name;
  EXPECT_EQ(parse_naming("modern"), Naming::Modern);
  EXPECT_THAT(parse_naming("new").error().what, HasSubstr("classic or modern"));
}

// dcgm-exporter's types, whatever one thinks of them: of what it switches on, these count.
TEST(Counters, TheClassicSetHasTheTypesOfDcgmExporter) {
  std::vector<std::string> counting;
  for (const CounterSpec& spec : default_counters(Naming::Classic).specs) {
    if (spec.type == CounterType::Counter) counting.push_back(spec.name);
  }
  EXPECT_THAT(counting, UnorderedElementsAre("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                                             "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
                                             "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
                                             "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
                                             "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"));
}

// Each line of its file for users of version 1, switched on or in a comment.
TEST(Counters, KnowsTheNamesOfVersion1) {
  for (const std::string_view name : {"sm_clock",
                                      "memory_clock",
                                      "memory_temp",
                                      "gpu_temp",
                                      "power_usage",
                                      "total_energy_consumption",
                                      "pcie_tx_throughput",
                                      "pcie_rx_throughput",
                                      "pcie_replay_counter",
                                      "gpu_utilization",
                                      "mem_copy_utilization",
                                      "enc_utilization",
                                      "dec_utilization",
                                      "xid_errors",
                                      "power_violation",
                                      "thermal_violation",
                                      "sync_boost_violation",
                                      "board_limit_violation",
                                      "low_util_violation",
                                      "reliability_violation",
                                      "fb_free",
                                      "fb_used",
                                      "ecc_sbe_volatile_total",
                                      "ecc_dbe_volatile_total",
                                      "ecc_sbe_aggregate_total",
                                      "ecc_dbe_aggregate_total",
                                      "retired_pages_sbe",
                                      "retired_pages_dbe",
                                      "retired_pages_pending",
                                      "nvlink_flit_crc_error_count_total",
                                      "nvlink_data_crc_error_count_total",
                                      "nvlink_replay_error_count_total",
                                      "nvlink_recovery_error_count_total",
                                      "nvlink_bandwidth_total",
                                      "fi_prof_gr_engine_active",
                                      "fi_prof_sm_active",
                                      "fi_prof_sm_occupancy",
                                      "fi_prof_pipe_tensor_active",
                                      "fi_prof_dram_active",
                                      "fi_prof_pcie_tx_bytes",
                                      "fi_prof_pcie_rx_bytes"}) {
    EXPECT_NE(find_field(fmt::format("dcgm_{}", name)), nullptr) << name;
  }
  EXPECT_EQ(find_field("dcgm_fb_used")->share, Field::Share::Memory);
  EXPECT_EQ(find_field("dcgm_pcie_tx_throughput")->cost, FieldCost::Pcie);
}

// Names that dcgm-exporter ships, switched on or in comments.
TEST(Counters, KnowsEveryFieldOfTheShippedFiles) {
  for (const std::string_view name : {"DCGM_FI_DEV_SM_CLOCK",
                                      "DCGM_FI_DEV_MEM_CLOCK",
                                      "DCGM_FI_DEV_MEMORY_TEMP",
                                      "DCGM_FI_DEV_GPU_TEMP",
                                      "DCGM_FI_DEV_POWER_USAGE",
                                      "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                                      "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
                                      "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
                                      "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
                                      "DCGM_FI_DEV_GPU_UTIL",
                                      "DCGM_FI_DEV_MEM_COPY_UTIL",
                                      "DCGM_FI_DEV_ENC_UTIL",
                                      "DCGM_FI_DEV_DEC_UTIL",
                                      "DCGM_FI_DEV_XID_ERRORS",
                                      "DCGM_FI_DEV_POWER_VIOLATION",
                                      "DCGM_FI_DEV_THERMAL_VIOLATION",
                                      "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
                                      "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
                                      "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
                                      "DCGM_FI_DEV_RELIABILITY_VIOLATION",
                                      "DCGM_FI_DEV_FB_FREE",
                                      "DCGM_FI_DEV_FB_USED",
                                      "DCGM_FI_DEV_FB_RESERVED",
                                      "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
                                      "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
                                      "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
                                      "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
                                      "DCGM_FI_DEV_RETIRED_SBE",
                                      "DCGM_FI_DEV_RETIRED_DBE",
                                      "DCGM_FI_DEV_RETIRED_PENDING",
                                      "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
                                      "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
                                      "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
                                      "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
                                      "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
                                      "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
                                      "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
                                      "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
                                      "DCGM_FI_DEV_ROW_REMAP_FAILURE",
                                      "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                                      "DCGM_FI_PROF_SM_ACTIVE",
                                      "DCGM_FI_PROF_SM_OCCUPANCY",
                                      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                                      "DCGM_FI_PROF_DRAM_ACTIVE",
                                      "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
                                      "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
                                      "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
                                      "DCGM_FI_PROF_PCIE_TX_BYTES",
                                      "DCGM_FI_PROF_PCIE_RX_BYTES",
                                      "DCGM_FI_PROF_NVLINK_TX_BYTES",
                                      "DCGM_FI_PROF_NVLINK_RX_BYTES",
                                      "DCGM_EXP_XID_ERRORS_COUNT",
                                      "DCGM_EXP_CLOCK_EVENTS_COUNT",
                                      "DCGM_EXP_GPU_HEALTH_STATUS",
                                      "DCGM_EXP_P2P_STATUS",
                                      "dcgm_fi_prof_gr_engine_active",
                                      "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0"}) {
    EXPECT_NE(find_field(name), nullptr) << name;
  }
  for (const std::string_view name :
       {"DCGM_FI_NVML_VERSION", "DCGM_FI_DEV_BRAND", "DCGM_FI_DEV_SERIAL",
        "DCGM_FI_DEV_OEM_INFOROM_VER", "DCGM_FI_DEV_ECC_INFOROM_VER",
        "DCGM_FI_DEV_POWER_INFOROM_VER", "DCGM_FI_DEV_INFOROM_IMAGE_VER",
        "DCGM_FI_DEV_VBIOS_VERSION"}) {
    ASSERT_NE(find_field(name), nullptr) << name;
    EXPECT_EQ(find_field(name)->kind, FieldKind::Label) << name;
  }
  for (const std::string_view name :
       {"DCGM_FI_DEV_CPU_TEMP_CURRENT", "DCGM_FI_DEV_NVSWITCH_TEMP_CELSIUS"}) {
    EXPECT_TRUE(is_known_elsewhere(name)) << name;
  }
}

}  // namespace
}  // namespace jogak::agent
