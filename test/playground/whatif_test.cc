// SPDX-License-Identifier: Apache-2.0
//
// What whatif says of a cluster read over its API, and what the scheduler of that cluster then
// does when the pods are really created: the same.
#include "sim/whatif.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/rng.h"
#include "cli/cluster_input.h"
#include "cli/new_objects.h"
#include "core/testing/random_world.h"
#include "kube/api_client.h"
#include "kube/snapshot.h"
#include "playground/fleet.h"
#include "playground/local_client.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

constexpr TimeUs kQuiet = 300 * kSecondInUs;  // grace periods, back-offs

PlaygroundOptions options_with_token() {
  PlaygroundOptions options;
  options.server.tokens["secret"] =
      api::User{.name = "admin", .uid = "admin", .groups = {"system:masters"}};
  return options;
}

// The cluster of a world as `jogak whatif` reads a live one.
cli::ClusterInput read(World& world, core::Cluster& cluster) {
  LocalClient http(world.loop(), world.playground().server(), "secret");
  kube::ApiClient api(http);
  std::optional<Result<std::vector<kube::SnapshotPage>>> pages;
  const kube::Snapshot snapshot(
      api, [&](Result<std::vector<kube::SnapshotPage>> all) { pages = std::move(all); }, 3);
  while (!pages.has_value() && world.loop().step()) {
  }
  EXPECT_TRUE(pages.has_value() && pages->has_value());
  std::vector<cli::ClusterText> texts;
  for (kube::SnapshotPage& page : **pages) {
    texts.push_back({.kind = page.kind, .text = std::move(page.json), .name = "world"});
  }
  auto input = cli::read_texts(texts, cluster);
  EXPECT_TRUE(input.has_value()) << input.error().what;
  return input.value_or(cli::ClusterInput());
}

struct Answer {
  std::map<std::string, std::string> nodes;  // of pods that would run, by name
  std::set<std::string> preempted;
  std::string text;
};

Answer ask(World& world, const std::vector<Doc>& manifests, sim::WhatifChanges changes = {}) {
  core::Cluster cluster;
  const cli::ClusterInput input = read(world, cluster);
  cli::NewObjects objects;
  const cli::NewObjectOptions options{
      .has_pod = [&cluster](std::string_view ns, std::string_view name) {
        return cluster.find_pod(ns, name).has_value();
      }};
  const auto added = cli::add_new_objects(manifests, "manifests", options, objects);
  EXPECT_TRUE(added.has_value()) << added.error().what;
  auto pods = cli::create_objects(objects, input.priority_classes, cluster);
  EXPECT_TRUE(pods.has_value()) << pods.error().what;
  changes.new_pods = std::move(*pods);
  const auto report = sim::whatif(cluster, changes);
  EXPECT_TRUE(report.has_value()) << report.error().what;
  Answer answer;
  for (const sim::WhatifPod& pod : report->pods) {
    const std::string name = pod.name.substr(pod.name.find('/') + 1);
    if (!pod.preempted_by.empty() && !pod.was_on.empty()) answer.preempted.insert(name);
    // Nobody makes these anew.
    if (pod.starts() && !pod.has_no_owner) answer.nodes[name] = pod.node;
    answer.text += fmt::format("{} {} {} {}\n", name, pod.preempted_by, pod.node, pod.message);
  }
  return answer;
}

std::string node_of(World& world, std::string_view name) {
  return world.pod(name).get("spec", "nodeName").as_string();
}

// How many pods of a name are on each node.
std::map<std::string, int> spread_of(World& world, std::string_view prefix) {
  std::map<std::string, int> counts;
  for (const Doc& pod : world.pods()) {
    const std::string& node = pod.get("spec", "nodeName").as_string();
    if (api::name_of(pod).starts_with(prefix) && !node.empty()) ++counts[node];
  }
  return counts;
}

constexpr std::string_view kServe = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - {name: main, image: x, resources: {limits: {cpu: 2, nvidia.com/gpu: 2}}}
)";
constexpr std::string_view kTrain = R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: x, resources: {limits: {cpu: 1, nvidia.com/gpu: 4}}}
)";

TEST(WhatifAndReality, AgreeOnADeploymentAndAJob) {
  World world({simulated_node("n1", 16, 8), simulated_node("n2", 16, 8), simulated_node("n3", 8, 4),
               simulated_node("n4", 32, 0)},
              options_with_token());
  world.add(simple_pod("busy", 4, 3));
  world.run_for(kQuiet);
  // One after the other: nobody knows which controller makes its pods first.
  for (const auto& [name, manifest] : {std::pair("serve-", kServe), std::pair("train-", kTrain)}) {
    const Answer answer = ask(world, *read_manifests(manifest, "x"));
    std::map<std::string, int> said;
    for (const auto& [pod, node] : answer.nodes) ++said[node];
    world.apply(manifest);
    world.run_for(5 * kSecondInUs);  // before the first of the job ends
    EXPECT_EQ(said, spread_of(world, name)) << answer.text;
  }
}

TEST(WhatifAndReality, AgreeOnPreemption) {
  World world({simulated_node("n1", 8, 4), simulated_node("n2", 8, 4)}, options_with_token());
  world.add(priority_class("high", 1000));
  world.add(priority_class("low", 1));
  world.add(simple_pod("low-1", 2, 4, "low"));
  world.add(simple_pod("low-2", 2, 2, "low"));
  world.run_for(kQuiet);
  const std::vector<Doc> pods = {simple_pod("high-1", 2, 4, "high"),
                                 simple_pod("plain", 1, 2, "low"),
                                 simple_pod("too-large", 1, 8, "high")};
  const Answer answer = ask(world, pods);
  for (const Doc& pod : pods) world.add(pod);
  world.run_for(kQuiet);
  EXPECT_EQ(answer.preempted.size(), 1U) << answer.text;
  for (const std::string& name : answer.preempted) EXPECT_TRUE(world.pod(name).is_null()) << name;
  EXPECT_FALSE(answer.nodes.contains("too-large"));
  for (const Doc& pod : pods) {
    const std::string name = api::name_of(pod);
    const auto node = answer.nodes.find(name);
    EXPECT_EQ(node == answer.nodes.end() ? "" : node->second, node_of(world, name)) << answer.text;
  }
}

TEST(WhatifAndReality, AgreeOnANodeThatIsRemoved) {
  World world({simulated_node("n1", 8, 4), simulated_node("n2", 8, 4), simulated_node("n3", 8, 0)},
              options_with_token());
  world.apply(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: main, image: x, resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}}
)");
  world.run_for(kQuiet);
  const Answer answer = ask(world, {}, {.remove_nodes = {"n1"}});
  std::map<std::string, int> said = spread_of(world, "serve-");
  said.erase("n1");
  for (const auto& [name, node] : answer.nodes) ++said[node];
  ASSERT_TRUE(world.api().remove("nodes", "", "n1").has_value());
  world.run_for(4 * kQuiet);
  EXPECT_EQ(said, spread_of(world, "serve-")) << answer.text;
}

// Bare pods of random sizes and priorities, on a cluster that is half full.
std::string trial(std::uint64_t seed) {
  Rng rng(seed, "whatif");
  std::vector<Doc> nodes;
  const std::int64_t count = rng.between(2, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto cpu = static_cast<int>(rng.between(4, 16));
    const auto gpus = static_cast<int>(rng.between(0, 8));
    nodes.push_back(simulated_node(fmt::format("n{}", i), cpu, gpus));
  }
  World world(std::move(nodes), options_with_token());
  constexpr std::string_view kClasses[] = {"", "low", "high"};
  world.add(priority_class("low", 10));
  world.add(priority_class("high", 1000));
  const auto draw = [&](std::string_view name) {
    const auto cpu = static_cast<int>(rng.between(1, 6));
    const auto gpus = rng.chance(1, 2) ? static_cast<int>(rng.between(1, 4)) : 0;
    const std::string_view priority = kClasses[rng.below(3)];
    return simple_pod(name, cpu, gpus, priority);
  };
  const std::int64_t old_pods = rng.between(0, 10);
  for (std::int64_t i = 0; i < old_pods; ++i) {
    world.add(draw(fmt::format("old-{}", i)));
    world.run_for(2 * kSecondInUs);
  }
  world.run_for(kQuiet);
  std::set<std::string> old_names;
  for (const Doc& pod : world.pods()) old_names.insert(api::name_of(pod));
  std::vector<Doc> pods;
  const std::int64_t new_pods = rng.between(1, 6);
  for (std::int64_t i = 0; i < new_pods; ++i) pods.push_back(draw(fmt::format("new-{}", i)));

  const Answer answer = ask(world, pods);
  for (const Doc& pod : pods) world.add(pod);
  world.run_for(kQuiet);
  std::string wrong;
  for (const Doc& pod : pods) {
    const std::string name = api::name_of(pod);
    const auto at = answer.nodes.find(name);
    const std::string said = at == answer.nodes.end() ? "" : at->second;
    if (said != node_of(world, name)) {
      wrong += fmt::format("{}: said \"{}\", is \"{}\"\n", name, said, node_of(world, name));
    }
  }
  for (const std::string& name : old_names) {
    if (answer.preempted.contains(name) != world.pod(name).is_null()) {
      wrong += name + ": its preemption\n";
    }
  }
  return wrong.empty() ? wrong : wrong + answer.text;
}

TEST(WhatifAndReality, AgreeOnRandomPods) {
  const core::testing::Trial rounds = core::testing::Trial::from_env(40);
  for (std::uint64_t round = 0; round < rounds.rounds; ++round) {
    ASSERT_EQ(trial(rounds.seed_of(round)), "") << rounds.repeat(round);
  }
}

}  // namespace
}  // namespace jogak::playground::testing
