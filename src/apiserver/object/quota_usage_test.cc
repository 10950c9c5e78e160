// SPDX-License-Identifier: Apache-2.0
//
// Objects and what they cost, name by name.
#include "apiserver/object/quota_usage.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

constexpr TimeUs kNow = 1'700'000'000 * kSecondInUs;

std::string usage(std::string_view table, const Doc& object, TimeUs now = kNow) {
  std::string out;
  for (const auto& [name, amount] : quota_usage(table, object, now)) {
    out.append(out.empty() ? "" : " ").append(name).append("=").append(amount.text());
  }
  return out;
}

Doc gpu_pod() {
  Doc pod = Doc::object();
  Doc container = Doc::object();
  container.set("name", "c");
  container.at("resources", "requests").set("nvidia.com/gpu", "1").set("cpu", "2");
  container.at("resources", "limits").set("nvidia.com/gpu", "1");
  pod.at("spec", "containers").push(container);
  pod.at("status").set("phase", "Running").set("qosClass", "Burstable");
  return pod;
}

TEST(QuotaUsage, Pods) {
  EXPECT_EQ(usage("pods", gpu_pod()),
            "count/pods=1 cpu=2 pods=1 requests.cpu=2 requests.nvidia.com/gpu=1");
}

TEST(QuotaUsage, FinishedPodsOnlyCountAsObjects) {
  Doc pod = gpu_pod();
  pod.at("status").set("phase", "Succeeded");
  EXPECT_EQ(usage("pods", pod), "count/pods=1");
}

TEST(QuotaUsage, PodsThatShouldBeGoneAreFree) {
  Doc pod = gpu_pod();
  pod.at("metadata")
      .set("deletionTimestamp", format_time(kNow))
      .set("deletionGracePeriodSeconds", 30);
  EXPECT_NE(usage("pods", pod, kNow + 30 * kSecondInUs), "count/pods=1");
  EXPECT_EQ(usage("pods", pod, kNow + 31 * kSecondInUs), "count/pods=1");
}

TEST(QuotaUsage, ServicesByType) {
  Doc service = Doc::object();
  service.at("spec").set("type", "LoadBalancer");
  service.at("spec", "ports")
      .push(Doc::object().set("port", 80))
      .push(Doc::object().set("port", 81));
  EXPECT_EQ(usage("services", service),
            "count/services=1 services=1 services.loadbalancers=1 services.nodeports=2");
  service.at("spec").set("type", "ClusterIP");
  EXPECT_EQ(usage("services", service),
            "count/services=1 services=1 services.loadbalancers=0 services.nodeports=0");
}

TEST(QuotaUsage, ClaimsByClass) {
  Doc claim = Doc::object();
  claim.at("spec").set("storageClassName", "fast");
  claim.at("spec", "resources", "requests").set("storage", "1Gi");
  EXPECT_EQ(usage("persistentvolumeclaims", claim),
            "count/persistentvolumeclaims=1 "
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims=1 "
            "fast.storageclass.storage.k8s.io/requests.storage=1Gi persistentvolumeclaims=1 "
            "requests.storage=1Gi");
}

TEST(QuotaUsage, DevicesByClass) {
  const auto request = [](std::string_view device_class, std::string_view mode, int count) {
    return Doc::object()
        .set("deviceClassName", device_class)
        .set("allocationMode", mode)
        .set("count", count);
  };
  Doc claim = Doc::object();
  Doc exact = Doc::object();
  exact.set("exactly", request("gpu", "ExactCount", 2));
  Doc either = Doc::object();
  either.at("firstAvailable").push(request("gpu", "ExactCount", 1));
  either.at("firstAvailable").push(request("mig", "All", 0));
  claim.at("spec", "devices", "requests").push(exact).push(either);
  EXPECT_EQ(usage("resourceclaims.resource.k8s.io", claim),
            "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=3 "
            "mig.deviceclass.resource.k8s.io/devices=32");
}

TEST(QuotaUsage, AnythingElseByCount) {
  EXPECT_EQ(usage("deployments.apps", Doc::object()), "count/deployments.apps=1");
  EXPECT_EQ(usage("configmaps", Doc::object()), "configmaps=1 count/configmaps=1");
}

TEST(QuotaTracks, NamesOfATable) {
  EXPECT_TRUE(quota_tracks("pods", "requests.nvidia.com/gpu"));
  EXPECT_FALSE(quota_tracks("pods", "nvidia.com/gpu"));
  EXPECT_TRUE(quota_tracks("pods", "requests.hugepages-2Mi"));
  EXPECT_TRUE(quota_tracks("pods", "count/pods"));
  EXPECT_FALSE(quota_tracks("pods", "configmaps"));
  EXPECT_FALSE(quota_tracks("configmaps", "requests.nvidia.com/gpu"));
  EXPECT_TRUE(quota_tracks("configmaps", "configmaps"));
  EXPECT_TRUE(quota_tracks("jobs.batch", "count/jobs.batch"));
}

TEST(QuotaCovers, Scopes) {
  Doc spec = Doc::object();
  EXPECT_TRUE(quota_covers(spec, "pods", gpu_pod()));
  spec.at("scopes").push("BestEffort");
  EXPECT_FALSE(quota_covers(spec, "pods", gpu_pod()));
  EXPECT_FALSE(quota_covers(spec, "configmaps", Doc::object()));
  spec.set("scopes", Doc::array().push("NotTerminating"));
  EXPECT_TRUE(quota_covers(spec, "pods", gpu_pod()));
}

TEST(QuotaCovers, PriorityClasses) {
  Doc rule = Doc::object();
  rule.set("scopeName", "PriorityClass").set("operator", "In");
  rule.at("values").push("high");
  Doc spec = Doc::object();
  spec.at("scopeSelector", "matchExpressions").push(rule);
  Doc pod = gpu_pod();
  EXPECT_FALSE(quota_covers(spec, "pods", pod));
  pod.at("spec").set("priorityClassName", "high");
  EXPECT_TRUE(quota_covers(spec, "pods", pod));
}

TEST(MissingRequests, NamesTheContainers) {
  Doc pod = gpu_pod();
  pod.at("spec", "containers").push(Doc::object().set("name", "b"));
  const ResourceList names = {
      {"requests.cpu", Amount()}, {"limits.cpu", Amount()}, {"pods", Amount()}};
  EXPECT_EQ(missing_requests(pod, names), "must specify limits.cpu for: b,c; requests.cpu for: b");
  pod.at("spec", "resources", "requests").set("cpu", "4");
  EXPECT_EQ(missing_requests(pod, names), "");
}

}  // namespace
}  // namespace jogak::api
