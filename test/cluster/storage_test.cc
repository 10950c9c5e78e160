// SPDX-License-Identifier: Apache-2.0
//
// Volumes, their claims, and claims for devices.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kVolumes = "persistentvolumes";
constexpr std::string_view kClaims = "persistentvolumeclaims";

std::string volume(std::string_view name, std::string_view size, std::string_view more = "",
                   std::string_view modes = R"("ReadWriteOnce")") {
  return fmt::format(R"({{"metadata": {{"name": "{}"}}, "spec": {{"capacity": {{"storage": "{}"}},
      "accessModes": [{}], "hostPath": {{"path": "/x"}}, "storageClassName": "k"{}}}}})",
                     name, size, modes, more);
}

std::string claim(std::string_view name, std::string_view size, std::string_view more = "") {
  return fmt::format(R"({{"metadata": {{"name": "{}"}}, "spec": {{"accessModes": ["ReadWriteOnce"],
      "resources": {{"requests": {{"storage": "{}"}}}}, "storageClassName": "k"{}}}}})",
                     name, size, more);
}

std::string phase(const Cluster& cluster, std::string_view table, std::string_view name) {
  return cluster.get(table, name).get("status", "phase").as_string();
}

std::string volume_of(const Cluster& cluster, std::string_view name) {
  return cluster.get(kClaims, name).get("spec", "volumeName").as_string();
}

TEST(VolumeBinder, TheSmallestThatFits) {
  Cluster cluster;
  cluster.make(kVolumes, volume("big", "10Gi"));
  cluster.make(kVolumes, volume("small", "1Gi"));
  cluster.make(kVolumes, volume("right", "5Gi"));
  cluster.make(kVolumes, volume("shared", "4Gi", "", R"("ReadWriteOnce", "ReadWriteMany")"));
  cluster.make(kClaims, claim("c", "3Gi"));
  EXPECT_EQ(volume_of(cluster, "c"), "right");  // fewer modes come before a better size
  EXPECT_EQ(phase(cluster, kClaims, "c"), "Bound");
  EXPECT_EQ(phase(cluster, kVolumes, "right"), "Bound");
  EXPECT_EQ(phase(cluster, kVolumes, "big"), "Available");
}

TEST(VolumeBinder, AClaimWaitsForItsVolume) {
  Cluster cluster;
  cluster.make(kClaims, claim("c", "3Gi"));
  EXPECT_EQ(phase(cluster, kClaims, "c"), "Pending");
  cluster.make(kVolumes, volume("small", "1Gi"));
  EXPECT_EQ(phase(cluster, kClaims, "c"), "Pending");
  cluster.make(kVolumes, volume("v", "3Gi"));
  EXPECT_EQ(volume_of(cluster, "c"), "v");
}

TEST(VolumeBinder, NoVolumeIsBoundTwice) {
  Cluster cluster;
  cluster.make(kVolumes, volume("v", "3Gi"));
  cluster.make(kClaims, claim("a", "1Gi"));
  cluster.make(kClaims, claim("b", "1Gi"));
  EXPECT_EQ(volume_of(cluster, "a"), "v");
  EXPECT_EQ(phase(cluster, kClaims, "b"), "Pending");
}

TEST(VolumeBinder, EitherSideMayNameTheOther) {
  Cluster cluster;
  cluster.make(kVolumes,
               volume("for-c", "9Gi", R"(, "claimRef": {"namespace": "default", "name": "c"})"));
  cluster.make(kVolumes, volume("v", "3Gi"));
  cluster.make(kVolumes, volume("named", "8Gi"));
  cluster.make(kClaims, claim("other", "1Gi"));
  EXPECT_EQ(volume_of(cluster, "other"), "v");
  cluster.make(kClaims, claim("c", "1Gi"));
  EXPECT_EQ(volume_of(cluster, "c"), "for-c");
  EXPECT_FALSE(api::meta(cluster.get(kVolumes, "for-c"))["annotations"].has(
      "pv.kubernetes.io/bound-by-controller"));
  cluster.make(kClaims, claim("d", "1Gi", R"(, "volumeName": "named")"));
  EXPECT_EQ(phase(cluster, kClaims, "d"), "Bound");
  EXPECT_FALSE(api::meta(cluster.get(kClaims, "d"))["annotations"].has(
      "pv.kubernetes.io/bound-by-controller"));
}

TEST(VolumeBinder, LateBindingWaitsForAPod) {
  Cluster cluster;
  cluster.make("storageclasses.storage.k8s.io", R"({"metadata": {"name": "k"},
      "provisioner": "kubernetes.io/no-provisioner",
      "volumeBindingMode": "WaitForFirstConsumer"})");
  cluster.make(kVolumes, volume("v", "3Gi"));
  cluster.make(kClaims, claim("c", "1Gi"));
  EXPECT_EQ(phase(cluster, kClaims, "c"), "Pending");
  EXPECT_EQ(cluster.events_of("c"),
            (std::vector<std::string>{
                "WaitForFirstConsumer: waiting for first consumer to be created before binding"}));
}

TEST(VolumeBinder, AClaimWithoutItsVolumeIsLost) {
  Cluster cluster;
  cluster.make(kVolumes, volume("v", "3Gi"));
  cluster.make(kClaims, claim("c", "1Gi"));
  cluster.remove(kVolumes, "v");
  EXPECT_EQ(phase(cluster, kVolumes, "v"), "Bound");  // protected while it is bound
  cluster.patch(kVolumes, "v", R"({"metadata": {"finalizers": null}})");
  EXPECT_EQ(phase(cluster, kClaims, "c"), "Lost");
}

TEST(VolumeBinder, WhatHappensToAReleasedVolume) {
  Cluster cluster;
  cluster.make(kVolumes, volume("keep", "1Gi", R"(, "persistentVolumeReclaimPolicy": "Retain")"));
  cluster.make(kClaims, claim("a", "1Gi"));
  cluster.remove(kClaims, "a");
  EXPECT_EQ(phase(cluster, kVolumes, "keep"), "Released");
  cluster.make(kVolumes, volume("drop", "1Gi", R"(, "persistentVolumeReclaimPolicy": "Delete")"));
  cluster.make(kClaims, claim("b", "1Gi"));
  cluster.remove(kClaims, "b");
  EXPECT_EQ(phase(cluster, kVolumes, "drop"), "Failed");  // nobody knows how
}

TEST(VolumeProtection, AClaimStaysWhileAPodRunsWithIt) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make(kClaims, claim("c", "1Gi"));
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
      "containers": [{"name": "c", "image": "i:1"}],
      "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}})");
  cluster.remove(kClaims, "c");
  EXPECT_TRUE(api::is_deleting(cluster.get(kClaims, "c")));
  cluster.end_pod("p", "Succeeded");
  EXPECT_TRUE(cluster.get(kClaims, "c").is_null());
}

TEST(VolumeProtection, APodWithoutANodeHoldsNothing) {
  Cluster cluster;
  cluster.make(kClaims, claim("c", "1Gi"));
  cluster.make("pods", R"({"metadata": {"name": "p"},
      "spec": {"containers": [{"name": "c", "image": "i:1"}],
      "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}})");
  cluster.remove(kClaims, "c");
  EXPECT_TRUE(cluster.get(kClaims, "c").is_null());
}

TEST(VolumeProtection, EphemeralVolumesHaveClaimsOfTheirOwn) {
  Cluster cluster;
  cluster.make("pods", R"({"metadata": {"name": "p"},
      "spec": {"containers": [{"name": "c", "image": "i:1"}],
      "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {
      "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]}})");
  EXPECT_EQ(api::controller_of(cluster.get(kClaims, "p-v"))["name"], Doc("p"));
  cluster.remove("pods", "p");
  EXPECT_TRUE(cluster.get(kClaims, "p-v").is_null());
}

// Claims for devices.

constexpr std::string_view kDeviceClaims = "resourceclaims.resource.k8s.io";

void make_template(Cluster& cluster) {
  cluster.make("resourceclaimtemplates.resource.k8s.io", R"({"metadata": {"name": "t"}, "spec": {
      "metadata": {"labels": {"l": "v"}}, "spec": {"devices": {"requests": [
      {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}})");
}

void make_pod_with_claim(Cluster& cluster) {
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {
      "containers": [{"name": "c", "image": "i:1", "resources": {"claims": [{"name": "g"}]}}],
      "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}})");
}

void allocate(Cluster& cluster, const std::string& name) {
  cluster.patch(kDeviceClaims, name,
                R"({"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})");
  const std::string uid = api::uid_of(cluster.get("pods", "p"));
  cluster.patch(kDeviceClaims, name,
                R"({"status": {"allocation": {"devices": {"results": [{"request": "gpu",
      "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}]}},
      "reservedFor": [{"resource": "pods", "name": "p", "uid": ")" +
                    uid + R"("}]}})",
                "status");
}

TEST(ResourceClaims, APodGetsAClaimFromTheTemplate) {
  Cluster cluster;
  make_template(cluster);
  make_pod_with_claim(cluster);
  ASSERT_EQ(cluster.count(kDeviceClaims), 1U);
  const Doc claim_made = cluster.list(kDeviceClaims)[0];
  EXPECT_TRUE(api::name_of(claim_made).starts_with("p-g-"));
  EXPECT_EQ(api::meta(claim_made)["labels"]["l"], Doc("v"));
  EXPECT_EQ(api::meta(claim_made)["annotations"]["resource.kubernetes.io/pod-claim-name"],
            Doc("g"));
  EXPECT_EQ(api::controller_of(claim_made)["uid"], Doc(api::uid_of(cluster.get("pods", "p"))));
  const Doc statuses = cluster.get("pods", "p").get("status", "resourceClaimStatuses");
  EXPECT_EQ(statuses.items()[0]["resourceClaimName"], Doc(api::name_of(claim_made)));
}

TEST(ResourceClaims, ThePodWaitsForTheTemplate) {
  Cluster cluster;
  make_pod_with_claim(cluster);
  EXPECT_EQ(cluster.count(kDeviceClaims), 0U);
  make_template(cluster);
  EXPECT_EQ(cluster.count(kDeviceClaims), 1U);
}

TEST(ResourceClaims, AFinishedPodGivesItsDevicesBack) {
  Cluster cluster;
  make_template(cluster);
  make_pod_with_claim(cluster);
  const std::string name = cluster.names(kDeviceClaims);
  allocate(cluster, name);
  EXPECT_TRUE(cluster.get(kDeviceClaims, name).get("status").has("allocation"));
  cluster.end_pod("p", "Succeeded");
  EXPECT_EQ(cluster.count(kDeviceClaims), 0U);  // a generated one goes with its purpose
}

TEST(ResourceClaims, AClaimOfItsOwnIsSetFree) {
  Cluster cluster;
  cluster.make(kDeviceClaims, R"({"metadata": {"name": "own"}, "spec": {"devices": {"requests": [
      {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}})");
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {
      "containers": [{"name": "c", "image": "i:1", "resources": {"claims": [{"name": "g"}]}}],
      "resourceClaims": [{"name": "g", "resourceClaimName": "own"}]}})");
  allocate(cluster, "own");
  cluster.remove("pods", "p");
  const Doc own = cluster.get(kDeviceClaims, "own");
  EXPECT_FALSE(own["status"].has("allocation"));
  EXPECT_FALSE(own["status"].has("reservedFor"));
  EXPECT_TRUE(api::meta(own)["finalizers"].empty());
}

TEST(ResourceClaims, AClaimThatWasDeletedIsMadeAnew) {
  Cluster cluster;
  make_template(cluster);
  make_pod_with_claim(cluster);
  const std::string first = cluster.names(kDeviceClaims);
  cluster.remove(kDeviceClaims, first);
  ASSERT_EQ(cluster.count(kDeviceClaims), 1U);
  EXPECT_NE(cluster.names(kDeviceClaims), first);
}

}  // namespace
}  // namespace jogak::test
