// SPDX-License-Identifier: Apache-2.0
//
// Each step waits for what its manifest should lead to, seen through the API as a client would; one
// that does not come in time is said to be missing.
#include "cli/up_demo.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "apiserver/object/meta.h"
#include "playground/fleet.h"

namespace jogak::cli {

namespace {

constexpr TimeUs kLook = 100 * kMsInUs;     // between looks at a step's condition
constexpr TimeUs kPause = 2 * kSecondInUs;  // between steps, to read
constexpr TimeUs kStepMax = 90 * kSecondInUs;
constexpr std::string_view kOne = "one-gpu";
constexpr std::string_view kTrain = "train-";
constexpr std::string_view kChat = "chat-";
constexpr std::string_view kUrgent = "urgent-";
constexpr std::string_view kSixteen = "sixteen-gpus";
constexpr std::size_t kTrainPods = 2;
constexpr std::size_t kChatPods = 5;
constexpr std::size_t kUrgentPods = 8;

}  // namespace

const std::vector<UpDemo::Step>& UpDemo::steps() {
  static const std::vector<Step> kSteps = {
      {"A pod asks for one GPU (1-gpu-pod.yaml)", "1-gpu-pod.yaml", "it to run", &UpDemo::one_runs,
       &UpDemo::say_one},
      {"A training job takes two whole nodes (2-training-job.yaml)", "2-training-job.yaml",
       "both workers to run", &UpDemo::training_runs, &UpDemo::say_training},
      {"A light service takes MIG slices, not GPUs (3-inference.yaml)", "3-inference.yaml",
       "five replicas to run", &UpDemo::service_runs, &UpDemo::say_service},
      {"Urgent work needs all eight training nodes (4-urgent-job.yaml)", "4-urgent-job.yaml",
       "its eight pods to run", &UpDemo::urgent_runs, &UpDemo::say_urgent},
      {"A pod that no node can run (5-cannot-run.yaml)", "5-cannot-run.yaml",
       "the scheduler to say why", &UpDemo::refusal_is_said, &UpDemo::say_refusal},
      {"The urgent work ends; what gave way comes back", "", "training to run again",
       &UpDemo::training_is_back, &UpDemo::say_back},
  };
  return kSteps;
}

UpDemo::UpDemo(Loop& loop, playground::Playground& playground, std::function<void()> done)
    : loop_(loop), playground_(playground), done_(std::move(done)), start_(loop.now()) {
  following_ =
      playground_.api().follow("pods", [this](const api::Api::Change& change) { on_pod(change); });
  loop_.after(kPause, [this, alive = alive_] {
    if (*alive) begin_step();
  });
}

UpDemo::~UpDemo() { *alive_ = false; }

void UpDemo::say(std::string_view text) const {
  fmt::print("{:6.1f} s  {}\n", static_cast<double>(loop_.now() - start_) / kSecondInUs, text);
  std::fflush(stdout);
}

void UpDemo::on_pod(const api::Api::Change& change) {
  const Doc& pod = *change.object;
  if (api::namespace_of(pod) != "default") return;
  const std::string& name = api::name_of(pod);
  if (change.type == store::EventType::Deleted) {
    say(fmt::format("    {} is gone", name));
    pods_.erase(name);
    return;
  }
  Seen now{.phase = pod.get("status", "phase").as_string(),
           .node = pod.get("spec", "nodeName").as_string(),
           .owner = api::controller_of(pod)["name"].as_string(),
           .message = api::condition_of(pod, "PodScheduled")["message"].as_string(),
           .is_deleting = api::is_deleting(pod)};
  Seen& before = pods_[name];
  if (before.node.empty() && !now.node.empty()) say(fmt::format("    {} -> {}", name, now.node));
  if (now.phase != before.phase && now.phase != "Pending") {
    say(fmt::format("    {} is {}", name, now.phase));
  }
  if (api::condition_is(pod, "DisruptionTarget", "True") && preempted_.insert(name).second) {
    say(fmt::format("    {} is preempted: it makes room for more urgent work", name));
  }
  before = std::move(now);
}

void UpDemo::begin_step() {
  const Step& step = steps()[step_];
  fmt::print("\n");
  say(step.title);
  step_start_ = loop_.now();
  if (!step.manifest.empty()) {
    auto objects = playground::read_manifests(example_manifest(step.manifest), step.manifest);
    auto loaded = objects.has_value() ? playground_.load(*std::move(objects))
                                      : Result<std::size_t>(std::unexpected(objects.error()));
    if (!loaded.has_value()) {
      say(loaded.error().what);
      done_();
      return;
    }
  }
  check();
}

void UpDemo::check() {
  const Step& step = steps()[step_];
  const auto again = [this](TimeUs span, void (UpDemo::*what)()) {
    loop_.after(span, [this, what, alive = alive_] {
      if (*alive) (this->*what)();
    });
  };
  if (!(this->*step.is_done)()) {
    if (loop_.now() - step_start_ < kStepMax) return again(kLook, &UpDemo::check);
    say(fmt::format("Waited {} s for {} in vain.", kStepMax / kSecondInUs, step.waits_for));
    done_();
    return;
  }
  say((this->*step.summary)());
  if (++step_ < steps().size()) return again(kPause, &UpDemo::begin_step);
  has_succeeded_ = true;
  fmt::print("\n");
  say("That was the demo. `jogak up` without --demo stays, for you to try.");
  done_();
}

std::size_t UpDemo::count(std::string_view prefix, std::string_view phase) const {
  return static_cast<std::size_t>(std::ranges::count_if(pods_, [&](const auto& entry) {
    return entry.first.starts_with(prefix) && entry.second.phase == phase &&
           !entry.second.is_deleting;
  }));
}

std::string UpDemo::nodes_of(std::string_view prefix) const {
  std::set<std::string> nodes;
  for (const auto& [name, pod] : pods_) {
    if (name.starts_with(prefix) && pod.phase == "Running") nodes.insert(pod.node);
  }
  return fmt::format("{}", fmt::join(nodes, ", "));
}

bool UpDemo::one_runs() const { return count(kOne, "Running") == 1; }
bool UpDemo::training_runs() const { return count(kTrain, "Running") == kTrainPods; }
bool UpDemo::service_runs() const { return count(kChat, "Running") == kChatPods; }
bool UpDemo::urgent_runs() const { return count(kUrgent, "Running") == kUrgentPods; }
bool UpDemo::refusal_is_said() const {
  const auto it = pods_.find(kSixteen);
  return it != pods_.end() && !it->second.message.empty();
}
bool UpDemo::training_is_back() const {
  return count(kUrgent, "Succeeded") == kUrgentPods &&
         count(kTrain, "Running") + count(kTrain, "Succeeded") >= kTrainPods;
}

std::string UpDemo::say_one() const { return fmt::format("It runs on {}.", nodes_of(kOne)); }
std::string UpDemo::say_training() const {
  return fmt::format("Training runs on {}, 8 GPUs each.", nodes_of(kTrain));
}
std::string UpDemo::say_service() const {
  return fmt::format(
      "The service runs on {}, one 10 GB slice a replica; no training node is touched.",
      nodes_of(kChat));
}
std::string UpDemo::say_urgent() const {
  return fmt::format("Urgent work runs on all eight. {} of lower priority gave way: {}.",
                     preempted_.size() == 1 ? "One pod" : fmt::format("{} pods", preempted_.size()),
                     fmt::join(preempted_, ", "));
}
std::string UpDemo::say_refusal() const {
  return fmt::format("It waits, and says why: {}", pods_.find(kSixteen)->second.message);
}
std::string UpDemo::say_back() const {
  return fmt::format("Training runs again on {}.", nodes_of(kTrain));
}

}  // namespace jogak::cli
