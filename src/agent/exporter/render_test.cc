// SPDX-License-Identifier: Apache-2.0
//
// The text of a node: every line of a small one, then one question each.
#include "agent/exporter/render.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/model/testing/made_node.h"

namespace jogak::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGib;
using testing::made_facts;
using testing::made_holdings;
using testing::made_sample;
using testing::made_uuid;
using ::testing::Not;

constexpr TimeUs kStart = 1'700'000'010 * kSecondInUs;
constexpr ExpositionFormat kText = ExpositionFormat::Text;
constexpr ExpositionFormat kOpen = ExpositionFormat::OpenMetrics;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    EXPECT_NE(end, std::string_view::npos) << "the last line has no end";
    if (end == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

class RenderTest : public ::testing::Test {
 protected:
  void start(const testing::MadeNode& made) {
    facts = made_facts(made);
    model.on_facts(facts, now);
    sample_all();
  }
  void sample_all() {
    for (const nvml::GpuFacts& gpu : facts.gpus) model.on_sample(made_sample(gpu, now));
  }
  static RenderOptions with(std::string_view csv) {
    auto counters = parse_counters("test", csv);
    EXPECT_TRUE(counters) << counters.error().what;
    RenderOptions options;
    options.counters = *std::move(counters);
    options.own_series = false;
    return options;
  }
  std::vector<std::string> render(RenderOptions options, ExpositionFormat format = kText) {
    Renderer renderer(std::move(options));
    return lines_of(renderer.render(*model.snapshot(now), format));
  }
  // Lines of samples only, of a counters file with these fields as gauges.
  std::vector<std::string> samples(std::string_view fields, RenderOptions options = {}) {
    std::string csv;
    while (!fields.empty()) {
      const std::size_t end = std::min(fields.find(' '), fields.size());
      csv += fmt::format("{}, gauge, h\n", fields.substr(0, end));
      fields.remove_prefix(std::min(end + 1, fields.size()));
    }
    options.counters = with(csv).counters;
    options.own_series = false;
    std::vector<std::string> lines = render(std::move(options));
    std::erase_if(lines, [](const std::string& line) { return line.starts_with('#'); });
    return lines;
  }
  // The same without labels: "NAME VALUE".
  std::vector<std::string> values(std::string_view fields) {
    std::vector<std::string> short_lines;
    for (const std::string& line : samples(fields)) {
      short_lines.push_back(line.substr(0, line.find('{')) + line.substr(line.rfind(' ')));
    }
    return short_lines;
  }

  NodeModel model;
  nvml::NodeFacts facts;
  TimeUs now = kStart;
};

constexpr std::string_view kGpu0 =
    R"(gpu="0",UUID="GPU-b850f46d-0000-4c3d-8e5f-0123456789ab",pci_bus_id="00000000:10:00.0",)"
    R"(device="nvidia0",modelName="NVIDIA H100 80GB HBM3")";

TEST_F(RenderTest, WritesHeadsOnceAndLabelsInTheKnownOrder) {
  start({.gpus = 1});
  model.on_holdings(made_holdings(facts), now);
  RenderOptions options = with(
      "DCGM_FI_DEV_GPU_TEMP, gauge, GPU \"temp\" (in C).\n"
      "DCGM_FI_DRIVER_VERSION, label, Driver\n"
      "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy\n");
  options.hostname = "node-1";
  const std::string labels =
      fmt::format(R"({{{},Hostname="node-1",DCGM_FI_DRIVER_VERSION="550.90.07",)"
                  R"(container="main",namespace="team-a",pod="train-0-0"}})",
                  kGpu0);
  EXPECT_THAT(
      render(options),
      ElementsAre("# HELP DCGM_FI_DEV_GPU_TEMP GPU \"temp\" (in C).",
                  "# TYPE DCGM_FI_DEV_GPU_TEMP gauge", "DCGM_FI_DEV_GPU_TEMP" + labels + " 50",
                  "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy",
                  "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter",
                  "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + " 510000003000000"));
  EXPECT_THAT(render(options, kOpen),
              ElementsAre("# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
                          "# HELP DCGM_FI_DEV_GPU_TEMP GPU \\\"temp\\\" (in C).",
                          "DCGM_FI_DEV_GPU_TEMP" + labels + " 50",
                          "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown",
                          "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy",
                          "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + " 510000003000000"));
}

TEST_F(RenderTest, EachNameHasItsUnit) {
  start({.gpus = 1});
  EXPECT_THAT(
      values("DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_SM_CLOCK_HERTZ DCGM_FI_DEV_POWER_USAGE "
             "DCGM_FI_DEV_BOARD_POWER_WATTS DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL "
             "DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_GPU_UTIL_RATIO DCGM_FI_DEV_FB_USED "
             "DCGM_FI_DEV_FB_USED_BYTES DCGM_FI_DEV_FB_USED_PERCENT"),
      ElementsAre("DCGM_FI_DEV_SM_CLOCK 1980", "DCGM_FI_DEV_SM_CLOCK_HERTZ 1980000000",
                  "DCGM_FI_DEV_POWER_USAGE 330.000000", "DCGM_FI_DEV_BOARD_POWER_WATTS 330.000000",
                  "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL 510000003000", "DCGM_FI_DEV_GPU_UTIL 50",
                  "DCGM_FI_DEV_GPU_UTIL_RATIO 0.500000", "DCGM_FI_DEV_FB_USED 40960",
                  "DCGM_FI_DEV_FB_USED_BYTES 42949672960", "DCGM_FI_DEV_FB_USED_PERCENT 0.505051"));
}

TEST_F(RenderTest, WhatIsNotMeasuredHasNoSeriesAndNoHead) {
  start({.gpus = 1});
  EXPECT_THAT(render(with("DCGM_FI_DEV_FAN_SPEED, gauge, f")), IsEmpty());
  nvml::GpuSample sample = made_sample(facts.gpus[0], now);
  sample.temperature_c = nvml::Missing::Failed;
  sample.gpm.dram_active = std::numeric_limits<double>::quiet_NaN();
  model.on_sample(sample);
  EXPECT_THAT(samples("DCGM_FI_DEV_GPU_TEMP DCGM_FI_PROF_DRAM_ACTIVE"), IsEmpty());
}

TEST_F(RenderTest, ALostGpuHasNoValuesAndTheOthersHaveTheirs) {
  start({.gpus = 3});
  model.on_event(
      {.uuid = facts.gpus[1].uuid, .kind = nvml::GpuEventKind::GpuLost, .code = 0, .time = now});
  EXPECT_EQ(samples("DCGM_FI_DEV_GPU_TEMP").size(), 2U);
  RenderOptions options = with("DCGM_FI_DEV_GPU_TEMP, gauge, t");
  options.own_series = true;
  EXPECT_THAT(render(options),
              Contains(fmt::format("jogak_gpu_up{{gpu=\"1\",UUID=\"{}\"}} 0", facts.gpus[1].uuid)));
}

TEST_F(RenderTest, OfAGpuThatIsCutTheBoardIsToldOnceAndMemoryByInstance) {
  start({.gpus = 1, .instances = 2});
  model.on_holdings(made_holdings(facts), now);
  const auto lines = samples("DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_FB_FREE");
  const auto instance = [&](int gi, int pod) {
    return fmt::format(R"(DCGM_FI_DEV_FB_FREE{{{},GPU_I_PROFILE="1g.10gb",GPU_I_ID="{}",)"
                       R"(container="main",namespace="team-a",pod="train-0-{}"}} 7065)",
                       kGpu0, gi, pod);
  };
  EXPECT_THAT(lines, ElementsAre(fmt::format("DCGM_FI_DEV_POWER_USAGE{{{}}} 330.000000", kGpu0),
                                 instance(7, 0), instance(8, 1)));
}

TEST_F(RenderTest, OrEveryInstanceRepeatsItsBoardAsDcgmExporterDoes) {
  start({.gpus = 1, .instances = 2});
  RenderOptions options;
  options.mig_parent = MigParent::Repeat;
  const auto lines = samples("DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_FB_FREE", options);
  ASSERT_EQ(lines.size(), 4U);
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("GPU_I_ID"));
  EXPECT_EQ(parse_mig_parent("repeat"), MigParent::Repeat);
  EXPECT_EQ(parse_mig_parent("once"), MigParent::Once);
  EXPECT_EQ(parse_mig_parent("twice").error().what, "\"twice\" is not once or repeat");
}

TEST_F(RenderTest, DevicesCanBeChosen) {
  start({.gpus = 2, .instances = 2});
  const auto count = [&](std::string_view choice, std::string_view field) {
    RenderOptions options;
    options.devices = parse_device_choice(choice).value();
    return samples(field, options).size();
  };
  EXPECT_EQ(count("f", "DCGM_FI_DEV_FB_USED"), 4U);
  EXPECT_EQ(count("g", "DCGM_FI_DEV_FB_USED"), 2U);
  EXPECT_EQ(count("g:1", "DCGM_FI_DEV_GPU_TEMP"), 1U);
  EXPECT_EQ(count("i", "DCGM_FI_DEV_FB_USED"), 4U);
  EXPECT_EQ(count("i:0,3", "DCGM_FI_DEV_FB_USED"), 2U);
  EXPECT_EQ(count("i", "DCGM_FI_DEV_GPU_TEMP"), 0U);
  EXPECT_EQ(count("i:1-3", "DCGM_FI_DEV_FB_USED"), 3U);
  EXPECT_EQ(count("g+i", "DCGM_FI_DEV_FB_USED"), 6U);
  EXPECT_EQ(count("g:0+i:2-3", "DCGM_FI_DEV_FB_USED"), 3U);
  EXPECT_EQ(count("i:0+g:1", "DCGM_FI_DEV_GPU_TEMP"), 1U);
}

// The kubelet lists a container that still initialises beside those that follow it.
TEST_F(RenderTest, TwoContainersOfAPodAreNoSharing) {
  start({.gpus = 1});
  std::vector<Holding> holdings = made_holdings(facts);
  holdings.push_back(holdings[0]);
  holdings[1].holder.container = "init";
  model.on_holdings(holdings, now);
  const auto lines = render({});
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("DCGM_FI_DEV_GPU_UTIL{"),
                                    HasSubstr(R"(,namespace="team-a",pod="train-0-0"})"),
                                    Not(HasSubstr("container=")))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("jogak_gpu_pod_"))));
  // Another pod, and it is shared.
  holdings[1].holder.pod = "other";
  model.on_holdings(holdings, now);
  EXPECT_THAT(render({}), Contains(HasSubstr("jogak_gpu_pod_memory_used_bytes{")));
}

TEST_F(RenderTest, AGpuThatWasLostBeforeItHadANameIsDown) {
  facts = made_facts({.gpus = 2});
  facts.gpus[1] = nvml::GpuFacts();
  facts.gpus[1].index = 1;
  facts.gpus[1].is_lost = true;
  model.on_facts(facts, now);
  model.on_sample(made_sample(facts.gpus[0], now));
  const auto lines = render({});
  EXPECT_THAT(lines, Contains(R"(jogak_gpu_up{gpu="1",UUID=""} 0)"));
  EXPECT_THAT(lines, Contains(R"(jogak_gpu_usable{gpu="1",UUID=""} 0)"));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("jogak_gpu_up{gpu=\"0\""), EndsWith(" 1"))));
}

TEST(DeviceChoice, IsReadAsDcgmExporterReadsIt) {
  EXPECT_EQ(parse_device_choice("f"), DeviceChoice{});
  EXPECT_EQ(parse_device_choice("g:1,3-5"),
            (DeviceChoice{.flex = false, .gpus = true, .gpu_ids = {1, 3, 4, 5}}));
  EXPECT_EQ(parse_device_choice("i:2+g"),
            (DeviceChoice{.flex = false, .gpus = true, .instances = true, .instance_ids = {2}}));
  for (const std::string_view bad : {"", "x", "f:1", "g:", "g:a", "i:1,", "g:-1", "g:3-1",
                                     "g:1-2-3", "f+g", "g+", "+g", "g+g:1", "g:1:2", "g:0-99999"}) {
    EXPECT_FALSE(parse_device_choice(bad)) << bad;
  }
  EXPECT_EQ(parse_device_choice("g:3-1").error().what,
            "devices \"g:3-1\": 3-1 goes backwards; write 1-3");
}

// Nobody measures which instance data over PCIe was for: it is the board's, and never repeated.
TEST_F(RenderTest, RatesOfTheBoardAreToldOfACutGpu) {
  start({.gpus = 1, .instances = 2});
  const auto lines = samples("DCGM_FI_PROF_PCIE_TX_BYTES");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], Not(HasSubstr("GPU_I_ID")));
  RenderOptions options;
  options.mig_parent = MigParent::Repeat;
  EXPECT_THAT(samples("DCGM_FI_PROF_PCIE_TX_BYTES", options), IsEmpty());
}

TEST_F(RenderTest, AnXidThatNobodyKnowsIsCalledSo) {
  start({.gpus = 1});
  model.on_event(
      {.uuid = facts.gpus[0].uuid, .kind = nvml::GpuEventKind::Xid, .code = 999, .time = now});
  EXPECT_THAT(samples("DCGM_FI_DEV_XID_ERRORS"),
              ElementsAre(HasSubstr(R"(,err_code="999",err_msg="Unknown Error"} 999)")));
}

TEST_F(RenderTest, SwitchesOfTheIncumbent) {
  start({.gpus = 1});
  std::vector<Holding> holdings = made_holdings(facts);
  holdings[0].holder.pod_uid = "uid-1";
  model.on_holdings(holdings, now);
  RenderOptions options;
  options.old_names = true;
  options.pod_uid = true;
  options.blanks_to_dashes = true;
  options.naming = Naming::Modern;
  options.hostname = "n";
  const auto lines = samples("DCGM_FI_DEV_GPU_TEMP", options);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr(R"(uuid="GPU-)"));
  EXPECT_THAT(lines[0], HasSubstr(R"(modelName="NVIDIA-H100-80GB-HBM3",hostname="n",)"
                                  R"(container_name="main",pod_namespace="team-a",)"
                                  R"(pod_name="train-0-0",pod_uid="uid-1")"));
  options.pod_labels = false;
  EXPECT_THAT(samples("DCGM_FI_DEV_GPU_TEMP", options)[0], Not(HasSubstr("train")));
}

TEST_F(RenderTest, EscapesWhatOthersNamed) {
  facts = made_facts({.gpus = 1});
  facts.gpus[0].name = "a \"quoted\" \\ name\nwith two lines";
  model.on_facts(facts, now);
  sample_all();
  EXPECT_THAT(samples("DCGM_FI_DEV_GPU_TEMP")[0],
              HasSubstr(R"(modelName="a \"quoted\" \\ name\nwith two lines")"));
}

TEST_F(RenderTest, TheLastXidHasItsTextAndCountsHaveTheirWindow) {
  start({.gpus = 1});
  const std::string_view fields =
      "DCGM_FI_DEV_XID_ERRORS DCGM_EXP_XID_ERRORS_COUNT DCGM_EXP_XID_ERRORS_TOTAL";
  const auto line = [&](std::string_view name, std::string_view more, int value) {
    return fmt::format("{}{{{}{}}} {}", name, kGpu0, more, value);
  };
  EXPECT_THAT(samples(fields),
              ElementsAre(line("DCGM_FI_DEV_XID_ERRORS", R"(,err_code="0",err_msg="No Error")", 0),
                          line("DCGM_EXP_XID_ERRORS_COUNT", R"(,window_size_in_ms="300000")", 0),
                          line("DCGM_EXP_XID_ERRORS_TOTAL", "", 0)));
  for (const std::uint64_t code : {31U, 31U, 79U}) {
    model.on_event(
        {.uuid = facts.gpus[0].uuid, .kind = nvml::GpuEventKind::Xid, .code = code, .time = now});
  }
  EXPECT_THAT(
      samples(fields),
      ElementsAre(line("DCGM_FI_DEV_XID_ERRORS",
                       R"(,err_code="79",err_msg="GPU has fallen off the bus")", 79),
                  line("DCGM_EXP_XID_ERRORS_COUNT", R"(,window_size_in_ms="300000",xid="31")", 2),
                  line("DCGM_EXP_XID_ERRORS_COUNT", R"(,window_size_in_ms="300000",xid="79")", 1),
                  line("DCGM_EXP_XID_ERRORS_TOTAL", R"(,xid="31")", 2),
                  line("DCGM_EXP_XID_ERRORS_TOTAL", R"(,xid="79")", 1)));
}

TEST_F(RenderTest, HealthIsToldByWatchOfDcgm) {
  start({.gpus = 1});
  for (const int gi : {-1, 7}) {
    model.on_event({.uuid = facts.gpus[0].uuid,
                    .kind = nvml::GpuEventKind::Xid,
                    .code = 62,
                    .gi_id = gi,
                    .time = now});
  }
  const auto line = [&](std::string_view watch, std::string_view error, int value) {
    return fmt::format(
        R"(DCGM_EXP_GPU_HEALTH_STATUS{{{},health_watch="{}",health_error_code="{}"}} {})", kGpu0,
        watch, error, value);
  };
  // Each watch once, whether it has something to say or not.
  const auto lines = samples("DCGM_EXP_GPU_HEALTH_STATUS");
  EXPECT_EQ(lines.size(), health_watches().size());
  EXPECT_THAT(lines, Contains(line("ALL", "DCGM_FR_XID_ERROR", 20)));
  EXPECT_THAT(lines, Contains(line("MEM", "DCGM_FR_OK", 0)));
}

TEST_F(RenderTest, WhatProgramsDoToThemselvesIsNoIncident) {
  start({.gpus = 1});
  model.on_event(
      {.uuid = facts.gpus[0].uuid, .kind = nvml::GpuEventKind::Xid, .code = 31, .time = now});
  for (const std::string& line : samples("DCGM_EXP_GPU_HEALTH_STATUS")) {
    EXPECT_THAT(line, HasSubstr("DCGM_FR_OK"));
  }
}

TEST_F(RenderTest, PeersAreToldByPair) {
  start({.gpus = 3});
  for (nvml::GpuFacts& gpu : facts.gpus) gpu.links.resize(3);
  facts.gpus[0].links[1].p2p_nvlink = 0;
  facts.gpus[0].links[2].p2p_nvlink = 3;
  model.on_facts(facts, now);
  EXPECT_THAT(
      samples("DCGM_EXP_P2P_STATUS"),
      ElementsAre(
          fmt::format(R"(DCGM_EXP_P2P_STATUS{{{},peer_gpu="1",link_status="OK"}} 0)", kGpu0),
          fmt::format(
              R"(DCGM_EXP_P2P_STATUS{{{},peer_gpu="2",link_status="TopologyNotSupported"}} 3)",
              kGpu0)));
}

TEST_F(RenderTest, NumbersThatDoNotChangeMayBeLabels) {
  start({.gpus = 1});
  RenderOptions options =
      with("DCGM_FI_DEV_GPU_TEMP, gauge, h\nDCGM_FI_DEV_MINOR_NUMBER, label, h\n");
  EXPECT_THAT(render(options), Contains(HasSubstr(R"(,DCGM_FI_DEV_MINOR_NUMBER="0"})")));
}

TEST_F(RenderTest, LabelsOfPodsByTheAllowList) {
  start({.gpus = 1});
  model.on_holdings(made_holdings(facts), now);
  model.on_pods(
      {{{"team-a", "train-0-0"},
        {.uid = "u-1", .labels = {{"app.kubernetes.io/name", "t"}, {"job", "j"}, {"pod", "x"}}}}});
  RenderOptions options = with("DCGM_FI_DEV_GPU_TEMP, gauge, h\n");
  EXPECT_THAT(render(options), Contains(HasSubstr(R"(pod="train-0-0"} )")));
  options.pod_k8s_labels = options.pod_uid = true;
  // A label of the pod never takes the place of one of ours.
  EXPECT_THAT(
      render(options),
      Contains(HasSubstr(R"(pod="train-0-0",pod_uid="u-1",app_kubernetes_io_name="t",job="j"} )")));
  options.pod_label_allowlist = {"^app\\.", "none"};
  EXPECT_THAT(render(options),
              Contains(HasSubstr(R"(pod_uid="u-1",app_kubernetes_io_name="t"} )")));
}

TEST(LabelAllowlist, ABadExpressionIsNamed) {
  EXPECT_TRUE(check_label_allowlist({"^app", ".*"}));
  const auto bad = check_label_allowlist({"^app", "("});
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().what, HasSubstr("\"(\" is no regular expression"));
}

TEST_F(RenderTest, JobsOfADeviceAreALabel) {
  start({.gpus = 2, .instances = 1});
  Renderer renderer(with("DCGM_FI_DEV_FB_USED, gauge, h\n"));
  EXPECT_THAT(renderer.render(*model.snapshot(now), kText), Not(HasSubstr("hpc_job")));
  renderer.set_jobs({{"0.7", {"41", "42"}}, {"1", {"43"}}});
  const auto lines = lines_of(renderer.render(*model.snapshot(now), kText));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr(R"(gpu="0")"), HasSubstr(R"(hpc_job="41,42")"))));
  // GPU 1 is cut, and the job was of the whole GPU.
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr(R"(gpu="1")"), Not(HasSubstr("hpc_job")))));
  renderer.set_jobs({});
  EXPECT_THAT(renderer.render(*model.snapshot(now), kText), Not(HasSubstr("hpc_job")));
}

class SharedGpuTest : public RenderTest {
 protected:
  SharedGpuTest() {
    start({.gpus = 1});
    std::vector<Holding> holdings;
    for (const int n : {0, 1, 2}) {
      holdings.push_back({.resource = "nvidia.com/gpu",
                          .device_id = fmt::format("{}::{}", facts.gpus[0].uuid, n),
                          .holder = holder(n)});
    }
    model.on_holdings(holdings, now);
    ProcessOwners owners = {{11, holder(0)}, {12, holder(0)}, {21, holder(1)}};
    model.on_owners(owners);
    sample({{11, 2, 10}, {12, 1, 15}, {21, 4, 30}, {99, 5, 40}});
  }
  static Holder holder(int n) {
    return {.pod_namespace = "n", .pod = fmt::format("p{}", n), .container = "c", .pod_uid = ""};
  }
  struct Process {
    std::int64_t pid, gib;
    int sm;
  };
  void sample(const std::vector<Process>& processes) {
    nvml::GpuSample made = made_sample(facts.gpus[0], now);
    std::vector<nvml::ProcessFacts> list;
    for (const Process& process : processes) {
      nvml::ProcessFacts fact;
      fact.pid = process.pid;
      fact.memory_bytes = process.gib * kGib;
      fact.sm_percent = process.sm;
      list.push_back(fact);
    }
    made.processes = list;
    model.on_sample(made);
  }
  std::vector<std::string> own(std::string_view name) {
    RenderOptions options = with("DCGM_FI_DEV_GPU_TEMP, gauge, t");
    options.own_series = true;
    std::vector<std::string> lines = render(options);
    std::erase_if(lines, [&](const std::string& line) { return !line.starts_with(name); });
    for (std::string& line : lines) line.erase(0, line.find("UUID=") + 48);
    return lines;
  }
};

TEST_F(SharedGpuTest, ADevicesValueIsToldOnceWithoutAPod) {
  EXPECT_THAT(samples("DCGM_FI_DEV_GPU_UTIL"),
              ElementsAre(fmt::format("DCGM_FI_DEV_GPU_UTIL{{{}}} 50", kGpu0)));
}

TEST_F(SharedGpuTest, EachPodIsToldWhatItsProcessesUse) {
  const auto pod = [](int n, std::string_view value) {
    return fmt::format(R"(container="c",namespace="n",pod="p{}"}} {})", n, value);
  };
  EXPECT_THAT(own("jogak_gpu_pod_memory_used_bytes{"),
              ElementsAre(pod(0, "3221225472"), pod(1, "4294967296"), pod(2, "0")));
  EXPECT_THAT(own("jogak_gpu_pod_sm_ratio{"),
              ElementsAre(pod(0, "0.250000"), pod(1, "0.300000"), pod(2, "0.000000")));
  EXPECT_THAT(own("jogak_gpu_unattributed_memory_used_bytes{"),
              ElementsAre(HasSubstr("5368709120")));
}

TEST_F(SharedGpuTest, VirtualGpusTellTheDcgmFieldsByPodToo) {
  RenderOptions options;
  options.virtual_gpus = true;
  const auto pod = [&](int n, std::string_view value) {
    return fmt::format(
        R"(DCGM_FI_DEV_FB_USED{{{},vgpu="{}",container="c",namespace="n",pod="p{}"}})"
        R"( {})",
        kGpu0, n, n, value);
  };
  EXPECT_THAT(samples("DCGM_FI_DEV_FB_USED DCGM_FI_DEV_GPU_TEMP", options),
              ElementsAre(fmt::format("DCGM_FI_DEV_FB_USED{{{}}} 40960", kGpu0), pod(0, "3072"),
                          pod(1, "4096"), pod(2, "0"),
                          fmt::format("DCGM_FI_DEV_GPU_TEMP{{{}}} 50", kGpu0)));
}

TEST_F(SharedGpuTest, WhatNvmlDoesNotTellByProcessIsNotTold) {
  nvml::GpuSample made = made_sample(facts.gpus[0], now);
  made.processes = nvml::Missing::NotSupported;
  model.on_sample(made);
  EXPECT_THAT(own("jogak_gpu_pod_memory_used_bytes{"), IsEmpty());
  std::vector<nvml::ProcessFacts> list(1);
  list[0].pid = 11;
  list[0].memory_bytes = kGib;
  list[0].sm_percent = nvml::Missing::NotSupported;
  made.processes = list;
  model.on_sample(made);
  EXPECT_EQ(own("jogak_gpu_pod_memory_used_bytes{").size(), 3U);
  EXPECT_EQ(own("jogak_gpu_pod_sm_ratio{").size(), 2U) << "all but the pod of the process";
}

TEST_F(SharedGpuTest, SharesNeverExceedTheWhole) {
  sample({{11, 1, 70}, {12, 1, 60}});
  EXPECT_THAT(own("jogak_gpu_pod_sm_ratio{"), Contains(HasSubstr("1.000000")));
}

// No two samples with one label set, no family in two places: a server drops the whole scrape.
TEST_F(RenderTest, NoSeriesIsThereTwice) {
  start({.gpus = 8, .instances = 7});
  model.on_holdings(made_holdings(facts), now);
  std::string csv;
  for (const Field& field : fields()) {
    csv +=
        fmt::format("{}, {}, h\n", field.name, field.kind == FieldKind::Label ? "label" : "gauge");
  }
  for (const MigParent parent : {MigParent::Once, MigParent::Repeat}) {
    RenderOptions options = with(csv);
    options.own_series = true;
    options.mig_parent = parent;
    std::set<std::string> series, families;
    std::string family;
    for (const std::string& line : render(options)) {
      if (line.starts_with("# HELP ")) {
        const std::string name = line.substr(7, line.find(' ', 7) - 7);
        EXPECT_TRUE(families.insert(name).second) << name;
        family = name;
      } else if (!line.starts_with('#')) {
        EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
        EXPECT_TRUE(line.starts_with(family + "{")) << line;
      }
    }
    EXPECT_GT(series.size(), 1000U);
  }
}

TEST_F(RenderTest, ADenseNodeFitsIn200Kilobytes) {
  start({.gpus = 8, .instances = 7});
  model.on_holdings(made_holdings(facts), now);
  RenderOptions options;
  options.hostname = "gpu-node-0001.example.com";
  Renderer renderer(std::move(options));
  const std::string text = renderer.render(*model.snapshot(now), kText);
  EXPECT_LT(text.size(), 200U * 1000) << text.size();
}

TEST_F(RenderTest, LabelsFollowTheHolders) {
  start({.gpus = 1});
  Renderer renderer(with("DCGM_FI_DEV_GPU_TEMP, gauge, t"));
  const auto text = [&] { return renderer.render(*model.snapshot(now), kText); };
  EXPECT_THAT(text(), Not(HasSubstr("pod=")));
  model.on_holdings(made_holdings(facts), now);
  EXPECT_THAT(text(), HasSubstr("pod=\"train-0-0\""));
  model.on_holdings({}, now);
  EXPECT_THAT(text(), Not(HasSubstr("pod=")));
}

TEST_F(RenderTest, AnInstanceMadeAfterTheSampleWaitsForTheNext) {
  start({.gpus = 1, .instances = 1});
  nvml::NodeFacts more = made_facts({.gpus = 1, .instances = 3});
  model.on_facts(more, now);
  EXPECT_EQ(samples("DCGM_FI_DEV_FB_USED").size(), 1U);
  facts = more;
  sample_all();
  EXPECT_EQ(samples("DCGM_FI_DEV_FB_USED").size(), 3U);
}

}  // namespace
}  // namespace jogak::agent
