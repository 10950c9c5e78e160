// SPDX-License-Identifier: Apache-2.0
//
// What is read from lists as kubectl and the API server write them, beside nodes and pods.
#include "cli/cluster_input.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "import/import.h"

namespace jogak::cli {
namespace {

std::string pod(std::string_view name, std::string_view created) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"ns"{}}},"spec":{{"containers":[{{}}]}}}})", name,
      created.empty() ? std::string() : fmt::format(R"(,"creationTimestamp":"{}")", created));
}

// Names of the pods in the order of their ids.
std::string order(const core::Cluster& cluster) {
  std::string names;
  for (const core::Pod& p : cluster.pods()) names += p.name;
  return names;
}

TEST(ReadTexts, PodsComeByAgeAndThenAsTheyStand) {
  core::Cluster cluster;
  const std::string list = R"({"items":[)" + pod("d", "") + "," + pod("c", "2026-01-01T00:00:03Z") +
                           "," + pod("a", "2026-01-01T00:00:01Z") + "," +
                           pod("b", "2026-01-01T00:00:01Z") + "," + pod("e", "") + "]}";
  const auto input = read_texts({{.kind = "Pod", .text = list, .name = "pods"}}, cluster);
  ASSERT_TRUE(input.has_value()) << input.error().what;
  EXPECT_EQ(order(cluster), "abcde");
  EXPECT_EQ(input->report.pods, 5U);
  EXPECT_EQ(input->ns, "default");
}

TEST(ReadTexts, ItemsOfAKindsListNeedNotNameIt) {
  core::Cluster cluster;
  const auto input = read_texts({{.kind = {},
                                  .text = R"({"kind":"NodeList","items":[{"metadata":{"name":"n",)"
                                          R"("creationTimestamp":"2026-01-01T00:00:01Z"}}]})",
                                  .name = "nodes"},
                                 {.kind = {},
                                  .text = R"({"kind":"PodList","items":[)" + pod("a", "") + "]}",
                                  .name = "pods"}},
                                cluster);
  ASSERT_TRUE(input.has_value()) << input.error().what;
  EXPECT_TRUE(cluster.find_node("n"));
  EXPECT_TRUE(cluster.find_pod("ns", "a"));
}

TEST(ReadTexts, PriorityClassesCanBeReadAgainForPodsThatComeLater) {
  core::Cluster cluster;
  const std::string classes =
      R"({"kind":"PriorityClassList","items":[{"metadata":{"name":"high"},"value":7},)"
      R"({"metadata":{"name":"low"},"value":1,"globalDefault":true}]})";
  const auto input = read_texts({{.kind = {}, .text = classes, .name = "classes"}}, cluster);
  ASSERT_TRUE(input.has_value()) << input.error().what;
  importer::ImportBatch batch;
  ASSERT_TRUE(batch.add(input->priority_classes, "classes").has_value());
  ASSERT_TRUE(batch
                  .add_object(R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{}],)"
                              R"("priorityClassName":"high"}})",
                              "", "new")
                  .has_value());
  ASSERT_TRUE(
      batch
          .add_object(R"({"kind":"Pod","metadata":{"name":"q"},"spec":{"containers":[{}]}})", "",
                      "new")
          .has_value());
  ASSERT_TRUE(batch.apply(cluster).has_value());
  EXPECT_EQ(cluster.shape_of(*cluster.find_pod("default", "p")).spec.priority, 7);
  EXPECT_EQ(cluster.shape_of(*cluster.find_pod("default", "q")).spec.priority, 1);
}

TEST(ReadTexts, TheDefaultStorageClassIsTheOneThatSaysSo) {
  const auto class_of = [](std::string_view annotations) {
    core::Cluster cluster;
    const std::string text =
        fmt::format(R"({{"kind":"StorageClass","metadata":{{"annotations":{},"name":"fast"}},)"
                    R"("provisioner":"p"}})",
                    annotations);
    const auto input = read_texts({{.kind = {}, .text = text, .name = "x"}}, cluster);
    EXPECT_TRUE(input.has_value()) << input.error().what;
    return input.has_value() ? input->default_storage_class : "error";
  };
  EXPECT_EQ(class_of(R"({"storageclass.kubernetes.io/is-default-class" : "true"})"), "fast");
  EXPECT_EQ(class_of(R"({"storageclass.kubernetes.io/is-default-class":"false"})"), "");
  EXPECT_EQ(class_of("null"), "");
}

TEST(ReadTexts, AnErrorNamesTheTextAndTheObject) {
  core::Cluster cluster;
  const auto input = read_texts(
      {{.kind = {},
        .text = R"({"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"x"}}})",
        .name = "cluster.json"}},
      cluster);
  ASSERT_FALSE(input.has_value());
  EXPECT_TRUE(input.error().what.starts_with("cluster.json: Node n: ")) << input.error().what;
  const auto empty = read_texts({{.kind = {}, .text = "", .name = "empty.json"}}, cluster);
  ASSERT_FALSE(empty.has_value());
  EXPECT_TRUE(empty.error().what.starts_with("empty.json: is empty")) << empty.error().what;
}

}  // namespace
}  // namespace jogak::cli
