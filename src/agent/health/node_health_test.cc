// SPDX-License-Identifier: Apache-2.0
//
// GPUs side by side: what one suffers is its own, and what the Node object says of them.
#include "agent/health/node_health.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/health/node_status.h"

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimeUs kStart = 1'000 * kSecondInUs;

nvml::NodeFacts node(const std::vector<int>& gpus, std::uint64_t generation = 1) {
  nvml::NodeFacts facts;
  facts.generation = generation;
  for (const int i : gpus) {
    nvml::GpuFacts gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-{}", i);
    gpu.pci_bus_id = fmt::format("00000000:0{}:00.0", i);
    facts.gpus.push_back(gpu);
  }
  return facts;
}

void xid(NodeHealth& health, std::string uuid, std::uint64_t code, int gi_id = -1) {
  health.on_event({.uuid = std::move(uuid),
                   .kind = nvml::GpuEventKind::Xid,
                   .code = code,
                   .gi_id = gi_id,
                   .time = kStart});
}

std::vector<std::string> unusable(const NodeHealth& health) {
  std::vector<std::string> uuids;
  for (const GpuHealthView& gpu : health.view().gpus) {
    if (!gpu.is_usable()) uuids.push_back(gpu.uuid);
  }
  return uuids;
}

std::vector<std::string> problems(const NodeHealth& health) {
  std::vector<std::string> lines;
  for (const NodeCondition& condition : node_conditions(health.view())) {
    if (condition.is_problem) {
      lines.push_back(
          fmt::format("{} {}: {}", condition.type, condition.reason, condition.message));
    }
  }
  return lines;
}

TEST(NodeHealth, AFaultOfOneGpuIsNotOneOfTheOthers) {
  NodeHealth health;
  health.on_facts(node({0, 1, 2, 3}), kStart);
  xid(health, "GPU-1", 79);
  health.on_event({.uuid = "GPU-3", .kind = nvml::GpuEventKind::GpuLost, .time = kStart});
  EXPECT_THAT(unusable(health), ElementsAre("GPU-1", "GPU-3"));
}

// One that is gone when the agent starts has no uuid, and its loss is told without one.
TEST(NodeHealth, AGpuThatWasLostBeforeItHadANameIsToldAndLeavesTheOthersAlone) {
  NodeHealth health;
  nvml::NodeFacts facts = node({0, 1, 2});
  facts.gpus[1].uuid.clear();
  facts.gpus[1].is_lost = true;
  health.on_facts(facts, kStart);
  health.on_event({.uuid = "", .kind = nvml::GpuEventKind::GpuLost, .time = kStart});
  EXPECT_THAT(unusable(health), IsEmpty());
  EXPECT_THAT(health.view().nameless, ElementsAre(1));
  EXPECT_THAT(problems(health),
              ElementsAre("GpuUnusable Lost: gpu 1: lost before it could be named"));
  EXPECT_EQ(node_taints(health.view(), TaintRule::AnyUnusable, "NoSchedule").size(), 1U);
  EXPECT_THAT(node_taints(health.view(), TaintRule::AllUnusable, "NoSchedule"), IsEmpty());
  const std::uint64_t before = health.changes();
  health.on_facts(node({0, 1, 2}), kStart + kSecondInUs);
  health.on_event({.uuid = "", .kind = nvml::GpuEventKind::GpuRecovered, .time = kStart});
  EXPECT_GT(health.changes(), before);
  EXPECT_THAT(problems(health), IsEmpty());
}

TEST(NodeHealth, AnXidOfAnInstanceLeavesItsNeighboursUsable) {
  NodeHealth health;
  health.on_facts(node({0}), kStart);
  xid(health, "GPU-0", 62, 7);
  const NodeHealthView view = health.view();
  EXPECT_FALSE(view.gpus[0].is_usable(7));
  EXPECT_TRUE(view.gpus[0].is_usable(8));
  xid(health, "GPU-0", 79);
  EXPECT_FALSE(health.view().gpus[0].is_usable(8)) << "one of the whole GPU stops all";
}

TEST(NodeHealth, AGpuThatIsNotListedAnyMoreIsLostAndComesBack) {
  NodeHealth health;
  health.on_facts(node({0, 1}), kStart);
  health.on_facts(node({0}), kStart + kSecondInUs);
  EXPECT_THAT(unusable(health), ElementsAre("GPU-1"));
  EXPECT_FALSE(health.view().find("GPU-1")->is_listed);
  EXPECT_EQ(health.view().gpus.back().uuid, "GPU-1");
  health.on_facts(node({0, 1}), kStart + 2 * kSecondInUs);
  EXPECT_TRUE(health.view().find("GPU-1")->is_listed);
  health.on_facts(node({0, 1}), kStart + 13 * kSecondInUs);
  EXPECT_THAT(unusable(health), IsEmpty());
}

TEST(NodeHealth, AnExchangedBoardTakesThePlaceOfTheLostOne) {
  NodeHealth health;
  health.on_facts(node({0, 1}), kStart);
  const std::uint64_t before = health.changes();
  nvml::NodeFacts facts = node({0, 1});
  facts.gpus[1].uuid = "GPU-new";
  health.on_facts(facts, kStart + kSecondInUs);
  EXPECT_EQ(health.view().find("GPU-1"), nullptr);
  EXPECT_THAT(unusable(health), IsEmpty());
  EXPECT_GT(health.changes(), before);
}

TEST(NodeHealth, RemembersOnlySoManyThatAreGone) {
  NodeHealth health;
  for (int i = 0; i < 500; ++i) {
    nvml::NodeFacts facts = node({0});
    facts.gpus[0].uuid = fmt::format("GPU-{}", i);
    facts.gpus[0].pci_bus_id = fmt::format("0000{:04X}:00:00.0", i);
    health.on_facts(facts, kStart + i * kSecondInUs);
  }
  EXPECT_EQ(health.view().gpus.size(), kUnlistedMax + 1);
}

TEST(NodeHealth, ADriverReloadMakesEverybodyWell) {
  NodeHealth health;
  health.on_facts(node({0, 1}), kStart);
  xid(health, "GPU-0", 62);
  xid(health, "GPU-1", 95);
  health.on_facts(node({0, 1}, 2), kStart + kSecondInUs);
  EXPECT_THAT(unusable(health), IsEmpty());
}

TEST(NodeHealth, TheOperatorClearsOneOrAll) {
  NodeHealth health;
  health.on_facts(node({0, 1, 2}), kStart);
  for (const char* uuid : {"GPU-0", "GPU-1", "GPU-2"}) xid(health, uuid, 62);
  EXPECT_TRUE(health.clear("GPU-1", kStart));
  EXPECT_THAT(unusable(health), ElementsAre("GPU-0", "GPU-2"));
  EXPECT_FALSE(health.clear("GPU-9", kStart));
  EXPECT_TRUE(health.clear("", kStart));
  EXPECT_THAT(unusable(health), IsEmpty());
}

TEST(NodeHealth, ADriverThatIsGoneIsAProblemOfTheNode) {
  NodeHealth health;
  health.on_facts(node({0}), kStart);
  health.on_facts_failure({.code = Errc::Unavailable, .what = "no driver"}, kStart);
  EXPECT_THAT(problems(health), ElementsAre("GpuUnusable DriverUnavailable: no driver"));
  health.on_facts(node({0}, 2), kStart + kSecondInUs);
  EXPECT_THAT(problems(health), IsEmpty());
}

TEST(NodeStatus, SaysWhichGpuAndWhy) {
  NodeHealth health;
  health.on_facts(node({0, 1}), kStart);
  EXPECT_EQ(node_conditions(health.view()).size(), 4U);
  EXPECT_THAT(problems(health), IsEmpty());
  xid(health, "GPU-1", 74);
  xid(health, "GPU-0", 94);
  EXPECT_THAT(problems(health),
              ElementsAre("GpuUnusable Xid: gpu 1 (GPU-1): xid 74: NVLink error",
                          "GpuMemoryErrors XidNoted: gpu 0 (GPU-0): xid 94: contained memory error",
                          "GpuLinkErrors Xid: gpu 1 (GPU-1): xid 74: NVLink error"));
}

TEST(NodeStatus, KeepsMessagesShort) {
  NodeHealth health;
  health.on_facts(node({0, 1, 2, 3, 4, 5, 6, 7}), kStart);
  for (int i = 0; i < 8; ++i) {
    for (const std::uint64_t code : {46, 48, 62, 64, 74, 79}) {
      xid(health, fmt::format("GPU-{}", i), code);
    }
  }
  const std::string message = node_conditions(health.view())[0].message;
  EXPECT_EQ(message.size(), 1024U);
  EXPECT_TRUE(message.ends_with("..."));
}

TEST(NodeStatus, TaintsByRule) {
  NodeHealth health;
  health.on_facts(node({0, 1}), kStart);
  const auto tainted = [&](TaintRule rule) { return !node_taints(health.view(), rule).empty(); };
  EXPECT_FALSE(tainted(TaintRule::AnyUnusable));
  xid(health, "GPU-0", 79);
  EXPECT_TRUE(tainted(TaintRule::AnyUnusable));
  EXPECT_FALSE(tainted(TaintRule::AllUnusable));
  EXPECT_FALSE(tainted(TaintRule::Never));
  xid(health, "GPU-1", 79);
  EXPECT_TRUE(tainted(TaintRule::AllUnusable));
}

TEST(NodeStatus, ReadsTheRule) {
  EXPECT_EQ(parse_taint_rule("any"), TaintRule::AnyUnusable);
  EXPECT_THAT(parse_taint_rule("some").error().what, HasSubstr("use never, any or all"));
}

TEST(Xid, TheTableIsKnownByCode) {
  EXPECT_EQ(xid_info(79).kind, XidClass::RestartNode);
  EXPECT_EQ(xid_info(13).kind, XidClass::Application);
  EXPECT_EQ(xid_info(0).text, "unknown error");
  EXPECT_EQ(xid_info(7).code, 7U);
  EXPECT_EQ(xid_class_text(xid_info(95).kind), "reset gpu");
}

}  // namespace
}  // namespace jogak::agent
