// SPDX-License-Identifier: Apache-2.0
// Pods of a sample workload. Proportions follow what published GPU-cluster traces look like: most
// pods want a part of a GPU or one, a few want many and run long, some want none.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/rng.h"
#include "sim/samples.h"

namespace jogak::sim {

namespace {

struct PodKind {
  std::string_view name;
  std::int64_t weight = 0;  // of a thousand pods
  std::int64_t gpus = 0;    // whole devices
  bool is_share = false;
  std::int64_t cpu_min = 1, cpu_max = 8;
  std::int64_t minutes_min = 5, minutes_max = 30;
};

constexpr auto kKinds = std::to_array<PodKind>({
    {"notebook", 240, 0, true, 2, 6, 10, 60},
    {"serve", 160, 0, true, 2, 8, 15, 90},
    {"train1", 270, 1, false, 4, 12, 8, 50},
    {"train2", 80, 2, false, 8, 24, 10, 60},
    {"train4", 50, 4, false, 16, 48, 15, 70},
    {"train8", 40, 8, false, 48, 96, 20, 80},
    {"prepare", 160, 0, false, 2, 16, 3, 20},
});

constexpr std::array<std::int64_t, 7> kShares = {100, 200, 250, 300, 400, 500, 800};
constexpr std::int64_t kUrgentPriority = 1000;
constexpr std::uint64_t kUrgentPercent = 10;
constexpr std::uint64_t kModelPercent = 10;  // of pods with GPUs

struct SamplePod {
  const PodKind* kind = nullptr;
  std::int64_t arrival_ms = 0;
  std::int64_t run_s = 0;
  std::int64_t cpu = 0;
  std::int64_t memory_gib = 0;
  std::int64_t share = 0;
  bool is_urgent = false;
  std::string_view model;  // empty: any
  std::int64_t gpu_milli() const { return kind->is_share ? share : kind->gpus * 1000; }
};

class PodDrawer {
 public:
  PodDrawer(const std::vector<SampleGroup>& groups, const SampleLoad& load, std::uint64_t seed)
      : groups_(groups), load_(load), rng_(seed, "samples/workload") {
    for (const PodKind& kind : kKinds) weights_.push_back(kind.weight);
    for (const SampleGroup& group : groups) {
      models_.push_back(group.model == nullptr ? 0 : group.count * group.gpus);
      largest_ = std::max<std::int64_t>(largest_, group.gpus);
    }
  }

  SamplePod draw() {
    SamplePod pod;
    // A pod larger than any node would wait for ever.
    do {
      pod.kind = &kKinds[rng_.weighted(weights_)];
    } while (pod.kind->gpus > largest_ || (pod.kind->is_share && largest_ == 0));
    pod.arrival_ms = rng_.between(0, load_.for_seconds * 1000 - 1);
    // Two draws multiplied lean toward short runs, with a long tail.
    const std::int64_t span = (pod.kind->minutes_max - pod.kind->minutes_min) * 60;
    const std::int64_t a = rng_.between(0, 1000);
    const std::int64_t b = rng_.between(0, 1000);
    pod.run_s = pod.kind->minutes_min * 60 + span * a / 1000 * b / 1000;
    pod.cpu = rng_.between(pod.kind->cpu_min, pod.kind->cpu_max);
    pod.memory_gib = pod.cpu * rng_.between(3, 8);
    if (pod.kind->is_share) pod.share = kShares[rng_.below(kShares.size())];
    pod.is_urgent = rng_.below(100) < kUrgentPercent;
    const bool names_model = rng_.below(100) < kModelPercent;
    if (names_model && pod.gpu_milli() > 0) pod.model = draw_model(pod);
    return pod;
  }

 private:
  std::string_view draw_model(const SamplePod& pod) {
    const SampleGroup& group = groups_[rng_.weighted(models_)];
    return group.gpus >= pod.kind->gpus ? group.model->product : std::string_view();
  }

  const std::vector<SampleGroup>& groups_;
  const SampleLoad& load_;
  Rng rng_;
  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> models_;  // by group: how likely a pod asks for its model
  std::int64_t largest_ = 0;
};

Doc pod_doc(const SamplePod& pod, std::size_t number) {
  Doc doc = Doc::object();
  doc.set("name", fmt::format("{}-{:05}", pod.kind->name, number));
  doc.set("arrival", Doc::decimal(pod.arrival_ms, 3)).set("run", pod.run_s);
  doc.set("cpu", pod.cpu).set("memory", fmt::format("{}Gi", pod.memory_gib));
  if (pod.is_urgent) doc.set("priority", kUrgentPriority);
  if (pod.gpu_milli() == 0) return doc;
  Doc gpu = Doc::object();
  if (pod.kind->is_share) {
    gpu.set("share", Doc::decimal(pod.share, 3));
  } else {
    gpu.set("whole", pod.kind->gpus);
  }
  if (!pod.model.empty()) {
    Doc models = Doc::array();
    gpu.set("models", std::move(models.push(pod.model)));
  }
  doc.set("gpu", std::move(gpu));
  return doc;
}

}  // namespace

Doc sample_workload(const std::vector<SampleGroup>& groups, const SampleLoad& load,
                    std::uint64_t seed) {
  PodDrawer drawer(groups, load, seed);
  const std::int64_t gpus = std::max<std::int64_t>(sample_gpus(groups), 1);
  const std::int64_t wanted = gpus * 1000 * load.for_seconds / 100 * load.load_percent;
  std::vector<SamplePod> pods;
  std::int64_t asked = 0;  // milli-GPU seconds
  while (asked < wanted && static_cast<std::int64_t>(pods.size()) < load.pods_max) {
    pods.push_back(drawer.draw());
    asked += pods.back().gpu_milli() * pods.back().run_s;
  }
  std::ranges::stable_sort(pods, {}, &SamplePod::arrival_ms);
  Doc list = Doc::array();
  for (std::size_t i = 0; i < pods.size(); ++i) list.push(pod_doc(pods[i], i));
  Doc doc = Doc::object();
  doc.set("pods", std::move(list));
  return doc;
}

}  // namespace jogak::sim
