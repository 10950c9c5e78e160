// SPDX-License-Identifier: Apache-2.0
//
// Memory against what the server lists: what counts as a difference, and what is only late.
#include "live/drift.h"

#include <gtest/gtest.h>

#include "core/model/testing.h"
#include "import/export.h"

namespace jogak::live {
namespace {

using core::Cluster;
using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

// The cluster's nodes and pods as the server would list them.
std::string listing(const Cluster& cluster) {
  const auto text = importer::export_list(cluster);
  EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().what);
  return text.value_or("");
}

DriftReport compare(const Cluster& memory, const Cluster& server,
                    const DriftCheck::IsAssumed& is_assumed = {}) {
  DriftCheck check(memory);
  const auto added = check.add(listing(server));
  EXPECT_TRUE(added.has_value()) << (added ? "" : added.error().what);
  return check.finish(memory, is_assumed);
}

std::vector<std::string> lines(const DriftReport& report) {
  std::vector<std::string> out;
  for (const Drift& drift : report.items) {
    out.push_back(
        fmt::format("{} {}: {}", drift_kind_name(drift.kind), drift.object, drift.detail));
  }
  return out;
}

using Lines = std::vector<std::string>;

void fill(Cluster& cluster) {
  add(cluster, NodeBuilder("n1").cpu(8));
  add(cluster, NodeBuilder("n2").cpu(8).label("zone", "a"));
  add(cluster, PodBuilder("waits").cpu_milli(100));
  add(cluster, PodBuilder("runs").cpu_milli(100).on("n1"));
}

TEST(Drift, EqualClustersHaveNone) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  const DriftReport report = compare(memory, server);
  EXPECT_TRUE(report.is_clean()) << report.text();
  EXPECT_EQ(report.nodes, 2U);
  EXPECT_EQ(report.pods, 2U);
  EXPECT_EQ(report.text(),
            "2 nodes and 2 pods compared, 0 differences (0 objects were changing)\n");
}

TEST(Drift, PodsThatDiffer) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  add(memory, PodBuilder("extra").on("n1"));
  add(server, PodBuilder("missing").on("n2"));
  add(memory, PodBuilder("moved").on("n1"));
  add(server, PodBuilder("moved").on("n2"));
  add(memory, PodBuilder("bound"));
  add(server, PodBuilder("bound").on("n2"));
  PodBuilder old("again");
  old.spec().uid = "u1";
  PodBuilder young("again");
  young.spec().uid = "u2";
  add(memory, old);
  add(server, young);
  const DriftReport report = compare(memory, server);
  EXPECT_EQ(lines(report), (Lines{"pod-uid default/again: uid u1 in memory, u2 on the server",
                                  "pod-node default/bound: waiting in memory, on n2 on the server",
                                  "pod-extra default/extra: not on the server",
                                  "pod-node default/moved: on n1 in memory, on n2 on the server",
                                  "pod-missing default/missing: on n2"}));
  EXPECT_EQ(report.counts[static_cast<std::size_t>(DriftKind::PodNode)], 2U);
}

TEST(Drift, NodesThatDiffer) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  add(memory, NodeBuilder("gone"));
  add(server, NodeBuilder("new"));
  add(server, NodeBuilder("n1").cpu(4));
  add(server, NodeBuilder("n2").cpu(8).label("zone", "b"));
  EXPECT_EQ(lines(compare(memory, server)),
            (Lines{"node-extra gone: not on the server",
                   "node-facts n1: cpu: 8000m in memory, 4000m on the server",
                   "node-facts n2: label zone: a in memory, b on the server",
                   "node-missing new: not in memory"}));
}

TEST(Drift, ResourcesKnownFromPodsAloneAreNoFacts) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  for (Cluster* cluster : {&memory, &server}) {
    add(*cluster, PodBuilder("odd").resource("example.com/x", 1).on("n1"));
  }
  EXPECT_EQ(lines(compare(memory, server)), Lines{});
}

TEST(Drift, WhatChangesDuringTheCheckIsLeftOut) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  DriftCheck check(memory);
  // The server is ahead: a pod was bound and another one came; memory hears of it only later.
  add(server, PodBuilder("waits").cpu_milli(100).on("n2"));
  add(server, PodBuilder("new"));
  ASSERT_TRUE(check.add(listing(server)).has_value());
  EXPECT_EQ(check.finish(memory, {}).items.size(), 2U) << "as long as memory has not heard";
  // Memory hears, and is ahead by then: one was deleted again.
  add(memory, PodBuilder("waits").cpu_milli(100).on("n2"));
  const DriftReport report = check.finish(memory, {});
  EXPECT_EQ(lines(report), (Lines{"pod-missing default/new: waiting"}));
  memory.remove_pod(*memory.find_pod("default", "runs"));
  EXPECT_EQ(check.finish(memory, {}).changing, 1U);
}

TEST(Drift, BindingsUnderWayAreLeftOut) {
  Cluster memory, server;
  fill(memory);
  fill(server);
  add(memory, PodBuilder("waits").cpu_milli(100).on("n2"));
  const auto is_assumed = [](std::string_view ns, std::string_view name) {
    return ns == "default" && name == "waits";
  };
  const DriftReport report = compare(memory, server, is_assumed);
  EXPECT_EQ(lines(report), Lines{});
  EXPECT_EQ(report.changing, 1U);
}

TEST(Drift, DevicesOwnedTwice) {
  const auto fleet = [](Cluster& cluster) {
    NodeBuilder node("n1");
    node.gpus("NVIDIA-A100-SXM4-40GB", 3, 40960)
        .label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB");
    node.spec().gpus[2].mig_enabled = true;
    node.spec().gpus[2].mig_dynamic = true;
    add(cluster, node);
    add(cluster, PodBuilder("a").gpus(1).on("n1", {{0, 0, -1}}));
    add(cluster, PodBuilder("s").gpu_milli(600).on("n1", {{1, 600, -1}}));
    add(cluster, PodBuilder("m").mig("2g.10gb").on("n1", {{2, 0, 0}}));
  };
  Cluster memory, server;
  fleet(memory);
  fleet(server);
  EXPECT_EQ(lines(compare(memory, server)), Lines{});
  for (Cluster* cluster : {&memory, &server}) {
    add(*cluster, PodBuilder("b").gpus(1).on("n1", {{0, 0, -1}}));
    add(*cluster, PodBuilder("t").gpu_milli(500).on("n1", {{1, 500, -1}}));
    add(*cluster, PodBuilder("o").mig("1g.5gb").on("n1", {{2, 0, 1}}));
  }
  EXPECT_EQ(lines(compare(memory, server)),
            (Lines{"device-twice n1: in memory: GPU 0 is held by default/a, default/b",
                   "device-twice n1: in memory: GPU 1 is held by default/s, default/t",
                   "device-twice n1: in memory: GPU 2 is held by default/m, default/o",
                   "device-twice n1: on the server: GPU 0 is held by default/a, default/b",
                   "device-twice n1: on the server: GPU 1 is held by default/s, default/t",
                   "device-twice n1: on the server: GPU 2 is held by default/m, default/o"}));
}

TEST(Drift, PagesAreReadAsTheServerSendsThem) {
  Cluster memory;
  add(memory, NodeBuilder("n1"));
  DriftCheck check(memory);
  const std::string_view pods = R"({"kind":"PodList","apiVersion":"v1",
    "metadata":{"continue":"x"},"items":[
    {"metadata":{"name":"a","namespace":"t","uid":"u"},
     "spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},
     "status":{"phase":"Running"}},
    {"metadata":{"name":"done","namespace":"t","uid":"v"},
     "spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},
     "status":{"phase":"Succeeded"}}]})";
  ASSERT_TRUE(check.add(pods).has_value());
  ASSERT_TRUE(check.add(R"({"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]})"));
  const DriftReport report = check.finish(memory, {});
  EXPECT_EQ(lines(report), (Lines{"node-extra n1: not on the server", "pod-missing t/a: on n1"}));
  EXPECT_FALSE(check.add(R"({"kind":"ServiceList","items":[{"metadata":{"name":"s"}}]})"));
  EXPECT_FALSE(check.add("nonsense"));
}

TEST(Drift, ManyAreCutShort) {
  Cluster memory, server;
  for (int i = 0; i < 5; ++i) add(memory, NodeBuilder(fmt::format("n{}", i)));
  EXPECT_EQ(compare(memory, server).text(2),
            "5 nodes and 0 pods compared, 5 differences (0 objects were changing)\n"
            "node-extra n0: not on the server\n"
            "node-extra n1: not on the server\n"
            "and 3 more\n");
}

}  // namespace
}  // namespace jogak::live
