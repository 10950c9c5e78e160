// SPDX-License-Identifier: Apache-2.0
// `jogak sim run` on clusters and scenarios in files: what it takes, what it says, what it refuses.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "cli/commands.h"

namespace jogak::cli {
namespace {

using ::testing::HasSubstr;

// n: 4 cpu [runs 3]   waiting: waits 2, as kubectl prints them
constexpr std::string_view kCluster = R"({"kind":"List","items":[
  {"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4","pods":"10"}}},
  {"kind":"Pod","metadata":{"name":"waits"},"spec":{"containers":[
    {"resources":{"requests":{"cpu":"2"}}}]}},
  {"kind":"Pod","metadata":{"name":"runs"},"spec":{"nodeName":"n","containers":[
    {"resources":{"requests":{"cpu":"3"}}}]}}]})";

class SimRun : public ::testing::Test {
 protected:
  SimRun() { write("cluster.json", kCluster); }

  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_.path(name), text).has_value());
  }
  int run(std::vector<std::string> words) {
    for (std::string& word : words) {
      if (word.ends_with(".json") || word.ends_with(".yaml")) word = folder_.path(word);
    }
    const std::vector<std::string_view> views(words.begin(), words.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = cmd_sim_run(views);
    out = ::testing::internal::GetCapturedStdout();
    err = ::testing::internal::GetCapturedStderr();
    return code;
  }

  TempFolder folder_;
  std::string out, err;
};

TEST_F(SimRun, AClusterAloneIsASimulation) {
  EXPECT_EQ(run({"-c", "cluster.json", "--no-timing"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("default/waits         0      0.0        -      -  waiting"));
  EXPECT_THAT(out, HasSubstr("default/runs          0   before   before      -  running  n"));
  EXPECT_THAT(out, HasSubstr("policy                 jogak\n"));
  EXPECT_THAT(out, HasSubstr("pods running at first  1\n"));
  EXPECT_THAT(out, HasSubstr("pods started           0 of 1\n"));
  const std::string first = out;
  EXPECT_EQ(run({"-c", "cluster.json", "--no-timing"}), 0);
  EXPECT_EQ(out, first);
}

TEST_F(SimRun, RunningPodsCanEnd) {
  EXPECT_EQ(run({"-c", "cluster.json", "--running-for", "3600"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("default/waits         0      0.0   3600.0       -  running  n"));
  EXPECT_THAT(out, HasSubstr("default/runs          0   before   before  3600.0  done     n"));
}

TEST_F(SimRun, ScenariosComeOnTop) {
  write("more.yaml",
        "policy: kube\ncluster: {running_for: 60}\n"
        "pods: [{name: late, arrival: 100, run: 5, cpu: 2}]\n");
  EXPECT_EQ(run({"more.yaml", "-c", "cluster.json", "--report", "page.json"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("policy                 kube\n"));
  EXPECT_THAT(out, HasSubstr("default/late          0    100.0    100.0  105.0  done     n"));
  const auto page = read_file(folder_.path("page.json"));
  ASSERT_TRUE(page.has_value());
  EXPECT_THAT(*page, HasSubstr("1 nodes, 3 pods, 1 of them running at the start."));
  EXPECT_EQ(run({"more.yaml", "-c", "cluster.json", "-p", "kube,jogak", "-o", "json"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("\"running_at_start\": 1"));
}

TEST_F(SimRun, WhatIsMissingIsNamed) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(err,
            "jogak sim run: give a scenario file, or a cluster: --cluster FILE, --kubeconfig or "
            "--context\n");
  write("more.yaml", "nodes: [{name: n, cpu: 4}]\npods: [{name: p, cpu: 1}]\n");
  EXPECT_EQ(run({"more.yaml", "--running-for", "5"}), 2);
  EXPECT_EQ(err,
            "jogak sim run: --running-for is for the pods of a cluster: --cluster FILE, "
            "--kubeconfig or --context\n");
  EXPECT_EQ(run({"more.yaml", "-c", "cluster.json"}), 2);
  EXPECT_THAT(err, HasSubstr("more.yaml: two nodes are named n\n"));
  EXPECT_EQ(run({"-c", "cluster.json", "--context", "x"}), 2);
  EXPECT_THAT(err, HasSubstr("--cluster and --context: the cluster comes from files or"));
  write("empty.json", R"({"kind":"NodeList","items":[]})");
  EXPECT_EQ(run({"-c", "empty.json"}), 2);
  EXPECT_EQ(err, "jogak sim run: cluster: no nodes in the scenario\n");
}

}  // namespace
}  // namespace jogak::cli
