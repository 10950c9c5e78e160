// SPDX-License-Identifier: Apache-2.0
//
// A week of churn under virtual time: 50,000 pods a day, each with labels of its own, come, are
// placed on 300 nodes x 8 GPUs, run for an hour and go. Prints the heap at each midnight, when the
// same number of pods is there: what a scheduler keeps of pods that are gone shows as growth.
//
//   build/bench/bench/live_churn_bench
#include <malloc.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/sim_loop.h"
#include "live/scheduler_driver.h"

namespace jogak::bench {
namespace {

constexpr int kDays = 7, kPodsADay = 50'000, kNodes = 300;
constexpr TimeUs kDay = 86'400 * kSecondInUs, kRun = 3'600 * kSecondInUs;

// The smallest cluster there is: bindings are taken, and pods end an hour later.
class Cluster : public live::ClusterApi {
 public:
  explicit Cluster(SimLoop& loop) : loop_(loop) {}

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override {
    auto handle = std::make_shared<Follower>(std::move(follower));
    if (resource == "pods") pods_ = handle;
    loop_.post([this, handle, is_nodes = resource == "nodes"] {
      if (is_nodes) tell_nodes(*handle);
      handle->on_synced();
    });
    return handle;
  }
  void bind(const live::Binding& binding, Done done) override {
    tell(binding.pod, binding.node);
    loop_.after(kRun, [this, pod = binding.pod] {
      pods_->on_change({.is_deleted = true, .ns = pod.ns, .name = pod.name, .json = ""});
    });
    done({});
  }
  void refuse(const Refusal&, Done done) override { done({}); }
  void preempt(const live::PodRef&, const std::string&, Done done) override { done({}); }
  void plan_claim(const live::ClaimPlan&, Done done) override { done({}); }
  void read_pod(const live::PodRef&, std::function<void(Result<std::string>)> done) override {
    done(fail(Errc::NotFound, "gone"));
  }
  void note(const live::PodNote&) override { ++notes; }

  void create(int index) {
    tell({.ns = "team", .name = fmt::format("pod-{}", index), .uid = fmt::format("uid-{}", index)},
         "");
  }

  std::uint64_t notes = 0;

 private:
  static void tell_nodes(const Follower& follower) {
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = fmt::format("node-{}", i);
      const std::string json = fmt::format(
          R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{}"}},"status":{{)"
          R"("allocatable":{{"cpu":"96","memory":"1Ti","pods":"110","nvidia.com/gpu":"8"}}}}}})",
          name);
      follower.on_change({.ns = "", .name = name, .json = json});
    }
  }
  void tell(const live::PodRef& pod, std::string_view node) {
    const std::string json = fmt::format(
        R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"namespace":"{0}","name":"{1}",)"
        R"("uid":"{2}","labels":{{"job-name":"{1}","controller-uid":"{2}"}}}},"spec":{{)"
        R"({3}"schedulerName":"jogak","priority":0,"containers":[{{"name":"c","image":"i",)"
        R"("resources":{{"requests":{{"cpu":"4"}},"limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
        pod.ns, pod.name, pod.uid, node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node));
    loop_.post(
        [this, pod, json] { pods_->on_change({.ns = pod.ns, .name = pod.name, .json = json}); });
  }

  SimLoop& loop_;
  std::shared_ptr<Follower> pods_;
};

std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

void run() {
  SimLoop loop;
  Cluster cluster(loop);
  auto driver = live::SchedulerDriver::make(cluster, {});
  JOGAK_CHECK(driver.has_value(), "no driver");
  loop.run_ready();
  const TimeUs start = loop.now();
  int next = 0;
  fmt::print("{:>4}{:>12}{:>12}{:>10}{:>12}\n", "day", "pods placed", "pods there", "heap MiB",
             "interned");
  for (int day = 1; day <= kDays; ++day) {
    for (int i = 0; i < kPodsADay; ++i) {
      loop.run_until(start + (day - 1) * kDay + i * (kDay / kPodsADay));
      cluster.create(next++);
    }
    loop.run_until(start + day * kDay);
    fmt::print("{:>4}{:>12}{:>12}{:>10.2f}{:>12}\n", day, (*driver)->counts().bound,
               kPodsADay * (kRun / kSecondInUs) / (kDay / kSecondInUs),
               static_cast<double>(heap_bytes()) / 1048576, (*driver)->cluster().interned());
  }
}

}  // namespace
}  // namespace jogak::bench

int main() { jogak::bench::run(); }
