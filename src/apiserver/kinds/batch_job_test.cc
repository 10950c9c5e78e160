// SPDX-License-Identifier: Apache-2.0
// Jobs: every default, what the server makes from the uid, every refusal on create.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc job() {
  return json(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
    "spec": {"template": {"spec": {"restartPolicy": "Never",
                                   "containers": [{"name": "c", "image": "i:1"}]}}}})");
}

Doc indexed() {
  return with(job(), {"spec/completionMode=Indexed", "spec/completions=3", "spec/parallelism=2"});
}

TEST(Job, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(job());
  ASSERT_TRUE(made.has_value());
  const Doc& spec = (*made)["spec"];
  EXPECT_EQ(spec["completions"], Doc(1));
  EXPECT_EQ(spec["parallelism"], Doc(1));
  EXPECT_EQ(spec["backoffLimit"], Doc(6));
  EXPECT_EQ(spec["completionMode"], Doc("NonIndexed"));
  EXPECT_EQ(spec["suspend"], Doc(false));
  EXPECT_EQ(spec["manualSelector"], Doc(false));
  EXPECT_EQ(spec["podReplacementPolicy"], Doc("TerminatingOrFailed"));
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
  EXPECT_EQ((*made)["status"], Doc::object());
}

TEST(Job, AWorkQueueHasNoCompletions) {
  WorkloadBench bench;
  const auto made = bench.create(with(job(), {"spec/parallelism=4"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_FALSE((*made)["spec"].has("completions"));
  EXPECT_EQ((*made)["spec"]["parallelism"], Doc(4));
}

TEST(Job, CompletionsAloneRunOneByOne) {
  WorkloadBench bench;
  const auto made = bench.create(with(job(), {"spec/completions=4"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["parallelism"], Doc(1));
}

TEST(Job, ALimitAnIndexLiftsTheLimitOfAll) {
  WorkloadBench bench;
  const auto made = bench.create(with(indexed(), {"spec/backoffLimitPerIndex=1"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["backoffLimit"], Doc(2147483647));
}

TEST(Job, AFailurePolicyReplacesFailedPodsOnly) {
  WorkloadBench bench;
  const auto made = bench.create(with(job(), {R"(spec/podFailurePolicy/rules=[{"action": "Ignore",
                  "onPodConditions": [{"type": "DisruptionTarget"}]}])"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["podReplacementPolicy"], Doc("Failed"));
  EXPECT_EQ((*made)["spec"]["podFailurePolicy"]["rules"].items()[0]["onPodConditions"].items()[0],
            json(R"({"type": "DisruptionTarget", "status": "True"})"));
}

TEST(Job, SelectorAndLabelsComeFromTheUid) {
  WorkloadBench bench;
  const auto made = bench.create(job());
  ASSERT_TRUE(made.has_value());
  const Doc& uid = meta(*made)["uid"];
  Doc labels;
  labels.set("batch.kubernetes.io/controller-uid", uid)
      .set("batch.kubernetes.io/job-name", "j")
      .set("controller-uid", uid)
      .set("job-name", "j");
  EXPECT_EQ((*made)["spec"]["template"]["metadata"]["labels"], labels);
  EXPECT_EQ(meta(*made)["labels"], labels);
  EXPECT_EQ((*made)["spec"]["selector"]["matchLabels"],
            Doc::object().set("batch.kubernetes.io/controller-uid", uid));
}

TEST(Job, LabelsOfItsOwnStay) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(job(), {"metadata/labels/a=b", "spec/template/metadata/labels/c=d"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["labels"], json(R"({"a": "b"})"));
  EXPECT_EQ((*made)["spec"]["template"]["metadata"]["labels"]["c"], Doc("d"));
  EXPECT_EQ((*made)["spec"]["template"]["metadata"]["labels"].size(), 5U);
}

TEST(Job, WithoutLabelsItShowsThoseOfItsPods) {
  WorkloadBench bench;
  const auto made = bench.create(with(job(), {"spec/template/metadata/labels/c=d"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["labels"], (*made)["spec"]["template"]["metadata"]["labels"]);
  EXPECT_EQ(meta(*made)["labels"].size(), 5U);
  const auto bare = bench.edit(job(), {"metadata/labels"});
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(meta(*bare)["labels"], meta(*made)["labels"]);
}

TEST(Job, AManualSelectorIsLeftAlone) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(job(), {"spec/manualSelector=true", "spec/selector/matchLabels/a=b",
                                "spec/template/metadata/labels/a=b"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["selector"], json(R"({"matchLabels": {"a": "b"}})"));
  EXPECT_EQ((*made)["spec"]["template"]["metadata"]["labels"].size(), 1U);
}

TEST(Job, GeneratedLabelsCannotBeForged) {
  WorkloadBench bench;
  const std::string labels = "spec/template/metadata/labels=";
  expect_creates(bench, job(),
                 {{"name",
                   {labels + R"({"job-name": "x"})"},
                   "Invalid spec.template.metadata.labels[job-name]"},
                  {"prefixed name",
                   {labels + R"({"batch.kubernetes.io/job-name": "x"})"},
                   "Invalid spec.template.metadata.labels[batch.kubernetes.io/job-name]"},
                  {"uid",
                   {labels + R"({"controller-uid": "x"})"},
                   "Invalid spec.template.metadata.labels[controller-uid]"},
                  {"prefixed uid",
                   {labels + R"({"batch.kubernetes.io/controller-uid": "x"})"},
                   "Invalid spec.template.metadata.labels[batch.kubernetes.io/controller-uid], "
                   "Invalid spec.template.metadata.labels"},
                  {"selector",
                   {R"(spec/selector/matchLabels={"batch.kubernetes.io/controller-uid": "x"})"},
                   "Invalid spec.selector, Invalid spec.template.metadata.labels"},
                  {"selector of more",
                   {"spec/selector/matchLabels/a=b"},
                   "Invalid spec.selector, Invalid spec.template.metadata.labels"}});
}

TEST(Job, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, job(),
      {{"right", {}},
       {"parallelism", {"spec/parallelism=-1"}, "Invalid spec.parallelism"},
       {"completions", {"spec/completions=-1"}, "Invalid spec.completions"},
       {"deadline", {"spec/activeDeadlineSeconds=-1"}, "Invalid spec.activeDeadlineSeconds"},
       {"backoff", {"spec/backoffLimit=-1"}, "Invalid spec.backoffLimit"},
       {"ttl", {"spec/ttlSecondsAfterFinished=-1"}, "Invalid spec.ttlSecondsAfterFinished"},
       {"mode", {"spec/completionMode=Other"}, "NotSupported spec.completionMode"},
       {"index limit", {"spec/backoffLimitPerIndex=1"}, "Invalid spec.backoffLimitPerIndex"},
       {"failed indexes",
        {"spec/maxFailedIndexes=1"},
        "Required spec.backoffLimitPerIndex, Invalid spec.maxFailedIndexes"},
       {"success policy",
        {R"(spec/successPolicy/rules=[{"succeededCount": 1}])"},
        "Invalid spec.successPolicy"},
       {"replacement",
        {"spec/podReplacementPolicy=Never"},
        "NotSupported spec.podReplacementPolicy"},
       {"restart always",
        {"spec/template/spec/restartPolicy=Always"},
        "Required spec.template.spec.restartPolicy"},
       {"restart unset",
        {"spec/template/spec/restartPolicy"},
        "Required spec.template.spec.restartPolicy"},
       {"restart on failure", {"spec/template/spec/restartPolicy=OnFailure"}},
       {"manual without selector",
        {"spec/manualSelector=true"},
        "Required spec.selector, Invalid spec.template.metadata.labels"},
       {"manual with other labels",
        {"spec/manualSelector=true", "spec/selector/matchLabels/a=b"},
        "Invalid spec.template.metadata.labels"},
       {"long name",
        {"metadata/name=" + std::string(64, 'x')},
        "Invalid spec.template.labels, Invalid spec.template.labels"},
       {"manager", {"spec/managedBy=acme.io/foo"}},
       {"manager without domain", {"spec/managedBy=foo"}, "Invalid spec.managedBy"},
       {"manager with a bad domain", {"spec/managedBy=A_b/foo"}, "Invalid spec.managedBy"},
       {"manager with a bad path", {R"(spec/managedBy="a.io/f o")"}, "Invalid spec.managedBy"},
       {"manager empty", {R"(spec/managedBy="")"}, "Required spec.managedBy"},
       {"manager too long",
        {"spec/managedBy=a.io/" + std::string(60, 'x')},
        "TooLong spec.managedBy"}});
}

TEST(Job, IndexedOnesHaveRulesOfTheirOwn) {
  WorkloadBench bench;
  expect_creates(
      bench, indexed(),
      {{"right", {}},
       {"no completions", {"spec/completions"}, "Required spec.completions"},
       {"too parallel", {"spec/parallelism=100001"}, "Invalid spec.parallelism"},
       {"limits", {"spec/backoffLimitPerIndex=1", "spec/maxFailedIndexes=3"}},
       {"limit below zero", {"spec/backoffLimitPerIndex=-1"}, "Invalid spec.backoffLimitPerIndex"},
       {"failed below zero",
        {"spec/backoffLimitPerIndex=1", "spec/maxFailedIndexes=-1"},
        "Invalid spec.maxFailedIndexes"},
       {"more failed than there are",
        {"spec/backoffLimitPerIndex=1", "spec/maxFailedIndexes=4"},
        "Invalid spec.maxFailedIndexes"},
       {"too many failed",
        {"spec/completions=200000", "spec/backoffLimitPerIndex=1", "spec/maxFailedIndexes=100001"},
        "Invalid spec.maxFailedIndexes, Invalid spec.maxFailedIndexes"},
       {"many need a limit",
        {"spec/completions=100001", "spec/backoffLimitPerIndex=1"},
        "Required spec.maxFailedIndexes"},
       {"many run less parallel",
        {"spec/completions=100001", "spec/parallelism=10001", "spec/backoffLimitPerIndex=1",
         "spec/maxFailedIndexes=10001"},
        "Invalid spec.parallelism, Invalid spec.maxFailedIndexes"},
       {"names that are too long",
        {"metadata/name=" + std::string(62, 'x')},
        "Invalid metadata.name"}});
}

TEST(Job, FailurePoliciesAreChecked) {
  WorkloadBench bench;
  const auto rules = [](std::string_view list) {
    return std::vector<std::string>{"spec/podFailurePolicy/rules=[" + std::string(list) + "]"};
  };
  const std::string codes = R"({"action": "FailJob", "onExitCodes": )";
  expect_creates(
      bench, indexed(),
      {{"right", rules(codes + R"({"operator": "In", "values": [1, 42]}})")},
       {"no action", rules(R"({"onExitCodes": {"operator": "In", "values": [1]}})"),
        "Required spec.podFailurePolicy.rules[0].action"},
       {"action", rules(R"({"action": "X", "onExitCodes": {"operator": "In", "values": [1]}})"),
        "NotSupported spec.podFailurePolicy.rules[0].action"},
       {"index without limit",
        rules(R"({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}})"),
        "Invalid spec.podFailurePolicy.rules[0].action"},
       {"neither", rules(R"({"action": "Count"})"), "Invalid spec.podFailurePolicy.rules[0]"},
       {"both", rules(R"({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]},
                  "onPodConditions": [{"type": "a"}]})"),
        "Invalid spec.podFailurePolicy.rules[0]"},
       {"operator", rules(codes + R"({"operator": "X", "values": [1]}})"),
        "NotSupported spec.podFailurePolicy.rules[0].onExitCodes.operator"},
       {"no operator", rules(codes + R"({"values": [1]}})"),
        "Required spec.podFailurePolicy.rules[0].onExitCodes.operator"},
       {"container", rules(codes + R"({"containerName": "d", "operator": "In", "values": [1]}})"),
        "Invalid spec.podFailurePolicy.rules[0].onExitCodes.containerName"},
       {"known container",
        rules(codes + R"({"containerName": "c", "operator": "In", "values": [1]}})")},
       {"no values", rules(codes + R"({"operator": "In"}})"),
        "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values"},
       {"zero", rules(codes + R"({"operator": "In", "values": [0, 1]}})"),
        "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values[0]"},
       {"not in zero", rules(codes + R"({"operator": "NotIn", "values": [0]}})")},
       {"twice", rules(codes + R"({"operator": "In", "values": [1, 1]}})"),
        "Duplicate spec.podFailurePolicy.rules[0].onExitCodes.values[1]"},
       {"order", rules(codes + R"({"operator": "In", "values": [2, 1]}})"),
        "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values"},
       {"condition type", rules(R"({"action": "Count", "onPodConditions": [{"type": "a b"}]})"),
        "Invalid spec.podFailurePolicy.rules[0].onPodConditions[0].type"},
       {"condition status",
        rules(R"({"action": "Count", "onPodConditions": [{"type": "a", "status": "X"}]})"),
        "NotSupported spec.podFailurePolicy.rules[0].onPodConditions[0].status"}});
}

TEST(Job, AFailurePolicyNeedsPodsThatDoNotRestart) {
  WorkloadBench bench;
  const std::string rules = R"(spec/podFailurePolicy/rules=[{"action": "Ignore",
                               "onPodConditions": [{"type": "a"}]}])";
  expect_creates(bench, job(),
                 {{"restarts",
                   {rules, "spec/template/spec/restartPolicy=OnFailure"},
                   "Invalid spec.template.spec.restartPolicy"},
                  {"replaces",
                   {rules, "spec/podReplacementPolicy=TerminatingOrFailed"},
                   "NotSupported spec.podReplacementPolicy"}});
}

TEST(Job, SuccessPoliciesAreChecked) {
  WorkloadBench bench;
  const auto rules = [](std::string_view list) {
    return std::vector<std::string>{"spec/successPolicy/rules=[" + std::string(list) + "]"};
  };
  expect_creates(bench, indexed(),
                 {{"right", rules(R"({"succeededIndexes": "0-1", "succeededCount": 2})")},
                  {"no rules", rules(""), "Required spec.successPolicy.rules"},
                  {"empty rule", rules("{}"), "Required spec.successPolicy.rules[0]"},
                  {"indexes", rules(R"({"succeededIndexes": "5"})"),
                   "Invalid spec.successPolicy.rules[0].succeededIndexes"},
                  {"below zero", rules(R"({"succeededCount": -1})"),
                   "Invalid spec.successPolicy.rules[0].succeededCount"},
                  {"more than completions", rules(R"({"succeededCount": 4})"),
                   "Invalid spec.successPolicy.rules[0].succeededCount"},
                  {"more than indexes", rules(R"({"succeededIndexes": "1", "succeededCount": 2})"),
                   "Invalid spec.successPolicy.rules[0].succeededCount"}});
}

TEST(Job, CountsOfRulesAreLimited) {
  WorkloadBench bench;
  std::string failure;
  std::string success;
  for (int i = 0; i < 21; ++i) {
    failure += std::string(i > 0 ? "," : "") +
               R"({"action": "Count", "onPodConditions": [{"type": "a"}]})";
    success += std::string(i > 0 ? "," : "") + R"({"succeededCount": 1})";
  }
  expect_creates(bench, indexed(),
                 {{"failure",
                   {"spec/podFailurePolicy/rules=[" + failure + "]"},
                   "TooMany spec.podFailurePolicy.rules"},
                  {"success",
                   {"spec/successPolicy/rules=[" + success + "]"},
                   "TooMany spec.successPolicy.rules"}});
}

TEST(Job, HugeIndexedOnesAreWarnedAbout) {
  WorkloadBench bench;
  ASSERT_EQ(
      refusal(bench.create(with(indexed(), {"spec/completions=100001", "spec/parallelism=10001"}))),
      "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].starts_with("spec: In Indexed Jobs"));
}

TEST(Job, ADeletionWithoutPolicyIsWarnedAbout) {
  const WorkloadBench bench;
  EXPECT_TRUE(bench.resource_of(job()).strategy->deletion_warning().starts_with(
      "child pods are preserved by default"));
}

TEST(Job, IsFoundByItsSuccesses) {
  WorkloadBench bench;
  const auto made = bench.create(job());
  ASSERT_TRUE(made.has_value());
  const Strategy& strategy = *bench.resource_of(*made).strategy;
  EXPECT_EQ(strategy.field(*made, "status.successful"), "0");
  EXPECT_EQ(strategy.field(with(*made, {"status/succeeded=2"}), "status.successful"), "2");
}

}  // namespace
}  // namespace jogak::api
