// SPDX-License-Identifier: Apache-2.0
//
// Labels of nodes of many kinds, beside what GPU feature discovery says of them.
#include "agent/labels/feature_labels.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "nvml/nvml_source.h"

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

nvml::GpuFacts a100(int index) {
  nvml::GpuFacts gpu;
  gpu.index = index;
  gpu.uuid = fmt::format("GPU-{}", index);
  gpu.name = "NVIDIA A100-SXM4-40GB";
  gpu.pci_bus_id = fmt::format("00000000:0{}:00.0", index);
  gpu.memory_mib = 40960;
  gpu.compute_major = 8;
  gpu.mig_capable = true;
  gpu.mig_profiles = {{.id = 19,
                       .query_index = 0,
                       .name = "1g.5gb",
                       .slices = 1,
                       .memory_mib = 4864,
                       .count_max = 7,
                       .multiprocessors = 14,
                       .copy_engines = 1,
                       .placements = {}},
                      {.id = 9,
                       .query_index = 2,
                       .name = "3g.20gb",
                       .slices = 3,
                       .memory_mib = 19968,
                       .count_max = 2,
                       .multiprocessors = 42,
                       .copy_engines = 3,
                       .decoders = 2,
                       .placements = {}}};
  return gpu;
}

void cut(nvml::GpuFacts& gpu, std::string_view profile, int count) {
  gpu.mig_enabled = true;
  const bool is_small = profile.starts_with("1g");
  for (int i = 0; i < count; ++i) {
    nvml::MigInstanceFacts mig;
    mig.gi_id = static_cast<int>(gpu.mig_instances.size()) + 1;
    mig.ci_id = 0;
    mig.uuid = fmt::format("MIG-{}-{}", gpu.index, mig.gi_id);
    mig.profile = mig.gi_profile = profile;
    mig.profile_id = is_small ? 19 : 9;
    mig.ci_slices = is_small ? 1 : 3;
    mig.memory_mib = is_small ? 4864 : 19968;
    mig.multiprocessors = is_small ? 14 : 42;
    gpu.mig_instances.push_back(mig);
  }
}

nvml::NodeFacts node(int gpus) {
  nvml::NodeFacts facts;
  facts.driver_version = "550.90.07";
  facts.cuda_major = 12;
  facts.cuda_minor = 4;
  for (int i = 0; i < gpus; ++i) facts.gpus.push_back(a100(i));
  return facts;
}

Labels labels_of(const nvml::NodeFacts& facts, LabelOptions options = {}) {
  return feature_labels(facts, options).labels;
}

// One label, without its prefix; "absent".
std::string of(const Labels& labels, std::string_view name) {
  const auto at = labels.find(fmt::format("nvidia.com/{}", name));
  return at == labels.end() ? "absent" : at->second;
}

TEST(FeatureLabels, TellAWholeNode) {
  LabelOptions options;
  options.machine = "DGXA100 920-23687-2530-000\n";
  options.timestamp = 1'700'000'000 * kSecondInUs;
  options.pci_class = {{"00000000:00:00.0", 0x030200}, {"00000000:01:00.0", 0x030200}};
  const auto [labels, warnings] = feature_labels(node(2), options);
  EXPECT_EQ(features_file_text(labels),
            "nvidia.com/cuda.driver-version.full=550.90.07\n"
            "nvidia.com/cuda.driver-version.major=550\n"
            "nvidia.com/cuda.driver-version.minor=90\n"
            "nvidia.com/cuda.driver-version.revision=07\n"
            "nvidia.com/cuda.driver.major=550\n"
            "nvidia.com/cuda.driver.minor=90\n"
            "nvidia.com/cuda.driver.rev=07\n"
            "nvidia.com/cuda.runtime-version.full=12.4\n"
            "nvidia.com/cuda.runtime-version.major=12\n"
            "nvidia.com/cuda.runtime-version.minor=4\n"
            "nvidia.com/cuda.runtime.major=12\n"
            "nvidia.com/cuda.runtime.minor=4\n"
            "nvidia.com/gfd.timestamp=1700000000\n"
            "nvidia.com/gpu.compute.major=8\n"
            "nvidia.com/gpu.compute.minor=0\n"
            "nvidia.com/gpu.count=2\n"
            "nvidia.com/gpu.family=ampere\n"
            "nvidia.com/gpu.machine=DGXA100-920-23687-2530-000\n"
            "nvidia.com/gpu.memory=40960\n"
            "nvidia.com/gpu.mode=compute\n"
            "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB\n"
            "nvidia.com/gpu.replicas=1\n"
            "nvidia.com/gpu.sharing-strategy=none\n"
            "nvidia.com/mig.capable=true\n"
            "nvidia.com/mps.capable=false\n"
            "nvidia.com/vgpu.present=false\n");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(FeatureLabels, WithoutGpusThereIsNearlyNothing) {
  LabelOptions options;
  options.timestamp = 5 * kSecondInUs;
  EXPECT_THAT(labels_of({}, options), ElementsAre(Pair("nvidia.com/gfd.timestamp", "5"),
                                                  Pair("nvidia.com/vgpu.present", "false")));
}

TEST(FeatureLabels, ALostGpuIsNotCounted) {
  nvml::NodeFacts facts = node(4);
  facts.gpus[0].is_lost = true;
  EXPECT_EQ(of(labels_of(facts), "gpu.count"), "3");
}

TEST(FeatureLabels, TheFamilyFollowsTheComputeCapability) {
  struct Case {
    int major, minor;
    std::string_view family;
  };
  constexpr Case kCases[] = {{1, 0, "tesla"},      {2, 0, "fermi"},        {3, 5, "kepler"},
                             {4, 0, "undefined"},  {5, 2, "maxwell"},      {6, 0, "pascal"},
                             {7, 0, "volta"},      {7, 5, "turing"},       {8, 0, "ampere"},
                             {8, 6, "ampere"},     {8, 9, "ada-lovelace"}, {9, 0, "hopper"},
                             {10, 0, "blackwell"}, {12, 0, "blackwell"},   {13, 0, "rubin"}};
  for (const Case& example : kCases) {
    nvml::NodeFacts facts = node(1);
    facts.gpus[0].compute_major = example.major;
    facts.gpus[0].compute_minor = example.minor;
    EXPECT_EQ(of(labels_of(facts), "gpu.family"), example.family);
  }
}

TEST(FeatureLabels, SharedGpusSaySo) {
  LabelOptions options;
  options.sharing = SharingStrategy::TimeSlicing;
  options.shared = {{.name = "nvidia.com/gpu", .replicas = 4}};
  Labels labels = labels_of(node(2), options);
  EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB-SHARED");
  EXPECT_EQ(of(labels, "gpu.replicas"), "4");
  EXPECT_EQ(of(labels, "gpu.sharing-strategy"), "time-slicing");
  EXPECT_EQ(of(labels, "mps.capable"), "false");
  options.sharing = SharingStrategy::Mps;
  options.shared[0].is_renamed = true;
  labels = labels_of(node(2), options);
  EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(of(labels, "gpu.sharing-strategy"), "mps");
  EXPECT_EQ(of(labels, "mps.capable"), "true");
  options.shared[0].replicas = 1;
  EXPECT_EQ(of(labels_of(node(2), options), "gpu.sharing-strategy"), "none");
}

TEST(FeatureLabels, StrategyNoneDoesNotSeeInstances) {
  nvml::NodeFacts facts = node(1);
  cut(facts.gpus[0], "1g.5gb", 7);
  const Labels labels = labels_of(facts);
  EXPECT_EQ(of(labels, "gpu.count"), "1");
  EXPECT_EQ(of(labels, "gpu.replicas"), "0") << "a GPU that is cut is of no use as a whole";
  EXPECT_EQ(of(labels, "mig.strategy"), "absent");
  EXPECT_EQ(of(labels, "mig-1g.5gb.count"), "absent");
}

TEST(FeatureLabels, StrategySingleTellsInstancesAsGpus) {
  nvml::NodeFacts facts = node(2);
  LabelOptions options;
  options.mig = LabelMigStrategy::Single;
  EXPECT_EQ(of(labels_of(facts, options), "gpu.product"), "NVIDIA-A100-SXM4-40GB");
  for (nvml::GpuFacts& gpu : facts.gpus) cut(gpu, "1g.5gb", 7);
  const Labels labels = labels_of(facts, options);
  EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb");
  EXPECT_EQ(of(labels, "gpu.count"), "14");
  EXPECT_EQ(of(labels, "gpu.memory"), "4864");
  EXPECT_EQ(of(labels, "gpu.multiprocessors"), "14");
  EXPECT_EQ(of(labels, "gpu.slices.gi"), "1");
  EXPECT_EQ(of(labels, "gpu.slices.ci"), "1");
  EXPECT_EQ(of(labels, "gpu.engines.copy"), "1");
  EXPECT_EQ(of(labels, "gpu.engines.decoder"), "0");
  EXPECT_EQ(of(labels, "mig.strategy"), "single");
  EXPECT_EQ(of(labels, "gpu.family"), "ampere");
}

// The plugin offers the others' instances; the labels say the same.
TEST(FeatureLabels, StrategySingleGoesByTheGpusThatAreKnown) {
  nvml::NodeFacts facts = node(3);
  cut(facts.gpus[0], "1g.5gb", 7);
  cut(facts.gpus[2], "1g.5gb", 7);
  facts.gpus[1] = {};
  facts.gpus[1].index = 1;
  facts.gpus[1].is_lost = true;
  LabelOptions options;
  options.mig = LabelMigStrategy::Single;
  const Labels labels = labels_of(facts, options);
  EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb");
  EXPECT_EQ(of(labels, "gpu.count"), "14");
}

TEST(FeatureLabels, WhatABoardDoesNotTellHasNoLabel) {
  nvml::NodeFacts facts = node(1);
  facts.gpus[0].memory_mib = 0;  // it shares the machine's
  facts.gpus[0].compute_major = 0;
  const Labels labels = labels_of(facts);
  for (const std::string_view name : {"gpu.memory", "gpu.family", "gpu.compute.major"}) {
    EXPECT_EQ(of(labels, name), "absent") << name;
  }
  EXPECT_EQ(of(labels, "gpu.count"), "1");
}

TEST(FeatureLabels, StrategySingleOnAnUnevenNodeIsInvalid) {
  struct Case {
    std::string_view why;
    void (*change)(nvml::NodeFacts& facts);
  };
  const Case cases[] = {
      {"1 of 2 have it on", [](nvml::NodeFacts& facts) { cut(facts.gpus[0], "1g.5gb", 7); }},
      {"gpu 1 has none",
       [](nvml::NodeFacts& facts) {
         cut(facts.gpus[0], "1g.5gb", 7);
         facts.gpus[1].mig_enabled = true;
       }},
      {"of one profile",
       [](nvml::NodeFacts& facts) {
         cut(facts.gpus[0], "1g.5gb", 7);
         cut(facts.gpus[1], "3g.20gb", 2);
       }},
  };
  for (const Case& example : cases) {
    nvml::NodeFacts facts = node(2);
    example.change(facts);
    LabelOptions options;
    options.mig = LabelMigStrategy::Single;
    const auto [labels, warnings] = feature_labels(facts, options);
    EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB-MIG-INVALID");
    EXPECT_EQ(of(labels, "gpu.count"), "0");
    EXPECT_EQ(of(labels, "gpu.memory"), "0");
    EXPECT_EQ(of(labels, "gpu.replicas"), "0");
    EXPECT_EQ(of(labels, "gpu.sharing-strategy"), "");
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_THAT(warnings[0], HasSubstr(std::string(example.why)));
  }
}

TEST(FeatureLabels, StrategyMixedTellsEachProfile) {
  nvml::NodeFacts facts = node(3);
  cut(facts.gpus[0], "1g.5gb", 2);
  cut(facts.gpus[0], "3g.20gb", 1);
  cut(facts.gpus[1], "1g.5gb", 3);
  facts.gpus[1].mig_instances[2].profile = facts.gpus[1].mig_instances[2].gi_profile = "1g.5gb+me";
  LabelOptions options;
  options.mig = LabelMigStrategy::Mixed;
  options.sharing = SharingStrategy::TimeSlicing;
  options.shared = {{.name = "nvidia.com/mig-3g.20gb", .replicas = 2}};
  const Labels labels = labels_of(facts, options);
  EXPECT_EQ(of(labels, "gpu.count"), "3");
  EXPECT_EQ(of(labels, "gpu.replicas"), "1");
  EXPECT_EQ(of(labels, "mig-1g.5gb.count"), "4");
  EXPECT_EQ(of(labels, "mig-1g.5gb.product"), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb");
  EXPECT_EQ(of(labels, "mig-1g.5gb.me.count"), "1");
  EXPECT_EQ(of(labels, "mig-3g.20gb.count"), "1");
  EXPECT_EQ(of(labels, "mig-3g.20gb.product"), "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED");
  EXPECT_EQ(of(labels, "mig-3g.20gb.replicas"), "2");
  EXPECT_EQ(of(labels, "mig-3g.20gb.slices.gi"), "3");
  EXPECT_EQ(of(labels, "mig-3g.20gb.engines.decoder"), "2");
  EXPECT_EQ(of(labels, "mig.strategy"), "mixed");
}

TEST(FeatureLabels, UnderMixedAGpuThatIsCutHasNoReplicas) {
  nvml::NodeFacts facts = node(1);
  cut(facts.gpus[0], "1g.5gb", 7);
  LabelOptions options;
  options.mig = LabelMigStrategy::Mixed;
  EXPECT_EQ(of(labels_of(facts, options), "gpu.replicas"), "0");
  EXPECT_EQ(of(labels_of(facts, options), "gpu.count"), "1");
}

TEST(FeatureLabels, APartOfAnInstanceIsAKindOfItsOwn) {
  nvml::NodeFacts facts = node(1);
  cut(facts.gpus[0], "3g.20gb", 2);
  facts.gpus[0].mig_instances[0].profile = "1c.3g.20gb";
  facts.gpus[0].mig_instances[0].ci_slices = 1;
  LabelOptions options;
  options.mig = LabelMigStrategy::Mixed;
  const auto labels = labels_of(facts, options);
  EXPECT_EQ(of(labels, "mig-1c.3g.20gb.count"), "1");
  EXPECT_EQ(of(labels, "mig-1c.3g.20gb.slices.ci"), "1");
  EXPECT_EQ(of(labels, "mig-3g.20gb.count"), "1");
}

TEST(FeatureLabels, AnInstanceWithoutAComputeInstanceIsSkippedWithAWarning) {
  nvml::NodeFacts facts = node(1);
  cut(facts.gpus[0], "3g.20gb", 1);
  facts.gpus[0].mig_instances[0].uuid.clear();
  LabelOptions options;
  options.mig = LabelMigStrategy::Mixed;
  const auto [labels, warnings] = feature_labels(facts, options);
  EXPECT_EQ(of(labels, "mig-3g.20gb.count"), "absent");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("3g.20gb")));
}

TEST(FeatureLabels, OfSeveralModelsTheMostNumerousIsToldAndAllAreCounted) {
  nvml::NodeFacts facts = node(3);
  facts.gpus[0].name = "Tesla T4";
  facts.gpus[0].compute_major = 7;
  facts.gpus[0].compute_minor = 5;
  const auto [labels, warnings] = feature_labels(facts, {});
  EXPECT_EQ(of(labels, "gpu.product"), "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(of(labels, "gpu.count"), "2");
  EXPECT_EQ(of(labels, "gpu.family"), "ampere");
  EXPECT_EQ(labels.at("jogak.io/gpu.count.Tesla-T4"), "1");
  EXPECT_EQ(labels.at("jogak.io/gpu.count.NVIDIA-A100-SXM4-40GB"), "2");
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(FeatureLabels, TheCliqueNeedsEveryGpuOfTheFabric) {
  nvml::NodeFacts facts = node(2);
  nvml::FabricFacts fabric;
  fabric.state = nvml::FabricState::Completed;
  fabric.cluster_uuid = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31";
  fabric.clique_id = 5;
  facts.gpus[0].fabric = fabric;
  facts.gpus[1].fabric = fabric;
  EXPECT_EQ(of(labels_of(facts), "gpu.clique"), "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.5");
  fabric.clique_id = 6;
  facts.gpus[1].fabric = fabric;
  EXPECT_EQ(of(labels_of(facts), "gpu.clique"), "absent");
  fabric.clique_id = 5;
  fabric.state = nvml::FabricState::InProgress;
  facts.gpus[1].fabric = fabric;
  EXPECT_EQ(of(labels_of(facts), "gpu.clique"), "absent");
}

// What GPU feature discovery says of the well-known machines.
TEST(FeatureLabels, OfEveryShippedMachine) {
  struct Row {
    std::string_view machine, product, memory, family, major, minor, count, mig;
  };
  constexpr Row kRows[] = {
      {"a100-40gb-x8", "NVIDIA-A100-SXM4-40GB", "40960", "ampere", "8", "0", "8", "true"},
      {"a100-80gb-x8", "NVIDIA-A100-SXM4-80GB", "81920", "ampere", "8", "0", "8", "true"},
      {"a30-x4", "NVIDIA-A30", "24576", "ampere", "8", "0", "4", "true"},
      {"h100-80gb-x8", "NVIDIA-H100-80GB-HBM3", "81559", "hopper", "9", "0", "8", "true"},
      {"h200-x8", "NVIDIA-H200", "143771", "hopper", "9", "0", "8", "true"},
      {"b200-x8", "NVIDIA-B200", "183359", "blackwell", "10", "0", "8", "true"},
      {"t4-x4", "Tesla-T4", "15360", "turing", "7", "5", "4", "false"},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.machine);
    const auto source = nvml::NvmlSource::open(fmt::format("sim:{}", row.machine));
    ASSERT_TRUE(source) << source.error().what;
    const auto facts = (*source)->facts();
    ASSERT_TRUE(facts) << facts.error().what;
    LabelOptions options;
    options.sharing = SharingStrategy::TimeSlicing;
    const Labels alone = labels_of(*facts, options);
    EXPECT_EQ(of(alone, "gpu.product"), row.product);
    EXPECT_EQ(of(alone, "gpu.memory"), row.memory);
    EXPECT_EQ(of(alone, "gpu.family"), row.family);
    EXPECT_EQ(of(alone, "gpu.compute.major"), row.major);
    EXPECT_EQ(of(alone, "gpu.compute.minor"), row.minor);
    EXPECT_EQ(of(alone, "gpu.count"), row.count);
    EXPECT_EQ(of(alone, "gpu.replicas"), "1");
    EXPECT_EQ(of(alone, "gpu.sharing-strategy"), "none");
    EXPECT_EQ(of(alone, "mig.capable"), row.mig);
    EXPECT_EQ(of(alone, "mig.strategy"), "absent");
    EXPECT_EQ(of(alone, "mps.capable"), "false");
    EXPECT_EQ(of(alone, "vgpu.present"), "false");
    options.shared = {{.name = "nvidia.com/gpu", .replicas = 4}};
    const Labels shared = labels_of(*facts, options);
    EXPECT_EQ(of(shared, "gpu.product"), fmt::format("{}-SHARED", row.product));
    EXPECT_EQ(of(shared, "gpu.replicas"), "4");
    EXPECT_EQ(of(shared, "gpu.sharing-strategy"), "time-slicing");
    options.shared[0].is_renamed = true;
    EXPECT_EQ(of(labels_of(*facts, options), "gpu.product"), row.product);
  }
}

TEST(LabelValue, IsAlwaysLegal) {
  EXPECT_EQ(label_value("NVIDIA A100-SXM4-40GB"), "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(label_value("  two   blanks (R) "), "two-blanks-R");
  EXPECT_EQ(label_value("-_.x.-"), "x");
  EXPECT_EQ(label_value("\xE2\x84\xA2"), "");
  EXPECT_EQ(label_value(std::string(100, 'a')).size(), 63U);
  EXPECT_EQ(label_value(std::string(62, 'a') + "-b"), std::string(62, 'a'));
}

TEST(FeaturesFile, IsWrittenWholeAndRemoved) {
  const TempFolder folder;
  const std::string path = folder.path("gfd");
  const ::mode_t before = ::umask(077);  // of a careful service manager
  ASSERT_TRUE(write_features_file(path, {{"nvidia.com/gpu.count", "8"}}));
  EXPECT_EQ(read_file(path), "nvidia.com/gpu.count=8\n");
  using enum std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            owner_read | owner_write | group_read | others_read);
  ::umask(before);
  ASSERT_TRUE(write_features_file(path, {}));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(write_features_file(path, {})) << "nothing to remove is well";
}

TEST(MigStrategyText, IsRead) {
  EXPECT_EQ(parse_mig_strategy("mixed"), LabelMigStrategy::Mixed);
  EXPECT_THAT(parse_mig_strategy("both").error().what, HasSubstr("none, single or mixed"));
}

}  // namespace
}  // namespace jogak::agent
