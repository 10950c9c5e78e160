// SPDX-License-Identifier: Apache-2.0
// Tables of pods with their effective requests, the arithmetic beside each.
#include "core/model/pod_requests.h"

#include <gtest/gtest.h>

#include <limits>

namespace jogak::core {
namespace {

constexpr std::int64_t kMi = std::int64_t{1} << 20;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kGpu = "nvidia.com/gpu";

ContainerRequests container(ResourceList requests) {
  return {.requests = {.spec = std::move(requests), .in_effect = {}, .allocated = {}},
          .sidecar = false};
}

ContainerRequests sidecar(ResourceList requests) {
  ContainerRequests result = container(std::move(requests));
  result.sidecar = true;
  return result;
}

ContainerRequests cpu(std::int64_t milli) { return container({{"cpu", milli}}); }

PodRequests requests_of(const PodResources& pod) {
  const auto result = effective_requests(pod, "team-a/x");
  EXPECT_TRUE(result.has_value()) << result.error().what;
  return result.value_or(PodRequests{});
}

std::int64_t amount(const PodRequests& requests, std::string_view name) {
  for (const auto& [resource, value] : requests.requests) {
    if (resource == name) return value;
  }
  return -1;
}

TEST(PodRequests, ContainersAdd) {
  PodResources pod;
  pod.containers = {container({{"cpu", 500}, {"memory", 100 * kMi}}),
                    container({{"cpu", 250}, {std::string(kGpu), 2}})};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 750);
  EXPECT_EQ(amount(sum, "memory"), 100 * kMi);
  EXPECT_EQ(amount(sum, kGpu), 2);
  EXPECT_EQ(amount(sum, "ephemeral-storage"), -1);
}

TEST(PodRequests, InitContainersRunOneAfterAnotherBeforeTheOthers) {
  PodResources pod;
  pod.containers = {cpu(1000), cpu(500)};
  pod.init_containers = {cpu(400), cpu(1200)};
  EXPECT_EQ(amount(requests_of(pod), "cpu"), 1500);  // max(1000 + 500, 400, 1200)
  pod.init_containers.push_back(cpu(1800));
  EXPECT_EQ(amount(requests_of(pod), "cpu"), 1800);
}

// Seen in KAI-Scheduler issue 1556: a sidecar counted by maximum instead of sum.
TEST(PodRequests, SidecarsRunBesideTheContainers) {
  PodResources pod;
  pod.init_containers = {sidecar({{"cpu", 2000}, {std::string(kGpu), 1}})};
  pod.containers = {container({{"cpu", 2000}, {std::string(kGpu), 1}})};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 4000);
  EXPECT_EQ(amount(sum, kGpu), 2);
}

TEST(PodRequests, ASidecarCountsForTheInitContainersAfterIt) {
  PodResources pod;
  pod.containers = {cpu(100)};
  // init 1500 alone; then sidecar 300; then init 1400 + 300; then sidecar 200.
  pod.init_containers = {cpu(1500), sidecar({{"cpu", 300}}), cpu(1400), sidecar({{"cpu", 200}})};
  EXPECT_EQ(amount(requests_of(pod), "cpu"), 1700);  // max(100 + 500, 1500, 1400 + 300)
}

TEST(PodRequests, MaximaAreTakenPerResource) {
  PodResources pod;
  pod.containers = {container({{"cpu", 100}, {"memory", 900 * kMi}})};
  pod.init_containers = {container({{"cpu", 700}, {"memory", 10 * kMi}})};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 700);
  EXPECT_EQ(amount(sum, "memory"), 900 * kMi);
}

TEST(PodRequests, OverheadComesOnTop) {
  PodResources pod;
  pod.containers = {cpu(100)};
  pod.init_containers = {cpu(700)};
  pod.overhead = {{"cpu", 250}, {"memory", 120 * kMi}};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 950);
  EXPECT_EQ(amount(sum, "memory"), 120 * kMi);
}

TEST(PodRequests, PodLevelReplacesTheSumByName) {
  PodResources pod;
  pod.containers = {container({{"cpu", 100}, {"memory", 50 * kMi}, {std::string(kGpu), 1}})};
  pod.pod_level.spec = {{"cpu", 3000}, {std::string(kGpu), 7}};  // a GPU cannot be set there
  pod.overhead = {{"cpu", 10}};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 3010);
  EXPECT_EQ(amount(sum, "memory"), 50 * kMi);
  EXPECT_EQ(amount(sum, kGpu), 1);
}

TEST(PodRequests, PodLevelWithoutANameThatCountsIsNone) {
  PodResources pod;
  pod.containers = {cpu(100)};
  pod.pod_level.spec = {{std::string(kGpu), 7}};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, kGpu), -1);
  EXPECT_EQ(sum.nonzero_memory, kDefaultMemoryBytes);
  EXPECT_EQ(sum.scored_cpu, -1);
}

struct ResizeCase {
  std::string_view name;
  std::int64_t spec;
  std::optional<std::int64_t> in_effect;
  std::optional<std::int64_t> allocated;
  bool infeasible;
  bool on_node;
  std::int64_t want;
};

TEST(PodRequests, AResizeCountsWithTheLargest) {
  const ResizeCase cases[] = {
      {"no status", 500, {}, {}, false, true, 500},
      {"growing", 900, 500, 500, false, true, 900},
      {"shrinking", 300, 500, 500, false, true, 500},
      {"allocated, not yet in effect", 300, 400, 600, false, true, 600},
      {"infeasible", 9000, 500, 600, true, true, 600},
      {"infeasible, no status", 9000, {}, {}, true, true, 9000},
      {"allocated alone is not looked at", 500, {}, 900, false, true, 500},
      {"not on a node", 500, 900, 900, false, false, 500},
  };
  for (const ResizeCase& c : cases) {
    ResizableRequests requests{.spec = {{"cpu", c.spec}}, .in_effect = {}, .allocated = {}};
    if (c.in_effect) requests.in_effect = ResourceList{{"cpu", *c.in_effect}};
    if (c.allocated) requests.allocated = ResourceList{{"cpu", *c.allocated}};
    PodResources pod;
    pod.on_node = c.on_node;
    pod.resize_infeasible = c.infeasible;
    pod.containers = {{.requests = requests, .sidecar = false}};
    EXPECT_EQ(amount(requests_of(pod), "cpu"), c.want) << c.name;
    pod.containers.clear();
    pod.init_containers = {{.requests = requests, .sidecar = true}};
    EXPECT_EQ(amount(requests_of(pod), "cpu"), c.want) << c.name << ", sidecar";
    pod.init_containers.front().sidecar = false;  // an ordinary one has ended: its spec counts
    EXPECT_EQ(amount(requests_of(pod), "cpu"), c.spec) << c.name << ", init container";
    pod.init_containers.clear();
    pod.pod_level = requests;
    EXPECT_EQ(amount(requests_of(pod), "cpu"), c.want) << c.name << ", pod level";
  }
}

TEST(PodRequests, ScoringAssumesDefaultsPerContainer) {
  PodResources pod;
  pod.containers = {container({}), container({{"cpu", 300}}), container({{"cpu", 0}})};
  pod.init_containers = {sidecar({{"memory", kMi}})};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(sum.nonzero_cpu, 100 + 300 + 0 + 100);  // an explicit 0 stays 0
  EXPECT_EQ(sum.nonzero_memory, 3 * kDefaultMemoryBytes + kMi);
  EXPECT_EQ(amount(sum, "cpu"), 300);
  EXPECT_EQ(amount(sum, "memory"), kMi);
  EXPECT_EQ(sum.scored_cpu, -1);
}

TEST(PodRequests, DefaultsGiveWayToPodLevelRequests) {
  PodResources pod;
  pod.containers = {container({}), container({{"cpu", 300}})};
  pod.pod_level.spec = {{"memory", 50 * kMi}};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(sum.nonzero_memory, 50 * kMi);
  EXPECT_EQ(sum.nonzero_cpu, 300);  // a container names cpu, so that no default applies
  // The fit score of the pod itself does not see the pod level.
  EXPECT_EQ(sum.scored_cpu, 400);
  EXPECT_EQ(sum.scored_memory, 2 * kDefaultMemoryBytes);
}

TEST(PodRequests, ZerosAreKeptAndForeignNamesAreNot) {
  PodResources pod;
  pod.containers = {container({{"cpu", 0}, {"example.com/fpga", 0}, {"gpu", 3}, {"pods", 1}})};
  const PodRequests sum = requests_of(pod);
  EXPECT_EQ(amount(sum, "cpu"), 0);
  EXPECT_EQ(amount(sum, "example.com/fpga"), 0);
  EXPECT_EQ(amount(sum, "gpu"), -1);
  EXPECT_EQ(amount(sum, "pods"), -1);
}

// Seen in KAI-Scheduler issue 1873: a count near 2^63 became negative.
TEST(PodRequests, ASumBeyond64BitsIsAnErrorThatNamesPodAndResource) {
  for (const auto& make : {container, sidecar}) {
    PodResources pod;
    pod.containers = {container({{std::string(kGpu), 1}})};
    (make == &sidecar ? pod.init_containers : pod.containers)
        .push_back(make({{std::string(kGpu), kMax}}));
    const auto result = effective_requests(pod, "team-a/x");
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().what.find("team-a/x"), std::string::npos) << result.error().what;
    EXPECT_NE(result.error().what.find(kGpu), std::string::npos) << result.error().what;
  }
  PodResources pod;
  pod.containers = {cpu(kMax)};
  pod.overhead = {{"cpu", 1}};
  EXPECT_FALSE(effective_requests(pod, "x").has_value());
}

TEST(PodRequests, NamesThatTheSchedulerCounts) {
  for (const std::string_view name :
       {"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "rdma/hca", "hugepages-2Mi",
        "attachable-volumes-csi", "kubernetes.io/batch-cpu", "example.com/a.b_c-d"}) {
    EXPECT_TRUE(is_counted_resource(name)) << name;
  }
  for (const std::string_view name :
       {"gpu", "", "requests.nvidia.com/gpu", "example.com/", "/gpu", "a/b/c", "exa mple/x"}) {
    EXPECT_FALSE(is_counted_resource(name)) << name;
  }
}

}  // namespace
}  // namespace jogak::core
