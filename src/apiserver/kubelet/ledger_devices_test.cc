// SPDX-License-Identifier: Apache-2.0
//
// Devices that plugins offer: each container gets ids, healthy ones, as the plugin would have it,
// and no device has two owners.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/kubelet/ledger.h"
#include "base/rng.h"

namespace jogak::kubelet {
namespace {

using testing::HasSubstr;

constexpr std::string_view kGpu = "nvidia.com/gpu";
using Ids = std::vector<std::string>;

// Plugins that prefer the last devices, and refuse what the test says.
class FakePlugins : public NodeDevices {
 public:
  explicit FakePlugins(int gpus) {
    HostResource& resource =
        offered.emplace_back(HostResource{.name = std::string(kGpu), .devices = {}});
    for (int i = 0; i < gpus; ++i) resource.devices.push_back({.id = fmt::format("g{}", i)});
  }
  bool is_ready() const override { return true; }
  bool wake() override { return true; }
  bool manages(std::string_view resource) const override {
    return resource.starts_with("nvidia.com/");
  }
  const std::vector<HostResource>& resources() const override { return offered; }
  Ids prefer(const std::string& /*resource*/, const Ids& available, const Ids& must_include,
             int size) override {
    ++asked;
    if (prefers_nonsense) return {"g99", "g99"};
    Ids chosen = must_include;
    for (auto it = available.rbegin(); it != available.rend(); ++it) {
      if (static_cast<int>(chosen.size()) == size) break;
      if (std::ranges::find(chosen, *it) == chosen.end()) chosen.push_back(*it);
    }
    return chosen;
  }
  Result<std::map<std::string, std::string>> allocate(const std::string& /*resource*/,
                                                      const Ids& /*ids*/) override {
    if (!refusal.empty()) return invalid("{}", refusal);
    return std::map<std::string, std::string>{};
  }
  void set_pod(const DevicePod& /*pod*/) override {}
  void forget_pod(const std::string& /*uid*/) override {}

  std::vector<HostResource> offered;
  std::string refusal;
  bool prefers_nonsense = false;
  int asked = 0;
};

Doc container(std::string_view name, int gpus) {
  Doc made = Doc::object().set("name", name);
  if (gpus > 0) made.at("resources", "limits").set(kGpu, std::to_string(gpus));
  if (gpus > 0) made.at("resources", "requests").set(kGpu, std::to_string(gpus));
  return made;
}

Doc pod(int gpus) {
  Doc object = Doc::object();
  object.at("spec").set("containers", Doc::array().push(container("main", gpus)));
  return object;
}

class LedgerDevices : public testing::Test {
 protected:
  LedgerDevices() {
    ledger.set_allocatable(
        Doc::object().set("cpu", "8").set("memory", "16Gi").set("pods", "100").set(kGpu, "4"));
    ledger.set_devices(&plugins);
  }
  Ids ids(std::string_view uid, std::size_t container = 0) {
    const auto& held = ledger.held_by(uid);
    return container < held.size() ? held[container].ids : Ids{};
  }
  std::string why(const std::string& uid, const Doc& wanted) {
    const auto refused = ledger.admit(uid, wanted);
    return refused ? refused->reason + ": " + refused->message : "";
  }

  FakePlugins plugins{4};
  NodeLedger ledger;
};

TEST_F(LedgerDevices, ThePluginChoosesAmongWhatIsFree) {
  EXPECT_EQ(why("a", pod(1)), "");
  EXPECT_EQ(ids("a"), (Ids{"g3"}));
  EXPECT_EQ(why("b", pod(2)), "");
  EXPECT_EQ(ids("b"), (Ids{"g2", "g1"}));
  ledger.release("a");
  EXPECT_EQ(why("c", pod(2)), "");
  EXPECT_EQ(ids("c"), (Ids{"g3", "g0"}));
  EXPECT_TRUE(ledger.devices_of("c", kGpu).empty()) << "they are no counted units";
}

TEST_F(LedgerDevices, AHintIsNoMoreThanAHint) {
  plugins.prefers_nonsense = true;
  EXPECT_EQ(why("a", pod(2)), "");
  EXPECT_EQ(ids("a"), (Ids{"g0", "g1"}));
}

TEST_F(LedgerDevices, OnlyHealthyOnesAreGiven) {
  plugins.offered[0].devices[3].is_healthy = false;
  plugins.offered[0].devices[2].is_healthy = false;
  EXPECT_EQ(ledger.healthy(plugins.offered[0]), 2);
  EXPECT_EQ(why("a", pod(3)),
            "UnexpectedAdmissionError: Allocate failed due to requested number of devices "
            "unavailable for nvidia.com/gpu. Requested: 3, Available: 2, which is unexpected");
  ledger.set_withheld({{std::string(kGpu), 1}});
  EXPECT_EQ(ledger.healthy(plugins.offered[0]), 1);
  EXPECT_EQ(why("b", pod(1)), "");
  EXPECT_EQ(ids("b"), (Ids{"g0"}));
  ledger.set_withheld({{std::string(kGpu), 9}});
  EXPECT_THAT(why("c", pod(1)), HasSubstr("no healthy devices present; cannot allocate unhealthy "
                                          "devices nvidia.com/gpu, which is unexpected"));
}

TEST_F(LedgerDevices, AFailedAllocateFailsThePodAndKeepsNothing) {
  plugins.refusal = "at most 1 device can be asked for";
  EXPECT_EQ(why("a", pod(2)),
            "UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = at "
            "most 1 device can be asked for, which is unexpected");
  EXPECT_FALSE(ledger.holds("a"));
  plugins.refusal.clear();
  EXPECT_EQ(why("b", pod(4)), "");
}

TEST_F(LedgerDevices, InitContainersLeaveTheirDevicesToTheOthers) {
  Doc object = Doc::object();
  Doc sidecar = container("sidecar", 1);
  sidecar.set("restartPolicy", "Always");
  object.at("spec").set("initContainers",
                        Doc::array().push(container("init", 2)).push(std::move(sidecar)));
  object.at("spec").set("containers", Doc::array().push(container("main", 2)));
  EXPECT_EQ(why("a", object), "");
  ASSERT_EQ(ledger.held_by("a").size(), 3U);
  EXPECT_EQ(ids("a", 0), (Ids{"g3", "g2"}));
  EXPECT_EQ(ids("a", 1), (Ids{"g3"})) << "the sidecar keeps it";
  EXPECT_EQ(ids("a", 2), (Ids{"g2", "g1"}));
  EXPECT_EQ(why("b", pod(2)).substr(0, 24), "UnexpectedAdmissionError");
  EXPECT_EQ(why("c", pod(1)), "");
}

TEST_F(LedgerDevices, WhatAPodHeldBeforeItGetsBack) {
  const std::vector<HeldDevices> before = {
      {.container = "main", .resource = std::string(kGpu), .ids = {"g1", "gone"}}};
  EXPECT_FALSE(ledger.admit("a", pod(2), before).has_value());
  EXPECT_EQ(ids("a"), (Ids{"g1", "g3"}));
}

TEST_F(LedgerDevices, OtherResourcesAreCountedBesides) {
  ledger.set_allocatable(
      Doc::object().set("cpu", "8").set("pods", "10").set("example.com/foo", "2"));
  Doc object = pod(1);
  object.at("spec")
      .at("containers")
      .items()[0]
      .at("resources", "requests")
      .set("example.com/foo", "2");
  EXPECT_EQ(why("a", object), "");
  EXPECT_EQ(ledger.devices_of("a", "example.com/foo"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(ids("a"), (Ids{"g3"}));
  EXPECT_THAT(why("b", object), HasSubstr("unavailable for example.com/foo"));
}

// Pods come and go, devices fall ill and recover: nobody shares, nobody gets an ill one.
TEST_F(LedgerDevices, NoDeviceHasTwoOwners) {
  constexpr std::uint64_t kSeed = 7;
  Rng rng(kSeed, "ledger/devices");
  std::map<std::string, bool> live;
  for (int i = 0; i < 5'000; ++i) {
    auto& devices = plugins.offered[0].devices;
    if (rng.below(4) == 0) {
      HostDevice& device = devices[rng.below(devices.size())];
      device.is_healthy = !device.is_healthy;
    }
    const std::string uid = fmt::format("p{}", rng.below(8));
    if (live[uid]) {
      ledger.release(uid);
      live[uid] = false;
    } else {
      live[uid] = !ledger.admit(uid, pod(static_cast<int>(rng.below(4)))).has_value();
      for (const HeldDevices& held : ledger.held_by(uid)) {
        for (const std::string& id : held.ids) {
          ASSERT_TRUE(ledger.is_healthy(kGpu, id)) << "seed " << kSeed << ", step " << i;
        }
      }
    }
    std::set<std::string> owned;
    for (const auto& [name, is_live] : live) {
      ASSERT_EQ(ledger.holds(name), is_live);
      for (const HeldDevices& held : ledger.held_by(name)) {
        for (const std::string& id : held.ids) {
          ASSERT_TRUE(owned.insert(id).second) << id << ", seed " << kSeed << ", step " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace jogak::kubelet
