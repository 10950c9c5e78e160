// SPDX-License-Identifier: Apache-2.0
//
// Made-up nodes and objects from files: what is read, and what the refusal says when it cannot
// be.
#include "playground/fleet.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::playground {
namespace {

using testing::HasSubstr;

std::string label(const Doc& node, std::string_view key) {
  return node.get("metadata", "labels", key).as_string();
}

std::string why(const Result<std::vector<Doc>>& result) {
  return result.has_value() ? "" : result.error().what;
}

TEST(DefaultFleet, IsWhatTheDocsSay) {
  std::map<std::string, int> gpus;
  const auto nodes = default_fleet();
  EXPECT_EQ(nodes.size(), 12U);
  for (const Doc& node : nodes) {
    EXPECT_EQ(label(node, "jogak.io/simulated"), "true");
    const std::string& name = node.get("metadata", "name").as_string();
    EXPECT_EQ(label(node, "kubernetes.io/hostname"), name);
    EXPECT_EQ(node.get("spec", "taints").size(), name.starts_with("train-") ? 1U : 0U);
    const Doc& capacity = node.get("status", "capacity");
    if (capacity.has("nvidia.com/gpu")) ++gpus["gpu"];
    if (capacity.has("nvidia.com/mig-1g.10gb")) ++gpus["mig"];
  }
  EXPECT_EQ(gpus["gpu"], 8);
  EXPECT_EQ(gpus["mig"], 2);
}

TEST(FleetOf, ReadsGroupsAndSpreadsThemOverRacks) {
  const auto nodes = fleet_of("4x8xH100,1xCPU", "racks=2", 1);
  ASSERT_TRUE(nodes.has_value()) << nodes.error().what;
  ASSERT_EQ(nodes->size(), 5U);
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    EXPECT_EQ(label((*nodes)[i], "jogak.io/rack"), "rack-" + std::to_string(i % 2));
    EXPECT_EQ(label((*nodes)[i], "jogak.io/simulated"), "true");
  }
  const auto flat = fleet_of("2xCPU", "", 1);
  ASSERT_TRUE(flat.has_value());
  EXPECT_NE(label(flat->front(), "jogak.io/rack"), "rack-0");  // as the generator has it
}

TEST(FleetOf, SaysWhatItCannotRead) {
  EXPECT_THAT(why(fleet_of("4x8xA100", "", 1)), HasSubstr("say which"));  // of 40 or 80 GB
  EXPECT_THAT(why(fleet_of("4x8xNOSUCH", "", 1)), HasSubstr("--nodes"));
  EXPECT_THAT(why(fleet_of("", "", 1)), HasSubstr("--nodes"));
  EXPECT_THAT(why(fleet_of(",,", "", 1)), HasSubstr("--nodes"));
  for (const char* topology : {"racks", "racks=", "racks=0", "racks=-1", "racks=2x", "zones=2"}) {
    EXPECT_THAT(why(fleet_of("2xCPU", topology, 1)), HasSubstr("--topology")) << topology;
  }
}

TEST(ReadManifests, SplitsDocumentsAndSkipsEmptyOnes) {
  const auto read =
      read_manifests("---\na: 1\n---\n\n--- # more\r\nb: 2\n---\n# only words\n", "f");
  ASSERT_TRUE(read.has_value()) << read.error().what;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0]["a"].as_int(), 1);
  EXPECT_EQ((*read)[1]["b"].as_int(), 2);
  EXPECT_EQ(read_manifests("", "f")->size(), 0U);
  EXPECT_EQ(read_manifests("text: \"---\"\nmore: |\n  ---\n", "f")->size(), 1U);
}

TEST(ReadManifests, NamesTheFileThatIsWrong) {
  EXPECT_THAT(why(read_manifests("a: [", "pods.yaml")), HasSubstr("pods.yaml"));
}

TEST(ObjectsOfFile, TakesListsDocumentsAndScenarios) {
  const auto list = objects_of_file(
      R"({"kind":"List","items":[{"kind":"Pod","apiVersion":"v1"},{"kind":"Node"}]})", "f");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(objects_of_file("kind: Pod\n---\nkind: PodList\nitems: [{kind: Pod}]\n", "f")->size(),
            2U);
  const auto nodes = objects_of_file(
      "nodes:\n  - name: big\n    count: 2\n    cpu: 8\n    memory: 32Gi\n"
      "    gpu: {model: H100-80, count: 4}\n    taints: [{key: gpu}]\n  - name: one\n    cpu: 1\n"
      "    memory: 1Gi\n",
      "f");
  ASSERT_TRUE(nodes.has_value()) << nodes.error().what;
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[1].get("metadata", "name").as_string(), "big-1");
  EXPECT_EQ((*nodes)[1].get("status", "capacity", "nvidia.com/gpu").as_string(), "4");
  EXPECT_EQ((*nodes)[1].get("spec", "taints").items()[0]["effect"].as_string(), "NoSchedule");
  EXPECT_EQ((*nodes)[2].get("metadata", "name").as_string(), "one");
  EXPECT_FALSE((*nodes)[2].get("status", "capacity").has("nvidia.com/gpu"));
}

TEST(ObjectsOfFile, SaysWhatItWants) {
  EXPECT_THAT(why(objects_of_file("", "f.json")), HasSubstr("f.json"));
  EXPECT_THAT(why(objects_of_file("{}", "f.json")), HasSubstr("kubectl get"));
  EXPECT_THAT(why(objects_of_file("{\"kind\":", "f.json")), HasSubstr("f.json"));
  EXPECT_THAT(why(objects_of_file("just words", "f.yaml")), HasSubstr("f.yaml"));
  EXPECT_THAT(why(objects_of_file(R"({"kind":"List","items":[]})", "f")), HasSubstr("no objects"));
}

}  // namespace
}  // namespace jogak::playground
