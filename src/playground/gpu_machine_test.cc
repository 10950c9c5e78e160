// SPDX-License-Identifier: Apache-2.0
//
// Which machine a node gets: by its annotation, by what its manifest says, or none.
#include "playground/gpu_machine.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "playground/gpu_config.h"

namespace jogak::playground {
namespace {

using testing::HasSubstr;

Doc node(std::string_view product, std::string_view gpus) {
  Doc object = Doc::object();
  object.at("metadata").set("name", "n");
  object.at("metadata", "labels").set("nvidia.com/gpu.product", product);
  object.at("status", "capacity").set("cpu", "8").set("nvidia.com/gpu", gpus);
  return object;
}

std::string named(Doc object) {
  name_gpus(object);
  return object.get("metadata", "annotations")[kSimulatedGpus].as_string();
}

TEST(ReadGpus, CountsModelsAndIdentities) {
  const auto machine = read_gpus("2xA30,1xT4", "n1");
  ASSERT_TRUE(machine.has_value()) << machine.error().what;
  ASSERT_EQ(machine->gpus.size(), 3U);
  EXPECT_EQ(machine->gpus[0].name, "NVIDIA A30");
  EXPECT_EQ(machine->gpus[2].model, "T4");
  EXPECT_EQ(machine->gpus[2].minor, 2);
  EXPECT_NE(machine->gpus[0].uuid, machine->gpus[1].uuid);
  EXPECT_NE(machine->gpus[0].uuid, read_gpus("2xA30", "n2")->gpus[0].uuid);
  EXPECT_EQ(machine->gpus[0].uuid, read_gpus("2xA30", "n1")->gpus[0].uuid);
}

TEST(ReadGpus, SaysWhatItWants) {
  for (const char* text : {"8xH9000", "A30", "0xA30", "65xA30", "x", "2x", "-1xT4"}) {
    const auto machine = read_gpus(text, "n");
    ASSERT_FALSE(machine.has_value()) << text;
    EXPECT_THAT(machine.error().what, HasSubstr("expected COUNTxMODEL")) << text;
  }
  EXPECT_THAT(read_gpus("60xA30,60xT4", "n").error().what, HasSubstr("more than 64"));
  EXPECT_THAT(read_gpus("", "n").error().what, HasSubstr("names no GPUs"));
}

TEST(NameGpus, FromProductAndNumber) {
  EXPECT_EQ(named(node("NVIDIA-H100-80GB-HBM3", "8")), "8xH100-SXM5-80GB");
  EXPECT_EQ(named(node("Tesla-T4", "2")), "2xT4");
  EXPECT_EQ(named(node("NVIDIA-L40S", "4")), "4xL40S");
  EXPECT_EQ(named(node("NVIDIA-L4", "4")), "4xL4");
  EXPECT_EQ(named(node("NVIDIA-A10", "4")), "4xA10");
  EXPECT_EQ(named(node("Tesla-V100-SXM2-32GB", "8")), "8xV100-SXM2-32GB");
  EXPECT_EQ(named(node("NVIDIA-GeForce-RTX-4090", "4")), "") << "not in the catalogue";
  EXPECT_EQ(named(node("Tesla-T4", "0")), "");
  EXPECT_EQ(named(node("Tesla-T4", "80")), "") << "more than a machine has";
}

TEST(NameGpus, WhatAMachineWouldNotOfferStaysTheManifests) {
  Doc odd = node("Tesla-T4", "9");
  odd.at("metadata", "labels").set("nvidia.com/gpu.replicas", "4");
  EXPECT_EQ(named(odd), "") << "no number of GPUs has nine shares";
  Doc partly = node("Tesla-T4", "3");
  partly.at("metadata", "labels").set("nvidia.com/gpu.count", "4");
  EXPECT_EQ(named(partly), "") << "one of them is not offered";
  Doc cut = node("NVIDIA-A100-SXM4-80GB", "0");
  cut.at("status", "capacity").set("nvidia.com/mig-1g.10gb", "7");
  EXPECT_EQ(named(cut), "") << "nobody said by a label how it is cut";
}

TEST(NameGpus, SharesComeWithAConfiguration) {
  Doc shared = node("Tesla-T4-SHARED", "8");
  shared.at("metadata", "labels")
      .set("nvidia.com/gpu.replicas", "4")
      .set("nvidia.com/gpu.count", "2")
      .set("nvidia.com/gpu.sharing-strategy", "time-slicing");
  name_gpus(shared);
  const Doc& annotations = shared["metadata"]["annotations"];
  EXPECT_EQ(annotations[kSimulatedGpus].as_string(), "2xT4");
  const auto config = read_gpu_config(annotations[kPluginConfig].as_string());
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(config->sharing.kind, agent::SharingKind::TimeSlicing);
  EXPECT_EQ(config->sharing.replicas_of("nvidia.com/gpu"), 4);
  EXPECT_FALSE(config->sharing.rename_by_default);
}

TEST(NameGpus, RenamedSharesToo) {
  Doc shared = node("NVIDIA-L4", "0");
  shared.at("metadata", "labels")
      .set("nvidia.com/gpu.replicas", "10")
      .set("nvidia.com/gpu.sharing-strategy", "mps");
  shared.at("status", "capacity").set("nvidia.com/gpu.shared", "40");
  name_gpus(shared);
  const Doc& annotations = shared["metadata"]["annotations"];
  EXPECT_EQ(annotations[kSimulatedGpus].as_string(), "4xL4");
  const auto config = read_gpu_config(annotations[kPluginConfig].as_string());
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(config->sharing.kind, agent::SharingKind::Mps);
  EXPECT_TRUE(config->sharing.rename_by_default);
  leave_to_agent(shared);
  EXPECT_FALSE(shared["status"]["capacity"].has("nvidia.com/gpu.shared"));
}

TEST(ReadGpuConfig, MigIsMixedWhereNobodySaysOtherwise) {
  EXPECT_EQ(read_gpu_config("")->mig_strategy, agent::MigStrategy::Mixed);
  EXPECT_EQ(read_gpu_config("version: v1\n")->mig_strategy, agent::MigStrategy::Mixed);
  EXPECT_EQ(read_gpu_config("version: v1\nflags: {migStrategy: single}\n")->mig_strategy,
            agent::MigStrategy::Single);
  EXPECT_EQ(read_gpu_config("version: v1\nflags: {migStrategy: none}\n")->mig_strategy,
            agent::MigStrategy::None);
}

TEST(ReadGpuConfig, NamesTheAnnotation) {
  EXPECT_THAT(read_gpu_config("version: v2\n").error().what, HasSubstr("jogak.io/plugin-config"));
}

TEST(NameGpus, ALabelForMigIsEnough) {
  Doc cut = node("NVIDIA-A100-SXM4-80GB", "0");
  cut.at("status", "capacity").set("nvidia.com/mig-1g.10gb", "14");
  cut.at("metadata", "labels").set("nvidia.com/mig.config", "all-1g.10gb");
  cut.at("metadata", "labels").set("nvidia.com/gpu.count", "2");
  EXPECT_EQ(named(cut), "2xA100-SXM4-80GB");
}

TEST(NameGpus, AnAnnotationIsKept) {
  Doc object = node("Tesla-T4", "4");
  object.at("metadata", "annotations").set(kSimulatedGpus, "1xA30");
  EXPECT_EQ(named(object), "1xA30");
}

TEST(LeaveToAgent, TakesOutWhatTheAgentFinds) {
  Doc object = node("Tesla-T4", "4");
  object.at("metadata", "labels").set("nvidia.com/mig.config", "all-1g.10gb").set("team", "a");
  object.at("status", "capacity").set("nvidia.com/mig-1g.10gb", "7");
  Doc untouched = object;
  leave_to_agent(untouched);
  EXPECT_EQ(untouched, object) << "no machine, no agent";
  object.at("metadata", "annotations").set(kSimulatedGpus, "4xT4");
  leave_to_agent(object);
  EXPECT_FALSE(object["metadata"]["labels"].has("nvidia.com/gpu.product"));
  EXPECT_EQ(object["metadata"]["labels"]["nvidia.com/gpu.present"].as_string(), "true");
  EXPECT_EQ(object["metadata"]["labels"]["nvidia.com/mig.config"].as_string(), "all-1g.10gb");
  EXPECT_EQ(object["metadata"]["labels"]["team"].as_string(), "a");
  EXPECT_FALSE(object["status"]["capacity"].has("nvidia.com/mig-1g.10gb"));
  EXPECT_EQ(object["status"]["capacity"]["nvidia.com/gpu"].as_string(), "4");
}

}  // namespace
}  // namespace jogak::playground
