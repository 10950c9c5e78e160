// SPDX-License-Identifier: Apache-2.0
// Priority classes, pod groups, workloads.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc priority() {
  return json(R"({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                  "metadata": {"name": "p"}, "value": 1000})");
}

TEST(PriorityClass, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(with(priority(), {"value"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["value"], Doc(0));
  EXPECT_EQ((*made)["preemptionPolicy"], Doc("PreemptLowerPriority"));
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
}

TEST(PriorityClass, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, priority(),
      {{"highest", {"value=1000000000"}},
       {"higher", {"value=1000000001"}, "Forbidden value"},
       {"negative", {"value=-5"}},
       {"policy", {"preemptionPolicy=X"}, "NotSupported preemptionPolicy"},
       {"name", {"metadata/name=system-x"}, "Forbidden metadata.name"},
       {"other value of the system's",
        {"metadata/name=system-node-critical"},
        "Forbidden metadata.name"},
       {"the system's", {"metadata/name=system-node-critical", "value=2000001000"}},
       {"the system's as default",
        {"metadata/name=system-cluster-critical", "value=2000000000", "globalDefault=true"},
        "Forbidden metadata.name"}});
  expect_edits(bench, priority(),
               {{"value", {"value=5"}, "Forbidden value"},
                {"policy", {"preemptionPolicy=Never"}, "Invalid preemptionPolicy"}});
}

TEST(PriorityClass, AChangeIsNotCounted) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(priority()).has_value());
  const auto changed = bench.edit(priority(), {"description=new"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["generation"], Doc(1));
}

TEST(PriorityClass, TheSystemsCannotBeDeleted) {
  WorkloadBench bench;
  const Doc system = with(priority(), {"metadata/name=system-node-critical", "value=2000001000"});
  ASSERT_TRUE(bench.create(system).has_value());
  const auto removed = bench.remove(system);
  ASSERT_FALSE(removed.has_value());
  EXPECT_EQ(removed.error().code, 403);
  EXPECT_EQ(removed.error().group, "scheduling.k8s.io");
}

KindOptions with_groups() {
  KindOptions options;
  options.has_pod_groups = true;
  return options;
}

Doc group() {
  return json(R"({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
                  "metadata": {"name": "g"},
                  "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})");
}

TEST(PodGroup, IsThereOnlyWhenAsked) {
  WorkloadBench bench;
  EXPECT_EQ(bench.registry().find("scheduling.k8s.io", "v1alpha2", "podgroups"), nullptr);
  WorkloadBench alpha(with_groups());
  EXPECT_NE(alpha.registry().find("scheduling.k8s.io", "v1alpha2", "podgroups"), nullptr);
}

TEST(PodGroup, IsProtectedAndGatedMembersGo) {
  WorkloadBench bench(with_groups());
  const auto made = bench.create(
      with(group(), {"spec/priority=5", "spec/disruptionMode=PodGroup", "spec/priorityClassName=x",
                     R"(spec/resourceClaims=[{"name": "c"}])", "status/conditions=[]"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["finalizers"], json(R"(["scheduling.k8s.io/podgroup-protection"])"));
  EXPECT_EQ((*made)["spec"], json(R"({"podGroupTemplateRef": null, "disruptionMode": "Pod",
                                      "schedulingPolicy": {"gang": {"minCount": 2}}})"));
}

TEST(PodGroup, IsRefused) {
  WorkloadBench bench(with_groups());
  expect_creates(
      bench, group(),
      {{"basic", {R"(spec/schedulingPolicy={"basic": {}})"}},
       {"neither", {"spec/schedulingPolicy={}"}, "Invalid spec.schedulingPolicy"},
       {"nothing", {"spec"}, "Invalid spec.schedulingPolicy"},
       {"both",
        {R"(spec/schedulingPolicy={"basic": {}, "gang": {"minCount": 1}})"},
        "Invalid spec.schedulingPolicy"},
       {"zero",
        {"spec/schedulingPolicy/gang/minCount=0"},
        "Required spec.schedulingPolicy.gang.minCount"},
       {"negative",
        {"spec/schedulingPolicy/gang/minCount=-1"},
        "Invalid spec.schedulingPolicy.gang.minCount"},
       {"template", {"spec/podGroupTemplateRef={}"}, "Invalid spec.podGroupTemplateRef"},
       {"template names",
        {"spec/podGroupTemplateRef/workload={}"},
        "Required spec.podGroupTemplateRef.workload.workloadName, "
        "Required spec.podGroupTemplateRef.workload.podGroupTemplateName"},
       {"template in capitals",
        {R"(spec/podGroupTemplateRef/workload={"workloadName": "A", "podGroupTemplateName": "B"})"},
        "Invalid spec.podGroupTemplateRef.workload.workloadName, "
        "Invalid spec.podGroupTemplateRef.workload.podGroupTemplateName"}});
}

TEST(PodGroup, TheSpecStays) {
  WorkloadBench bench(with_groups());
  ASSERT_TRUE(bench.create(group()).has_value());
  const auto edit = [&](const std::vector<std::string>& edits) {
    return refusal(bench.edit(group(), edits));
  };
  EXPECT_EQ(edit({"spec/schedulingPolicy/gang/minCount=3"}), "Invalid spec.schedulingPolicy");
  EXPECT_EQ(edit({"spec/disruptionMode=PodGroup"}), "Forbidden spec.disruptionMode");
  EXPECT_EQ(edit({R"(metadata/labels={"a": "b"})"}), "");
}

TEST(PodGroup, ConditionsAreChecked) {
  WorkloadBench bench(with_groups());
  ASSERT_TRUE(bench.create(group()).has_value());
  const auto edit = [&](const std::string& condition) {
    return refusal(bench.edit(group(), {"status/conditions=[" + condition + "]"}, "status"));
  };
  const std::string time = R"("lastTransitionTime": "2024-01-01T00:00:00Z")";
  EXPECT_EQ(edit(R"({"type": "A", "status": "True", "reason": "R", )" + time + "}"), "");
  EXPECT_EQ(edit(R"({"type": "A b", "status": "Maybe"})"),
            "Invalid status.conditions[0].type, NotSupported status.conditions[0].status, "
            "Required status.conditions[0].lastTransitionTime, "
            "Required status.conditions[0].reason");
  EXPECT_EQ(edit(R"({"type": "A", "status": "True", "reason": "R", )" + time +
                 R"(}, {"type": "A", "status": "True", "reason": "R", )" + time + "}"),
            "Duplicate status.conditions[1].type");
}

Doc workload() {
  return json(R"({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload",
                  "metadata": {"name": "w"},
                  "spec": {"podGroupTemplates": [
                    {"name": "a", "schedulingPolicy": {"gang": {"minCount": 4}}}]}})");
}

TEST(Workload, IsRefused) {
  WorkloadBench bench(with_groups());
  std::string nine;
  for (int i = 0; i < 9; ++i) {
    nine += (i == 0 ? "" : ", ") + std::string(R"({"name": "t)") + std::to_string(i) +
            R"(", "schedulingPolicy": {"basic": {}}})";
  }
  const std::string basic = R"("schedulingPolicy": {"basic": {}})";
  const std::string at = "spec/podGroupTemplates=";
  expect_creates(
      bench, workload(),
      {{"right", {R"(spec/controllerRef={"kind": "Job", "name": "j"})"}},
       {"none", {"spec"}, "Required spec.podGroupTemplates"},
       {"many", {at + "[" + nine + "]"}, "TooMany spec.podGroupTemplates"},
       {"no name", {at + "[{" + basic + "}]"}, "Required spec.podGroupTemplates[0].name"},
       {"name",
        {at + R"([{"name": "A", )" + basic + "}]"},
        "Invalid spec.podGroupTemplates[0].name"},
       {"name twice",
        {at + R"([{"name": "a", )" + basic + R"(}, {"name": "a", )" + basic + "}]"},
        "Duplicate spec.podGroupTemplates[1]"},
       {"policy",
        {at + R"([{"name": "a"}])"},
        "Invalid spec.podGroupTemplates[0].schedulingPolicy"},
       {"controller",
        {"spec/controllerRef={}"},
        "Required spec.controllerRef.kind, Required spec.controllerRef.name"}});
  expect_edits(
      bench, workload(),
      {{"label", {R"(metadata/labels={"a": "b"})"}},
       {"none", {at + "[]"}, "Invalid spec.podGroupTemplates, Required spec.podGroupTemplates"},
       {"other",
        {"spec/podGroupTemplates/0/schedulingPolicy/gang/minCount=5"},
        "Invalid spec.podGroupTemplates"}});
}

}  // namespace
}  // namespace jogak::api
