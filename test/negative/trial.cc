// SPDX-License-Identifier: Apache-2.0
// Nodes with whole, shared, partitioned and sick devices, and pods with every hard rule now and
// then.
#include "test/negative/trial.h"

#include <utility>
#include <vector>

#include "core/model/testing.h"

namespace jogak::negative {
namespace {

using core::testing::in;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

constexpr const char* kModel = "NVIDIA-A100-SXM4-40GB";
constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kHost = "kubernetes.io/hostname";

// Devices 0..3 are given out whole or shared, 4 is cut on demand, 5 has a fixed layout, 6 is sick.
void add_gpus(NodeBuilder& node) {
  node.gpus(kModel, 7, 40960);
  auto& gpus = node.spec().gpus;
  gpus[4].mig_enabled = gpus[4].mig_dynamic = true;
  gpus[5].mig_enabled = true;
  gpus[5].mig_instances = {{"1g.5gb", 0}, {"1g.5gb", 1}, {"3g.20gb", 4}};
  gpus[6].health = core::GpuHealth::Unhealthy;
}

void add_node(Rng& rng, core::Cluster& cluster, int i) {
  NodeBuilder node("n" + std::to_string(i));
  node.cpu(rng.between(6, 16)).pods(rng.between(8, 16)).zone(rng.chance(1, 2) ? "x" : "y");
  if (i % 4 == 1) node.taint("dedicated", "a");
  if (i % 6 == 2) node.unschedulable();
  if (i % 2 == 0) node.label("disk", "ssd");
  if (i % 3 == 0) node.feature("fast-start");
  add_gpus(node);
  if (i % 5 == 3) node.spec().gpu_model = "NVIDIA-A100-PCIE-40GB";
  core::testing::add(cluster, node);
}

void ask_gpu(Rng& rng, PodBuilder& pod) {
  switch (rng.below(8)) {
    case 0:
      pod.gpus(static_cast<std::int32_t>(rng.between(1, 2)));
      break;
    case 1:
      pod.gpu_milli(static_cast<std::int32_t>(rng.between(1, 9) * 100));
      break;
    case 2:
      pod.gpu_mib(static_cast<std::int32_t>(rng.between(1, 6) * 5000));
      break;
    case 3:
      pod.mig(rng.chance(3, 4) ? "1g.5gb" : "3g.20gb");
      break;
    default:
      return;
  }
  if (rng.chance(1, 4)) pod.gpu_model(kModel);
}

void constrain(Rng& rng, PodBuilder& pod) {
  const std::string app(1, static_cast<char>('a' + rng.below(3)));
  const std::string key(rng.chance(1, 2) ? kZone : kHost);
  pod.label("app", app);
  if (rng.chance(1, 4)) pod.tolerate("dedicated", "a");
  if (rng.chance(1, 6)) pod.node_selector("disk", "ssd");
  if (rng.chance(1, 10)) pod.needs_feature("fast-start");
  if (rng.chance(1, 8)) pod.host_port(static_cast<std::int32_t>(rng.between(80, 82)));
  const core::PodAffinityTerm term{core::LabelSelector{{in("app", {app})}}, key, {}, {}, 0};
  if (rng.chance(1, 10)) pod.shape().required_anti_affinity.push_back(term);
  if (rng.chance(1, 12)) pod.shape().required_affinity.push_back(term);
  if (rng.chance(1, 10)) {
    core::SpreadConstraint spread;
    spread.topology_key = kZone;
    spread.selector = core::LabelSelector{{in("app", {app})}};
    pod.spread(spread);
  }
}

}  // namespace

Trial::Trial(std::uint64_t seed)
    : rng(seed, "negative"),
      policy(core::make_policy("best-fit", seed).value()),
      scheduler(cluster, *policy) {
  const std::int64_t nodes = rng.between(4, 8);
  for (int i = 0; i < nodes; ++i) add_node(rng, cluster, i);
}

core::PodId Trial::arrive() {
  PodBuilder pod("p" + std::to_string(pods++));
  pod.cpu_milli(rng.between(0, 20) * 100);
  constrain(rng, pod);
  ask_gpu(rng, pod);
  return core::testing::add(cluster, pod);
}

void Trial::depart() {
  std::vector<core::PodId> placed;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == core::PodState::Placed) placed.push_back(core::PodId{i});
  }
  if (placed.empty()) return;
  const auto at = static_cast<std::size_t>(rng.below(placed.size()));
  cluster.remove_pod(placed[at]);
}

}  // namespace jogak::negative
