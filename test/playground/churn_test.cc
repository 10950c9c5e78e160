// SPDX-License-Identifier: Apache-2.0
//
// Random life of a cluster under virtual time: pods, deployments and jobs come and go, nodes fail,
// return, are cordoned and replaced. At every moment the rules of World hold; when all is healed
// and quiet, whatever fits runs and nobody was lost.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/rng.h"
#include "core/testing/random_world.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

constexpr int kNodes = 6;
constexpr int kSteps = 60;
constexpr TimeUs kStepMax = 20 * kSecondInUs;
constexpr TimeUs kHealing = 1200 * kSecondInUs;  // node grace, evictions, back-offs

int gpus_of_node(int index) { return index % 3 == 0 ? 8 : (index % 3 == 1 ? 4 : 0); }

// How often the hard cases came up.
struct Met {
  std::uint64_t bound = 0, refused = 0, preempted = 0;
  std::uint64_t evicted = 0, collected = 0;  // from nodes that failed, from nodes that went away
};

class Churn {
 public:
  explicit Churn(std::uint64_t seed) : rng_(seed, "churn"), world_(nodes()) {
    world_.add(priority_class("high", 1000));
    world_.add(priority_class("low", 1));
    following_ =
        world_.api().follow("pods", [this](const api::Api::Change& change) { on_pod(change); });
  }

  std::string run() {
    for (int step = 0; step < kSteps; ++step) {
      act();
      world_.run_for(static_cast<TimeUs>(rng_.below(kStepMax)));
      if (std::string broken = fault(); !broken.empty()) {
        return fmt::format("step {} ({}): {}", step, last_, broken);
      }
    }
    heal();
    world_.run_for(kHealing);
    if (std::string broken = fault(); !broken.empty()) return "after healing: " + broken;
    for (const Doc& node : world_.api().list("nodes")) {
      if (!api::condition_is(node, "Ready", "True") || !node.get("spec", "taints").empty()) {
        return fmt::format("node {} never came back", api::name_of(node));
      }
    }
    if (std::string waits = world_.needless_wait(); !waits.empty()) return waits;
    if (std::string lost = lost_pod(); !lost.empty()) return lost;
    return wrong_count();
  }

  void count(Met& met) const {
    const live::DriverCounts& counts = world_.scheduler().counts();
    met.bound += counts.bound;
    met.refused += counts.refused;
    met.preempted += counts.preempted;
    for (const auto& [uid, gone] : world_.gone()) {
      const Doc& why = api::condition_of(gone.last, "DisruptionTarget");
      met.evicted += why["reason"].as_string() == "DeletionByTaintManager" ? 1U : 0U;
      met.collected += why["reason"].as_string() == "DeletionByPodGC" ? 1U : 0U;
    }
  }

 private:
  static std::vector<Doc> nodes() {
    std::vector<Doc> list;
    for (int i = 0; i < kNodes; ++i) list.push_back(node(i));
    return list;
  }
  static std::string node_name(int index) { return fmt::format("n{}", index); }
  static Doc node(int index) { return simulated_node(node_name(index), 16, gpus_of_node(index)); }

  int number(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }
  std::string_view random_class() {
    constexpr std::string_view kClasses[] = {"", "low", "high"};
    return kClasses[number(3)];
  }

  // Each pod is bound once at most, and never moves.
  void on_pod(const api::Api::Change& change) {
    const Doc& pod = *change.object;
    const std::string& node = pod.get("spec", "nodeName").as_string();
    if (node.empty()) return;
    const auto [it, is_new] = bound_.try_emplace(api::uid_of(pod), node);
    if (it->second != node && moved_.empty()) {
      moved_ = fmt::format("pod {} moved from {} to {}", api::name_of(pod), it->second, node);
    }
  }

  std::string fault() { return moved_.empty() ? world_.broken_rule() : moved_; }

  void act() {
    switch (number(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return add_pod();
      case 4:
      case 5:
        return remove_pod();
      case 6:
        return add_or_scale_deployment();
      case 7:
        return add_job();
      case 8:
        return fail_or_return();
      case 9:
        return cordon(number(2) == 0);
      case 10:
        return replace_node();
      default:
        return sicken();
    }
  }

  void add_pod() {
    const std::string name = fmt::format("p{}", next_++);
    last_ = "add " + name;
    Doc pod = simple_pod(name, 1 + number(6), number(3) == 0 ? 0 : 1 << number(4), random_class());
    if (number(4) == 0) pod.at("metadata", "annotations").set("jogak.io/run-seconds", "30");
    if (number(6) == 0) pod.at("metadata", "annotations").set("jogak.io/ignores-term", "true");
    pod.at("spec").set("restartPolicy", number(2) == 0 ? "Never" : "Always");
    pod.at("spec").set("terminationGracePeriodSeconds", number(40));
    world_.add(std::move(pod));
    mine_.insert(api::uid_of(world_.pod(name)));
  }

  void remove_pod() {
    const std::vector<Doc> pods = world_.pods();
    if (pods.empty()) return;
    const Doc& pod = pods[rng_.below(pods.size())];
    last_ = "remove " + api::name_of(pod);
    removed_.insert(api::uid_of(pod));
    Doc options = Doc::object();
    if (number(3) == 0) options.set("gracePeriodSeconds", number(3));
    static_cast<void>(world_.api().remove("pods", "default", api::name_of(pod), options));
  }

  static Doc pod_template(std::string_view app, int cpu, int gpus, std::string_view priority) {
    Doc pod = simple_pod("x", cpu, gpus, priority);
    Doc result = Doc::object();
    result.at("metadata", "labels").set("app", app);
    result.set("spec", pod["spec"]);
    return result;
  }

  void add_or_scale_deployment() {
    const int replicas = number(5);
    if (deployments_.size() >= 3) {
      auto it = deployments_.begin();
      std::advance(it, number(3));
      last_ = fmt::format("scale {} to {}", it->first, replicas);
      it->second = replicas;
      const Doc patch = Doc::object().set("spec", Doc::object().set("replicas", replicas));
      ASSERT_TRUE(world_.api()
                      .patch("deployments.apps", "default", it->first, api::PatchType::Merge, patch)
                      .has_value());
      return;
    }
    const std::string name = fmt::format("d{}", next_++);
    last_ = fmt::format("deploy {} x {}", name, replicas);
    deployments_[name] = replicas;
    Doc object = Doc::object();
    object.set("apiVersion", "apps/v1").set("kind", "Deployment");
    object.at("metadata").set("name", name).set("namespace", "default");
    object.at("spec").set("replicas", replicas);
    object.at("spec", "selector", "matchLabels").set("app", name);
    object.at("spec").set("template", pod_template(name, 1, number(3), random_class()));
    world_.add(std::move(object));
  }

  void add_job() {
    const std::string name = fmt::format("j{}", next_++);
    last_ = "job " + name;
    Doc object = Doc::object();
    object.set("apiVersion", "batch/v1").set("kind", "Job");
    object.at("metadata").set("name", name).set("namespace", "default");
    const int pods = 1 + number(4);
    object.at("spec").set("parallelism", pods).set("completions", pods);
    object.at("spec").set("backoffLimit", 100);
    Doc pod = pod_template(name, 2, number(2), random_class());
    pod.at("spec").set("restartPolicy", "Never");
    object.at("spec").set("template", std::move(pod));
    world_.add(std::move(object));
    jobs_.insert(name);
  }

  void fail_or_return() {
    const std::string name = node_name(number(kNodes));
    if (!world_.api().get("nodes", "", name).has_value()) return;
    const bool is_down = down_.contains(name);
    last_ = fmt::format("{} {}", is_down ? "return" : "fail", name);
    if (is_down) {
      down_.erase(name);
    } else {
      down_.insert(name);
    }
    world_.annotate_node(name, "jogak.io/fault", is_down ? "" : "down");
  }

  void cordon(bool is_on, int index = -1) {
    const std::string name = node_name(index < 0 ? number(kNodes) : index);
    last_ = fmt::format("{} {}", is_on ? "cordon" : "uncordon", name);
    const Doc patch =
        Doc::object().set("spec", Doc::object().set("unschedulable", is_on ? Doc(true) : Doc()));
    ASSERT_TRUE(world_.api().patch("nodes", "", name, api::PatchType::Merge, patch).has_value());
  }

  void replace_node() {
    const int index = number(kNodes);
    last_ = "replace " + node_name(index);
    ASSERT_TRUE(world_.api().remove("nodes", "", node_name(index)).has_value());
    down_.erase(node_name(index));
    sick_.erase(node_name(index));
    if (number(2) == 0) world_.run_for(static_cast<TimeUs>(rng_.below(60)) * kSecondInUs);
    world_.add(node(index));
  }

  void sicken() {
    const int index = number(kNodes);
    const std::string name = node_name(index);
    if (gpus_of_node(index) == 0) return;
    const bool is_sick = sick_.contains(name);
    last_ = fmt::format("{} {}", is_sick ? "cure" : "sicken", name);
    if (is_sick) {
      sick_.erase(name);
    } else {
      sick_.insert(name);
      world_.may_refuse(name);
    }
    world_.annotate_node(name, "jogak.io/unhealthy", is_sick ? "" : "nvidia.com/gpu=1");
  }

  void heal() {
    for (const std::string& name : down_) world_.annotate_node(name, "jogak.io/fault", "");
    for (const std::string& name : sick_) world_.annotate_node(name, "jogak.io/unhealthy", "");
    for (int i = 0; i < kNodes; ++i) cordon(false, i);
  }

  // Pods that the test made go away only when it says so, or with the reason written on them.
  std::string lost_pod() {
    for (const auto& [uid, gone] : world_.gone()) {
      if (!mine_.contains(uid) || removed_.contains(uid) || gone.was_disrupted) continue;
      // what is over goes with its node, without a word
      const Doc& status = gone.last["status"];
      if (status["phase"].as_string() == "Succeeded" || status.has("reason")) continue;
      return fmt::format("pod {} went away without a reason: {}", api::name_of(gone.last),
                         status.json(JsonWriter::Style::Compact));
    }
    std::set<std::string> there;
    for (const Doc& pod : world_.pods()) {
      there.insert(api::uid_of(pod));
      if (removed_.contains(api::uid_of(pod))) {
        return fmt::format("pod {} was deleted and is still there", api::name_of(pod));
      }
      if (api::is_deleting(pod)) return fmt::format("pod {} hangs", api::name_of(pod));
      const std::string& phase = pod.get("status", "phase").as_string();
      if (phase == "Pending" && !pod.get("spec", "nodeName").as_string().empty()) {
        return fmt::format("pod {} never starts", api::name_of(pod));
      }
    }
    for (const std::string& uid : mine_) {
      if (!there.contains(uid) && !world_.gone().contains(uid)) return "nobody saw pod go: " + uid;
    }
    return "";
  }

  std::string wrong_count() {
    for (const auto& [name, replicas] : deployments_) {
      int count = 0;
      for (const Doc& pod : world_.pods()) {
        const std::string& phase = pod.get("status", "phase").as_string();
        if (pod.get("metadata", "labels", "app").as_string() == name && phase != "Failed" &&
            phase != "Succeeded") {
          ++count;
        }
      }
      if (count != replicas) {
        return fmt::format("deployment {} has {} pods, not {}", name, count, replicas);
      }
    }
    for (const std::string& name : jobs_) {
      const auto job = world_.api().get("jobs.batch", "default", name);
      if (!job.has_value()) return "job " + name + " is gone";
      const auto active = job->get("status", "active").as_int();
      const bool is_over =
          api::condition_is(*job, "Complete", "True") || api::condition_is(*job, "Failed", "True");
      // what is not over waits for room, which needless_wait() has looked at
      if (!is_over && active == 0) return "job " + name + " has stopped";
    }
    return "";
  }

  Rng rng_;
  World world_;
  int next_ = 0;
  std::string last_, moved_;
  std::set<std::string> mine_, removed_, down_, sick_, jobs_;
  std::map<std::string, int> deployments_;
  std::map<std::string, std::string> bound_;  // uid -> node
  std::shared_ptr<void> following_;
};

TEST(Churn, RulesHoldAndWhatFitsRunsInTheEnd) {
  constexpr std::uint64_t kRounds = 24;
  const auto trial = core::testing::Trial::from_env(kRounds);
  Met met;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Churn churn(trial.seed_of(round));
    ASSERT_EQ(churn.run(), "") << trial.repeat(round);
    churn.count(met);
  }
  if (trial.rounds < kRounds) return;
  // a test that never meets the hard cases proves little
  EXPECT_GT(met.bound, 100U);
  EXPECT_GT(met.refused, 100U);
  EXPECT_GT(met.preempted, 10U);
  EXPECT_GT(met.evicted, 3U);
  EXPECT_GT(met.collected, 3U);
}

}  // namespace
}  // namespace jogak::playground::testing
