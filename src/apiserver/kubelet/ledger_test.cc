// SPDX-License-Identifier: Apache-2.0
//
// What a node's ledger admits, refuses and gives back, and that a device has one owner at a time:
// by cases, and at random against plain counting.
#include "apiserver/kubelet/ledger.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace jogak::kubelet {
namespace {

constexpr std::string_view kGpu = "nvidia.com/gpu";
using Devices = std::vector<std::int64_t>;

Doc allocatable(std::string_view cpu, std::string_view pods, int gpus) {
  return Doc::object()
      .set("cpu", cpu)
      .set("memory", "16Gi")
      .set("pods", pods)
      .set(kGpu, std::to_string(gpus));
}

Doc pod(std::string_view cpu, int gpus) {
  Doc container = Doc::object().set("name", "main");
  container.at("resources", "requests").set("cpu", cpu);
  if (gpus > 0) container.at("resources", "requests").set(kGpu, std::to_string(gpus));
  Doc object = Doc::object();
  object.at("spec").set("containers", Doc::array().push(std::move(container)));
  return object;
}

TEST(NodeLedger, DevicesHaveOneOwnerEach) {
  NodeLedger ledger;
  ledger.set_allocatable(allocatable("8", "10", 4));
  EXPECT_FALSE(ledger.admit("a", pod("1", 2)).has_value());
  EXPECT_FALSE(ledger.admit("b", pod("1", 1)).has_value());
  EXPECT_EQ(ledger.devices_of("a", kGpu), (Devices{0, 1}));
  EXPECT_EQ(ledger.devices_of("b", kGpu), (Devices{2}));
  ledger.release("a");
  EXPECT_FALSE(ledger.admit("c", pod("1", 3)).has_value());
  EXPECT_EQ(ledger.devices_of("c", kGpu), (Devices{0, 1, 3}));
  EXPECT_TRUE(ledger.devices_of("a", kGpu).empty());
  EXPECT_TRUE(ledger.devices_of("c", "example.com/other").empty());
}

TEST(NodeLedger, SaysWhatIsMissingAsAKubeletDoes) {
  NodeLedger ledger;
  ledger.set_allocatable(allocatable("2", "2", 1));
  const auto gpus = ledger.admit("a", pod("1", 2));
  ASSERT_TRUE(gpus.has_value());
  EXPECT_EQ(gpus->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(gpus->message,
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 2, Available: 1, which is unexpected");
  EXPECT_FALSE(ledger.admit("b", pod("1500m", 0)).has_value());
  const auto cpu = ledger.admit("c", pod("1", 0));
  ASSERT_TRUE(cpu.has_value());
  EXPECT_EQ(cpu->reason, "OutOfcpu");
  EXPECT_EQ(cpu->message,
            "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000");
  EXPECT_FALSE(ledger.admit("d", pod("500m", 0)).has_value());
  const auto pods = ledger.admit("e", pod("0", 0));
  ASSERT_TRUE(pods.has_value());
  EXPECT_EQ(pods->reason, "OutOfpods");
}

TEST(NodeLedger, ARefusedPodTakesNothing) {
  NodeLedger ledger;
  ledger.set_allocatable(allocatable("2", "10", 2));
  EXPECT_TRUE(ledger.admit("a", pod("3", 2)).has_value());
  EXPECT_FALSE(ledger.holds("a"));
  EXPECT_EQ(ledger.pods(), 0U);
  EXPECT_FALSE(ledger.admit("b", pod("2", 2)).has_value());
}

TEST(NodeLedger, DevicesThatFallIllStayWithTheirOwner) {
  NodeLedger ledger;
  ledger.set_allocatable(allocatable("8", "10", 4));
  EXPECT_FALSE(ledger.admit("a", pod("1", 3)).has_value());
  ledger.set_allocatable(allocatable("8", "10", 2));
  EXPECT_EQ(ledger.devices_of("a", kGpu), (Devices{0, 1, 2}));
  EXPECT_TRUE(ledger.admit("b", pod("1", 1)).has_value());
  ledger.set_allocatable(allocatable("8", "10", 4));
  EXPECT_FALSE(ledger.admit("b", pod("1", 1)).has_value());
  EXPECT_EQ(ledger.devices_of("b", kGpu), (Devices{3}));
}

TEST(NodeLedger, ReleasingTwiceGivesBackOnce) {
  NodeLedger ledger;
  ledger.set_allocatable(allocatable("2", "10", 0));
  EXPECT_FALSE(ledger.admit("a", pod("2", 0)).has_value());
  ledger.release("a");
  ledger.release("a");
  ledger.release("nobody");
  EXPECT_FALSE(ledger.admit("b", pod("2", 0)).has_value());
  EXPECT_TRUE(ledger.admit("c", pod("1", 0)).has_value());
}

// Against plain counting: what is free is admitted, what is not is refused, no device twice.
TEST(NodeLedger, CountsLikeAChildWould) {
  constexpr int kGpus = 8;
  constexpr int kCpus = 16;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed, "ledger");
    NodeLedger ledger;
    ledger.set_allocatable(allocatable(std::to_string(kCpus), "12", kGpus));
    std::map<std::string, std::pair<int, int>> held;  // cpu, gpus
    for (int step = 0; step < 200; ++step) {
      if (rng.below(3) == 0 && !held.empty()) {
        const auto it =
            std::next(held.begin(), static_cast<std::ptrdiff_t>(rng.below(held.size())));
        ledger.release(it->first);
        held.erase(it);
        continue;
      }
      const int cpu = static_cast<int>(rng.below(6));
      const int gpus = static_cast<int>(rng.below(5));
      int used_cpu = 0;
      int used_gpus = 0;
      for (const auto& [uid, sizes] : held) {
        used_cpu += sizes.first;
        used_gpus += sizes.second;
      }
      const bool fits = used_cpu + cpu <= kCpus && used_gpus + gpus <= kGpus && held.size() < 12;
      const std::string uid = fmt::format("pod-{}", step);
      ASSERT_EQ(!ledger.admit(uid, pod(std::to_string(cpu), gpus)).has_value(), fits)
          << "seed " << seed << " step " << step;
      if (fits) held[uid] = {cpu, gpus};
      std::set<std::int64_t> owned;
      for (const auto& [owner, sizes] : held) {
        const Devices devices = ledger.devices_of(owner, kGpu);
        ASSERT_EQ(static_cast<int>(devices.size()), sizes.second) << "seed " << seed;
        for (const std::int64_t device : devices) {
          ASSERT_TRUE(device >= 0 && device < kGpus);
          ASSERT_TRUE(owned.insert(device).second) << "seed " << seed << " step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace jogak::kubelet
