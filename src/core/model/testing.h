// SPDX-License-Identifier: Apache-2.0
// Builders for tests: nodes and pods with good defaults, so that a test states only what matters.
//
//   Cluster cluster;
//   const NodeId n1 = add(cluster, NodeBuilder("n1").cpu(16).memory_gib(32));
//   const PodId web = add(cluster, PodBuilder("web").cpu(4).on("n1"));
//
// A pod without cpu() or memory() counts for scores with Kubernetes' defaults, as a container
// without requests does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"
#include "core/model/cluster.h"

namespace jogak::core {

// For failure messages.
inline void PrintTo(const Verdict& verdict, std::ostream* out) {
  static constexpr std::string_view kCodes[] = {"fits", "unschedulable", "unresolvable", "error"};
  *out << plugin_name(verdict.plugin) << ' ' << kCodes[static_cast<std::size_t>(verdict.code)];
}

}  // namespace jogak::core

namespace jogak::core::testing {

inline constexpr std::int64_t kMib = std::int64_t{1} << 20;
inline constexpr std::int64_t kGib = std::int64_t{1} << 30;

// Sets or replaces an entry of a sorted list of pairs.
template <class List, class Value>
void set_entry(List& list, std::string_view key, Value value) {
  const auto it = std::ranges::lower_bound(
      list, key, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (it != list.end() && it->first == key) {
    it->second = std::move(value);
  } else {
    list.emplace(it, std::string(key), std::move(value));
  }
}

inline Requirement in(std::string key, std::vector<std::string> values) {
  return {std::move(key), SelectorOp::In, std::move(values)};
}
inline Requirement not_in(std::string key, std::vector<std::string> values) {
  return {std::move(key), SelectorOp::NotIn, std::move(values)};
}
inline Requirement exists(std::string key) { return {std::move(key), SelectorOp::Exists, {}}; }
inline Requirement absent(std::string key) {
  return {std::move(key), SelectorOp::DoesNotExist, {}};
}
inline Requirement greater(std::string key, std::string value) {
  return {std::move(key), SelectorOp::Gt, {std::move(value)}};
}
inline Requirement less(std::string key, std::string value) {
  return {std::move(key), SelectorOp::Lt, {std::move(value)}};
}

// 64 cpu, 256 GiB, 110 pods, and the hostname label every kubelet sets.
class NodeBuilder {
 public:
  explicit NodeBuilder(std::string name) {
    spec_.name = std::move(name);
    label("kubernetes.io/hostname", spec_.name);
    cpu(64).memory_gib(256).pods(110);
  }

  NodeBuilder& cpu(std::int64_t cores) { return cpu_milli(cores * 1000); }
  NodeBuilder& cpu_milli(std::int64_t milli) { return resource("cpu", milli); }
  NodeBuilder& memory_gib(std::int64_t gib) { return memory(gib * kGib); }
  NodeBuilder& memory(std::int64_t bytes) { return resource("memory", bytes); }
  NodeBuilder& pods(std::int64_t count) { return resource("pods", count); }
  NodeBuilder& resource(std::string_view name, std::int64_t amount) {
    set_entry(spec_.allocatable, name, amount);
    return *this;
  }
  NodeBuilder& label(std::string_view key, std::string value) {
    set_entry(spec_.labels, key, std::move(value));
    return *this;
  }
  NodeBuilder& zone(std::string value) {
    return label("topology.kubernetes.io/zone", std::move(value));
  }
  NodeBuilder& taint(std::string key, std::string value = "",
                     TaintEffect effect = TaintEffect::NoSchedule) {
    spec_.taints.push_back({std::move(key), std::move(value), effect});
    return *this;
  }
  NodeBuilder& unschedulable() {
    spec_.unschedulable = true;
    return *this;
  }
  NodeBuilder& image(std::string name, std::int64_t size_bytes) {
    spec_.images.push_back({{std::move(name)}, size_bytes});
    return *this;
  }
  NodeBuilder& feature(std::string name) {
    spec_.declared_features.push_back(std::move(name));
    std::ranges::sort(spec_.declared_features);
    return *this;
  }
  // Devices with detail, and the matching nvidia.com/gpu capacity.
  NodeBuilder& gpus(std::string model, std::int32_t count, std::int32_t memory_mib) {
    spec_.gpu_model = std::move(model);
    for (std::int32_t i = 0; i < count; ++i) {
      GpuSpec gpu;
      gpu.memory_mib = memory_mib;
      spec_.gpus.push_back(std::move(gpu));
    }
    return resource("nvidia.com/gpu", count);
  }
  NodeBuilder& gpu(GpuSpec gpu) {
    spec_.gpus.push_back(std::move(gpu));
    return *this;
  }
  NodeBuilder& order(std::int32_t rank) {
    spec_.order = rank;
    return *this;
  }

  NodeSpec& spec() { return spec_; }
  const NodeSpec& spec() const { return spec_; }

 private:
  NodeSpec spec_;
};

// A pod of namespace "default" without requests.
class PodBuilder {
 public:
  explicit PodBuilder(std::string name) {
    spec_.ns = "default";
    spec_.name = std::move(name);
    shape().nonzero_cpu = 100;
    shape().nonzero_memory = 200 * kMib;
  }

  PodBuilder& ns(std::string name) {
    spec_.ns = std::move(name);
    return *this;
  }
  PodBuilder& label(std::string_view key, std::string value) {
    set_entry(spec_.labels, key, std::move(value));
    return *this;
  }
  PodBuilder& cpu(std::int64_t cores) { return cpu_milli(cores * 1000); }
  PodBuilder& cpu_milli(std::int64_t milli) {
    shape().nonzero_cpu = milli;
    return resource("cpu", milli);
  }
  PodBuilder& memory_gib(std::int64_t gib) { return memory(gib * kGib); }
  PodBuilder& memory(std::int64_t bytes) {
    shape().nonzero_memory = bytes;
    return resource("memory", bytes);
  }
  PodBuilder& resource(std::string_view name, std::int64_t amount) {
    set_entry(shape().requests, name, amount);
    return *this;
  }
  // Whole GPUs, as the extended resource and as devices.
  PodBuilder& gpus(std::int32_t count) {
    shape().gpu.kind = GpuAsk::Whole;
    shape().gpu.count = count;
    return resource("nvidia.com/gpu", count);
  }
  PodBuilder& gpu_milli(std::int32_t milli, std::int32_t count = 1) {
    return gpu_ask({GpuAsk::ShareMilli, count, milli, "", {}});
  }
  PodBuilder& gpu_mib(std::int32_t mib, std::int32_t count = 1) {
    return gpu_ask({GpuAsk::ShareMib, count, mib, "", {}});
  }
  PodBuilder& mig(std::string profile, std::int32_t count = 1) {
    return gpu_ask({GpuAsk::Mig, count, 0, std::move(profile), {}});
  }
  PodBuilder& gpu_ask(GpuRequest request) {
    shape().gpu = std::move(request);
    return *this;
  }
  PodBuilder& gpu_model(std::string model) {
    shape().gpu.models.push_back(std::move(model));
    std::ranges::sort(shape().gpu.models);
    return *this;
  }
  PodBuilder& priority(std::int32_t value) {
    shape().priority = value;
    return *this;
  }
  PodBuilder& tolerate(std::string key, std::string value,
                       std::optional<TaintEffect> effect = std::nullopt) {
    shape().tolerations.push_back({std::move(key), false, std::move(value), effect});
    return *this;
  }
  PodBuilder& tolerate_key(std::string key, std::optional<TaintEffect> effect = std::nullopt) {
    shape().tolerations.push_back({std::move(key), true, "", effect});
    return *this;
  }
  PodBuilder& node_selector(std::string key, std::string value) {
    shape().node_selector.push_back(in(std::move(key), {std::move(value)}));
    return *this;
  }
  // One more ORed term of the required node affinity.
  PodBuilder& node_affinity(std::vector<Requirement> labels, std::vector<Requirement> fields = {}) {
    if (!shape().node_affinity) shape().node_affinity.emplace();
    shape().node_affinity->push_back({std::move(labels), std::move(fields)});
    return *this;
  }
  PodBuilder& prefer_node(std::int32_t weight, std::vector<Requirement> labels) {
    shape().preferred_node.push_back({weight, {std::move(labels), {}}});
    return *this;
  }
  PodBuilder& host_port(std::int32_t port, std::string ip = "0.0.0.0",
                        std::string protocol = "TCP") {
    shape().host_ports.push_back({std::move(ip), std::move(protocol), port});
    return *this;
  }
  PodBuilder& image(std::string name) {
    shape().images.push_back(std::move(name));
    return *this;
  }
  PodBuilder& needs_feature(std::string name) {
    shape().required_features.push_back(std::move(name));
    std::ranges::sort(shape().required_features);
    return *this;
  }
  PodBuilder& spread(SpreadConstraint constraint) {
    shape().spread.push_back(std::move(constraint));
    return *this;
  }
  PodBuilder& start_time(std::int64_t time_ns) {
    spec_.start_time = time_ns;
    return *this;
  }
  PodBuilder& terminating() {
    spec_.terminating = true;
    return *this;
  }
  PodBuilder& nominate(std::string node) {
    spec_.nominated_node = std::move(node);
    return *this;
  }
  PodBuilder& on(std::string node) {
    spec_.bound_node = std::move(node);
    return *this;
  }
  PodBuilder& on(std::string node, std::vector<GpuHold> holds) {
    spec_.holds = std::move(holds);
    return on(std::move(node));
  }

  PodShape& shape() { return spec_.shape; }
  PodSpec& spec() { return spec_; }
  const PodSpec& spec() const { return spec_; }

 private:
  PodSpec spec_;
};

inline NodeId add(Cluster& cluster, const NodeBuilder& node) {
  const auto id = cluster.upsert_node(node.spec());
  JOGAK_CHECK(id.has_value(), "node {}: {}", node.spec().name, id.error().what);
  return *id;
}

inline PodId add(Cluster& cluster, const PodBuilder& pod) {
  const auto id = cluster.upsert_pod(pod.spec());
  JOGAK_CHECK(id.has_value(), "pod {}: {}", pod.spec().name, id.error().what);
  return *id;
}

// Adds the pod and shows it as filters and scores see it.
inline PodView view(Cluster& cluster, const PodBuilder& pod) {
  return PodView::of(cluster, add(cluster, pod));
}

}  // namespace jogak::core::testing
