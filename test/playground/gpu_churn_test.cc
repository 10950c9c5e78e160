// SPDX-License-Identifier: Apache-2.0
//
// Random life of simulated GPU nodes: they go down and come back, their GPUs fail and heal, are
// shared and cut anew, pods come and go. No device is ever given to two pods, who is down is
// silent; when all is healed and quiet, each node is as it was at first.
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/rng.h"
#include "core/testing/random_world.h"
#include "test/playground/http_probe.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

constexpr std::uint64_t kRounds = 12;
constexpr int kSteps = 60;
constexpr TimeUs kStepMax = 6 * kSecondInUs;
constexpr TimeUs kHealing = 400 * kSecondInUs;

constexpr std::array<std::string_view, 4> kNames = {"cut", "whole", "one", "two"};
constexpr std::array<std::string_view, 4> kFaults = {"", "0=xid:79", "1=lost",
                                                     "0=thermal,1=xid:94"};
constexpr std::array<std::string_view, 5> kConfigs = {
    "", "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}}",
    "{version: v1, sharing: {timeSlicing: {renameByDefault: true, resources: "
    "[{name: nvidia.com/gpu, replicas: 2}, {name: nvidia.com/mig-1g.10gb, replicas: 2}]}}}",
    "{version: v1, flags: {migStrategy: single}}", "{version: no}"};
constexpr std::array<std::string_view, 5> kLayouts = {"all-1g.10gb", "all-2g.20gb", "all-balanced",
                                                      "all-enabled", "all-disabled"};
constexpr std::array<std::string_view, 5> kResources = {
    "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-2g.20gb"};
constexpr std::array<std::string_view, 3> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb"};

Doc gpu_node(std::string_view name) {
  Doc node = simulated_node(name, 64, 0);
  const std::string_view gpus = name == "cut"     ? "2xA100-SXM4-80GB"
                                : name == "whole" ? "2xH100-SXM5-80GB"
                                                  : "2xL40S";
  node.at("metadata", "annotations").set("jogak.io/simulated-gpus", gpus);
  if (name == "cut") node.at("metadata", "labels").set("nvidia.com/mig.config", "all-1g.10gb");
  return node;
}

std::vector<Doc> gpu_nodes() {
  std::vector<Doc> nodes;
  for (const std::string_view name : kNames) nodes.push_back(gpu_node(name));
  return nodes;
}

PlaygroundOptions options() {
  PlaygroundOptions made;
  made.server.tokens["t"] = {.name = "admin", .uid = "", .groups = {"system:masters"}};
  return made;
}

class GpuChurn {
 public:
  explicit GpuChurn(std::uint64_t seed) : rng_(seed, "gpu-churn"), world_(gpu_nodes(), options()) {}

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
    return unlike_at_first();
  }

  // How often a pod ran with devices, and was seen on a node that was down.
  std::pair<std::size_t, std::size_t> met() const { return {held_.size(), silent_}; }

 private:
  template <class List>
  std::string_view any_of(const List& list) {
    return list[static_cast<std::size_t>(rng_.below(list.size()))];
  }

  void act() {
    const std::string_view node = any_of(kNames);
    switch (rng_.below(9)) {
      case 0:
        last_ = "power";
        if (down_.contains(node)) {
          down_.erase(node);
        } else {
          down_.insert(node);
        }
        world_.annotate_node(node, "jogak.io/fault", down_.contains(node) ? "down" : "");
        break;
      case 1:
        last_ = "fault";
        world_.annotate_node(node, "jogak.io/gpu-fault", any_of(kFaults));
        break;
      case 2:
        last_ = "config";
        world_.annotate_node(node, "jogak.io/plugin-config", any_of(kConfigs));
        break;
      case 3:
        last_ = "layout";
        set_layout(rng_.below(2) == 0 ? "cut" : "whole", any_of(kLayouts));
        break;
      case 4: {
        last_ = "deletion";
        const std::vector<Doc> pods = world_.pods();
        if (pods.empty()) break;
        const Doc& pod = pods[static_cast<std::size_t>(rng_.below(pods.size()))];
        static_cast<void>(world_.api().remove("pods", "default", api::name_of(pod), {}));
        break;
      }
      default:
        last_ = "pod";
        add_pod();
    }
  }

  void add_pod() {
    Doc pod = simple_pod(fmt::format("p{}", next_pod_++), 1, 0);
    if (rng_.below(3) == 0) {
      pod.at("metadata", "annotations").set("jogak.io/mig-profile", any_of(kProfiles));
    } else {
      pod.at("spec")
          .at("containers")
          .items()[0]
          .at("resources", "limits")
          .set(any_of(kResources), std::to_string(1 + rng_.below(2)));
    }
    world_.add(std::move(pod));
  }

  void set_layout(std::string_view node, std::string_view layout) {
    Doc patch = Doc::object();
    patch.at("metadata", "labels").set("nvidia.com/mig.config", layout);
    static_cast<void>(world_.api().patch("nodes", "", node, api::PatchType::Merge, patch));
  }

  int status_of_page(std::string_view node) {
    const auto answer = std::make_shared<Answer>();
    world_.playground().server().handle(
        {.method = "GET",
         .target = fmt::format("/api/v1/nodes/{}:9400/proxy/metrics", node),
         .headers = {{"Authorization", "Bearer t"}},
         .body = {}},
        answer);
    world_.run_for(0);
    return answer->status;
  }

  std::string fault() {
    std::map<std::string, std::string> owners;
    for (const Doc& pod : world_.pods()) {
      const std::string& phase = pod.get("status", "phase").as_string();
      if (phase == "Failed" || phase == "Succeeded") continue;
      for (const Doc& status : pod.get("status", "containerStatuses").items()) {
        for (const Doc& resource : status["allocatedResourcesStatus"].items()) {
          for (const Doc& device : resource["resources"].items()) {
            // A kubelet knows nothing of a device that two resources have had, one after the other.
            const std::string id =
                resource["name"].as_string() + " " + device["resourceID"].as_string();
            held_.insert(api::name_of(pod) + id);
            const auto [at, is_first] = owners.emplace(id, api::name_of(pod));
            if (!is_first) {
              return fmt::format("{} is held by {} and {}", id, at->second, api::name_of(pod));
            }
          }
        }
      }
    }
    const std::string_view node = any_of(kNames);
    const int expected = down_.contains(node) ? 503 : 200;
    silent_ += down_.contains(node) ? 1 : 0;
    const int status = status_of_page(node);
    if (status != expected) return fmt::format("{}: its metrics answer {}", node, status);
    return "";
  }

  void heal() {
    for (const Doc& pod : world_.pods()) {
      static_cast<void>(world_.api().remove("pods", "default", api::name_of(pod), {}));
    }
    for (const std::string_view node : kNames) {
      for (const std::string_view key :
           {"jogak.io/fault", "jogak.io/gpu-fault", "jogak.io/plugin-config"}) {
        world_.annotate_node(node, key, "");
      }
    }
    // When their pods have gone. A layout that pods have cut anew is made again only when it is
    // asked for again.
    world_.run_for(60 * kSecondInUs);
    set_layout("cut", "all-2g.20gb");
    set_layout("whole", "all-1g.10gb");
    world_.run_for(20 * kSecondInUs);
    set_layout("cut", "all-1g.10gb");
    set_layout("whole", "all-disabled");
  }

  std::string unlike_at_first() {
    if (!world_.playground().is_settled()) return "not settled";
    for (const std::string_view name : kNames) {
      const Doc node = *world_.api().get("nodes", "", name);
      const Doc& allocatable = node.get("status", "allocatable");
      const bool is_cut = name == "cut";
      const std::string& count =
          allocatable[is_cut ? "nvidia.com/mig-1g.10gb" : "nvidia.com/gpu"].as_string();
      const bool is_well = api::condition_is(node, "Ready", "True") &&
                           api::condition_is(node, "GpuUnusable", "False") &&
                           count == (is_cut ? "14" : "2") && status_of_page(name) == 200;
      if (is_well) continue;
      std::string text;
      node.append_json(text);
      return text;
    }
    return "";
  }

  Rng rng_;
  World world_;
  std::set<std::string_view> down_;
  std::set<std::string> held_;
  std::size_t silent_ = 0;
  int next_pod_ = 0;
  std::string_view last_;
};

TEST(GpuChurn, NodesComeToRest) {
  const auto trial = core::testing::Trial::from_env(kRounds);
  std::size_t held = 0;
  std::size_t silent = 0;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    GpuChurn churn(trial.seed_of(round));
    ASSERT_EQ(churn.run(), "") << trial.repeat(round);
    held += churn.met().first;
    silent += churn.met().second;
  }
  if (trial.rounds < kRounds) return;
  EXPECT_GT(held, 100U);
  EXPECT_GT(silent, 50U);
}

}  // namespace
}  // namespace jogak::playground::testing
