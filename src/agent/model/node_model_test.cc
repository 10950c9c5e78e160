// SPDX-License-Identifier: Apache-2.0
//
// Events in, snapshots out: what one holds, what it shares with the one before, and that a week of
// them takes no more memory than a day.
#include "agent/model/node_model.h"

#include <malloc.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/model/testing/made_node.h"

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::made_facts;
using testing::made_holdings;
using testing::made_sample;
using testing::made_uuid;

constexpr TimeUs kStart = 1'700'000'000 * kSecondInUs;

nvml::GpuEvent xid(std::string uuid, std::uint64_t code, TimeUs time) {
  return {.uuid = std::move(uuid), .kind = nvml::GpuEventKind::Xid, .code = code, .time = time};
}

class NodeModelTest : public ::testing::Test {
 protected:
  void start(const testing::MadeNode& made) {
    facts = made_facts(made);
    model.on_facts(facts, now);
  }
  void sample_all() {
    for (const nvml::GpuFacts& gpu : facts.gpus) model.on_sample(made_sample(gpu, now));
  }
  std::shared_ptr<const NodeSnapshot> snapshot() { return model.snapshot(now); }

  NodeModel model;
  nvml::NodeFacts facts;
  TimeUs now = kStart;
};

TEST_F(NodeModelTest, BeforeAnythingThereIsAnEmptyNode) {
  const auto node = snapshot();
  EXPECT_FALSE(node->has_facts);
  EXPECT_THAT(node->gpus, IsEmpty());
  EXPECT_NE(node->health, nullptr);
  EXPECT_NE(node->holders, nullptr);
}

TEST_F(NodeModelTest, ASnapshotStaysWhatItWas) {
  start({.gpus = 2});
  sample_all();
  const auto before = snapshot();
  model.on_event(xid(facts.gpus[0].uuid, 79, now));
  now += kSecondInUs;
  sample_all();
  const auto after = snapshot();
  EXPECT_EQ(before->gpus[0].last_xid, 0U);
  EXPECT_THAT(before->gpus[0].xids->totals(), IsEmpty());
  EXPECT_TRUE(before->health->gpus[0].is_usable());
  EXPECT_EQ(after->gpus[0].last_xid, 79U);
  EXPECT_FALSE(after->health->gpus[0].is_usable());
  EXPECT_EQ(before->facts, after->facts) << "what did not change is shared";
  EXPECT_EQ(before->holders, after->holders);
  EXPECT_EQ(before->structure, after->structure);
}

TEST_F(NodeModelTest, TheStructureGrowsWithFactsHoldersAndOwnersOnly) {
  start({.gpus = 1});
  const std::uint64_t first = snapshot()->structure;
  model.on_facts(facts, now);
  sample_all();
  EXPECT_EQ(snapshot()->structure, first) << "the same facts again";
  model.on_holdings(made_holdings(facts), now);
  EXPECT_EQ(snapshot()->structure, first + 1);
  model.on_holdings(made_holdings(facts), now);
  EXPECT_EQ(snapshot()->structure, first + 1);
  model.on_owners({{42, {.pod_namespace = "a", .pod = "b", .container = "c", .pod_uid = ""}}});
  EXPECT_EQ(snapshot()->structure, first + 2);
  facts.gpus[0].mig_enabled = true;
  model.on_facts(facts, now);
  EXPECT_EQ(snapshot()->structure, first + 3);
}

TEST_F(NodeModelTest, AMeasurementThatFailedLeavesNoOldValues) {
  start({.gpus = 2});
  sample_all();
  model.on_sample_failure(facts.gpus[1].uuid, {.code = Errc::Timeout, .what = "hung"}, now);
  const auto node = snapshot();
  EXPECT_NE(node->gpus[0].sample, nullptr);
  EXPECT_EQ(node->gpus[1].sample, nullptr);
  EXPECT_EQ(node->gpus[1].last_failure, "hung");
  EXPECT_EQ(node->gpus[1].last_sample, now);
}

TEST_F(NodeModelTest, ALostGpuKeepsItsPlaceAndTheOthersTheirs) {
  start({.gpus = 3});
  sample_all();
  const std::string lost = facts.gpus[1].uuid;
  facts.gpus.erase(facts.gpus.begin() + 1);
  model.on_facts(facts, now);
  const auto node = snapshot();
  ASSERT_EQ(node->gpus.size(), 3U);
  EXPECT_EQ(node->gpus[2].uuid, lost);
  EXPECT_EQ(node->gpus[2].facts, nullptr);
  EXPECT_EQ(node->gpus[2].sample, nullptr);
  EXPECT_NE(node->gpus[0].sample, nullptr);
  EXPECT_NE(node->gpus[1].sample, nullptr);
}

TEST_F(NodeModelTest, ADriverThatIsGoneLeavesNoValues) {
  start({.gpus = 1});
  sample_all();
  model.on_facts_failure({.code = Errc::Unavailable, .what = "no driver"}, now);
  EXPECT_EQ(snapshot()->gpus[0].sample, nullptr);
  EXPECT_EQ(snapshot()->health->driver_problem, "no driver");
}

TEST_F(NodeModelTest, CountsXidsInAWindowAndForEver) {
  start({.gpus = 1});
  const std::string uuid = facts.gpus[0].uuid;
  for (const std::uint64_t code : {31, 31, 13}) model.on_event(xid(uuid, code, now));
  using Counts = EventWindow::Counts;
  EXPECT_EQ(snapshot()->gpus[0].xids->recent(), (Counts{{13, 1}, {31, 2}}));
  now += 300 * kSecondInUs;
  model.on_tick(now);
  EXPECT_EQ(snapshot()->gpus[0].xids->recent(), Counts{});
  EXPECT_EQ(snapshot()->gpus[0].xids->totals(), (Counts{{13, 1}, {31, 2}}));
  EXPECT_EQ(snapshot()->gpus[0].last_xid, 13U);
}

TEST_F(NodeModelTest, CountsHowOftenAClockEventBegan) {
  start({.gpus = 1});
  const auto with_reasons = [&](std::uint64_t bits) {
    now += kSecondInUs;
    nvml::GpuSample sample = made_sample(facts.gpus[0], now);
    sample.throttle_reasons = bits;
    model.on_sample(sample);
  };
  for (const std::uint64_t bits : {0x4, 0x4, 0x0, 0x44, 0x40, 0x4}) with_reasons(bits);
  EXPECT_EQ(snapshot()->gpus[0].clock_events->totals(), (EventWindow::Counts{{2, 3}, {6, 1}}));
}

TEST_F(NodeModelTest, MeasuresLinksAsDcgmDoes) {
  start({.gpus = 1});
  const auto with_bytes = [&](std::int64_t tx, std::int64_t rx) {
    nvml::GpuSample sample = made_sample(facts.gpus[0], now);
    sample.nvlink.tx_bytes = tx;
    sample.nvlink.rx_bytes = rx;
    model.on_sample(sample);
    return snapshot()->gpus[0].nvlink_rate.both;
  };
  EXPECT_EQ(with_bytes(1000 * 1024, 0), 0) << "nothing to compare with";
  now += 2 * kSecondInUs;
  EXPECT_EQ(with_bytes(3'000'000 * 1024LL, 1'001'000 * 1024LL), 2000);
  now += kSecondInUs;
  EXPECT_EQ(with_bytes(0, 0), 0) << "counted anew";
}

TEST_F(NodeModelTest, KeepsHoldersWhenTheKubeletDoesNotAnswer) {
  start({.gpus = 1});
  model.on_holdings(made_holdings(facts), now);
  model.on_holdings_failure({.code = Errc::Unavailable, .what = "no socket"}, now);
  EXPECT_EQ(snapshot()->holders->of_gpu(facts.gpus[0].uuid).size(), 1U);
  EXPECT_EQ(snapshot()->holdings_problem, "no socket");
  model.on_holdings({}, now);
  EXPECT_EQ(snapshot()->holdings_problem, "");
  EXPECT_THAT(snapshot()->holders->of_gpu(facts.gpus[0].uuid), IsEmpty());
}

TEST_F(NodeModelTest, ListsThePidsWhoseOwnersAreWanted) {
  start({.gpus = 2});
  for (int i = 0; i < 2; ++i) {
    nvml::GpuSample sample = made_sample(facts.gpus[static_cast<std::size_t>(i)], now);
    std::vector<nvml::ProcessFacts> processes(2);
    processes[0].pid = 100 + i;
    processes[1].pid = 7;
    sample.processes = processes;
    model.on_sample(sample);
  }
  EXPECT_THAT(model.pids(), ElementsAre(7, 100, 101));
}

TEST_F(NodeModelTest, EventsOfUnknownGpusChangeNothing) {
  start({.gpus = 1});
  model.on_event(xid("GPU-of-another-node", 79, now));
  model.on_sample_failure("GPU-of-another-node", {.code = Errc::Gone, .what = "lost"}, now);
  EXPECT_TRUE(snapshot()->health->gpus[0].is_usable());
  EXPECT_EQ(snapshot()->gpus.size(), 1U);
}

TEST_F(NodeModelTest, TheOperatorMakesAGpuWell) {
  start({.gpus = 1});
  model.on_event(xid(facts.gpus[0].uuid, 62, now));
  EXPECT_FALSE(snapshot()->health->gpus[0].is_usable());
  EXPECT_TRUE(model.clear_health(facts.gpus[0].uuid, now));
  EXPECT_TRUE(snapshot()->health->gpus[0].is_usable());
}

TEST(DeviceId, IsReadInEveryForm) {
  EXPECT_EQ(parse_device_id("GPU-1"), (DeviceKey{.uuid = "GPU-1"}));
  EXPECT_EQ(parse_device_id("GPU-1::3"), (DeviceKey{.uuid = "GPU-1", .replica = 3}));
  EXPECT_EQ(parse_device_id("MIG-1::0"), (DeviceKey{.uuid = "MIG-1", .replica = 0}));
  EXPECT_EQ(parse_device_id("nvidia2"), (DeviceKey{.gpu_index = 2}));
  EXPECT_EQ(parse_device_id("nvidia0/gi7"), (DeviceKey{.gpu_index = 0, .gi_id = 7}));
  EXPECT_EQ(parse_device_id("nvidia0/vgpu3"), (DeviceKey{.gpu_index = 0, .replica = 3}));
  for (const std::string_view odd : {"", "nvidia", "nvidiax", "nvidia0/", "nvidia0/gi",
                                     "GPU-1::", "GPU-1::x", "nvidia99999", "nvidia0/gi-1"}) {
    EXPECT_EQ(parse_device_id(odd), (DeviceKey{.uuid = std::string(odd)})) << odd;
  }
}

TEST(HolderIndex, FindsHoldersByDeviceAndInstance) {
  const nvml::NodeFacts facts = made_facts({.gpus = 2, .instances = 7});
  const Holder a = {.pod_namespace = "n", .pod = "a", .container = "c", .pod_uid = ""};
  const Holder b = {.pod_namespace = "n", .pod = "b", .container = "c", .pod_uid = ""};
  const HolderIndex index(facts, {{"r", made_uuid("MIG", 0, 1), a},
                                  {"r", made_uuid("GPU", 1) + "::1", b},
                                  {"r", made_uuid("GPU", 1) + "::0", a},
                                  {"r", made_uuid("GPU", 1) + "::0", a},
                                  {"r", "nvidia0/gi9", b},
                                  {"r", "GPU-that-fell-off", b},
                                  {"other.com/nic", "eth0", b}});
  EXPECT_THAT(index.of_mig(made_uuid("MIG", 0, 1)), ElementsAre(DeviceHolder{a, -1}));
  EXPECT_THAT(index.of_instance(made_uuid("GPU", 0), 7), ElementsAre(DeviceHolder{a, -1}));
  EXPECT_THAT(index.of_instance(made_uuid("GPU", 0), 9), ElementsAre(DeviceHolder{b, -1}));
  EXPECT_THAT(index.of_gpu(made_uuid("GPU", 1)),
              ElementsAre(DeviceHolder{a, 0}, DeviceHolder{b, 1}));
  EXPECT_THAT(index.of_gpu(made_uuid("GPU", 0)), IsEmpty());
  EXPECT_THAT(index.strangers(), ElementsAre("GPU-that-fell-off"));
}

TEST(EventWindowTest, IsBoundedWhateverHappens) {
  EventWindow window(300 * kSecondInUs);
  for (std::uint64_t i = 0; i < 100'000; ++i) window.add(i, kStart + static_cast<TimeUs>(i));
  EXPECT_EQ(window.totals().size(), EventWindow::kKindsMax + 1);
  EXPECT_EQ(window.totals().at(EventWindow::kOther), 100'000 - 64);
  std::int64_t recent = 0;
  for (const auto& [kind, count] : window.recent()) recent += count;
  EXPECT_EQ(recent, static_cast<std::int64_t>(EventWindow::kEventsMax));
  window.expire(kStart + 1'000 * kSecondInUs);
  EXPECT_THAT(window.recent(), IsEmpty());
}

// Seven days of samples each second on one GPU, with errors, losses and pods that come and go. What
// is kept at the end is what was kept after the first day.
TEST_F(NodeModelTest, AWeekTakesNoMoreMemoryThanADay) {
  start({.gpus = 2, .instances = 7});
  std::size_t after_a_day = 0;
  std::shared_ptr<const NodeSnapshot> last;
  constexpr int kWeek = 7 * 24 * 3600;
  for (int second = 1; second <= kWeek; ++second) {
    now += kSecondInUs;
    model.on_tick(now);
    sample_all();
    if (second % 97 == 0) {
      model.on_event(xid(facts.gpus[0].uuid, static_cast<std::uint64_t>(second % 500), now));
    }
    if (second % 60 == 0) model.on_holdings(made_holdings(facts, second), now);
    if (second % 3600 == 1800) {
      nvml::NodeFacts fewer = facts;
      fewer.gpus.pop_back();
      model.on_facts(fewer, now);
    }
    if (second % 3600 == 1860) model.on_facts(facts, now);
    last = snapshot();
    if (second == 3600 * 24) after_a_day = mallinfo2().uordblks;
  }
  const std::size_t at_the_end = mallinfo2().uordblks;
  EXPECT_LE(at_the_end, after_a_day + 64 * 1024);
  EXPECT_EQ(last->gpus.size(), 2U);
}

}  // namespace
}  // namespace jogak::agent
