// SPDX-License-Identifier: Apache-2.0
//
// Days of churn in virtual time: pods of ever new names, labels and sizes come, run and go, and
// each night the cluster is empty again. What is kept then must not grow from night to night.
//
// JOGAK_CHURN_DAYS=7 JOGAK_CHURN_PODS=50000 is the week that the scheduler promises to stand;
// without them the days are short. Each night's figures are printed.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "test/livesim/checkers.h"
#include "test/livesim/replica.h"
#include "test/livesim/world.h"

namespace jogak::livesim {
namespace {

constexpr TimeUs kHour = 3600 * kSecondInUs;
constexpr int kNodes = 12;
// Shapes and label sets that no pod has any more are given up when there are so many
// (live/scheduler_driver.cc), so that many more than that are never kept.
constexpr std::size_t kInternedMax = 21'000;
constexpr std::size_t kBytesEach = 1024;

int env_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::atoi(text);
}

// Bytes of the heap that somebody holds.
std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Days {
 public:
  Days(int pods_a_day, TimeUs length)
      : pods_a_day_(pods_a_day),
        length_(length),
        rng_(1, "churn"),
        world_({.seed = 1}),
        checkers_(world_.facts(), {}) {
    world_.network().observer = &checkers_;
    for (int i = 0; i < kNodes; ++i) {
      world_.add_node({.name = fmt::format("n{}", i),
                       .cpu = 64,
                       .gpus = 8,
                       .pods = 110,
                       .has_devices = i % 2 == 0});
    }
    world_.run_for(10 * kSecondInUs);
    replica_ = std::make_unique<Replica>(world_, checkers_, ReplicaOptions{});
    replica_->start({.process = 1});
    following_ = world_.api().follow("pods", [this](const api::Api::Change& change) {
      const std::string& phase = change.object->get("status", "phase").as_string();
      if (change.type != store::EventType::Deleted && phase == "Succeeded") {
        over_.push_back(change.object->get("metadata", "name").as_string());
      }
    });
  }
  ~Days() {
    following_.reset();
    replica_.reset();
    world_.loop().run_ready();
    world_.network().observer = nullptr;
  }

  // Arrivals until an hour before its end; then the cluster runs empty.
  void pass() {
    const TimeUs end = world_.loop().now() + length_;
    const TimeUs step = (length_ - kHour) / pods_a_day_;
    for (int i = 0; i < pods_a_day_; ++i) {
      add_pod();
      world_.run_for(step);
      clean();
    }
    while (world_.loop().now() < end) {
      world_.run_for(60 * kSecondInUs);
      clean();
    }
    world_.facts().forget_gone(0);
    checkers_.forget();
  }

  std::string figures() const {
    const core::Cluster& cluster = replica_->driver()->cluster();
    return fmt::format("{} bound; {} shapes and identities, {} waiting, {} in the server",
                       checkers_.counts().bound, cluster.interned(), replica_->driver()->waiting(),
                       world_.facts().pods().size());
  }
  std::string broken() const {
    if (!checkers_.violations().empty()) {
      return checkers_.violations().front().rule + ": " + checkers_.violations().front().what;
    }
    return replica_->fault();
  }
  std::uint64_t bound() const { return checkers_.counts().bound; }
  std::size_t interned() const { return replica_->driver()->cluster().interned(); }
  // What the scheduler's process holds: the heap with and without it.
  std::size_t without_scheduler() {
    const std::size_t with = heap_bytes();
    replica_.reset();
    world_.loop().run_ready();
    return with - heap_bytes();
  }

 private:
  void add_pod() {
    PodSpec pod{.name = fmt::format("p{}", next_++)};
    pod.cpu_milli = 100 + static_cast<int>(rng_.below(4000));  // hardly two alike
    const std::uint64_t kind = rng_.below(4);
    if (kind == 0) pod.gpus = 1 + static_cast<int>(rng_.below(4));
    if (kind == 1) {
      pod.share_milli = 100 + static_cast<int>(rng_.below(800));
      pod.share_count = 1;
    }
    pod.runs_for_s = 30 + static_cast<int>(rng_.below(600));
    pod.app = fmt::format("job-{}", next_ / 3);
    world_.add_pod(pod);
  }
  // Whoever made a pod takes it away when it is over.
  void clean() {
    for (const std::string& name : over_) world_.remove("pods", "default", name, 0);
    over_.clear();
    if (world_.loop().now() < next_forget_) return;
    next_forget_ = world_.loop().now() + kHour;
    world_.facts().forget_gone(600 * kSecondInUs);
    checkers_.forget();
  }

  int pods_a_day_;
  TimeUs length_;
  Rng rng_;
  World world_;
  Checkers checkers_;
  std::unique_ptr<Replica> replica_;
  std::shared_ptr<void> following_;
  std::vector<std::string> over_;
  TimeUs next_forget_ = 0;
  int next_ = 0;
};

TEST(LiveChurn, MemoryIsTheSameEveryNight) {
  const int days = env_number("JOGAK_CHURN_DAYS", 3);
  const bool is_short = std::getenv("JOGAK_CHURN_PODS") == nullptr;
  const int pods = env_number("JOGAK_CHURN_PODS", 1000);
  Days life(pods, is_short ? 3 * kHour : 24 * kHour);
  struct Night {
    std::size_t bytes = 0, interned = 0;
  };
  std::vector<Night> nights;
  for (int day = 1; day <= days; ++day) {
    life.pass();
    ASSERT_EQ(life.broken(), "") << "day " << day;
    nights.push_back({.bytes = heap_bytes(), .interned = life.interned()});
    fmt::print("night {}: {} KiB on the heap; {}\n", day, nights.back().bytes / 1024,
               life.figures());
    std::fflush(stdout);
    EXPECT_LE(nights.back().interned, kInternedMax);
  }
  EXPECT_EQ(life.bound(), static_cast<std::uint64_t>(days) * static_cast<std::uint64_t>(pods));
  fmt::print("of these the scheduler's: {} KiB\n", life.without_scheduler() / 1024);
  ASSERT_GE(nights.size(), 2U);
  // The first night still fills tables that grow in steps. After it nothing grows but the forms of
  // pods that were, and those up to their limit.
  const std::size_t spread = kBytesEach * (nights.back().interned > nights[1].interned
                                               ? nights.back().interned - nights[1].interned
                                               : 0);
  EXPECT_LE(nights.back().bytes, nights[1].bytes + spread + 256 * 1024);
}

}  // namespace
}  // namespace jogak::livesim
