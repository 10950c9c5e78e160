// SPDX-License-Identifier: Apache-2.0
// The scale subresource: what it shows, what it changes, what it refuses.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc deployment() {
  return json(R"({"apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "ns", "uid": "u-1", "resourceVersion": "7",
                 "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 4,
                 "labels": {"not": "shown"}},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "d", "a": "1"},
             "matchExpressions": [{"key": "t", "operator": "In", "values": ["y", "x"]}]}},
    "status": {"replicas": 2}})");
}

const Projection& scale_of(const WorkloadBench& bench, const Doc& object) {
  return *bench.resource_of(object).subresource("scale")->projection;
}

TEST(Scale, ShowsReplicasAndSelector) {
  const WorkloadBench bench;
  const auto scale = scale_of(bench, deployment()).read(deployment());
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(*scale, json(R"js({"kind": "Scale", "apiVersion": "autoscaling/v1",
    "metadata": {"name": "d", "namespace": "ns", "uid": "u-1", "resourceVersion": "7",
                 "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=1,app=d,t in (x,y)"}})js"));
}

TEST(Scale, OfZeroHasAnEmptySpec) {
  const WorkloadBench bench;
  const auto scale =
      scale_of(bench, deployment()).read(with(deployment(), {"spec/replicas=0", "status"}));
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ((*scale)["spec"], Doc::object());
  EXPECT_EQ((*scale)["status"]["replicas"], Doc(0));
}

TEST(Scale, OfAControllerReadsAPlainSelector) {
  const WorkloadBench bench;
  const Doc controller = json(R"({"apiVersion": "v1", "kind": "ReplicationController",
    "metadata": {"name": "rc"}, "spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}})");
  const auto scale = scale_of(bench, controller).read(controller);
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ((*scale)["status"]["selector"], Doc("a=1,b=2"));
}

TEST(Scale, WritesReplicasAndTheVersionSeen) {
  const WorkloadBench bench;
  const auto changed = scale_of(bench, deployment())
                           .write(deployment(), json(R"({"metadata": {"resourceVersion": "5"},
                                                         "spec": {"replicas": 8}})"));
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ((*changed)["spec"]["replicas"], Doc(8));
  EXPECT_EQ(meta(*changed)["resourceVersion"], Doc("5"));
}

TEST(Scale, WithoutAVersionOverwrites) {
  const WorkloadBench bench;
  const auto changed =
      scale_of(bench, deployment()).write(deployment(), json(R"({"spec": {"replicas": 8}})"));
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["resourceVersion"], Doc("7"));
}

TEST(Scale, WithoutReplicasIsZero) {
  const WorkloadBench bench;
  const auto changed = scale_of(bench, deployment()).write(deployment(), json("{}"));
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ((*changed)["spec"]["replicas"], Doc(0));
}

TEST(Scale, BelowZeroIsInvalid) {
  const WorkloadBench bench;
  const auto refused =
      scale_of(bench, deployment()).write(deployment(), json(R"({"spec": {"replicas": -1}})"));
  EXPECT_EQ(refusal(refused), "Invalid spec.replicas");
  EXPECT_EQ(refused.error().kind, "Scale");
  EXPECT_EQ(refused.error().group, "autoscaling");
  EXPECT_EQ(refused.error().name, "d");
}

TEST(Scale, OfAnotherObjectIsAConflict) {
  const WorkloadBench bench;
  const auto refused =
      scale_of(bench, deployment()).write(deployment(), json(R"({"metadata": {"uid": "u-2"},
                                                         "spec": {"replicas": 1}})"));
  EXPECT_EQ(refusal(refused), "409 Conflict");
  EXPECT_EQ(refused.error().kind, "deployments/scale");
}

}  // namespace
}  // namespace jogak::api
