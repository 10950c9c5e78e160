// SPDX-License-Identifier: Apache-2.0
//
// What a person on call reads: tables and documents of simulated machines, well and not so well.
#include "cli/agent_inspect.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvml/record.h"
#include "nvml/sim/machine_spec.h"
#include "nvml/testing/made_machine.h"

namespace jogak::cli {
namespace {

using nvml::testing::MadeMachine;
using ::testing::HasSubstr;
using ::testing::Not;

NodeView view_of(MadeMachine& machine) {
  auto view = read_node(*machine.source, {.processes = true, .pcie_throughput = true});
  EXPECT_TRUE(view) << view.error().what;
  return *std::move(view);
}

TEST(AgentInspect, ALostGpuTakesItsRowAndNothingElse) {
  MadeMachine machine(
      "identity: n\ngpus: [{model: T4, count: 2, load: {high: 50}}]\n"
      "faults: [{kind: lost, gpu: 1}]\n");
  const std::string text = node_text(view_of(machine));
  EXPECT_THAT(text, HasSubstr("GPU  NAME      BUS      NUMA    MIB  USED  UTIL  TEMP  POWER  MIG\n"
                              "  0  Tesla T4  07:00.0"));
  EXPECT_THAT(text,
              HasSubstr("\n  1  -         -           -      -     -     -     -      -  LOST\n"));
  EXPECT_THAT(text, HasSubstr("GPU1  N/A   X "));
}

TEST(AgentInspect, AnInstanceShowsWhatIsUsedOfIt) {
  MadeMachine machine(
      "gpus:\n- model: A100-SXM4-40GB\n  migEnabled: true\n"
      "  migInstances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]\n"
      "  processes: [{pid: 7, name: train, memoryMib: 1200, instance: 0}]\n");
  const NodeView view = view_of(machine);
  const std::string text = node_text(view);
  EXPECT_THAT(text, HasSubstr("GPU  PROFILE  GI  CI  PLACE    MIB  USED  UUID\n"
                              "  0  3g.20gb   1   0  4:4    19968  1200  MIG-"));
  EXPECT_THAT(text, HasSubstr("\n  0  1g.5gb    7   0  0:1     4864     0  MIG-"));
  const std::string json = node_doc(view).json(JsonWriter::Style::Compact);
  EXPECT_THAT(json, HasSubstr("\"memoryUsedBytes\":1258291200"));
}

TEST(AgentInspect, WhatIsMissingIsNamedWithItsReason) {
  MadeMachine machine(
      "gpus: [{model: T4}]\n"
      "faults: [{kind: failCall, call: nvmlDeviceGetPowerUsage, code: 999}]\n");
  const std::string json = node_doc(view_of(machine)).json(JsonWriter::Style::Compact);
  EXPECT_THAT(json, HasSubstr("\"powerMw\":null"));
  EXPECT_THAT(json, HasSubstr("\"powerMw\":\"failed\""));
  EXPECT_THAT(json, HasSubstr("\"jpegPercent\":\"not supported\""));
  EXPECT_THAT(json, Not(HasSubstr("\"temperatureC\":\"")));
}

// The file of a machine with MIG on has what MIG hides: once it is off, the links are there.
TEST(AgentInspect, ARecordingTakenWithMigOnKeepsTheLinks) {
  for (const std::string model : {"A100-SXM4-40GB", "H100-SXM5-80GB", "B200-180GB"}) {
    MadeMachine machine("gpus: [{model: " + model + ", count: 2, migEnabled: true}]\n");
    const NodeView view = view_of(machine);
    EXPECT_EQ(view.node.gpus[0].nvlinks, 0);
    EXPECT_GT(view.node.gpus[0].nvlinks_max, 0);
    std::string text =
        nvml::sim::write_machine(nvml::record_machine(view.node, view.samples), "a test");
    const std::string on = "migEnabled: true\n  migPending: true";
    for (std::size_t at = text.find(on); at != std::string::npos; at = text.find(on)) {
      text.replace(at, on.size(), "migEnabled: false\n  migPending: false");
    }
    MadeMachine off(text.substr(text.find("driver:")));
    const nvml::NodeFacts facts = off.facts();
    EXPECT_EQ(facts.gpus[0].nvlinks, view.node.gpus[0].nvlinks_max) << model;
    EXPECT_EQ(facts.gpus[0].links[1].nvlinks, view.node.gpus[0].nvlinks_max) << model;
  }
}

}  // namespace
}  // namespace jogak::cli
