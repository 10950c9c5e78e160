// SPDX-License-Identifier: Apache-2.0
//
// Random events, late and refused writes; everything is recounted from the side of the cluster. At
// rest no pod waits that a node has room for, and no pod was bound, or asked to go, twice.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/testing/random_world.h"
#include "live/scheduler_driver.h"
#include "live/testing/scripted_cluster.h"

namespace jogak::live {
namespace {

constexpr int kNodes = 4;
constexpr int kSteps = 120;

int cpu_of(const Doc& pod) {
  const Doc& container = pod.get("spec", "containers").items().front();
  return std::stoi(container.get("resources", "requests", "cpu").as_string());
}

class RandomLife {
 public:
  explicit RandomLife(std::uint64_t seed) : rng_(seed, "live"), cluster_(loop_) {
    for (int i = 0; i < kNodes; ++i) put_node(i);
    cluster_.on_bind = [this](const Binding& binding) { on_bind(binding); };
    auto made = SchedulerDriver::make(cluster_, {.seed = seed});
    if (made.has_value()) driver_ = *std::move(made);
  }

  std::string run() {
    if (driver_ == nullptr) return "no driver";
    for (int step = 0; step < kSteps; ++step) {
      act();
      if (number(3) > 0) loop_.run_for(static_cast<TimeUs>(rng_.below(3 * kSecondInUs)));
      if (std::string wrong = recount(); !wrong.empty())
        return fmt::format("step {}: {}", step, wrong);
    }
    cluster_.bind_errors.clear();
    cluster_.preempt_errors.clear();
    loop_.run_for(300 * kSecondInUs);
    if (std::string wrong = recount(); !wrong.empty()) return "at rest: " + wrong;
    return needless_wait();
  }

  const DriverCounts& counts() const { return driver_->counts(); }

 private:
  int number(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }
  static std::string node_name(int index) { return fmt::format("n{}", index); }
  void put_node(int index) { cluster_.put_node(node_name(index), 4 + 2 * index, 6); }

  void act() {
    switch (number(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return add_pod();
      case 5:
        return remove_pod();
      case 6:
        return finish_pod();
      case 7:
        return put_node(number(kNodes));
      case 8:
        return remove_node(node_name(number(kNodes)));
      case 9:
        return bind_by_another();
      case 10:
        cluster_.answer_delay = number(3) * 300 * kMsInUs;
        return;
      case 11:
        return refuse_some();
      default:
        return replace_pod();
    }
  }

  void add_pod() {
    Doc object = testing::pod(fmt::format("p{}", next_++), 1 + number(4), number(3) * 10);
    if (number(8) == 0) object.at("spec").set("schedulerName", "other");
    cluster_.put("pods", std::move(object));
  }

  const Doc* any_pod() {
    const auto& pods = cluster_.all("pods");
    if (pods.empty()) return nullptr;
    return &std::next(pods.begin(), number(static_cast<int>(pods.size())))->second;
  }

  void remove_pod() {
    const Doc* found = any_pod();
    if (found != nullptr) cluster_.remove("pods", "ns", std::string(name_of(*found)));
  }

  void finish_pod() {
    const Doc* found = any_pod();
    if (found == nullptr || found->get("spec", "nodeName").as_string().empty()) return;
    Doc done = *found;
    done.at("status").set("phase", "Succeeded");
    cluster_.put("pods", std::move(done));
  }

  void replace_pod() {
    const Doc* found = any_pod();
    if (found == nullptr) return;
    Doc other = testing::pod(name_of(*found), 1 + number(4), number(3) * 10);
    other.at("metadata").set("uid", fmt::format("again-{}", next_++));
    cluster_.remove("pods", "ns", name_of(other));
    cluster_.put("pods", std::move(other));
  }

  // The pods of a node that goes are taken away, as the pod garbage collector does.
  void remove_node(const std::string& name) {
    cluster_.remove("nodes", "", name);
    std::vector<std::string> lost;
    for (const auto& [key, object] : cluster_.all("pods")) {
      if (object.get("spec", "nodeName").as_string() == name) lost.push_back(name_of(object));
    }
    for (const std::string& pod : lost) cluster_.remove("pods", "ns", pod);
  }

  void bind_by_another() {
    for (const auto& [key, object] : cluster_.all("pods")) {
      if (object.get("spec", "schedulerName").as_string() != "other" ||
          !object.get("spec", "nodeName").as_string().empty()) {
        continue;
      }
      for (const auto& [node, node_object] : cluster_.all("nodes")) {
        const std::string name = name_of(node_object);
        if (room_on(name, INT64_MIN) < cpu_of(object) || pods_on(name, INT64_MIN) >= 6) continue;
        Doc bound = object;
        bound.at("spec").set("nodeName", name);
        cluster_.put("pods", std::move(bound));
        others_bound_ = true;
        return;
      }
    }
  }

  void refuse_some() {
    constexpr Errc kErrors[] = {Errc::Unavailable, Errc::Conflict};
    cluster_.bind_errors.push_back(kErrors[number(2)]);
    cluster_.preempt_errors.push_back(kErrors[number(2)]);
  }

  void on_bind(const Binding& binding) {
    const Doc* object = cluster_.find("pods", binding.pod.ns, binding.pod.name);
    if (object == nullptr || object->get("metadata", "uid").as_string() != binding.pod.uid) return;
    if (!object->get("spec", "nodeName").as_string().empty()) {
      complain(fmt::format("pod {} is bound again", binding.pod.name));
    }
    if (object->get("spec", "schedulerName").as_string() == "other") {
      complain(fmt::format("pod {} of another scheduler is bound", binding.pod.name));
    }
  }

  void complain(std::string what) {
    if (complaint_.empty()) complaint_ = std::move(what);
  }

  static std::string name_of(const Doc& object) {
    return object.get("metadata", "name").as_string();
  }
  static bool is_over(const Doc& pod) {
    return pod.get("status", "phase").as_string() == "Succeeded";
  }

  // Free cpus of a node if all pods of a priority of at most `below` went; negative: too much
  // given.
  std::int64_t room_on(const std::string& node, std::int64_t below) {
    const Doc* object = cluster_.find("nodes", "", node);
    if (object == nullptr) return 0;
    std::int64_t room = std::stoll(object->get("status", "allocatable", "cpu").as_string());
    for (const auto& [key, pod] : cluster_.all("pods")) {
      if (pod.get("spec", "nodeName").as_string() == node && !is_over(pod) &&
          pod.get("spec", "priority").as_int() > below) {
        room -= cpu_of(pod);
      }
    }
    return room;
  }
  int pods_on(const std::string& node, std::int64_t below) {
    int count = 0;
    for (const auto& [key, pod] : cluster_.all("pods")) {
      count += pod.get("spec", "nodeName").as_string() == node && !is_over(pod) &&
                       pod.get("spec", "priority").as_int() > below
                   ? 1
                   : 0;
    }
    return count;
  }

  std::string recount() {
    if (!complaint_.empty()) return complaint_;
    if (driver_->counts().invalid_plans + driver_->counts().unreadable > 0) {
      return driver_->last_fault();
    }
    // The other scheduler knows nothing of what is under way here; both at once may give too much.
    if (!others_bound_) {
      for (const auto& [key, node] : cluster_.all("nodes")) {
        const std::string name = name_of(node);
        if (room_on(name, INT64_MIN) < 0) return "too much cpu is given on " + name;
        if (pods_on(name, INT64_MIN) > 6) return "too many pods on " + name;
      }
    }
    std::set<std::string> uids;
    for (const std::string& uid : cluster_.accepted_victims) {
      if (!uids.insert(uid).second) return "asked to go twice: " + uid;
    }
    return "";
  }

  std::string needless_wait() {
    for (const auto& [key, pod] : cluster_.all("pods")) {
      if (!pod.get("spec", "nodeName").as_string().empty() || is_over(pod)) continue;
      if (pod.get("spec", "schedulerName").as_string() == "other") continue;
      for (const auto& [node_key, node] : cluster_.all("nodes")) {
        const std::string name = name_of(node);
        for (const std::int64_t below :
             {std::int64_t{INT64_MIN}, pod.get("spec", "priority").as_int() - 1}) {
          if (room_on(name, below) >= cpu_of(pod) && pods_on(name, below) < 6) {
            return fmt::format("pod {} waits although {} has room{}; it heard: {}", key, name,
                               below == INT64_MIN ? "" : " or may make it",
                               pod["status"].json(JsonWriter::Style::Compact));
          }
        }
      }
    }
    return "";
  }

  Rng rng_;
  SimLoop loop_;
  testing::ScriptedCluster cluster_;
  std::unique_ptr<SchedulerDriver> driver_;
  int next_ = 0;
  bool others_bound_ = false;
  std::string complaint_;
};

TEST(DriverProperty, BindsOnceGivesNoMoreThanThereIsAndForgetsNobody) {
  constexpr std::uint64_t kRounds = 150;
  const auto trial = core::testing::Trial::from_env(kRounds);
  DriverCounts sum;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomLife life(trial.seed_of(round));
    ASSERT_EQ(life.run(), "") << trial.repeat(round);
    sum.bound += life.counts().bound;
    sum.refused += life.counts().refused;
    sum.preempted += life.counts().preempted;
    sum.bind_errors += life.counts().bind_errors;
  }
  if (trial.rounds < kRounds) return;
  EXPECT_GT(sum.bound, 1000U);
  EXPECT_GT(sum.refused, 1000U);
  EXPECT_GT(sum.preempted, 100U);
  EXPECT_GT(sum.bind_errors, 100U);
}

}  // namespace
}  // namespace jogak::live
