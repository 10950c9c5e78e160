// SPDX-License-Identifier: Apache-2.0
// A cluster written as a list and read back is the same cluster, and decides the same.
#include "import/export.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/engine/scheduler.h"
#include "core/model/testing.h"
#include "core/testing/random_world.h"
#include "import/import.h"

namespace jogak::importer {
namespace {

using core::Cluster;
using core::PodId;
using core::PodState;
using core::testing::add;
using core::testing::Event;
using core::testing::kMib;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;
using core::testing::RandomWorld;
using core::testing::Trial;

std::string written(const Cluster& cluster) {
  auto text = export_list(cluster);
  EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().what);
  return text.value_or("");
}

// Empty if `to` is what was written of `from`, and writes the same text again.
std::string read_back(const Cluster& from, Cluster& to) {
  const std::string text = written(from);
  const auto report = import_list(text, "snapshot", to);
  if (!report) return report.error().what;
  if (!to.recount().empty()) return to.recount();
  if (written(to) != text) return "the second text differs:\n" + text + written(to);
  return to.digest() == from.digest() ? "" : "equal text, but the states differ:\n" + text;
}

std::string error_of(const Cluster& cluster) {
  const auto text = export_list(cluster);
  return text ? "" : text.error().what;
}

PodBuilder with_image(std::string name) { return PodBuilder(std::move(name)).image("app:1"); }

TEST(Export, NodesPodsAndDevices) {
  Cluster cluster;
  NodeBuilder node("n1");
  node.gpus("NVIDIA-A100-SXM4-40GB", 3, 40960)
      .label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB");
  node.spec().gpus[0].mig_enabled = true;
  node.spec().gpus[0].mig_instances = {{"1g.5gb", 2}, {"3g.20gb", 4}};
  node.spec().gpus[1].nvlink_mask = 0b100;
  node.spec().gpus[1].numa_node = 1;
  node.spec().gpus[2].health = core::GpuHealth::Unhealthy;
  node.taint("a", "b", core::TaintEffect::NoExecute).unschedulable().feature("F");
  node.image("app:1", 5 * kMib);
  add(cluster, node);
  add(cluster, with_image("mig").mig("3g.20gb").on("n1", {{0, 0, 4}}));
  add(cluster, with_image("milli").gpu_milli(250).on("n1", {{1, 250, -1}}));
  add(cluster, with_image("mib").gpu_mib(4096).on("n1", {{1, 4096, -1}}));
  add(cluster, with_image("unknown").gpus(1).on("n1"));
  add(cluster, with_image("orphan").cpu(1).on("elsewhere"));
  add(cluster, with_image("late").cpu(1).terminating().on("n1"));
  add(cluster,
      with_image("hopes").priority(7).nominate("n1").start_time(1'700'000'000'123'456'789));
  Cluster copy;
  EXPECT_EQ(read_back(cluster, copy), "");
}

TEST(Export, WhatScoresAssumeOfContainers) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  PodBuilder pod("p");
  // Three containers, one an init container; one running one is silent about memory.
  pod.image("a:1").image("b:1").image("c:1").image("volume:1").memory(5 * kMib);
  pod.shape().container_count = 3;
  pod.shape().nonzero_cpu = 200;  // nobody names cpu: two running containers
  pod.shape().nonzero_memory = 205 * kMib;
  add(cluster, pod);
  Cluster copy;
  EXPECT_EQ(read_back(cluster, copy), "");
}

TEST(Export, ObjectsAroundPods) {
  Cluster cluster;
  core::Objects& objects = cluster.mutable_objects();
  objects.namespaces["team"] = {"team", {{"env", "prod"}}};
  objects.pdbs["team/b"] = {
      "team", "b", core::LabelSelector{{core::testing::in("app", {"x"})}}, 2, {"gone"}};
  objects.workloads["Service/team/s"] = {"Service", "team", "s",
                                         core::LabelSelector{{core::testing::in("app", {"x"})}}};
  objects.workloads["ReplicaSet/team/r"] = {"ReplicaSet", "team", "r", core::LabelSelector{}};
  objects.storage_classes["fast"] = {
      "fast", "csi.example", true, {{{core::testing::in("zone", {"a", "b"})}, {}}}};
  core::PersistentVolumeSpec pv;
  pv.name = "pv1";
  pv.capacity_bytes = 10 * kMib;
  pv.storage_class = "fast";
  pv.access_modes = {"ReadWriteOnce"};
  pv.claim_ns = "team";
  pv.claim_name = "c";
  pv.phase = "Bound";
  pv.csi.emplace();
  pv.csi->driver = "csi.example";
  pv.csi->handle = "h";
  objects.pvs["pv1"] = pv;
  core::PersistentVolumeClaimSpec pvc;
  pvc.ns = "team";
  pvc.name = "c";
  pvc.uid = "u";
  pvc.phase = "Bound";
  pvc.volume_name = "pv1";
  pvc.storage_class = "fast";
  pvc.access_modes = {"ReadWriteOnce"};
  pvc.request_bytes = 5 * kMib;
  pvc.bind_completed = true;
  objects.pvcs["team/c"] = pvc;
  objects.csi_nodes["n1"].name = "n1";
  objects.csi_nodes["n1"].drivers = {{"csi.example", 4}};
  objects.csi_drivers["csi.example"] = {"csi.example", true};
  objects.attachments["a"] = {"a", "csi.example", "n1", "pv1"};
  Cluster copy;
  EXPECT_EQ(read_back(cluster, copy), "");
  EXPECT_EQ(copy.objects().pdbs.at("team/b").disruptions_allowed, 2);
  EXPECT_EQ(copy.objects().pvcs.at("team/c").volume_name, "pv1");
}

TEST(Export, VolumesThatMovedToCsiStayWhatTheyWere) {
  for (const std::string_view source :
       {R"("awsElasticBlockStore":{"volumeID":"aws://zone/vol-1"})",
        R"("gcePersistentDisk":{"pdName":"d"})", R"("azureDisk":{"diskURI":"/a/b","diskName":"n"})",
        R"("cinder":{"volumeID":"c"})", R"("vsphereVolume":{"volumePath":"[x] y"})",
        R"("csi":{"driver":"csi.example","volumeHandle":"h"})"}) {
    Cluster cluster;
    const std::string pv = fmt::format(
        R"({{"kind":"PersistentVolume","metadata":{{"name":"v"}},"spec":{{{}}}}})", source);
    ASSERT_TRUE(import_list(pv, "pv", cluster).has_value());
    Cluster copy;
    EXPECT_EQ(read_back(cluster, copy), "");
    const core::PersistentVolumeSpec& was = cluster.objects().pvs.at("v");
    const core::PersistentVolumeSpec& is = copy.objects().pvs.at("v");
    ASSERT_TRUE(was.csi && is.csi);
    EXPECT_EQ(was.csi->driver, is.csi->driver);
    EXPECT_EQ(was.csi->handle, is.csi->handle);
    EXPECT_EQ(was.csi->migrated_from, is.csi->migrated_from);
  }
}

TEST(Export, TheSchedulerThatAPodAskedForIsTheCallersToSay) {
  Cluster cluster;
  add(cluster, with_image("p").cpu(1));
  const ExportOptions options{.style = JsonWriter::Style::Compact,
                              .scheduler_name = [](PodId) { return "other"; }};
  const std::string text = export_list(cluster, options).value_or("");
  EXPECT_NE(text.find(R"("schedulerName":"other")"), std::string::npos);
  EXPECT_EQ(written(cluster).find("schedulerName"), std::string::npos);
}

TEST(Export, SaysWhatNoObjectDescribes) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").order(3));
  EXPECT_EQ(error_of(cluster), "node n1: a rank of its own (3)");
  add(cluster, NodeBuilder("n1"));
  PodBuilder pod("p");
  pod.shape().node_name = "n1";
  add(cluster, pod);
  EXPECT_EQ(error_of(cluster), "pod default/p: asks for node n1 by name");
}

// ---- random pods ----------------------------------------------------------------------------

// A container with requests that may be silent, zero, below, at or above what scores assume.
void write_random_container(JsonWriter& json, Rng& rng, std::string_view name, bool may_restart) {
  constexpr std::array kCpu = {"", "0", "20m", "50m", "100m", "130m", "500m", "1"};
  constexpr std::array kMemory = {"", "0", "10Mi", "100Mi", "200Mi", "300Mi", "1Gi", "1"};
  json.begin_object().field("name", name).field("image", fmt::format("i{}", rng.below(3)));
  if (may_restart && rng.chance(1, 3)) json.field("restartPolicy", "Always");
  json.key("resources").begin_object().key("requests").begin_object();
  const std::string_view cpu = kCpu[rng.below(kCpu.size())];
  const std::string_view memory = kMemory[rng.below(kMemory.size())];
  if (!cpu.empty()) json.field("cpu", cpu);
  if (!memory.empty()) json.field("memory", memory);
  if (rng.chance(1, 5)) json.field("ephemeral-storage", "1Gi");
  json.end_object().end_object().end_object();
}

// A pod as the API server might have it, as far as its resources go.
std::string random_pod(Rng& rng) {
  JsonWriter json;
  json.begin_object().field("apiVersion", "v1").field("kind", "Pod");
  json.key("metadata").begin_object().field("name", "p").field("namespace", "t");
  json.field("uid", "u").end_object().key("spec").begin_object();
  json.key("initContainers").begin_array();
  const std::uint64_t inits = rng.chance(1, 2) ? 0 : rng.below(4);
  for (std::uint64_t i = 0; i < inits; ++i) {
    write_random_container(json, rng, fmt::format("i{}", i), true);
  }
  json.end_array().key("containers").begin_array();
  const std::uint64_t running = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < running; ++i) {
    write_random_container(json, rng, fmt::format("c{}", i), false);
  }
  json.end_array();
  if (rng.chance(1, 3)) {
    const std::uint64_t which = 1 + rng.below(7);
    json.key("resources").begin_object().key("requests").begin_object();
    if ((which & 1U) != 0) json.field("cpu", "2");
    if ((which & 2U) != 0) json.field("memory", "3Gi");
    if ((which & 4U) != 0) json.field("hugepages-2Mi", "4Mi");
    json.end_object().end_object();
  }
  if (rng.chance(1, 4)) {
    json.key("overhead").begin_object().field("cpu", "30m").field("memory", "7Mi").end_object();
  }
  json.end_object().end_object();
  return json.take();
}

TEST(Export, WhateverItsContainersAskForAPodComesBackEqual) {
  const Trial trial = Trial::from_env(3000);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Rng rng(trial.seed_of(round));
    const std::string pod = random_pod(rng);
    Cluster cluster;
    const auto report = import_list(pod, "pod", cluster);
    ASSERT_TRUE(report.has_value()) << report.error().what;
    Cluster copy;
    ASSERT_EQ(read_back(cluster, copy), "") << pod << "\n" << trial.repeat(round);
    const core::PodShape& was = cluster.shape_of(*cluster.find_pod("t", "p")).spec;
    const core::PodShape& is = copy.shape_of(*copy.find_pod("t", "p")).spec;
    ASSERT_EQ(was, is) << pod << "\n" << written(cluster) << trial.repeat(round);
  }
}

// ---- random clusters ------------------------------------------------------------------------

// Places the waiting pods in order of their names; what was decided as text.
std::string run_all(Cluster& cluster, std::string_view policy_name, std::uint64_t seed) {
  const auto policy = std::move(core::make_policy(policy_name, seed)).value();
  core::Scheduler scheduler(cluster, *policy);
  std::vector<std::pair<std::string, PodId>> waiting;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state != PodState::Pending) continue;
    waiting.emplace_back(cluster.pod_full_name(PodId{i}), PodId{i});
  }
  std::ranges::sort(waiting);
  std::string plan;
  for (const auto& [name, pod] : waiting) {
    const core::Decision decision = scheduler.decide(pod);
    plan += name + " ";
    if (!decision.node.valid()) continue;
    plan += cluster.text(cluster.node(decision.node).name);
    for (const core::GpuHold& h : decision.holds) plan += " " + std::to_string(h.gpu);
    scheduler.accept(decision);
  }
  return plan;
}

TEST(Export, RandomClustersComeBackEqualAndDecideTheSame) {
  const Trial trial = Trial::from_env(150);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round), {.exact_holds = true, .as_kubernetes = true});
    Cluster cluster;
    for (const Event& event : world.start()) core::testing::apply(cluster, event);
    // Pods ask for devices as such only where some node tells of its devices.
    NodeBuilder told("told");
    add(cluster, told.cpu(0).gpus("T4", 1, 16000).label("nvidia.com/gpu.product", "T4"));
    for (std::int32_t i = 0; i < world.options().pods; ++i) {
      core::PodSpec pod = world.pod(i);
      if (world.rng().chance(1, 4)) world.bind(pod);
      ASSERT_TRUE(cluster.upsert_pod(pod).has_value());
      if (i == world.options().pods / 2) static_cast<void>(run_all(cluster, "best-fit", 1));
    }
    Cluster copy;
    ASSERT_EQ(read_back(cluster, copy), "") << trial.repeat(round);
    const auto& policies = core::policies();
    const std::string_view policy = policies[round % policies.size()].name;
    ASSERT_EQ(run_all(cluster, policy, round), run_all(copy, policy, round))
        << policy << "; " << trial.repeat(round);
    ASSERT_EQ(cluster.digest(), copy.digest()) << trial.repeat(round);
  }
}

}  // namespace
}  // namespace jogak::importer
