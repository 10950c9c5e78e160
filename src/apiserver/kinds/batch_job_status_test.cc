// SPDX-License-Identifier: Apache-2.0
// A job's status: counts and conditions that fit, moves that are allowed.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

constexpr std::string_view kStart = "2026-01-01T00:00:00Z";
constexpr std::string_view kEnd = "2026-01-01T00:10:00Z";

Doc job() {
  return json(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
    "spec": {"template": {"spec": {"restartPolicy": "Never",
                                   "containers": [{"name": "c", "image": "i:1"}]}}}})");
}

Doc indexed() {
  return with(job(), {"spec/completionMode=Indexed", "spec/completions=5", "spec/parallelism=2",
                      "spec/backoffLimitPerIndex=1"});
}

// "status/conditions=[...]" with these types true.
std::string conditions(const std::vector<std::string_view>& types) {
  Doc list = Doc::array();
  for (const std::string_view type : types) {
    list.push(Doc::object().set("type", type).set("status", "True"));
  }
  return "status/conditions=" + list.json(JsonWriter::Style::Compact);
}

std::string start() { return "status/startTime=" + std::string(kStart); }
std::string end() { return "status/completionTime=" + std::string(kEnd); }

TEST(JobStatus, CountsAreNotNegative) {
  WorkloadBench bench;
  expect_edits(
      bench, job(),
      {{"right", {"status/active=2", "status/ready=1", "status/succeeded=1"}},
       {"active", {"status/active=-1"}, "Invalid status.active"},
       {"succeeded", {"status/succeeded=-1"}, "Invalid status.succeeded, Invalid status.succeeded"},
       {"failed", {"status/failed=-1"}, "Invalid status.failed, Invalid status.failed"},
       {"ready", {"status/ready=-1"}, "Invalid status.ready"},
       {"terminating", {"status/terminating=-1"}, "Invalid status.terminating"},
       {"more ready than active", {"status/ready=1"}, "Invalid status.ready"}},
      "status");
}

TEST(JobStatus, UncountedPodsAreListedOnce) {
  WorkloadBench bench;
  const std::string uncounted = "status/uncountedTerminatedPods=";
  expect_edits(bench, job(),
               {{"right", {uncounted + R"({"succeeded": ["a"], "failed": ["b"]})"}},
                {"empty",
                 {uncounted + R"({"succeeded": [""]})"},
                 "Invalid status.uncountedTerminatedPods.succeeded[0]"},
                {"twice",
                 {uncounted + R"({"succeeded": ["a", "a"]})"},
                 "Duplicate status.uncountedTerminatedPods.succeeded[1]"},
                {"in both",
                 {uncounted + R"({"succeeded": ["a"], "failed": ["a"]})"},
                 "Duplicate status.uncountedTerminatedPods.failed[0]"}},
               "status");
}

TEST(JobStatus, CompletionIsAnnounced) {
  WorkloadBench bench;
  expect_edits(
      bench, job(),
      {{"right", {conditions({"SuccessCriteriaMet", "Complete"}), start(), end()}},
       {"unannounced", {conditions({"Complete"}), start(), end()}, "Invalid status.conditions"},
       {"without end",
        {conditions({"SuccessCriteriaMet", "Complete"}), start()},
        "Required status.completionTime"},
       {"without start",
        {conditions({"SuccessCriteriaMet", "Complete"}), end()},
        "Required status.startTime"},
       {"end without completion", {start(), end()}, "Invalid status.completionTime"},
       {"end before start",
        {conditions({"SuccessCriteriaMet", "Complete"}), "status/startTime=" + std::string(kEnd),
         "status/completionTime=" + std::string(kStart)},
        "Invalid status.completionTime"},
       {"with active pods",
        {conditions({"SuccessCriteriaMet", "Complete"}), start(), end(), "status/active=1"},
        "Invalid status.active"},
       {"with terminating pods",
        {conditions({"SuccessCriteriaMet", "Complete"}), start(), end(), "status/terminating=1"},
        "Invalid status.terminating"},
       {"with uncounted pods",
        {conditions({"SuccessCriteriaMet", "Complete"}), start(), end(),
         R"(status/uncountedTerminatedPods={"failed": ["a"]})"},
        "Invalid status.uncountedTerminatedPods"}},
      "status");
}

TEST(JobStatus, FailureIsAnnounced) {
  WorkloadBench bench;
  expect_edits(
      bench, job(),
      {{"right", {conditions({"FailureTarget", "Failed"}), start()}},
       {"unannounced", {conditions({"Failed"}), start()}, "Invalid status.conditions"},
       {"without start", {conditions({"FailureTarget", "Failed"})}, "Required status.startTime"},
       {"complete too",
        {conditions({"SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"}), start(), end()},
        "Invalid status.conditions, Invalid status.conditions, Invalid status.conditions, "
        "Invalid status.conditions"},
       {"complete and a target",
        {conditions({"SuccessCriteriaMet", "Complete", "FailureTarget"}), start(), end()},
        "Invalid status.conditions, Invalid status.conditions"},
       {"met and failed",
        {conditions({"SuccessCriteriaMet", "FailureTarget", "Failed"}), start()},
        "Invalid status.conditions, Invalid status.conditions"}},
      "status");
}

TEST(JobStatus, ATypeMayStandTwice) {
  WorkloadBench bench;
  expect_edits(bench, job(),
               {{"announced in the second place",
                 {R"(status/conditions=[{"type": "FailureTarget", "status": "False"},
                      {"type": "FailureTarget", "status": "True"},
                      {"type": "Failed", "status": "True"}])",
                  start()}}},
               "status");
}

TEST(JobStatus, AJobOfNothingThatWaitsNeedsNoStart) {
  WorkloadBench bench;
  expect_edits(bench, with(job(), {"spec/suspend=true", "spec/completions=0"}),
               {{"complete", {conditions({"SuccessCriteriaMet", "Complete"}), end()}}}, "status");
}

TEST(JobStatus, SuccessPoliciesNeedTheirCriteria) {
  WorkloadBench bench;
  expect_edits(bench, with(indexed(), {R"(spec/successPolicy/rules=[{"succeededCount": 1}])"}),
               {{"met", {conditions({"SuccessCriteriaMet", "Complete"}), start(), end()}},
                {"not met",
                 {conditions({"Complete"}), start(), end()},
                 "Invalid status.conditions, Invalid status.conditions"}},
               "status");
}

TEST(JobStatus, IndexesFitTheJob) {
  WorkloadBench bench;
  expect_edits(
      bench, indexed(),
      {{"right", {"status/completedIndexes=0-2", R"(status/failedIndexes="3")"}},
       {"completed", {R"(status/completedIndexes="9")"}, "Invalid status.completedIndexes"},
       {"failed", {R"(status/failedIndexes="9")"}, "Invalid status.failedIndexes"},
       {"both",
        {"status/completedIndexes=0-2", R"(status/failedIndexes="2")"},
        "Invalid status.failedIndexes"}},
      "status");
  expect_edits(
      bench, job(),
      {{"completed of a plain job",
        {R"(status/completedIndexes="0")"},
        "Invalid status.completedIndexes"},
       {"failed without a limit", {R"(status/failedIndexes="0")"}, "Invalid status.failedIndexes"}},
      "status");
}

// Creates the job, writes the first status, then each row onto that.
void expect_moves(const Doc& base, const std::vector<std::string>& first,
                  const std::vector<Edited>& rows) {
  for (const Edited& row : rows) {
    WorkloadBench bench;
    ASSERT_EQ(refusal(bench.create(base)), "");
    ASSERT_EQ(refusal(bench.edit(base, first, "status")), "") << row.why;
    EXPECT_EQ(refusal(bench.edit(base, row.edits, "status")), row.causes) << row.why;
  }
}

TEST(JobStatus, AnEndIsFinal) {
  expect_moves(job(), {conditions({"FailureTarget", "Failed"}), start()},
               {{"failure undone", {conditions({"FailureTarget"})}, "Invalid status.conditions"},
                {"all undone",
                 {"status/conditions"},
                 "Invalid status.conditions, Invalid status.conditions"}});
  expect_moves(job(), {conditions({"SuccessCriteriaMet", "Complete"}), start(), end()},
               {{"criteria undone",
                 {conditions({"Complete"})},
                 "Invalid status.conditions, Invalid status.conditions"},
                {"another end",
                 {"status/completionTime=2026-01-01T00:20:00Z"},
                 "Invalid status.completionTime"}});
}

TEST(JobStatus, CountersDoNotFall) {
  expect_moves(job(), {"status/failed=2", "status/succeeded=2"},
               {{"failed", {"status/failed=1"}, "Invalid status.failed"},
                {"succeeded", {"status/succeeded=1"}, "Invalid status.succeeded"},
                {"rise", {"status/failed=3", "status/succeeded=3"}}});
}

TEST(JobStatus, AJobThatCanShrinkMayForgetSuccesses) {
  expect_moves(with(indexed(), {"spec/parallelism=5"}), {"status/succeeded=2"},
               {{"succeeded", {"status/succeeded=1"}}});
  expect_moves(indexed(), {"status/succeeded=2"},
               {{"succeeded", {"status/succeeded=1"}, "Invalid status.succeeded"}});
}

TEST(JobStatus, TheStartMovesOnlyWithASuspension) {
  const std::string later = "status/startTime=" + std::string(kEnd);
  expect_moves(job(), {start()},
               {{"later", {later}, "Invalid status.startTime"},
                {"none", {"status/startTime"}, "Invalid status.startTime"}});
  expect_moves(with(job(), {"spec/suspend=true"}), {start()},
               {{"later", {later}}, {"none", {"status/startTime"}}});
  expect_moves(
      job(), {start(), conditions({"Suspended"})},
      {{"resuming", {later, R"(status/conditions=[{"type": "Suspended", "status": "False"}])"}}});
}

TEST(JobStatus, AnOldErrorDoesNotStandInTheWay) {
  // completions shrink below the indexes that are done; the status is repaired later
  WorkloadBench bench;
  const Doc base = with(indexed(), {"spec/parallelism=5"});
  ASSERT_EQ(refusal(bench.create(base)), "");
  ASSERT_EQ(refusal(bench.edit(base, {"status/completedIndexes=0-4"}, "status")), "");
  ASSERT_EQ(refusal(bench.edit(base, {"spec/completions=2", "spec/parallelism=2"})), "");
  EXPECT_EQ(refusal(bench.edit(base, {"status/active=1"}, "status")), "");
  EXPECT_EQ(refusal(bench.edit(base, {"status/completedIndexes=0-3"}, "status")),
            "Invalid status.completedIndexes");
}

}  // namespace
}  // namespace jogak::api
