// SPDX-License-Identifier: Apache-2.0
// GpuDevices against exhaustive search: places for MIG instances are counted exactly, and a refusal
// is Unresolvable exactly if the node would refuse with nobody on it. Nodes and pods are drawn from
// a seed.
#include "core/filter/gpu_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/model/mig.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kModels[] = {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A30", "NVIDIA-H200",
                                   "NVIDIA-RTX-PRO-6000"};

struct Device {
  std::uint16_t used = 0;
  std::vector<std::int32_t> counts;  // held instances by profile
};

// The most instances of the profile that can still be cut, trying every start every time.
std::int32_t most_cuts(const MigModel& model, std::size_t profile, Device device) {
  const MigProfile& asked = model.profiles[profile];
  ++device.counts[profile];
  if (!mig_counts_fit(model, device.counts)) return 0;
  std::int32_t best = 0;
  for (std::int32_t start = 0; start < model.slices; ++start) {
    if ((asked.starts >> start & 1) == 0 || start + asked.size > model.slices) continue;
    const std::uint16_t mask = mig_mask(start, asked.size);
    if ((device.used & mask) != 0) continue;
    Device next = device;
    next.used = static_cast<std::uint16_t>(next.used | mask);
    best = std::max(best, 1 + most_cuts(model, profile, next));
  }
  return best;
}

struct MigWorld {
  Cluster cluster;
  NodeId node;
  const MigModel* model = nullptr;
  std::vector<Device> devices;
};

// Devices cut on demand, with instances where a draw found room for them.
void fill(MigWorld& world, Rng& rng) {
  const std::string product = kModels[rng.below(std::size(kModels))];
  world.model = &mig_models()[find_mig_model(product).value()];
  NodeBuilder node("n1");
  node.gpus(product, 0, 0);
  GpuSpec gpu;
  gpu.mig_enabled = true;
  gpu.mig_dynamic = true;
  const auto count = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    node.gpu(gpu);
    world.devices.push_back({0, std::vector<std::int32_t>(world.model->profiles.size(), 0)});
  }
  world.node = add(world.cluster, node);
  const auto tries = rng.below(10);
  for (std::uint64_t t = 0; t < tries; ++t) {
    const auto g = static_cast<std::size_t>(rng.below(count));
    const auto p = static_cast<std::size_t>(rng.below(world.model->profiles.size()));
    const auto start = static_cast<std::int32_t>(rng.below(16));
    const MigProfile& profile = world.model->profiles[p];
    Device& device = world.devices[g];
    if ((mig_free_starts(profile, device.used) >> start & 1) == 0) continue;
    ++device.counts[p];
    if (!mig_counts_fit(*world.model, device.counts)) {
      --device.counts[p];
      continue;
    }
    device.used = static_cast<std::uint16_t>(device.used | mig_mask(start, profile.size));
    add(world.cluster, PodBuilder("held" + std::to_string(t))
                           .mig(std::string(profile.name))
                           .on("n1", {{static_cast<std::int32_t>(g), 0, start}}));
  }
}

TEST(GpuDevicesProperty, MigPlacesAreCountedExactly) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "mig places");
    MigWorld world;
    fill(world, rng);
    const auto p = static_cast<std::size_t>(rng.below(world.model->profiles.size()));
    const std::string profile(world.model->profiles[p].name);
    std::int32_t most = 0;
    for (const Device& device : world.devices) most += most_cuts(*world.model, p, device);
    const PodView pod = testing::view(world.cluster, PodBuilder("asker").mig(profile));
    const Node& node = world.cluster.node(world.node);
    EXPECT_EQ(count_mig_places(world.cluster, *pod.shape, node, 100, false), most) << profile;
  }
}

// Every kind of device and holder on one node, known or not.
PodBuilder random_pod(Rng& rng, const std::string& name) {
  PodBuilder pod(name);
  const auto count = static_cast<std::int32_t>(rng.between(1, 3));
  const auto amount = static_cast<std::int32_t>(rng.between(1, 9)) * 100;
  switch (rng.below(4)) {
    case 0:
      return pod.gpus(count);
    case 1:
      return pod.gpu_milli(amount, count);
    case 2:
      return pod.gpu_mib(amount * 100, count);
    default:
      return pod.mig(rng.chance(1, 2) ? "1g.10gb" : "3g.40gb", count);
  }
}

TEST(GpuDevicesProperty, UnresolvableMeansThatAnEmptyNodeRefusesToo) {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "gpu verdicts");
    NodeBuilder builder("n1");
    builder.gpus(kModels[0], 0, 0);
    const auto gpus = rng.between(1, 4);
    for (std::int64_t i = 0; i < gpus; ++i) {
      GpuSpec gpu;
      gpu.memory_mib = rng.chance(1, 8) ? 0 : 80000;
      gpu.health = rng.chance(1, 8) ? GpuHealth::Unhealthy : GpuHealth::Healthy;
      gpu.mig_enabled = rng.chance(1, 2);
      gpu.mig_dynamic = gpu.mig_enabled && rng.chance(1, 2);
      if (gpu.mig_enabled && !gpu.mig_dynamic) gpu.mig_instances = {{"3g.40gb", 0}, {"1g.10gb", 5}};
      builder.gpu(gpu);
    }
    Cluster cluster;
    const NodeId id = add(cluster, builder);
    std::vector<PodId> holders;
    const auto count = rng.below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      holders.push_back(add(cluster, random_pod(rng, "holder" + std::to_string(i)).on("n1")));
    }
    const PodView pod = testing::view(cluster, random_pod(rng, "asker"));
    const Verdict verdict = gpu_devices_filter(cluster, pod, cluster.node(id), nullptr);
    for (const PodId holder : holders) cluster.remove_pod(holder);
    const Verdict empty = gpu_devices_filter(cluster, pod, cluster.node(id), nullptr);
    EXPECT_NE(empty.code, Code::Unschedulable) << "there is nobody to wait for";
    EXPECT_EQ(verdict.code == Code::Unresolvable, empty.code == Code::Unresolvable);
    refused += verdict.fits() ? 0 : 1;
  }
  EXPECT_GT(refused, 50) << "the draws no longer reach the refusals";
}

}  // namespace
}  // namespace jogak::core
