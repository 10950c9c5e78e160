// SPDX-License-Identifier: Apache-2.0
// How fast the core decides, on one core: streams of pods into large clusters, with churn once they
// are nearly full, so that every decision meets a cluster that changed since the last one. Timed
// are decide() and accept(); events (a pod arriving, a pod ending) are not. Prints one table, and
// with
// --json / --svg writes the figures and the plot of cost against cluster size.
//
//   build/bench/bench/scale_bench [--policy NAME] [--quick] [--json FILE] [--svg FILE]
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/file.h"
#include "base/mono_clock.h"
#include "base/rng.h"
#include "bench/scale_plot.h"
#include "core/engine/scheduler.h"

namespace jogak::bench {
namespace {

using core::Cluster;
using core::PodShape;

std::size_t heap_bytes() { return mallinfo2().uordblks; }

void add_nodes(Cluster& cluster, std::int32_t count, std::int32_t zones) {
  for (std::int32_t i = 0; i < count; ++i) {
    core::NodeSpec node;
    node.name = fmt::format("node-{:06}", i);
    node.labels = {{"kubernetes.io/hostname", node.name},
                   {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
                   {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % zones)}};
    node.allocatable = {{"cpu", 96000}, {"memory", std::int64_t{768} << 30}, {"pods", 110}};
    node.gpu_model = "NVIDIA-A100-SXM4-80GB";
    node.gpus.resize(8);
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
      node.gpus[g].memory_mib = 81920;
      node.gpus[g].numa_node = g < 4 ? 0 : 1;
    }
    JOGAK_CHECK(cluster.upsert_node(node).has_value());
  }
}

PodShape gpu_shape(std::int32_t count, std::int32_t milli, std::int64_t cpu) {
  PodShape shape;
  shape.requests = {{"cpu", cpu}, {"memory", cpu * (std::int64_t{4} << 20)}};
  shape.nonzero_cpu = cpu;
  shape.nonzero_memory = cpu * (std::int64_t{4} << 20);
  shape.gpu.kind = milli == 1000 ? core::GpuAsk::Whole : core::GpuAsk::ShareMilli;
  shape.gpu.count = count;
  shape.gpu.amount = milli == 1000 ? 0 : milli;
  return shape;
}

struct PodClass {
  PodShape shape;
  core::Identity identity;
  std::uint64_t weight = 1;
};

std::vector<PodClass> whole_classes() {
  return {{gpu_shape(1, 1000, 8000), {"train", {}, "", ""}, 60},
          {gpu_shape(2, 1000, 16000), {"train", {}, "", ""}, 20},
          {gpu_shape(4, 1000, 40000), {"train", {}, "", ""}, 12},
          {gpu_shape(8, 1000, 88000), {"train", {}, "", ""}, 8}};
}

std::vector<PodClass> share_classes() {
  std::vector<PodClass> classes;
  for (std::int32_t milli = 100; milli <= 900; milli += 50) {
    for (const std::int64_t cpu : {1000, 2000, 3000, 4000}) {
      classes.push_back({gpu_shape(1, milli, cpu), {"serve", {}, "", ""}, 1});
    }
  }
  return classes;
}

// Replicas of some services, spread over zones, that must not share a zone with batch pods, which
// in turn keep out of the zones of nothing: both sides of the rule are exercised.
std::vector<PodClass> constrained_classes() {
  std::vector<PodClass> classes;
  for (int app = 0; app < 16; ++app) {
    const std::string name = fmt::format("svc-{}", app);
    PodClass c{gpu_shape(1, 1000, 4000), {"serve", {{"app", name}, {"tier", "serve"}}, "", ""}, 1};
    core::SpreadConstraint spread;
    spread.max_skew = 2;
    spread.topology_key = "topology.kubernetes.io/zone";
    spread.selector = core::LabelSelector{{{"app", core::SelectorOp::In, {name}}}};
    c.shape.spread.push_back(spread);
    core::PodAffinityTerm term;
    term.topology_key = "topology.kubernetes.io/zone";
    term.selector = core::LabelSelector{{{"tier", core::SelectorOp::In, {"noisy"}}}};
    c.shape.required_anti_affinity.push_back(term);
    classes.push_back(std::move(c));
  }
  return classes;
}

core::WorkloadMix mix_of(std::span<const PodClass> classes) {
  core::WorkloadMix mix;
  for (const PodClass& c : classes) {
    core::MixClass m;
    for (const auto& [name, amount] : c.shape.requests) {
      if (name == "cpu") m.cpu = amount;
      if (name == "memory") m.memory = amount;
    }
    m.gpu_count = c.shape.gpu.count;
    m.gpu_milli = c.shape.gpu.kind == core::GpuAsk::Whole ? 1000 : c.shape.gpu.amount;
    m.weight = static_cast<std::int64_t>(c.weight);
    mix.push_back(m);
  }
  return mix;
}

struct Case {
  std::string name;
  std::int32_t nodes = 5000;
  std::int32_t zones = 20;
  std::vector<PodClass> classes;
  std::size_t decisions = 200000;
  double floor_per_s = 0;  // 0: none asked
};

struct Figures {
  double per_s = 0;
  std::int64_t p50_ns = 0, p99_ns = 0;
  std::size_t placed = 0, refused = 0;
  double pod_bytes = 0, node_bytes = 0;
  std::size_t cache_bytes_per_node = 0;
};

// Fills to 85 % of the GPUs, then keeps that level: one random pod ends before each arrival.
class Stream {
 public:
  Stream(Cluster& cluster, core::Scheduler& scheduler, std::span<const PodClass> classes)
      : cluster_(cluster), scheduler_(scheduler), rng_(7, "scale-bench") {
    for (const PodClass& c : classes) {
      shapes_.push_back(cluster.intern_shape(c.shape));
      identities_.push_back(cluster.intern_identity(c.identity));
      milli_.push_back(c.shape.gpu.kind == core::GpuAsk::Whole ? 1000 * c.shape.gpu.count
                                                               : c.shape.gpu.amount);
      for (std::uint64_t w = 0; w < c.weight; ++w) draw_.push_back(shapes_.size() - 1);
    }
  }

  // One arrival; returns the nanoseconds of decide and accept.
  std::int64_t step(std::int64_t limit_milli) {
    while (used_milli_ > limit_milli && !running_.empty()) {
      const std::size_t victim = rng_.below(running_.size());
      used_milli_ -= running_[victim].milli;
      cluster_.remove_pod(running_[victim].pod);
      running_[victim] = running_.back();
      running_.pop_back();
    }
    const std::size_t kind = draw_[rng_.below(draw_.size())];
    const std::string name = fmt::format("pod-{}", serial_++);
    const core::PodId pod = cluster_.add_pending(name, name, shapes_[kind], identities_[kind]);
    const std::int64_t start = mono_now_ns();
    const core::Decision decision = scheduler_.decide(pod);
    if (decision.node.valid()) scheduler_.accept(decision);
    const std::int64_t took = mono_now_ns() - start;
    if (decision.node.valid()) {
      running_.push_back({pod, milli_[kind]});
      used_milli_ += milli_[kind];
      ++placed_;
    } else {
      cluster_.remove_pod(pod);
      ++refused_;
    }
    return took;
  }

  std::size_t placed() const { return placed_; }
  std::size_t refused() const { return refused_; }
  std::size_t running() const { return running_.size(); }

 private:
  struct Running {
    core::PodId pod;
    std::int64_t milli = 0;
  };
  Cluster& cluster_;
  core::Scheduler& scheduler_;
  Rng rng_;
  std::vector<core::ShapeId> shapes_;
  std::vector<core::IdentityId> identities_;
  std::vector<std::int64_t> milli_;
  std::vector<std::size_t> draw_;
  std::vector<Running> running_;
  std::int64_t used_milli_ = 0;
  std::size_t serial_ = 0, placed_ = 0, refused_ = 0;
};

Figures run(const Case& c, std::string_view policy_name) {
  const std::size_t heap_start = heap_bytes();
  Cluster cluster;
  add_nodes(cluster, c.nodes, c.zones);
  const std::size_t heap_nodes = heap_bytes();
  auto policy = core::make_policy(policy_name, 1);
  JOGAK_CHECK(policy.has_value(), "unknown policy {}", policy_name);
  core::Scheduler scheduler(cluster, **policy);
  scheduler.set_mix(mix_of(c.classes));
  Stream stream(cluster, scheduler, c.classes);
  const std::int64_t limit = std::int64_t{c.nodes} * 8 * 850;
  // Warm-up: every class has been seen and the cluster is at its level.
  const std::size_t heap_before = heap_bytes();
  const std::size_t cache_before = scheduler.cache_bytes();
  std::size_t warm = 0;
  const std::size_t warm_max = 40 * static_cast<std::size_t>(c.nodes) + c.decisions;
  for (std::size_t steady = 0; steady < 2000 && warm < warm_max; ++warm) {
    const std::size_t before = stream.running();
    static_cast<void>(stream.step(limit));
    steady += stream.running() <= before ? 1 : 0;
  }
  Figures f;
  const std::size_t caches = scheduler.cache_bytes() - cache_before;
  f.pod_bytes = static_cast<double>(heap_bytes() - heap_before - caches) /
                static_cast<double>(std::max<std::size_t>(stream.running(), 1));
  f.node_bytes = static_cast<double>(heap_nodes - heap_start) / c.nodes;
  f.cache_bytes_per_node = scheduler.cache_bytes() / static_cast<std::size_t>(c.nodes);
  std::vector<std::int64_t> times(c.decisions);
  const std::size_t placed = stream.placed();
  const std::size_t refused = stream.refused();
  std::int64_t total = 0;
  for (std::int64_t& t : times) {
    t = stream.step(limit);
    total += t;
  }
  std::sort(times.begin(), times.end());
  f.per_s = static_cast<double>(c.decisions) * 1e9 / static_cast<double>(total);
  f.p50_ns = times[times.size() / 2];
  f.p99_ns = times[times.size() * 99 / 100];
  f.placed = stream.placed() - placed;
  f.refused = stream.refused() - refused;
  JOGAK_CHECK(cluster.recount().empty(), "{}", cluster.recount());
  return f;
}

// A pod of a shape already known to fit nowhere, asked again and again.
double unschedulable_ns(std::string_view policy_name) {
  Cluster cluster;
  add_nodes(cluster, 5000, 20);
  auto policy = core::make_policy(policy_name, 1);
  core::Scheduler scheduler(cluster, **policy);
  const auto shape = cluster.intern_shape(gpu_shape(8, 1000, 200000));
  const auto identity = cluster.intern_identity({"train", {}, "", ""});
  const core::PodId pod = cluster.add_pending("huge", "huge", shape, identity);
  JOGAK_CHECK(!scheduler.decide(pod).node.valid());
  constexpr int kRounds = 1000000;
  std::int64_t checksum = 0;
  const std::int64_t start = mono_now_ns();
  for (int i = 0; i < kRounds; ++i) checksum += scheduler.decide(pod).node.valid() ? 1 : 0;
  const std::int64_t took = mono_now_ns() - start;
  JOGAK_CHECK(checksum == 0);
  return static_cast<double>(took) / kRounds;
}

std::vector<Case> cases(bool quick) {
  const std::size_t n = quick ? 20000 : 200000;
  return {{"5,000 x 8, whole GPUs, 4 shapes", 5000, 20, whole_classes(), n, 200000},
          {"5,000 x 8, shares, 68 shapes", 5000, 20, share_classes(), n, 50000},
          {"5,000 x 8, zone anti-affinity + spread", 5000, 20, constrained_classes(), n, 20000},
          {"100,000 x 8, whole GPUs, 4 shapes", 100000, 100, whole_classes(), n, 50000}};
}

int main_checked(std::string_view policy, bool quick, const std::string& json,
                 const std::string& svg) {
  fmt::print("policy {}, one core\n", policy);
  fmt::print("{:42} {:>12} {:>9} {:>9} {:>8} {:>8} {:>9} {:>10} {:>8}\n", "stream", "decisions/s",
             "p50 ns", "p99 ns", "placed", "refused", "B a pod", "B a node", "floor");
  std::string out = fmt::format("{{\"policy\": \"{}\", \"cases\": [", policy);
  bool first = true;
  for (const Case& c : cases(quick)) {
    const Figures f = run(c, policy);
    fmt::print("{:42} {:>12.0f} {:>9} {:>9} {:>8} {:>8} {:>9.0f} {:>10.0f} {:>8.0f}\n", c.name,
               f.per_s, f.p50_ns, f.p99_ns, f.placed, f.refused, f.pod_bytes,
               f.node_bytes + static_cast<double>(f.cache_bytes_per_node), c.floor_per_s);
    std::fflush(stdout);
    out += fmt::format(
        "{}\n  {{\"name\": \"{}\", \"per_s\": {:.0f}, \"p50_ns\": {}, \"p99_ns\": {}, "
        "\"bytes_per_pod\": {:.0f}, \"bytes_per_node\": {:.0f}, \"cache_bytes_per_node\": {}}}",
        first ? "" : ",", c.name, f.per_s, f.p50_ns, f.p99_ns, f.pod_bytes, f.node_bytes,
        f.cache_bytes_per_node);
    first = false;
  }
  const double refused_ns = unschedulable_ns(policy);
  fmt::print("{:42} {:>9.0f} ns a decision (floor: under 1000)\n",
             "5,000 x 8, known shape that fits nowhere", refused_ns);
  out += fmt::format("],\n \"unschedulable_ns\": {:.0f}, \"scaling\": [", refused_ns);

  std::vector<ScalePoint> points;
  for (const std::int32_t nodes : {100, 300, 1000, 3000, 10000, 30000, 100000}) {
    const Figures f = run({"", nodes, 20, whole_classes(), quick ? 10000UL : 50000UL, 0}, policy);
    points.push_back({nodes, 1e9 / f.per_s, static_cast<double>(f.p99_ns)});
    fmt::print("  {:>7} nodes: {:>7.0f} ns a decision, p99 {:>7} ns\n", nodes, 1e9 / f.per_s,
               f.p99_ns);
    out += fmt::format("{}{{\"nodes\": {}, \"mean_ns\": {:.0f}, \"p99_ns\": {}}}",
                       points.size() == 1 ? "" : ", ", nodes, 1e9 / f.per_s, f.p99_ns);
  }
  out += "]}\n";
  if (!json.empty()) JOGAK_CHECK(write_file(json, out).has_value());
  if (!svg.empty()) JOGAK_CHECK(write_file(svg, scale_plot(points, policy)).has_value());
  return 0;
}

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  std::string policy = "jogak";
  std::string json;
  std::string svg;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--quick") {
      quick = true;
    } else if (arg == "--policy" && has_value) {
      policy = argv[++i];
    } else if (arg == "--json" && has_value) {
      json = argv[++i];
    } else if (arg == "--svg" && has_value) {
      svg = argv[++i];
    } else {
      std::fprintf(stderr, "usage: scale_bench [--policy NAME] [--quick] [--json F] [--svg F]\n");
      return 2;
    }
  }
  return jogak::bench::main_checked(policy, quick, json, svg);
}
