// SPDX-License-Identifier: Apache-2.0
// Any policy on any small cluster: what it decides can be booked, and it decides the same again.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/engine/scheduler.h"
#include "core/model/testing.h"
#include "core/plan/validate.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

NodeBuilder random_node(Rng& rng, int i) {
  NodeBuilder node("n" + std::to_string(i));
  node.cpu(static_cast<std::int64_t>(8 + rng.below(64)));
  const std::uint64_t kind = rng.below(4);
  if (kind == 0) return node;  // no GPUs
  const auto count = static_cast<std::int32_t>(1 + rng.below(8));
  if (kind == 1) return node.resource("nvidia.com/gpu", count);  // counted only
  node.gpus(kind == 2 ? "Tesla-T4" : "NVIDIA-A100-SXM4-80GB", count, kind == 2 ? 15360 : 81920);
  for (GpuSpec& gpu : node.spec().gpus) {
    gpu.numa_node = static_cast<std::int32_t>(rng.below(3)) - 1;
    gpu.mig_enabled = kind == 3 && rng.below(3) == 0;
    gpu.mig_dynamic = gpu.mig_enabled;
    if (rng.below(10) == 0) gpu.health = GpuHealth::Unhealthy;
  }
  return node;
}

PodBuilder random_pod(Rng& rng, int i) {
  PodBuilder pod("p" + std::to_string(i));
  pod.cpu(static_cast<std::int64_t>(rng.below(9)));
  const auto count = static_cast<std::int32_t>(1 + rng.below(4));
  switch (rng.below(7)) {
    case 0:
      return pod;
    case 1:
      return pod.gpu_milli(static_cast<std::int32_t>(1 + rng.below(999)));
    case 2:
      return pod.gpu_milli(static_cast<std::int32_t>(100 * (1 + rng.below(9))), count);
    case 3:
      return pod.gpu_mib(static_cast<std::int32_t>(1 + rng.below(40000)), count);
    case 4:
      return pod.mig(rng.below(2) == 0 ? "1g.10gb" : "3g.40gb", count);
    case 5:
      return pod.resource("nvidia.com/gpu", count);
    default:
      break;
  }
  GpuRequest whole;
  whole.kind = GpuAsk::Whole;
  whole.count = count;
  pod.gpu_ask(whole);
  if (rng.below(4) == 0) pod.gpu_model("Tesla-T4");
  return pod;
}

std::vector<Decision> play(std::string_view name, std::uint64_t seed) {
  Rng rng(seed, "policy_prop");
  Cluster cluster;
  for (int i = 0; i < 8; ++i) add(cluster, random_node(rng, i));
  const auto policy = make_policy(name, seed);
  Scheduler scheduler(cluster, **policy);
  std::vector<Decision> decisions;
  for (int i = 0; i < 80; ++i) {
    const PodId pod = add(cluster, random_pod(rng, i));
    decisions.push_back(scheduler.decide(pod));
    if (!decisions.back().node.valid()) continue;
    EXPECT_EQ(validate(cluster, decisions.back()), "");
    scheduler.accept(decisions.back());
  }
  EXPECT_EQ(validate_cluster(cluster), "");
  EXPECT_EQ(cluster.recount(), "");
  return decisions;
}

TEST(PolicyProperty, DecisionsAreLegalAndRepeatable) {
  for (const PolicyInfo& info : policies()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(::testing::Message() << info.name << ", seed " << seed);
      const auto first = play(info.name, seed);
      const auto second = play(info.name, seed);
      ASSERT_EQ(first.size(), second.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(first[i].node, second[i].node);
        EXPECT_EQ(first[i].holds, second[i].holds);
      }
    }
  }
}

}  // namespace
}  // namespace jogak::core
