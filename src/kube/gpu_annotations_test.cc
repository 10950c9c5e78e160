// SPDX-License-Identifier: Apache-2.0
// The two JSON annotations, right and wrong.
#include "kube/gpu_annotations.h"

#include <gtest/gtest.h>

namespace jogak::kube {
namespace {

TEST(GpuAnnotations, Devices) {
  const auto devices = parse_gpu_devices(R"([
    {"uuid":"GPU-1","memoryMiB":81920,"numa":0,"nvlink":[1],"health":"Healthy"},
    {"nvlink":[0],"health":"Unhealthy",
     "mig":{"enabled":true,"dynamic":false,"instances":[{"profile":"1g.10gb","start":6}]}},
    {}])");
  ASSERT_TRUE(devices.has_value()) << devices.error().what;
  ASSERT_EQ(devices->size(), 3U);
  EXPECT_EQ(devices->at(0).uuid, "GPU-1");
  EXPECT_EQ(devices->at(0).memory_mib, 81920);
  EXPECT_EQ(devices->at(0).nvlink, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(devices->at(1).health, GpuDevice::Health::Unhealthy);
  EXPECT_TRUE(devices->at(1).mig_enabled);
  EXPECT_EQ(devices->at(1).mig_instances.at(0).start, 6);
  EXPECT_EQ(devices->at(2).numa, -1);
  EXPECT_EQ(devices->at(2).health, GpuDevice::Health::Healthy);
}

TEST(GpuAnnotations, WrongDevices) {
  const auto error = [](std::string_view json) { return parse_gpu_devices(json).error().what; };
  EXPECT_EQ(error("{}"), "want a list, found an object");
  EXPECT_NE(error("[").find("is not valid JSON"), std::string::npos);
  EXPECT_EQ(error(R"([{"memory":1}])"), "[0].memory: unknown field; did you mean memoryMiB?");
  EXPECT_EQ(error(R"([{"memoryMiB":0}])"),
            "[0].memoryMiB: 0 is out of range; want 1 to 2147483647");
  EXPECT_EQ(error(R"([{"health":"sick"}])"),
            "[0].health: \"sick\" is unknown; use Healthy, Unhealthy or Unknown");
  EXPECT_EQ(error(R"([{"nvlink":[0]}])"),
            "[0].nvlink[0]: is the device itself; list the others it is linked to");
  EXPECT_EQ(error(R"([{},{"nvlink":[2]}])"),
            "[1].nvlink[0]: is 2, but the node has only 2 devices");
  EXPECT_EQ(error(R"([{"mig":{"dynamic":true}}])"), "[0].mig.enabled: must be true here");
  EXPECT_EQ(error(R"([{"mig":{"enabled":true,"instances":[{"start":0}]}}])"),
            "[0].mig.instances[0].profile: is required, e.g. \"1g.10gb\"");
  std::string many = "[{}";
  for (int i = 0; i < 32; ++i) many += ",{}";
  EXPECT_EQ(error(many + "]"), "[32]: is one too many; a node has at most 32");
}

TEST(GpuAnnotations, Holdings) {
  const auto holdings = parse_gpu_holdings(
      R"([{"gpu":3},{"gpu":0,"milli":500},{"gpu":1,"mib":4096},{"gpu":2,"migStart":0}])");
  ASSERT_TRUE(holdings.has_value()) << holdings.error().what;
  EXPECT_EQ(holdings->at(0).kind, GpuHolding::Kind::Whole);
  EXPECT_EQ(holdings->at(1).kind, GpuHolding::Kind::Milli);
  EXPECT_EQ(holdings->at(1).amount, 500);
  EXPECT_EQ(holdings->at(2).kind, GpuHolding::Kind::Mib);
  EXPECT_EQ(holdings->at(3).kind, GpuHolding::Kind::Mig);
}

TEST(GpuAnnotations, WrongHoldings) {
  const auto error = [](std::string_view json) { return parse_gpu_holdings(json).error().what; };
  EXPECT_EQ(error(R"([{"milli":1}])"),
            "[0].gpu: is required: the index of the device on its node, from 0");
  EXPECT_EQ(error(R"([{"gpu":32}])"), "[0].gpu: 32 is out of range; want 0 to 31");
  EXPECT_EQ(error(R"([{"gpu":0,"milli":1000}])"), "[0].milli: 1000 is out of range; want 1 to 999");
  EXPECT_EQ(error(R"([{"gpu":0,"milli":5,"mib":5}])"),
            "[0]: use only one of milli, mib and migStart");
}

}  // namespace
}  // namespace jogak::kube
