// SPDX-License-Identifier: Apache-2.0
// Who holds what: cases in which other schedulers of this field gave out too much, lost devices or
// stopped. Letters and numbers name the case. Placement goes through the scheduler, so that filter,
// choice and ledger are asked together.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/scheduler.h"
#include "core/model/mig.h"
#include "core/model/pod_requests.h"
#include "core/model/testing.h"
#include "core/policy/gpu_view.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kT4 = "Tesla-T4";

std::vector<std::int32_t> devices(const std::vector<GpuHold>& holds) {
  std::vector<std::int32_t> list;
  for (const GpuHold& hold : holds) list.push_back(hold.gpu);
  return list;
}

// A cluster with a scheduler beside it; every change is followed by a recount.
class Ledger : public ::testing::Test {
 protected:
  // Adds the pod and runs it if it fits; its devices, or nothing.
  std::optional<std::vector<std::int32_t>> run(const PodBuilder& pod) {
    const PodId id = add(cluster_, pod);
    const Decision decision = scheduler_.decide(id);
    if (!decision.node.valid()) return std::nullopt;
    scheduler_.accept(decision);
    EXPECT_EQ(cluster_.recount(), "");
    return devices(decision.holds);
  }
  // How many of `count` equal pods run.
  int run_many(int count, const PodBuilder& pod) {
    int ran = 0;
    for (int i = 0; i < count; ++i) {
      PodBuilder next = pod;
      next.spec().name += std::to_string(i);
      ran += run(next) ? 1 : 0;
    }
    return ran;
  }
  const Gpu& gpu(const char* node, std::size_t index) const {
    return cluster_.node(*cluster_.find_node(node)).gpus[index];
  }
  const Node& node(const char* name) const { return cluster_.node(*cluster_.find_node(name)); }
  PodId pod(const char* name) const { return *cluster_.find_pod("default", name); }
  void TearDown() override { EXPECT_EQ(cluster_.recount(), ""); }

  Cluster cluster_;
  std::unique_ptr<Policy> policy_ = std::move(make_policy("best-fit", 1)).value();
  Scheduler scheduler_{cluster_, *policy_};
};

using Whole = std::vector<std::int32_t>;

// ---- A1: shares in MiB are exact ---------------------------------------------------------------

TEST_F(Ledger, A1_TwentyThreeOf2000MibFitIn46068) {
  add(cluster_, NodeBuilder("n1").gpus("L40S", 1, 46068));
  EXPECT_EQ(run_many(24, PodBuilder("p").gpu_mib(2000)), 23);  // 23 * 2000 = 46000
  EXPECT_EQ(gpu("n1", 0).free_units, std::int64_t{68} * 1000);
  EXPECT_EQ(run_many(1, PodBuilder("rest").gpu_mib(68)), 1);
  EXPECT_EQ(run_many(1, PodBuilder("over").gpu_mib(1)), 0);
}

TEST_F(Ledger, A1_ThreeOf4096MibFitIn15360) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 1, 15360));
  EXPECT_EQ(run_many(4, PodBuilder("p").gpu_mib(4096)), 3);  // 4 * 4096 = 16384 > 15360
  EXPECT_EQ(gpu("n1", 0).free_units, std::int64_t{3072} * 1000);
}

TEST_F(Ledger, A1_ThirdsAndMibOnOneCardNeverRound) {
  add(cluster_, NodeBuilder("n1").gpus("L40S", 1, 46068));
  EXPECT_EQ(run_many(3, PodBuilder("third").gpu_milli(333)), 3);
  // 46068000 - 3 * 333 * 46068 = 46068 units left: 46 MiB fit, 47 do not.
  EXPECT_EQ(run_many(1, PodBuilder("m47").gpu_mib(47)), 0);
  EXPECT_EQ(run_many(1, PodBuilder("m46").gpu_mib(46)), 1);
  EXPECT_EQ(run_many(1, PodBuilder("t1").gpu_milli(1)), 0);
}

// ---- A7: what a MiB costs depends on the card ---------------------------------------------------

TEST_F(Ledger, A7_TwelveGibCostMoreOnASmallCard) {
  add(cluster_, NodeBuilder("small").gpus("V100", 1, 16 * 1024));
  add(cluster_, NodeBuilder("large").gpus("A100", 1, 80 * 1024));
  GpuView view;
  view.prepare(cluster_);
  const PodId pod = add(cluster_, PodBuilder("p").gpu_mib(12 * 1024));
  EXPECT_EQ(view.ask(cluster_.shape_of(pod), node("small")).total(), 750);  // 12/16
  EXPECT_EQ(view.ask(cluster_.shape_of(pod), node("large")).total(), 150);  // 12/80
}

TEST_F(Ledger, A7_EachCardTakesWhatItHolds) {
  add(cluster_, NodeBuilder("small").gpus("V100", 1, 16 * 1024));
  EXPECT_EQ(run_many(3, PodBuilder("s").gpu_mib(12 * 1024)), 1);
  add(cluster_, NodeBuilder("large").gpus("A100", 1, 80 * 1024));
  EXPECT_EQ(run_many(9, PodBuilder("l").gpu_mib(12 * 1024)), 6);  // 6 * 12 = 72 of 80
}

// ---- A9: sidecars add up ------------------------------------------------------------------------

TEST_F(Ledger, A9_SidecarAndMainAskForFourCpu) {
  PodResources resources;
  resources.containers.push_back({{{{"cpu", 2000}, {"nvidia.com/gpu", 1}}, {}, {}}, false});
  resources.init_containers.push_back({{{{"cpu", 2000}, {"nvidia.com/gpu", 1}}, {}, {}}, true});
  const auto requests = effective_requests(resources, "default/p");
  ASSERT_TRUE(requests.has_value());
  EXPECT_EQ(requests->requests, (ResourceList{{"cpu", 4000}, {"nvidia.com/gpu", 2}}));

  PodBuilder pod("p");
  pod.gpus(2);
  pod.shape().requests = requests->requests;
  add(cluster_, NodeBuilder("n1").cpu(3).gpus(kT4, 2, 15360));
  EXPECT_EQ(run(pod), std::nullopt);
  add(cluster_, NodeBuilder("n2").cpu(4).gpus(kT4, 2, 15360));
  EXPECT_EQ(run(pod), (Whole{0, 1}));
}

// ---- A13: devices vanish under a running pod ----------------------------------------------------

TEST_F(Ledger, A13_EightInUseSixLeft) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 8, 15360));
  ASSERT_TRUE(run(PodBuilder("eight").gpus(8)));
  add(cluster_, NodeBuilder("n1").gpus(kT4, 6, 15360));
  EXPECT_EQ(cluster_.recount(), "");
  add(cluster_, NodeBuilder("n1").gpus(kT4, 6, 15360).label("touched", "yes"));

  EXPECT_EQ(run(PodBuilder("six").gpus(6)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("one").gpus(1)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("share").gpu_milli(1)), std::nullopt);
  const ScalarAmount& gpus = *node("n1").scalar(*cluster_.find_scalar("nvidia.com/gpu"));
  EXPECT_EQ(gpus.requested - gpus.allocatable, 2);  // over-committed by 2
  EXPECT_TRUE(node("n1").observed_over);
  EXPECT_FALSE(cluster_.pod(pod("eight")).holds_known);

  cluster_.remove_pod(pod("eight"));
  EXPECT_FALSE(node("n1").observed_over);
  EXPECT_EQ(run(PodBuilder("all").gpus(6)), (Whole{0, 1, 2, 3, 4, 5}));
}

TEST_F(Ledger, A13_OnlyTheHolderOfALostDeviceBecomesUnknown) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 8, 15360));
  add(cluster_, PodBuilder("low").gpus(2).on("n1", {{0}, {1}}));
  add(cluster_, PodBuilder("high").gpus(2).on("n1", {{6}, {7}}));
  add(cluster_, NodeBuilder("n1").gpus(kT4, 6, 15360));
  EXPECT_TRUE(cluster_.pod(pod("low")).holds_known);
  EXPECT_FALSE(cluster_.pod(pod("high")).holds_known);
  // Devices 2..5 are free, but two of them are taken by somebody.
  EXPECT_EQ(run(PodBuilder("three").gpus(3)), std::nullopt);
  EXPECT_TRUE(run(PodBuilder("two").gpus(2)));
}

TEST_F(Ledger, MemoryOfADeviceChangesUnderAShare) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 1, 16000));
  ASSERT_TRUE(run(PodBuilder("half").gpu_milli(500)));
  ASSERT_TRUE(run(PodBuilder("mib").gpu_mib(6000)));
  EXPECT_EQ(gpu("n1", 0).free_units, (16000 - 8000 - 6000) * 1000);
  add(cluster_, NodeBuilder("n1").gpus(kT4, 1, 10000));              // ECC switched, say
  EXPECT_EQ(gpu("n1", 0).free_units, (10000 - 5000 - 6000) * 1000);  // over by 1000 MiB
  EXPECT_EQ(gpu("n1", 0).free_milli(), 0);
  EXPECT_EQ(run(PodBuilder("tiny").gpu_mib(1)), std::nullopt);
  add(cluster_, NodeBuilder("n1").gpus(kT4, 1, 16000));
  EXPECT_EQ(gpu("n1", 0).free_units, 2000 * 1000);
}

TEST_F(Ledger, DeviceDetailArrivesAfterThePod) {
  NodeBuilder counted("n1");
  counted.resource("nvidia.com/gpu", 4);
  add(cluster_, counted);
  EXPECT_EQ(run(PodBuilder("early").gpus(3)), Whole{});  // by count alone
  add(cluster_, NodeBuilder("n1").gpus(kT4, 4, 15360));
  EXPECT_FALSE(cluster_.pod(pod("early")).holds_known);
  EXPECT_EQ(run(PodBuilder("two").gpus(2)), std::nullopt);
  EXPECT_TRUE(run(PodBuilder("one").gpus(1)));
  // And goes again: counting still works, and known devices are not forgotten.
  add(cluster_, counted);
  EXPECT_EQ(run(PodBuilder("more").gpus(1)), std::nullopt);
  add(cluster_, NodeBuilder("n1").gpus(kT4, 4, 15360));
  EXPECT_TRUE(cluster_.pod(pod("one")).holds_known);
}

// ---- A15: shares survive a restart --------------------------------------------------------------

TEST_F(Ledger, A15_TwoOfTwelveGibOnACardOf24) {
  add(cluster_, NodeBuilder("n1").gpus("A10", 1, 24 * 1024));
  EXPECT_EQ(run_many(3, PodBuilder("p").gpu_mib(12 * 1024)), 2);
}

TEST_F(Ledger, A15_RestartBetweenTheFirstAndTheSecond) {
  // What a fresh process reads: one pod bound, with its device; later updates repeat it.
  add(cluster_, NodeBuilder("n1").gpus("A10", 1, 24 * 1024));
  const PodBuilder first = PodBuilder("p1").gpu_mib(12 * 1024).on("n1", {{0, 12 * 1024, -1}});
  add(cluster_, first);
  add(cluster_, first);
  add(cluster_, PodBuilder(first).label("changed", "yes"));
  EXPECT_EQ(gpu("n1", 0).free_units, std::int64_t{12} * 1024 * 1000);
  EXPECT_TRUE(run(PodBuilder("p2").gpu_mib(12 * 1024)));
  EXPECT_EQ(run(PodBuilder("p3").gpu_mib(12 * 1024)), std::nullopt);
}

// ---- A19: a pod is deleted and made again -------------------------------------------------------

TEST_F(Ledger, A19_ExactlyTheFreedCardsAreGiven) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 8, 15360));
  for (const char* name : {"a", "b", "c", "d"}) {
    PodBuilder pod(name);
    pod.gpus(2).spec().uid = std::string("old-") + name;
    ASSERT_TRUE(run(pod));
  }
  const std::vector<GpuHold> freed = cluster_.pod(pod("c")).holds;
  PodBuilder again("c");
  again.gpus(2).spec().uid = "new-c";
  // The end of the old pod was not seen: the new one by the same name says that it is over.
  EXPECT_EQ(run(again), devices(freed));
  EXPECT_EQ(cluster_.pod(pod("c")).uid, "new-c");
  EXPECT_EQ(run(PodBuilder("e").gpus(1)), std::nullopt);
}

TEST_F(Ledger, A19_LateDeleteOfTheOldPodIsToldByItsUid) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 2, 15360));
  PodBuilder old("p");
  old.gpus(2).spec().uid = "old";
  ASSERT_TRUE(run(old));
  const PodId before = pod("p");
  const std::uint32_t generation = cluster_.pod(before).generation;
  PodBuilder next("p");
  next.gpus(2).spec().uid = "new";
  ASSERT_TRUE(run(next));
  // A driver that kept the id sees that it is not the same pod any more.
  EXPECT_TRUE(before != pod("p") || cluster_.pod(before).generation != generation);
  EXPECT_EQ(cluster_.pod(pod("p")).uid, "new");
}

TEST_F(Ledger, TerminatingPodsKeepTheirDevices) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 8, 15360));
  ASSERT_TRUE(run(PodBuilder("eight").gpus(8)));
  cluster_.set_terminating(pod("eight"));
  cluster_.set_terminating(pod("eight"));  // told twice
  EXPECT_EQ(run(PodBuilder("next").gpus(8)), std::nullopt);
  cluster_.remove_pod(pod("eight"));
  EXPECT_TRUE(run(PodBuilder("next").gpus(8)));
}

// ---- A25: what is not known is busy -------------------------------------------------------------

TEST_F(Ledger, A25_UnknownDevicesCountAsBusy) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 4, 15360));
  add(cluster_, PodBuilder("foreign").gpus(3).on("n1"));
  EXPECT_EQ(node("n1").unknown_gpus, 3);
  EXPECT_EQ(run(PodBuilder("two").gpus(2)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("two-shares").gpu_milli(100, 2)), std::nullopt);
  EXPECT_TRUE(run(PodBuilder("one").gpus(1)));
  EXPECT_EQ(run(PodBuilder("share").gpu_milli(100)), std::nullopt);
  // The agent reports which ones.
  add(cluster_, PodBuilder("foreign").gpus(3).on("n1", {{1}, {2}, {3}}));
  EXPECT_EQ(node("n1").unknown_gpus, 0);
}

TEST_F(Ledger, A25_ImpossibleReportsMakeDevicesUnknown) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 4, 15360));
  add(cluster_, PodBuilder("beyond").gpus(1).on("n1", {{9}}));
  add(cluster_, PodBuilder("too-few").gpus(2).on("n1", std::vector<GpuHold>{}));
  EXPECT_EQ(node("n1").unknown_gpus, 3);
  add(cluster_, PodBuilder("no-amount").gpu_milli(500).on("n1", {{0, 0, -1}}));
  EXPECT_EQ(node("n1").unknown_gpus, 4);
  EXPECT_EQ(run(PodBuilder("one").gpu_milli(1)), std::nullopt);
  add(cluster_, PodBuilder("twice").gpus(2).on("n1", {{0}, {0}}));
  EXPECT_EQ(node("n1").unknown_gpus, 6);
  for (const char* name : {"beyond", "too-few", "no-amount", "twice"}) {
    cluster_.remove_pod(pod(name));
  }
  EXPECT_EQ(node("n1").unknown_gpus, 0);
  EXPECT_TRUE(run(PodBuilder("all").gpus(4)));
}

TEST_F(Ledger, A25_TwoOwnersOfOneDevice) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 2, 15360));
  add(cluster_, PodBuilder("a").gpus(1).on("n1", {{0}}));
  add(cluster_, PodBuilder("b").gpus(1).on("n1", {{0}}));
  EXPECT_LT(gpu("n1", 0).free_units, 0);
  cluster_.remove_pod(pod("a"));
  EXPECT_EQ(gpu("n1", 0).free_units, 0);
  EXPECT_EQ(gpu("n1", 0).owner_count, 1);
  EXPECT_EQ(run(PodBuilder("c").gpus(2)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("d").gpus(1)), Whole{1});
}

// ---- A27: one device of two is sick -------------------------------------------------------------

TEST_F(Ledger, A27_TheHealthyDeviceIsGiven) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 2, 15360));
  ASSERT_EQ(run(PodBuilder("a").gpus(1)), Whole{0});
  NodeBuilder sick("n1");
  sick.gpus(kT4, 2, 15360);
  sick.spec().gpus[0].health = GpuHealth::Unhealthy;
  add(cluster_, sick);
  EXPECT_EQ(run(PodBuilder("b").gpus(1)), Whole{1});
  cluster_.remove_pod(pod("a"));
  EXPECT_EQ(run(PodBuilder("c").gpus(1)), std::nullopt);  // device 0 is free, and sick
}

// ---- MIG ----------------------------------------------------------------------------------------

TEST_F(Ledger, F1_ZeroMigResourceDoesNotHideWholeDevices) {
  NodeBuilder builder("n1");
  builder.gpus(kA100, 8, 40960).label("nvidia.com/mig.strategy", "mixed");
  builder.resource("nvidia.com/mig-1g.5gb", 0);
  add(cluster_, builder);
  EXPECT_EQ(run(PodBuilder("p").gpus(8)), (Whole{0, 1, 2, 3, 4, 5, 6, 7}));
}

NodeBuilder mig_node(bool dynamic) {
  NodeBuilder builder("n1");
  builder.gpus(kA100, 1, 40960);
  builder.spec().gpus[0].mig_enabled = true;
  builder.spec().gpus[0].mig_dynamic = dynamic;
  return builder;
}

TEST_F(Ledger, F3_ThirdGoesWhereAStartIsLegal) {
  add(cluster_, mig_node(true));
  // Three 1g.5gb in slices 0, 1, 2: 3g.20gb may start at 0 or 4, so 4 it is.
  add(cluster_, PodBuilder("small").mig("1g.5gb", 3).on("n1", {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}}));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b0000'0111);
  ASSERT_TRUE(run(PodBuilder("large").mig("3g.20gb")));
  EXPECT_EQ(cluster_.pod(pod("large")).holds, (std::vector<GpuHold>{{0, 0, 4}}));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b1111'0111);
  // Nothing that is in use is cut anew.
  EXPECT_EQ(run(PodBuilder("again").mig("3g.20gb")), std::nullopt);
  EXPECT_EQ(run(PodBuilder("pair").mig("2g.10gb")), std::nullopt);  // slice 3 alone is free
  EXPECT_TRUE(run(PodBuilder("last").mig("1g.5gb")));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b1111'1111);
}

TEST_F(Ledger, F3_SmallOnesLeaveRoomForLargeOnes) {
  add(cluster_, mig_node(true));
  ASSERT_TRUE(run(PodBuilder("a").mig("1g.5gb", 3)));
  EXPECT_TRUE(run(PodBuilder("b").mig("3g.20gb")));
}

TEST_F(Ledger, F3_FixedLayoutGivesOnlyWhatIsCut) {
  NodeBuilder builder = mig_node(false);
  builder.spec().gpus[0].mig_instances = {{"1g.5gb", 0}, {"3g.20gb", 4}};
  add(cluster_, builder);
  EXPECT_EQ(run(PodBuilder("two").mig("1g.5gb", 2)), std::nullopt);
  ASSERT_TRUE(run(PodBuilder("one").mig("1g.5gb")));
  EXPECT_EQ(run(PodBuilder("next").mig("1g.5gb")), std::nullopt);
  ASSERT_TRUE(run(PodBuilder("large").mig("3g.20gb")));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b1111'0001);
  EXPECT_EQ(run(PodBuilder("whole").gpus(1)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("share").gpu_milli(100)), std::nullopt);
}

TEST_F(Ledger, MigCountsInstancesPerDeviceAndProfile) {
  add(cluster_, mig_node(true));
  add(cluster_, PodBuilder("a").mig("1g.5gb", 2).on("n1", {{0, 0, 0}, {0, 0, 3}}));
  const MigModel& model = mig_models()[gpu("n1", 0).mig_model];
  const MigCounts counts = cluster_.mig_counts(node("n1"), 0);
  EXPECT_EQ(counts.at(static_cast<std::size_t>(find_mig_profile(model, "1g.5gb"))), 2);
  EXPECT_EQ(counts.at(static_cast<std::size_t>(find_mig_profile(model, "2g.10gb"))), 0);
}

TEST_F(Ledger, OverlappingInstancesAreFreedOneClaimAtATime) {
  add(cluster_, mig_node(true));
  add(cluster_, PodBuilder("a").mig("2g.10gb").on("n1", {{0, 0, 0}}));
  add(cluster_, PodBuilder("b").mig("1g.5gb").on("n1", {{0, 0, 1}}));  // a faulty report
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b11);
  cluster_.remove_pod(pod("a"));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b10);
  cluster_.remove_pod(pod("b"));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0);
}

// A node and its pods report separately: for a while they contradict each other.
TEST_F(Ledger, MigSwitchedOnUnderAWholeDevice) {
  add(cluster_, NodeBuilder("n1").gpus(kA100, 1, 40960));
  ASSERT_TRUE(run(PodBuilder("whole").gpus(1)));
  add(cluster_, mig_node(true));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0xff);
  EXPECT_EQ(run(PodBuilder("mig").mig("1g.5gb")), std::nullopt);
  cluster_.remove_pod(pod("whole"));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0);
  EXPECT_TRUE(run(PodBuilder("mig").mig("1g.5gb")));
}

TEST_F(Ledger, MigSwitchedOffUnderAnInstance) {
  add(cluster_, mig_node(true));
  ASSERT_TRUE(run(PodBuilder("mig").mig("1g.5gb")));
  add(cluster_, NodeBuilder("n1").gpus(kA100, 1, 40960));
  EXPECT_EQ(run(PodBuilder("whole").gpus(1)), std::nullopt);
  EXPECT_EQ(run(PodBuilder("share").gpu_milli(100)), std::nullopt);
  cluster_.remove_pod(pod("mig"));
  EXPECT_TRUE(run(PodBuilder("share").gpu_milli(100)));
}

TEST_F(Ledger, MigHoldOfAnotherModelTakesTheWholeDevice) {
  add(cluster_, mig_node(true));
  add(cluster_, PodBuilder("odd").mig("1g.10gb.me").on("n1", {{0, 0, 0}}));  // of 80 GB cards
  add(cluster_, PodBuilder("nowhere").mig("1g.5gb").on("n1", {{0, 0, -1}}));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0xff);
  cluster_.remove_pod(pod("nowhere"));
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0xff);
}

// ---- what may be booked by decision -------------------------------------------------------------

using LedgerDeathTest = Ledger;

TEST_F(LedgerDeathTest, DecisionsCannotBookWhatIsTaken) {
  add(cluster_, NodeBuilder("n1").gpus(kT4, 2, 10000));
  const NodeId n1 = *cluster_.find_node("n1");
  ASSERT_EQ(run(PodBuilder("whole").gpus(1)), Whole{0});
  const PodId one = add(cluster_, PodBuilder("one").gpus(1));
  const PodId share = add(cluster_, PodBuilder("share").gpu_milli(600));
  const PodId plain = add(cluster_, PodBuilder("plain"));
  const auto place = [&](PodId pod, std::vector<GpuHold> holds) { cluster_.place(pod, n1, holds); };
  EXPECT_DEATH(place(one, {{0}}), "device 0 is taken");
  EXPECT_DEATH(place(one, {}), "0 devices for a request of 1");
  EXPECT_DEATH(place(plain, {{1}}), "asks for none");
  EXPECT_DEATH(place(share, {{1, 500, -1}}), "hold.amount == ask.amount");
  place(share, {{1, 600, -1}});
  EXPECT_DEATH(place(one, {{1}}), "is taken|is shared");
  const PodId second = add(cluster_, PodBuilder("second").gpu_milli(600));
  EXPECT_DEATH(place(second, {{1, 600, -1}}), "device 1 is taken");
}

TEST_F(LedgerDeathTest, DecisionsCannotBookImpossibleInstances) {
  add(cluster_, mig_node(true));
  const NodeId n1 = *cluster_.find_node("n1");
  const PodId two = add(cluster_, PodBuilder("two").mig("2g.10gb", 2));
  const auto place = [&](std::vector<GpuHold> holds) { cluster_.place(two, n1, holds); };
  EXPECT_DEATH(place({{0, 0, 0}, {0, 0, 0}}), "are taken");  // twice the same
  EXPECT_DEATH(place({{0, 0, 1}, {0, 0, 4}}), "cannot start at slice 1");
  place({{0, 0, 0}, {0, 0, 4}});
  EXPECT_EQ(gpu("n1", 0).mig_used_mask, 0b0011'0011);

  NodeBuilder fixed = mig_node(false);
  fixed.spec().name = "n2";
  fixed.spec().gpus[0].mig_instances = {{"1g.5gb", 0}};
  const NodeId n2 = add(cluster_, fixed);
  const PodId one = add(cluster_, PodBuilder("one").mig("1g.5gb"));
  EXPECT_DEATH(cluster_.place(one, n2, std::vector<GpuHold>{{0, 0, 1}}), "no instance at slice 1");
}

}  // namespace
}  // namespace jogak::core
