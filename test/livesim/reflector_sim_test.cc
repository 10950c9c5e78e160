// SPDX-License-Identifier: Apache-2.0
//
// The reflector alone against the real server through every fault: whoever listens sees objects
// appear once and go once, never an older state after a newer one, and in the end what the store
// holds.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/testing/random_world.h"
#include "kube/api_client.h"
#include "kube/reflector.h"
#include "test/livesim/faults.h"
#include "test/livesim/faulty_client.h"
#include "test/livesim/process_loop.h"
#include "test/livesim/world.h"

namespace jogak::livesim {
namespace {

class Follow {
 public:
  explicit Follow(std::uint64_t seed)
      : rng_(seed, "reflector"),
        world_({.seed = seed, .has_controllers = false, .has_kubelets = false}),
        loop_(world_.loop(), rng_.between(-300, 300) * kSecondInUs),
        client_(world_.network(), loop_, 1),
        api_(client_) {
    Rng faults(seed, "faults");
    world_.network().rates = draw_faults(faults);
    page_size_ = static_cast<int>(rng_.between(1, 8));
  }
  ~Follow() {
    reflector_.reset();
    world_.loop().run_ready();
  }

  std::string run() {
    for (int i = 0; i < 6; ++i) act();
    kube::ReflectorOptions options{.path = "/api/v1/configmaps"};
    options.page_size = page_size_;
    options.seed = 7;
    reflector_ = std::make_unique<kube::Reflector>(
        api_, options,
        kube::Reflector::Events{
            .on_change = [this](const kube::ObjectChange& change) { on_change(change); },
            .on_synced = [this] { ++synced_; },
            .on_error = {}});
    const int steps = static_cast<int>(rng_.between(20, 120));
    for (int step = 0; step < steps && wrong_.empty(); ++step) {
      act();
      world_.run_for(static_cast<TimeUs>(rng_.below(4 * kSecondInUs)));
    }
    world_.network().is_faulty = false;
    world_.run_for(400 * kSecondInUs);
    if (!wrong_.empty()) return wrong_;
    if (synced_ != 1) return fmt::format("told {} times that it is synced", synced_);
    return difference();
  }
  const kube::ReflectorState& state() const { return reflector_->state(); }
  std::string faults() { return world_.network().rates.text(); }

 private:
  void act() {
    const std::string name = fmt::format("c{}", rng_.below(12));
    const bool is_there = world_.api().get("configmaps", "default", name).has_value();
    Doc object = Doc::object();
    if (!is_there) {
      object.at("metadata").set("name", name);
      return world_.add("configmaps", "default", std::move(object));
    }
    const std::uint64_t kind = rng_.below(3);
    if (kind < 2) world_.remove("configmaps", "default", name);
    if (kind == 1) {  // at once again, as another object
      object.at("metadata").set("name", name);
      return world_.add("configmaps", "default", std::move(object));
    }
    if (kind == 2) {
      object.at("data").set("n", std::to_string(++next_));
      world_.patch("configmaps", "default", name, object);
    }
  }

  void on_change(const kube::ObjectChange& change) {
    if (!wrong_.empty()) return;
    const std::string key(change.name);
    if (change.is_deleted) {
      const auto it = known_.find(key);
      if (it == known_.end()) {
        wrong_ = key + " goes although it never came";
      } else if (it->second.uid != change.uid) {
        wrong_ = key + " goes under another uid";
      } else {
        known_.erase(it);
      }
      return;
    }
    Known& known = known_[key];
    const std::uint64_t version = std::stoull(std::string(change.version));
    if (version < known.version) wrong_ = key + " becomes older";
    known = {.uid = std::string(change.uid), .version = version, .json = std::string(change.json)};
  }

  std::string difference() {
    std::size_t count = 0;
    for (const Doc& object : world_.api().list("configmaps")) {
      const std::string& name = object.get("metadata", "name").as_string();
      if (object.get("metadata", "namespace").as_string() != "default") continue;
      ++count;
      const auto it = known_.find(name);
      if (it == known_.end()) return name + " is not known";
      if (std::to_string(it->second.version) !=
          object.get("metadata", "resourceVersion").as_string()) {
        return fmt::format("{} is known as {}, and is {}", name, it->second.version,
                           object.get("metadata", "resourceVersion").as_string());
      }
    }
    std::size_t known = 0;
    for (const auto& [name, object] : known_) known += name.starts_with("c") ? 1 : 0;
    return known == count ? "" : fmt::format("{} are known, {} are there", known, count);
  }

  struct Known {
    std::string uid;
    std::uint64_t version = 0;
    std::string json;
  };

  Rng rng_;
  World world_;
  ProcessLoop loop_;
  FaultyClient client_;
  kube::ApiClient api_;
  std::unique_ptr<kube::Reflector> reflector_;
  int page_size_ = 1;
  int next_ = 0;
  int synced_ = 0;
  std::map<std::string, Known> known_;
  std::string wrong_;
};

TEST(ReflectorSim, ShowsWhatIsThereThroughEveryFault) {
  constexpr std::uint64_t kRounds = 200;
  const auto trial = core::testing::Trial::from_env(kRounds);
  std::uint64_t lists = 0;
  std::uint64_t gaps = 0;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Follow follow(trial.seed_of(round));
    ASSERT_EQ(follow.run(), "") << follow.faults() << "\n" << trial.repeat(round);
    lists += follow.state().lists;
    gaps += follow.state().gaps;
  }
  if (trial.rounds < kRounds) return;
  // a test that never meets the hard cases proves little
  EXPECT_GT(lists, kRounds + kRounds / 2);
  EXPECT_GT(gaps, kRounds / 10);
}

}  // namespace
}  // namespace jogak::livesim
