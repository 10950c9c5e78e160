// SPDX-License-Identifier: Apache-2.0
//
// The file in which a simulated machine remembers its MIG modes and instances: another process
// finds them as they were left, and what is not such a file is refused with its field.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

using testing::MadeMachine;

class MachineState : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path("state.json"); }
  std::string machine(const std::string& gpus) const {
    return "stateFile: " + path() + "\ngpus:\n" + gpus;
  }
  const std::string a100_ = "- {model: A100-SXM4-40GB, migEnabled: true}\n";

  TempFolder folder_;
};

TEST_F(MachineState, InstancesOutliveTheProcess) {
  std::vector<MigInstanceFacts> before;
  {
    MadeMachine made(machine(a100_));
    made.facts();
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 9, {.start = 4, .size = 4}, {0, 0}));
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 19, {.start = 1, .size = 1}, {}));
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 19, {.start = 0, .size = 1}, {}));
    before = made.facts().gpus[0].mig_instances;
    ASSERT_TRUE(made.source->destroy_instance(made.uuid(), before.back().gi_id));
    before.pop_back();
  }
  MadeMachine again(machine(a100_));
  EXPECT_EQ(again.facts().gpus[0].mig_instances, before);
  // What is made now has an identity that nothing had before.
  const auto made = again.source->create_instance(again.uuid(), 19, {.start = 0, .size = 1}, {});
  ASSERT_TRUE(made) << made.error().what;
  for (const MigInstanceFacts& row : before) EXPECT_NE(row.uuid, made->front().uuid);
}

TEST_F(MachineState, AGpuInstanceWithoutComputeIsLeftSo) {
  {
    MadeMachine made(machine(a100_));
    made.facts();
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 19, {.start = 0, .size = 1}, {}));
    const int gi_id = made.facts().gpus[0].mig_instances.front().gi_id;
    ASSERT_TRUE(made.source->destroy_compute_instance(made.uuid(), gi_id, 0));
  }
  MadeMachine again(machine(a100_));
  const auto rows = again.facts().gpus[0].mig_instances;
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].ci_id, -1);
}

TEST_F(MachineState, ModesOutliveTheProcessTheOneThatWaitsForAResetToo) {
  const std::string gpus = "- {model: A100-SXM4-40GB}\n- {model: H100-SXM5-80GB}\n";
  {
    MadeMachine made(machine(gpus));
    made.facts();
    EXPECT_EQ(made.source->set_mig_mode(made.uuid(0), true), Result<bool>(false));
    EXPECT_EQ(made.source->set_mig_mode(made.uuid(1), true), Result<bool>(true));
  }
  {
    MadeMachine again(machine(gpus));
    EXPECT_FALSE(again.facts().gpus[0].mig_enabled);
    EXPECT_TRUE(again.facts().gpus[0].mig_pending);
    EXPECT_TRUE(again.facts().gpus[1].mig_enabled);
    again.machine->reset_gpu(0);
  }
  MadeMachine last(machine(gpus));
  EXPECT_TRUE(last.facts().gpus[0].mig_enabled);
}

TEST_F(MachineState, TheFileGoesBeforeTheInstancesOfTheDescription) {
  const std::string gpus =
      "- model: A100-SXM4-40GB\n  migEnabled: true\n"
      "  migInstances: [{profile: 1g.5gb}, {profile: 2g.10gb}]\n"
      "  processes: [{pid: 5, instance: 0}, {pid: 6, instance: 1}]\n";
  {
    MadeMachine made(machine(gpus));
    const auto rows = made.facts().gpus[0].mig_instances;
    ASSERT_EQ(rows.size(), 2U);
    ASSERT_TRUE(made.machine->end_process(5));
    for (const MigInstanceFacts& row : rows) {
      if (row.profile == "1g.5gb") {
        ASSERT_TRUE(made.source->destroy_instance(made.uuid(), row.gi_id));
      }
    }
  }
  MadeMachine again(machine(gpus));
  const auto rows = again.facts().gpus[0].mig_instances;
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].profile, "2g.10gb");
  const auto processes = again.source->processes(again.uuid());
  ASSERT_EQ(processes->size(), 1U);
  EXPECT_EQ(processes->front().pid, 6);
}

// A valid state with one part replaced; the error, which must name where.
struct Bad {
  const char* from;
  const char* to;
  const char* expected;
};

TEST_F(MachineState, WhatIsNoStateIsRefusedByField) {
  std::string good;
  {
    MadeMachine made(machine(a100_));
    made.facts();
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 19, {.start = 1, .size = 1}, {}));
    ASSERT_TRUE(made.source->create_instance(made.uuid(), 9, {.start = 4, .size = 4}, {0, 0}));
    good = made.machine->state_text();
  }
  const Bad cases[] = {
      {"\"version\": 1", "\"version\": 2", "version: expected 1"},
      {"\"version\": 1,", "", "version: expected 1"},
      {"\"uuid\": \"GPU-", "\"uuid\": \"GPU-x", "gpus[0].uuid: the machine has no such GPU"},
      {"\"created\"", "\"creates\"", "gpus[0].created: is required"},
      {"\"migEnabled\": true", "\"migEnabled\": false", "gpus[0].instances[0].start"},
      {"\"migEnabled\": true", "\"migEnabled\": 7", "gpus[0].migEnabled"},
      {"\"profile\": \"3g.20gb\"", "\"profile\": \"9g.20gb\"", "gpus[0].instances[0].profile"},
      {"\"profile\": \"3g.20gb\"", "\"profile\": \"7g.40gb\"", "gpus[0].instances[0].start"},
      {"\"start\": 4", "\"start\": 3", "gpus[0].instances[0].start"},
      {"\"start\": 4", "\"start\": -1", "gpus[0].instances[0].start"},
      {"\"id\": 1,", "\"id\": 9999999,", "gpus[0].instances[0].id"},
      {"\"migIndex\": 1", "\"migIndex\": 2", "gpus[0].instances[0].compute[1].migIndex"},
      {"\"compute\"", "\"computes\"", "gpus[0].instances[0].computes: unknown field"},
      {"\"gpus\": [", "\"gpus\": 3, \"x\": [", "gpus"},
  };
  for (const Bad& bad : cases) {
    std::string text = good;
    const std::size_t at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from << " in\n" << good;
    text.replace(at, std::string_view(bad.from).size(), bad.to);
    MadeMachine made("gpus:\n" + a100_);
    const auto restored = made.machine->restore_state("s.json", text);
    ASSERT_FALSE(restored) << bad.to;
    EXPECT_NE(restored.error().what.find(bad.expected), std::string::npos)
        << bad.to << " gives " << restored.error().what;
    EXPECT_EQ(restored.error().what.find('\n'), std::string::npos);
  }
  MadeMachine made("gpus:\n" + a100_);
  for (const char* const text : {"", "[]", "{", "\xff", "version: 1\ngpus: [1]", "null"}) {
    EXPECT_FALSE(made.machine->restore_state("s.json", text)) << text;
  }
  EXPECT_TRUE(made.machine->restore_state("s.json", good));
  EXPECT_EQ(made.machine->state_text(), good);
}

TEST_F(MachineState, AFileOfAnotherMachineIsNotOverwritten) {
  ASSERT_TRUE(
      write_file(path(), R"({"version": 1, "gpus": [{"uuid": "GPU-other", "created": 0}]})"));
  const auto spec = sim::read_machine("m.yaml", testing::machine_text(machine(a100_)));
  ASSERT_TRUE(spec);
  const auto made = sim::Machine::create(*spec, {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("remove it to begin anew"), std::string::npos);
  EXPECT_NE(read_file(path())->find("GPU-other"), std::string::npos);
}

TEST_F(MachineState, AFolderThatIsNotThereIsSaidAtTheStart) {
  const auto spec = sim::read_machine(
      "m.yaml", testing::machine_text("stateFile: /nowhere/at/all.json\ngpus:\n" + a100_));
  const auto made = sim::Machine::create(*spec, {});
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().what.starts_with("stateFile: ")) << made.error().what;
}

}  // namespace
}  // namespace jogak::nvml
