// SPDX-License-Identifier: Apache-2.0
//
// Names of resources, and pods whose sums can be done in the head.
#include "apiserver/object/resource_list.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace jogak::api {
namespace {

using Amounts = std::initializer_list<std::pair<std::string_view, std::string_view>>;

Doc amounts(Amounts list) {
  Doc out = Doc::object();
  for (const auto& [name, amount] : list) {
    out.set(name, amount);
  }
  return out;
}

Doc container(std::string_view name, Amounts requests, std::string_view restart = "") {
  Doc out = Doc::object();
  out.set("name", name);
  if (!restart.empty()) {
    out.set("restartPolicy", restart);
  }
  out.at("resources").set("requests", amounts(requests));
  return out;
}

std::string text(const ResourceList& list) {
  std::string out;
  for (const auto& [name, amount] : list) {
    out.append(out.empty() ? "" : " ").append(name).append("=").append(amount.text());
  }
  return out;
}

TEST(ResourceNames, Kinds) {
  EXPECT_TRUE(is_extended_resource("nvidia.com/gpu"));
  EXPECT_FALSE(is_extended_resource("cpu"));
  EXPECT_FALSE(is_extended_resource("kubernetes.io/gpu"));
  EXPECT_FALSE(is_extended_resource("requests.nvidia.com/gpu"));
  EXPECT_FALSE(is_extended_resource("nvidia.com//gpu"));
  EXPECT_TRUE(is_overcommit_allowed("memory"));
  EXPECT_FALSE(is_overcommit_allowed("hugepages-2Mi"));
  EXPECT_FALSE(is_overcommit_allowed("nvidia.com/gpu"));
  EXPECT_TRUE(is_integer_resource("pods"));
  EXPECT_FALSE(is_integer_resource("cpu"));
  EXPECT_TRUE(is_standard_container_resource("ephemeral-storage"));
  EXPECT_FALSE(is_standard_container_resource("storage"));
  EXPECT_TRUE(is_standard_resource("storage"));
  EXPECT_FALSE(is_standard_quota_resource("storage"));
  EXPECT_TRUE(is_standard_quota_resource("requests.hugepages-1Gi"));
  EXPECT_TRUE(is_pod_level_resource("hugepages-2Mi"));
  EXPECT_FALSE(is_pod_level_resource("nvidia.com/gpu"));
}

TEST(ResourceList, SumsAndHighest) {
  ResourceList sum = read_resources(amounts({{"cpu", "500m"}}));
  add_resources(sum, read_resources(amounts({{"cpu", "1"}, {"nvidia.com/gpu", "2"}})));
  EXPECT_EQ(text(sum), "cpu=1500m nvidia.com/gpu=2");
  raise_resources(sum, read_resources(amounts({{"cpu", "1"}, {"nvidia.com/gpu", "8"}})));
  EXPECT_EQ(text(sum), "cpu=1500m nvidia.com/gpu=8");
  EXPECT_EQ(write_resources(sum), amounts({{"cpu", "1500m"}, {"nvidia.com/gpu", "8"}}));
}

TEST(PodRequests, InitContainersCountByTheLargest) {
  Doc pod = Doc::object();
  pod.at("spec", "containers").push(container("a", {{"cpu", "1"}}));
  pod.at("spec", "containers").push(container("b", {{"cpu", "1"}}));
  pod.at("spec", "initContainers").push(container("i", {{"cpu", "3"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(text(pod_requests(pod)), "cpu=3 nvidia.com/gpu=1");
}

TEST(PodRequests, SidecarsRunAlongside) {
  Doc pod = Doc::object();
  pod.at("spec", "containers").push(container("a", {{"cpu", "1"}}));
  pod.at("spec", "initContainers").push(container("s", {{"cpu", "2"}}, "Always"));
  pod.at("spec", "initContainers").push(container("i", {{"cpu", "2"}}));
  // containers and sidecar: 3; while i runs beside the sidecar: 4
  EXPECT_EQ(text(pod_requests(pod)), "cpu=4");
}

TEST(PodRequests, PodLevelAndOverhead) {
  Doc pod = Doc::object();
  pod.at("spec", "containers").push(container("a", {{"cpu", "1"}, {"nvidia.com/gpu", "1"}}));
  pod.at("spec", "resources").set("requests", amounts({{"cpu", "2"}}));
  pod.at("spec").set("overhead", amounts({{"cpu", "250m"}}));
  EXPECT_EQ(text(pod_requests(pod)), "cpu=2250m nvidia.com/gpu=1");
  EXPECT_EQ(text(pod_requests(pod, {.with_pod_level = false, .with_overhead = false})),
            "cpu=1 nvidia.com/gpu=1");
  EXPECT_EQ(text(pod_limits(pod)), "");  // overhead alone makes no limit
}

TEST(PodRequests, WhatRunsCountsWhileAResizeIsUnderWay) {
  Doc pod = Doc::object();
  pod.at("spec", "containers").push(container("a", {{"cpu", "1"}}));
  Doc status = Doc::object();
  status.set("name", "a");
  status.at("resources").set("requests", amounts({{"cpu", "2"}}));
  pod.at("status", "containerStatuses").push(status);
  EXPECT_EQ(text(pod_requests(pod)), "cpu=1");
  EXPECT_EQ(text(pod_requests(pod, {.with_status = true})), "cpu=2");
}

}  // namespace
}  // namespace jogak::api
