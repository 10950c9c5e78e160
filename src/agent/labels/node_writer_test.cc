// SPDX-License-Identifier: Apache-2.0
//
// The patches for a node, and the writer against a scripted API server that keeps one node.
#include "agent/labels/node_writer.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::agent {
namespace {

using kube::testing::ScriptedHttp;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimeUs kNow = 1'700'000'000 * kSecondInUs;  // 2023-11-14T22:13:20Z

NodePatches patches_of(const json& node, const NodeWish& wish) {
  auto patches = node_patches(node.dump(), wish, kNow);
  EXPECT_TRUE(patches) << patches.error().what;
  return patches.value_or(NodePatches{});
}

json node() {
  return json::parse(R"({"metadata":{"name":"n1","resourceVersion":"7",
    "labels":{"zone":"a","nvidia.com/gpu.count":"8","nvidia.com/mig.config":"all-1g"},
    "annotations":{"theirs":"x"}},
    "spec":{"taints":[{"key":"other","value":"","effect":"NoSchedule"}]},
    "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
}

TEST(NodePatches, SetOnlyWhatDiffersAndNoteWhatIsOurs) {
  const NodePatches patches = patches_of(
      node(), {.labels = {{"nvidia.com/gpu.count", "8"}, {"nvidia.com/gpu.memory", "81559"}},
               .annotations = {},
               .conditions = {},
               .taints = {}});
  EXPECT_EQ(json::parse(patches.node), json::parse(R"({"metadata":{"resourceVersion":"7",
      "labels":{"nvidia.com/gpu.memory":"81559"},
      "annotations":{"jogak.io/agent-labels":"nvidia.com/gpu.count,nvidia.com/gpu.memory"}}})"));
  EXPECT_EQ(patches.status, "");
}

TEST(NodePatches, RemoveStaleOnesOfOursAndNobodyElses) {
  json have = node();
  have["metadata"]["annotations"]["jogak.io/agent-labels"] =
      "nvidia.com/gpu.count,nvidia.com/mig-1g.5gb.count,nvidia.com/gone.already";
  have["metadata"]["labels"]["nvidia.com/mig-1g.5gb.count"] = "7";
  const NodePatches patches = patches_of(have, {.labels = {{"nvidia.com/gpu.count", "8"}},
                                                .annotations = {},
                                                .conditions = {},
                                                .taints = {}});
  EXPECT_EQ(json::parse(patches.node), json::parse(R"({"metadata":{"resourceVersion":"7",
      "labels":{"nvidia.com/mig-1g.5gb.count":null},
      "annotations":{"jogak.io/agent-labels":"nvidia.com/gpu.count"}}})"));
  EXPECT_THAT(patches.removed_labels, ElementsAre("nvidia.com/mig-1g.5gb.count"));
}

TEST(NodePatches, AnEmptyWishLeavesNoTrace) {
  json have = node();
  have["metadata"]["annotations"]["jogak.io/agent-labels"] = "nvidia.com/gpu.count";
  have["metadata"]["annotations"]["jogak.io/agent-annotations"] = "jogak.io/gpus";
  have["metadata"]["annotations"]["jogak.io/gpus"] = "[]";
  const NodePatches patches = patches_of(have, {});
  EXPECT_EQ(json::parse(patches.node), json::parse(R"({"metadata":{"resourceVersion":"7",
      "labels":{"nvidia.com/gpu.count":null},
      "annotations":{"jogak.io/agent-labels":null,"jogak.io/agent-annotations":null,
                     "jogak.io/gpus":null}}})"));
}

TEST(NodePatches, LastingOnesAreWrittenAndStayWhenNobodyWishesThem) {
  NodeWish wish;
  wish.lasting_labels = {{"nvidia.com/mig.config.state", "success"}};
  wish.lasting_annotations = {{"jogak.io/mig.config.state-of", "all-1g.5gb"}};
  json node = json::parse(R"({"metadata":{"name":"n1"}})");
  auto patches = node_patches(node.dump(), wish, kNow);
  ASSERT_TRUE(patches);
  node.merge_patch(json::parse(patches->node));
  EXPECT_EQ(node["metadata"]["labels"]["nvidia.com/mig.config.state"], "success");
  EXPECT_EQ(node["metadata"]["annotations"]["jogak.io/mig.config.state-of"], "all-1g.5gb");
  EXPECT_TRUE(node_patches(node.dump(), wish, kNow)->node.empty());
  EXPECT_TRUE(node_patches(node.dump(), {}, kNow)->node.empty()) << "they stay";
}

TEST(NodePatches, TaintsOfOthersStayInPlace) {
  const std::vector<Taint> ours = {
      {.key = "jogak.io/gpu-unhealthy", .value = "true", .effect = "NoSchedule"}};
  NodeWish wish;
  wish.taints = ours;
  json have = node();
  const json patch = json::parse(patches_of(have, wish).node);
  EXPECT_EQ(patch["spec"]["taints"],
            json::parse(R"([{"key":"other","value":"","effect":"NoSchedule"},
        {"key":"jogak.io/gpu-unhealthy","value":"true","effect":"NoSchedule"}])"));
  have["spec"]["taints"] = patch["spec"]["taints"];
  EXPECT_EQ(patches_of(have, wish).node, "");
  wish.taints = std::vector<Taint>{};
  EXPECT_EQ(json::parse(patches_of(have, wish).node)["spec"]["taints"].size(), 1U);
  wish.taints.reset();
  EXPECT_EQ(patches_of(have, wish).node, "") << "not our affair";
}

TEST(NodePatches, AConditionKeepsItsTransitionTimeWhileItsStatusStays) {
  NodeWish wish;
  wish.conditions = {
      {.type = "GpuUnusable", .is_problem = true, .reason = "Xid", .message = "gpu 1: xid 79"}};
  json have = node();
  const json first = json::parse(patches_of(have, wish).status)["status"]["conditions"];
  EXPECT_EQ(first, json::parse(R"([{"type":"GpuUnusable","status":"True","reason":"Xid",
      "message":"gpu 1: xid 79","lastHeartbeatTime":"2023-11-14T22:13:20Z",
      "lastTransitionTime":"2023-11-14T22:13:20Z"}])"));
  have["status"]["conditions"].push_back(first[0]);
  EXPECT_EQ(patches_of(have, wish).status, "");
  have["status"]["conditions"][1]["lastTransitionTime"] = "2020-01-01T00:00:00Z";
  wish.conditions[0].message = "gpu 1: xid 79; gpu 2: xid 48";
  const auto second = json::parse(patches_of(have, wish).status)["status"]["conditions"][0];
  EXPECT_EQ(second["lastTransitionTime"], "2020-01-01T00:00:00Z");
  wish.conditions[0].is_problem = false;
  const auto third = json::parse(patches_of(have, wish).status)["status"]["conditions"][0];
  EXPECT_EQ(third["lastTransitionTime"], "2023-11-14T22:13:20Z");
}

TEST(NodePatches, WhatIsNoNodeIsRefused) {
  for (const std::string_view text :
       {"", "{", "[]", "{}", R"({"metadata":[]})", R"({"metadata":{"name":7}})"}) {
    const auto patches = node_patches(text, {}, kNow);
    ASSERT_FALSE(patches) << text;
    EXPECT_THAT(patches.error().what, HasSubstr("no metadata.name"));
  }
}

// A server with one node, that merges patches as RFC 7386 says.
class NodeWriterTest : public ::testing::Test {
 protected:
  NodeWriterTest() {
    http.serve([this](const ScriptedHttp::ExchangePtr& exchange) { serve(*exchange); });
  }
  void serve(ScriptedHttp::Exchange& exchange) {
    const net::ClientRequest& request = exchange.request();
    if (failures > 0) {
      --failures;
      return exchange.answer({.status = failure_status, .body = "not now"});
    }
    if (request.method == "GET") return exchange.answer({.body = stored.dump()});
    json patch = json::parse(request.body);
    if (request.target.ends_with("/status")) {
      for (const json& condition : patch["status"]["conditions"]) {
        json& conditions = stored["status"]["conditions"];
        std::erase_if(conditions.get_ref<json::array_t&>(),
                      [&](const json& old) { return old["type"] == condition["type"]; });
        conditions.push_back(condition);
      }
    } else {
      if (patch["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] ||
          conflicts > 0) {
        conflicts = std::max(0, conflicts - 1);
        return exchange.answer({.status = 409, .body = R"({"kind":"Status","reason":"Conflict"})"});
      }
      stored.merge_patch(patch);
      stored["metadata"]["resourceVersion"] = fmt::to_string(++version);
    }
    exchange.answer({.body = stored.dump()});
  }
  static NodeWish wish(std::string count) {
    return {.labels = {{"nvidia.com/gpu.count", std::move(count)}},
            .annotations = {},
            .conditions = {{.type = "GpuUnusable",
                            .is_problem = false,
                            .reason = "GpusUsable",
                            .message = "every gpu can be used"}},
            .taints = {}};
  }
  std::string count() { return stored["metadata"]["labels"].value("nvidia.com/gpu.count", ""); }

  SimLoop loop;
  ScriptedHttp http{loop};
  kube::ApiClient api{http};
  CapturedLog lines;
  Log log{loop, lines};
  json stored = node();
  int version = 7, failures = 0, failure_status = 500, conflicts = 0;
  NodeWriter writer{api, log, {.node = "n1"}};
};

TEST_F(NodeWriterTest, WritesOnceAndRests) {
  int settled = 0;
  writer.on_settled = [&] { ++settled; };
  writer.want(wish("2"));
  EXPECT_FALSE(writer.is_settled());
  loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(count(), "2");
  EXPECT_EQ(stored["status"]["conditions"].size(), 2U);
  EXPECT_TRUE(writer.is_settled());
  EXPECT_EQ(settled, 1);
  EXPECT_THAT(http.lines(), ElementsAre("GET /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1",
                                        "PATCH /api/v1/nodes/n1/status"));
  writer.want(wish("2"));
  loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(http.lines().size(), 3U) << "nothing new is wanted";
}

TEST_F(NodeWriterTest, TheLatestWishWins) {
  for (const char* each : {"1", "2", "3"}) writer.want(wish(each));
  loop.run_for(kSecondInUs);
  EXPECT_EQ(count(), "3");
  EXPECT_EQ(writer.counts().writes, 2U);
}

TEST_F(NodeWriterTest, AConflictIsLookedAtAgain) {
  conflicts = 2;
  writer.want(wish("2"));
  loop.run_for(kSecondInUs);
  EXPECT_EQ(count(), "2");
  EXPECT_THAT(lines.lines, IsEmpty());
}

TEST_F(NodeWriterTest, FailuresAreTriedAgainMoreAndMoreSlowlyAndToldOnce) {
  failures = 4;
  failure_status = 403;
  writer.want(wish("2"));
  loop.run_for(kSecondInUs / 2);
  EXPECT_THAT(writer.problem(), HasSubstr("not now"));
  EXPECT_EQ(writer.counts().failures, 1U);
  writer.want(wish("3"));  // does not hurry it
  loop.run_for(7 * kSecondInUs);
  EXPECT_EQ(writer.counts().failures, 4U);  // at 0, 1, 3, 7 s
  EXPECT_EQ(count(), "8");
  loop.run_for(8 * kSecondInUs);
  EXPECT_EQ(count(), "3");
  EXPECT_EQ(writer.problem(), "");
  EXPECT_EQ(lines.lines.size(), 2U);
}

TEST_F(NodeWriterTest, WhatSomebodyElseUndidComesBack) {
  writer.want(wish("2"));
  loop.run_for(kSecondInUs);
  stored["metadata"]["labels"]["nvidia.com/gpu.count"] = "9";
  loop.run_for(300 * kSecondInUs);
  EXPECT_EQ(count(), "2");
}

TEST_F(NodeWriterTest, ANodeThatWasMadeAnewIsToldSoonWhereItIsWatched) {
  writer.want(wish("2"));
  loop.run_for(kSecondInUs);
  writer.see({{"nvidia.com/gpu.count", "2"}, {"other", "x"}}, {});
  loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(http.lines().size(), 3U) << "it is as wished";
  stored =
      json::parse(R"({"metadata":{"name":"n1","resourceVersion":"7"},"status":{"conditions":[]}})");
  version = 7;
  writer.see({}, {});
  writer.see({}, {});
  loop.run_for(2 * kSecondInUs);
  EXPECT_EQ(count(), "2");
  EXPECT_EQ(stored["status"]["conditions"].size(), 1U);
  EXPECT_EQ(writer.counts().reads, 2U);
}

TEST_F(NodeWriterTest, WhoUndoesItEachTimeIsFoughtMoreAndMoreSlowly) {
  writer.want(wish("2"));
  loop.run_for(kSecondInUs);
  for (int second = 0; second < 600; ++second) {
    stored["metadata"]["labels"]["nvidia.com/gpu.count"] = "9";
    writer.see({{"nvidia.com/gpu.count", "9"}}, {});
    loop.run_for(kSecondInUs);
  }
  EXPECT_LE(writer.counts().reads, 12U);
  loop.run_for(600 * kSecondInUs);
  const std::uint64_t reads = writer.counts().reads;
  stored["metadata"]["labels"]["nvidia.com/gpu.count"] = "9";
  writer.see({{"nvidia.com/gpu.count", "9"}}, {});
  loop.run_for(2 * kSecondInUs);
  EXPECT_EQ(writer.counts().reads, reads + 1) << "peace was long enough";
  EXPECT_EQ(count(), "2");
}

TEST_F(NodeWriterTest, AfterACrashTheNextOneFindsWhatIsStale) {
  {
    NodeWriter first(api, log, {.node = "n1"});
    NodeWish more = wish("2");
    more.labels["nvidia.com/mig-1g.10gb.count"] = "7";
    first.want(more);
    loop.run_for(kSecondInUs);
  }
  ASSERT_TRUE(stored["metadata"]["labels"].contains("nvidia.com/mig-1g.10gb.count"));
  writer.want(wish("2"));
  loop.run_for(kSecondInUs);
  EXPECT_FALSE(stored["metadata"]["labels"].contains("nvidia.com/mig-1g.10gb.count"));
  EXPECT_TRUE(stored["metadata"]["labels"].contains("nvidia.com/mig.config"));
}

TEST_F(NodeWriterTest, NothingHappensAfterItsEnd) {
  auto first = std::make_unique<NodeWriter>(api, log, NodeWriterOptions{.node = "n1"});
  first->want(wish("5"));
  loop.run_ready();
  first.reset();
  loop.run_for(600 * kSecondInUs);
  SUCCEED();
}

}  // namespace
}  // namespace jogak::agent
