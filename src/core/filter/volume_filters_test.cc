// SPDX-License-Identifier: Apache-2.0
// The four volume filters on small clusters: what kube-scheduler says of each claim and disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/filter/node_volume_limits.h"
#include "core/filter/volume_binding.h"
#include "core/filter/volume_restrictions.h"
#include "core/filter/volume_zone.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kImmediate = "pod has unbound immediate PersistentVolumeClaims";
constexpr const char* kNoVolume = "node(s) didn't find available persistent volumes to bind";
constexpr const char* kNodeConflict = "node(s) didn't match PersistentVolume's node affinity";
constexpr const char* kNoSpace = "node(s) did not have enough free storage";

VolumeRef volume(VolumeKind kind, std::string name, bool read_only = false) {
  VolumeRef ref;
  ref.kind = kind;
  ref.name = std::move(name);
  ref.read_only = read_only;
  return ref;
}

PodBuilder with(PodBuilder pod, VolumeRef ref) {
  pod.shape().volumes.push_back(std::move(ref));
  return pod;
}

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    StorageClassSpec local;
    local.name = "local";
    local.provisioner = "kubernetes.io/no-provisioner";
    local.wait_for_first_consumer = true;
    objects().storage_classes["local"] = local;
    StorageClassSpec fast;
    fast.name = "fast";
    fast.provisioner = "csi.example.com";
    fast.wait_for_first_consumer = true;
    objects().storage_classes["fast"] = fast;
    fast.name = "now";
    fast.wait_for_first_consumer = false;
    objects().storage_classes["now"] = fast;
  }

  Objects& objects() { return cluster_.mutable_objects(); }

  PersistentVolumeClaimSpec& claim(const std::string& name, const std::string& storage_class) {
    PersistentVolumeClaimSpec& c = objects().pvcs["default/" + name];
    c.ns = "default";
    c.name = name;
    c.uid = "uid-" + name;
    c.storage_class = storage_class;
    c.access_modes = {"ReadWriteOnce"};
    c.request_bytes = 10;
    return c;
  }
  PersistentVolumeSpec& pv(const std::string& name, const std::string& storage_class,
                           std::int64_t bytes, const std::string& node = "") {
    PersistentVolumeSpec& v = objects().pvs[name];
    v.name = name;
    v.capacity_bytes = bytes;
    v.storage_class = storage_class;
    v.access_modes = {"ReadWriteOnce"};
    v.phase = "Available";
    if (!node.empty()) v.node_affinity = {{{in("kubernetes.io/hostname", {node})}, {}}};
    return v;
  }
  void bind(PersistentVolumeClaimSpec& c, const std::string& volume_name) {
    c.volume_name = volume_name;
    c.bind_completed = true;
    c.phase = "Bound";
  }

  // Reasons joined with "; ", of the pod as a whole or of the node; empty: fits.
  template <class Filter>
  std::string ask(const PodBuilder& incoming, NodeId node) {
    const PodView pod = testing::view(cluster_, incoming);
    Filter filter;
    const PreFilter prefilter = filter.build(cluster_, pod);
    if (!prefilter.verdict.fits()) {
      EXPECT_EQ(prefilter.verdict.code, Code::Unresolvable);
      return prefilter.reasons.front();
    }
    if (!filter.active()) return "";
    Reasons reasons;
    const Verdict verdict = filter.check(cluster_, pod, node, &reasons);
    EXPECT_EQ(verdict.fits(), reasons.empty());
    std::ranges::sort(reasons);
    std::string all;
    for (const std::string& reason : reasons) all += (all.empty() ? "" : "; ") + reason;
    return all;
  }

  Cluster cluster_;
  NodeId n1_ = add(cluster_, NodeBuilder("n1").zone("a"));
  NodeId n2_ = add(cluster_, NodeBuilder("n2").zone("b"));
  PodBuilder in_ = with(PodBuilder("in"), volume(VolumeKind::Claim, "data"));
};

// ---- VolumeRestrictions -------------------------------------------------------------------------

TEST_F(VolumesTest, DisksMountedForWritingAreExclusiveOnANode) {
  struct Case {
    VolumeKind kind;
    bool mine_reads, theirs_reads, conflict;
  };
  const Case cases[] = {
      {VolumeKind::GcePd, false, false, true}, {VolumeKind::GcePd, true, false, true},
      {VolumeKind::GcePd, true, true, false},  {VolumeKind::AwsEbs, true, true, true},
      {VolumeKind::Iscsi, false, true, true},  {VolumeKind::Iscsi, true, true, false},
  };
  for (const Case& c : cases) {
    add(cluster_, with(PodBuilder("other").on("n1"), volume(c.kind, "disk", c.theirs_reads)));
    const PodBuilder incoming = with(PodBuilder("in"), volume(c.kind, "disk", c.mine_reads));
    EXPECT_EQ(ask<VolumeRestrictionsFilter>(incoming, n1_),
              c.conflict ? "node(s) had no available disk" : "");
    EXPECT_EQ(ask<VolumeRestrictionsFilter>(incoming, n2_), "");
  }
}

TEST_F(VolumesTest, RbdImagesAreTheSameIfMonitorPoolAndImageAre) {
  VolumeRef rbd = volume(VolumeKind::Rbd, "");
  rbd.pool = "p";
  rbd.image = "i";
  rbd.monitors = {"m1", "m2"};
  add(cluster_, with(PodBuilder("other").on("n1"), rbd));
  rbd.monitors = {"m2", "m3"};
  EXPECT_NE(ask<VolumeRestrictionsFilter>(with(PodBuilder("in"), rbd), n1_), "");
  rbd.monitors = {"m3"};
  EXPECT_EQ(ask<VolumeRestrictionsFilter>(with(PodBuilder("in"), rbd), n1_), "");
}

TEST_F(VolumesTest, ReadWriteOncePodClaimIsExclusiveInTheCluster) {
  claim("data", "fast").access_modes = {"ReadWriteOncePod"};
  EXPECT_EQ(ask<VolumeRestrictionsFilter>(in_, n2_), "");
  add(cluster_, with(PodBuilder("other").ns("team-a").on("n1"), volume(VolumeKind::Claim, "data")));
  EXPECT_EQ(ask<VolumeRestrictionsFilter>(in_, n2_), "");
  add(cluster_, with(PodBuilder("other").on("n1"), volume(VolumeKind::Claim, "data")));
  EXPECT_EQ(ask<VolumeRestrictionsFilter>(in_, n2_),
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod");
}

TEST_F(VolumesTest, UnknownClaimRefusesThePod) {
  EXPECT_EQ(ask<VolumeRestrictionsFilter>(in_, n1_), "persistentvolumeclaim \"data\" not found");
}

// ---- NodeVolumeLimits ---------------------------------------------------------------------------

TEST_F(VolumesTest, DistinctVolumesOfADriverAreLimitedPerNode) {
  objects().csi_nodes["n1"] = {"n1", {{"csi.example.com", 2}}, {}};
  for (const char* const name : {"v1", "v2", "v3"}) {
    pv(name, "fast", 10).csi = {{"csi.example.com", std::string("h-") + name, ""}};
    bind(claim(std::string("c-") + name, "fast"), name);
  }
  const auto user = [](const char* pod, const char* c) {
    return with(PodBuilder(pod), volume(VolumeKind::Claim, c));
  };
  add(cluster_, user("p1", "c-v1").on("n1"));
  add(cluster_, user("p2", "c-v1").on("n1"));  // the same volume counts once
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(user("in", "c-v2"), n1_), "");
  add(cluster_, user("p3", "c-v2").on("n1"));
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(user("in", "c-v3"), n1_),
            "node(s) exceed max volume count");
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(user("in", "c-v2"), n1_), "");  // there already
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(user("in", "c-v3"), n2_), "");  // no CSINode: no limit
}

TEST_F(VolumesTest, StillAttachedAndUnboundVolumesTakeSlots) {
  objects().csi_nodes["n1"] = {"n1", {{"csi.example.com", 1}}, {}};
  pv("v1", "fast", 10).csi = {{"csi.example.com", "h-v1", ""}};
  bind(claim("mine", "fast"), "v1");
  claim("data", "fast");  // unbound: will be made by the class's provisioner
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(in_, n1_), "");
  objects().attachments["a"] = {"a", "csi.example.com", "n1", "v1"};
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(in_, n1_), "node(s) exceed max volume count");
  // The attached one is its own: it needs no second slot.
  const PodBuilder owner = with(PodBuilder("owner"), volume(VolumeKind::Claim, "mine"));
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(owner, n1_), "");
}

TEST_F(VolumesTest, InTreeDiskCountsWhereTheNodeMigratedItsPlugin) {
  CsiNodeSpec& csi_node = objects().csi_nodes["n1"];
  csi_node = {"n1", {{"ebs.csi.aws.com", 0}}, {}};
  const PodBuilder incoming =
      with(PodBuilder("in"), volume(VolumeKind::AwsEbs, "aws://zone-a/vol-1"));
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(incoming, n1_), "");
  csi_node.migrated_plugins = {"kubernetes.io/aws-ebs"};
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(incoming, n1_), "node(s) exceed max volume count");
  pv("v1", "fast", 10).csi = {{"ebs.csi.aws.com", "vol-1", ""}};
  objects().attachments["a"] = {"a", "ebs.csi.aws.com", "n1", "v1"};
  EXPECT_EQ(ask<NodeVolumeLimitsFilter>(incoming, n1_), "");  // the same volume
}

// ---- VolumeBinding ------------------------------------------------------------------------------

TEST_F(VolumesTest, ClaimsThatCannotBeUsedRefuseThePod) {
  PersistentVolumeClaimSpec& c = claim("data", "fast");
  c.phase = "Lost";
  c.volume_name = "gone";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_),
            "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"gone\"");
  c.phase = "Pending";
  c.deleting = true;
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "persistentvolumeclaim \"data\" is being deleted");
  c.deleting = false;
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kImmediate);  // names its volume, not yet bound
  c.volume_name.clear();
  c.storage_class = "now";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kImmediate);
  c.storage_class = "unheard of";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kImmediate);
  c.storage_class.reset();
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kImmediate);
}

TEST_F(VolumesTest, EphemeralClaimMustExistAndBeThePods) {
  PodBuilder incoming = with(PodBuilder("in"), volume(VolumeKind::Ephemeral, "in-scratch"));
  incoming.spec().uid = "uid-in";
  EXPECT_EQ(ask<VolumeBindingFilter>(incoming, n1_),
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            "\"in-scratch\"");
  PersistentVolumeClaimSpec& c = claim("in-scratch", "fast");
  EXPECT_EQ(ask<VolumeBindingFilter>(incoming, n1_),
            "PVC default/in-scratch was not created for pod default/in (pod is not owner)");
  c.owner_pod_uid = "uid-in";
  EXPECT_EQ(ask<VolumeBindingFilter>(incoming, n1_), "");
}

TEST_F(VolumesTest, BoundVolumeMustReachTheNode) {
  PersistentVolumeClaimSpec& c = claim("data", "local");
  bind(c, "v1");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_),
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
  pv("v1", "local", 10, "n1");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), kNodeConflict);
}

TEST_F(VolumesTest, WaitingClaimNeedsAFreeVolumeThatFits) {
  PersistentVolumeClaimSpec& c = claim("data", "local");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);  // the class cannot make one
  PersistentVolumeSpec& v = pv("v1", "local", 10, "n1");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), kNoVolume);

  const PersistentVolumeSpec good = v;
  v.phase = "Released";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v = good;
  v.capacity_bytes = 9;
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v = good;
  v.volume_mode = "Block";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v = good;
  v.access_modes = {"ReadOnlyMany"};
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v = good;
  v.claim_ns = "default";
  v.claim_name = "somebody else";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v = good;
  c.selector = LabelSelector{{in("tier", {"gold"})}};
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  v.labels = {{"tier", "gold"}};
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
}

TEST_F(VolumesTest, ReservedVolumeIsTheOnlyOneForItsClaim) {
  claim("data", "local");
  pv("free", "local", 10, "n2");
  PersistentVolumeSpec& reserved = pv("reserved", "local", 20, "n1");
  reserved.claim_ns = "default";
  reserved.claim_name = "data";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), kNoVolume);
  reserved.claim_uid = "of an older claim";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), "");
}

TEST_F(VolumesTest, EachClaimTakesTheSmallestVolumeLeft) {
  claim("data", "local").request_bytes = 20;
  claim("more", "local").request_bytes = 10;
  const PodBuilder both = with(in_, volume(VolumeKind::Claim, "more"));
  pv("small", "local", 10, "n1");
  EXPECT_EQ(ask<VolumeBindingFilter>(both, n1_), kNoVolume);
  pv("large", "local", 20, "n1");
  EXPECT_EQ(ask<VolumeBindingFilter>(both, n1_), "");
}

TEST_F(VolumesTest, ProvisioningFollowsSelectedNodeTopologyAndCapacity) {
  PersistentVolumeClaimSpec& c = claim("data", "fast");
  StorageClassSpec& fast = objects().storage_classes["fast"];
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");

  c.selected_node = "n2";
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoVolume);
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), "");
  c.selected_node.clear();

  fast.allowed_topologies = {{{in("topology.kubernetes.io/zone", {"a"})}, {}}};
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), kNoVolume);
  fast.allowed_topologies.clear();

  objects().csi_drivers["csi.example.com"] = {"csi.example.com", true};
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoSpace);
  CsiStorageCapacitySpec& room = objects().csi_capacities["kube-system/c1"];
  room.storage_class = "fast";
  room.node_topology = LabelSelector{{in("kubernetes.io/hostname", {"n1"})}};
  room.capacity_bytes = 10;
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), "");
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n2_), kNoSpace);
  room.maximum_volume_bytes = 9;  // decides where given
  EXPECT_EQ(ask<VolumeBindingFilter>(in_, n1_), kNoSpace);
}

TEST_F(VolumesTest, BoundAndWaitingClaimsAreBothExplained) {
  bind(claim("data", "local"), "v1");
  pv("v1", "local", 10, "n1");
  claim("more", "local");
  EXPECT_EQ(ask<VolumeBindingFilter>(with(in_, volume(VolumeKind::Claim, "more")), n2_),
            std::string(kNoVolume) + "; " + kNodeConflict);
}

// ---- VolumeZone ---------------------------------------------------------------------------------

TEST_F(VolumesTest, ZoneLabelsOfTheVolumeMustNameTheNodes) {
  constexpr const char* kZone = "node(s) had no available volume zone";
  const NodeId bare = add(cluster_, NodeBuilder("n3"));
  bind(claim("data", "fast"), "v1");
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n1_), "persistentvolume \"v1\" not found");
  PersistentVolumeSpec& v = pv("v1", "fast", 10);
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n1_), "");
  v.labels = {{"topology.kubernetes.io/zone", "c__b"}};
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n1_), kZone);
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n2_), "");
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, bare), "");  // a node without any such label passes
  v.labels = {{"failure-domain.beta.kubernetes.io/zone", "a"}};
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n1_), "");  // the old name of the same label
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n2_), kZone);
  v.labels = {{"topology.kubernetes.io/zone", "a____b"}};
  EXPECT_EQ(ask<VolumeZoneFilter>(in_, n2_), "");  // not a list of zones: ignored
}

}  // namespace
}  // namespace jogak::core
