// SPDX-License-Identifier: Apache-2.0
//
// What people are told as facts about a GPU come and go.
#include "agent/health/fault_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HealthFact xid(std::uint64_t code, bool stops_use, int gi_id = -1) {
  return {.kind = stops_use ? HealthKind::Xid : HealthKind::XidNoted,
          .severity = stops_use ? Severity::Critical : Severity::Info,
          .stops_use = stops_use,
          .since = 0,
          .code = code,
          .gi_id = gi_id,
          .text = "xid " + std::to_string(code)};
}

HealthFact fact(HealthKind kind, Severity severity, bool stops_use = false) {
  return {.kind = kind, .severity = severity, .stops_use = stops_use, .since = 0, .text = "hot"};
}

struct Rig {
  std::vector<std::string> tell(std::vector<HealthFact> facts) {
    view.gpus = {{.uuid = "GPU-a", .index = 3, .pci_bus_id = "", .facts = std::move(facts)}};
    std::vector<std::string> lines;
    for (const NodeNote& note : notes.update(view)) {
      lines.push_back((note.is_warning ? "W " : "N ") + note.reason + ": " + note.text);
    }
    return lines;
  }
  FaultNotes notes;
  NodeHealthView view;
};

TEST(FaultNotes, AFaultIsToldOnceAndThatItIsOver) {
  Rig rig;
  EXPECT_THAT(rig.tell({}), IsEmpty());
  EXPECT_THAT(rig.tell({xid(79, true)}),
              ElementsAre("W GpuXid: GPU 3 (GPU-a): xid 79; it gets no new pods"));
  EXPECT_THAT(rig.tell({xid(79, true)}), IsEmpty());
  EXPECT_THAT(rig.tell({}), ElementsAre("N GpuRecovered: GPU 3 (GPU-a) is well again"));
}

TEST(FaultNotes, RecoveredIsSaidWhenNothingStopsUseAnyMore) {
  Rig rig;
  rig.tell({xid(79, true), fact(HealthKind::Lost, Severity::Critical, true)});
  EXPECT_THAT(rig.tell({xid(79, true)}), IsEmpty());
  EXPECT_EQ(rig.tell({}).size(), 1U);
}

TEST(FaultNotes, XidsOfApplicationsAreToldAndEndInSilence) {
  Rig rig;
  EXPECT_THAT(rig.tell({xid(31, false)}), ElementsAre("W GpuXid: GPU 3 (GPU-a): xid 31"));
  EXPECT_THAT(rig.tell({}), IsEmpty());
  EXPECT_THAT(rig.tell({xid(31, false, 7), xid(31, false, 8)}),
              ElementsAre("W GpuXid: GPU 3 (GPU-a), MIG instance 7: xid 31",
                          "W GpuXid: GPU 3 (GPU-a), MIG instance 8: xid 31"));
}

TEST(FaultNotes, RemarksAreNotTold) {
  Rig rig;
  EXPECT_THAT(rig.tell({fact(HealthKind::ThermalSoftware, Severity::Info)}), IsEmpty());
  EXPECT_THAT(rig.tell({fact(HealthKind::ThermalHardware, Severity::Warning)}),
              ElementsAre("W GpuThermalHardware: GPU 3 (GPU-a): hot"));
}

TEST(FaultNotes, ADriverThatIsAwayIsToldAsOneThing) {
  Rig rig;
  rig.view.driver_problem = "it is being reloaded";
  EXPECT_THAT(rig.tell({}),
              ElementsAre("W GpuDriverLost: no GPU can be asked: it is being reloaded"));
  EXPECT_THAT(rig.tell({}), IsEmpty());
  rig.view.driver_problem.clear();
  EXPECT_THAT(rig.tell({}), ElementsAre("N GpuDriverRecovered: the driver answers again"));
}

}  // namespace
}  // namespace jogak::agent
