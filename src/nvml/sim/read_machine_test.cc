// SPDX-License-Identifier: Apache-2.0
//
// Simulation files: read, written, refused with the field named; and the small texts in them.
#include <gtest/gtest.h>

#include "nvml/sim/identity.h"
#include "nvml/sim/machine.h"
#include "nvml/sim/models.h"
#include "nvml/sim/names.h"
#include "nvml/sim/shipped.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml::sim {
namespace {

using nvml::testing::machine_text;

std::string error_of(std::string_view rest) {
  const auto spec = read_machine("m.yaml", machine_text(rest));
  return spec ? "" : spec.error().what;
}

TEST(ReadMachine, AModelAndACountAreEnough) {
  const auto spec = read_machine("m.yaml", machine_text("gpus:\n- {model: T4, count: 3}\n"));
  ASSERT_TRUE(spec.has_value()) << spec.error().what;
  ASSERT_EQ(spec->gpus.size(), 3U);
  EXPECT_EQ(spec->gpus[2].name, "Tesla T4");
  EXPECT_EQ(spec->gpus[2].minor, 2);
  EXPECT_NE(spec->gpus[0].uuid, spec->gpus[1].uuid);
  EXPECT_EQ(spec->gpus[0].cpus, "0-23,48-71");
  EXPECT_EQ(spec->gpus[0].numa_node, 0);
  EXPECT_EQ(spec->gpus[2].numa_node, 1);
}

TEST(ReadMachine, TheSameFileIsTheSameMachineAndAnotherIdentityIsAnother) {
  const std::string text = machine_text("gpus:\n- {model: T4}\n");
  EXPECT_EQ(read_machine("m.yaml", text), read_machine("m.yaml", text));
  EXPECT_NE(read_machine("m.yaml", text, "node-1")->gpus[0].uuid,
            read_machine("m.yaml", text, "node-2")->gpus[0].uuid);
}

TEST(ReadMachine, EveryShippedFileIsReadAndItsInstancesFit) {
  for (const std::string& name : shipped_names()) {
    auto spec = load_machine(name);
    ASSERT_TRUE(spec.has_value()) << spec.error().what;
    EXPECT_GE(spec->gpus.size(), 4U) << name;
    EXPECT_TRUE(Machine::create(*spec, {}).has_value()) << name;
  }
}

TEST(ReadMachine, TheShippedV100sAreJoinedAsThoseWithoutAFile) {
  const auto shipped = load_machine("v100-32gb-x8");
  const auto made = machine_of("V100-SXM2-32GB", 8, {});
  ASSERT_TRUE(shipped.has_value() && made.has_value());
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(shipped->gpus[i].peers, made->gpus[i].peers) << i;
    int links = 0;
    for (const PeerSpec& peer : made->gpus[i].peers) links += peer.nvlinks;
    EXPECT_EQ(links, made->gpus[i].nvlink.count) << "no link leads nowhere";
  }
}

TEST(ReadMachine, WhatIsWrittenIsReadBack) {
  for (const std::string& name : shipped_names()) {
    const auto spec = load_machine(name);
    const auto again = read_machine("w.yaml", write_machine(*spec, "test"));
    ASSERT_TRUE(again.has_value()) << again.error().what;
    EXPECT_EQ(*spec, *again) << name;
  }
}

TEST(ReadMachine, ErrorsNameTheField) {
  EXPECT_NE(error_of("gpus:\n- {model: A1000}\n").find("no model A1000; there are"),
            std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: T4, memoryMb: 1}\n").find("memoryMb: unknown field"),
            std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: T4, migEnabled: true}\n").find("has no MIG"),
            std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: T4, uuid: GPU-1, count: 2}\n").find("not with a count"),
            std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: T4, busId: x}\n").find("DDDDDDDD:BB:DD.F"),
            std::string::npos);
  EXPECT_NE(error_of("faults:\n- {kind: xid, gpu: 3}\n").find("there is no GPU 3"),
            std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: A100-SXM4-40GB, peers: [{gpu: 1, nvlinks: 4}]}\n"
                     "- {model: A100-SXM4-40GB}\n")
                .find("say nvlink: {toSwitch: false}"),
            std::string::npos);
  EXPECT_NE(error_of("faults:\n- {kind: driverReload}\n").find("needs for"), std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {memoryMib: 5}\n").find("name: is required"), std::string::npos);
  EXPECT_NE(error_of("gpus:\n- {model: T4, readings: {power: 1}}\n").find("no reading power"),
            std::string::npos);
}

TEST(ReadMachine, AnInstanceThatDoesNotFitIsRefused) {
  const auto spec = read_machine("m.yaml", machine_text(R"(gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 7g.40gb}, {profile: 1g.5gb}]
)"));
  ASSERT_TRUE(spec.has_value());
  const auto machine = Machine::create(*spec, {});
  ASSERT_FALSE(machine.has_value());
  EXPECT_NE(machine.error().what.find("1g.5gb does not fit"), std::string::npos);
}

TEST(LoadMachine, AnUnknownNameSaysWhatThereIs) {
  const auto spec = load_machine("a100-40gb");
  ASSERT_FALSE(spec.has_value());
  EXPECT_NE(spec.error().what.find("a100-40gb-x8"), std::string::npos);
}

TEST(Names, BusIdsInEitherForm) {
  EXPECT_EQ(parse_bus_id("00010000:90:1f.7")->domain, 0x10000U);
  EXPECT_EQ(parse_bus_id("0000:0A:00.0")->bus, 10U);
  EXPECT_FALSE(parse_bus_id("0000:0A:20.0").has_value());
  EXPECT_FALSE(parse_bus_id("0000:0A:00").has_value());
  EXPECT_FALSE(parse_bus_id("").has_value());
}

TEST(Names, CpuListsGoAndCome) {
  for (const std::string text : {"0", "0-3", "0-23,48-71", "63-64,127"}) {
    ASSERT_TRUE(parse_cpu_list(text).has_value()) << text;
    EXPECT_EQ(cpu_list_text(*parse_cpu_list(text)), text);
  }
  for (const std::string text : {"a", "3-1", "0,", "4096", "-1", "0-"}) {
    EXPECT_FALSE(parse_cpu_list(text).has_value()) << text;
  }
}

TEST(Wave, TheIntegralIsThatOfTheValues) {
  for (const Shape shape : {Shape::Constant, Shape::Square, Shape::Sine, Shape::Ramp}) {
    const Wave wave{.shape = shape,
                    .low = 10,
                    .high = 90,
                    .period = 60 * kSecondInUs,
                    .phase = 7 * kSecondInUs};
    double sum = 0;
    const TimeUs step = 10 * kMsInUs;
    for (TimeUs time = 0; time < 150 * kSecondInUs; time += step) {
      sum += wave_at(wave, time + step / 2) * 0.01;
    }
    EXPECT_NEAR(wave_integral(wave, 150 * kSecondInUs), sum, 1.0);
  }
}

TEST(Models, ProfilesHavePlacesThatFit) {
  for (const std::string& name : model_names()) {
    const auto gpu = find_model(name);
    for (const MigProfileSpec& profile : gpu->mig_profiles) {
      EXPECT_LE(profile.memory_mib, gpu->memory_mib) << name << " " << profile.name;
      EXPECT_GE(static_cast<int>(profile.placements.size()), profile.count_max)
          << name << " " << profile.name;
    }
  }
}

}  // namespace
}  // namespace jogak::nvml::sim
