// SPDX-License-Identifier: Apache-2.0
//
// Who held a device is remembered after the kubelet has forgotten it, within bounds.
#include "agent/run/past_holders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

Holder pod(const std::string& name, const std::string& ns = "ml") {
  return {.pod_namespace = ns, .pod = name, .container = "c", .pod_uid = ""};
}

Holding holding(const std::string& id, const std::string& name) {
  return {.resource = "nvidia.com/gpu", .device_id = id, .holder = pod(name)};
}

TEST(PastHolders, AreRememberedWhenTheyHoldNoMore) {
  PastHolders past;
  past.note({holding("GPU-1", "a"), holding("GPU-2::3", "b")});
  past.note({});
  EXPECT_TRUE(past.held("GPU-1", pod("a")));
  EXPECT_TRUE(past.held("GPU-2", pod("b")));
  EXPECT_FALSE(past.held("GPU-1", pod("b")));
  EXPECT_FALSE(past.held("GPU-3", pod("a")));
  EXPECT_FALSE(past.held("GPU-1", pod("a", "other")));
}

TEST(PastHolders, ManyPodsOfOneDeviceAreTheLastOnes) {
  PastHolders past;
  for (int i = 0; i < 1000; ++i) past.note({holding("GPU-1", fmt::format("p{}", i))});
  EXPECT_TRUE(past.held("GPU-1", pod("p999")));
  EXPECT_TRUE(past.held("GPU-1", pod("p936")));
  EXPECT_FALSE(past.held("GPU-1", pod("p935")));
}

TEST(PastHolders, ManyDevicesAreForgottenAtOnceAndToldAgain) {
  PastHolders past;
  const Holding now = holding("MIG-now", "a");
  for (int i = 0; i < 3000; ++i) past.note({holding(fmt::format("MIG-{}", i), "x"), now});
  EXPECT_TRUE(past.held("MIG-2999", pod("x")));
  EXPECT_TRUE(past.held("MIG-now", pod("a")));
  EXPECT_FALSE(past.held("MIG-0", pod("x")));
}

}  // namespace
}  // namespace jogak::agent
