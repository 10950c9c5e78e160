// SPDX-License-Identifier: Apache-2.0
// See usage_meter.h.
#include "sim/usage_meter.h"

#include <algorithm>

namespace jogak::sim {

namespace {

double share(std::int64_t used, std::int64_t all) {
  return all > 0 ? static_cast<double>(used) / static_cast<double>(all) : 0;
}

}  // namespace

void UsageMeter::prepare(const core::Cluster& cluster, const core::WorkloadMix& mix) {
  view_.prepare(cluster);
  frag_.prepare(cluster, mix);
}

void UsageMeter::advance(std::int64_t now_ns) {
  const std::int64_t from = std::max(now_ns_, from_ns_);
  const std::int64_t to = std::min(now_ns, to_ns_);
  now_ns_ = now_ns;
  if (to <= from) return;
  const double seconds = static_cast<double>(to - from) / 1e9;
  seconds_ += seconds;
  capacity_seconds_ += seconds * static_cast<double>(capacity_);
  allocated_seconds_ += seconds * static_cast<double>(allocated_);
  stranded_seconds_ += seconds * stranded_;
  for (auto& [name, usage] : nodes_) {
    if (!usage.is_alive) continue;
    usage.seconds += seconds;
    usage.load_seconds += seconds * usage.load;
  }
}

void UsageMeter::read_node(const core::Cluster& cluster, const core::Node& node, NodeUsage& usage) {
  usage.version = node.version;
  usage.name = std::string(cluster.text(node.name));
  std::int64_t free = 0;
  std::int64_t devices = 0;
  for (const core::GpuAsk kind : {core::GpuAsk::Whole, core::GpuAsk::Mig}) {
    const core::FreeGpus& seen = view_.look(node, kind);
    free += seen.total;
    devices += seen.devices;
  }
  usage.capacity = devices * core::kWholeMilli;
  usage.allocated = usage.capacity - free;

  sorted_.clear();
  for (const std::int32_t milli : view_.look(node, core::GpuAsk::Whole).milli) {
    if (milli != core::FreeGpus::kHidden) sorted_.push_back(milli);
  }
  std::ranges::sort(sorted_);
  const core::FragBreakdown b = frag_.breakdown(node.gpu_model, core::free_cpu(node), sorted_);
  const auto cause = [&b](core::FragCause c) { return b.by_cause[static_cast<std::size_t>(c)]; };
  const std::int64_t unusable =
      cause(core::FragCause::LacksGpuAndCpu) + cause(core::FragCause::LacksGpu) +
      cause(core::FragCause::LacksCpu) + cause(core::FragCause::ModelExcluded);
  usage.stranded = frag_.gpu_weight() > 0
                       ? static_cast<double>(unusable) / static_cast<double>(frag_.gpu_weight())
                       : 0;
  usage.load = std::max({share(node.cpu_requested, node.cpu_allocatable),
                         share(node.memory_requested, node.memory_allocatable),
                         share(usage.allocated, usage.capacity)});
}

void UsageMeter::read(const core::Cluster& cluster) {
  for (auto& [name, usage] : nodes_) usage.is_alive = false;
  for (const core::NodeId id : cluster.node_order()) {
    const core::Node& node = cluster.node(id);
    if (slots_.size() <= id.value) slots_.resize(id.value + 1);
    Slot& slot = slots_[id.value];
    if (slot.usage == nullptr || slot.name != node.name) {
      slot = {node.name, &nodes_[std::string(cluster.text(node.name))]};
    }
    NodeUsage& usage = *slot.usage;
    usage.is_alive = true;
    if (usage.version != node.version) read_node(cluster, node, usage);
  }
  capacity_ = 0;
  allocated_ = 0;
  stranded_ = 0;
  for (const auto& [name, usage] : nodes_) {
    if (!usage.is_alive) continue;
    capacity_ += usage.capacity;
    allocated_ += usage.allocated;
    stranded_ += usage.stranded;
  }
}

double UsageMeter::allocated_percent() const {
  if (capacity_seconds_ > 0) return 100 * allocated_seconds_ / capacity_seconds_;
  return 100 * share(allocated_, capacity_);  // no time passed: as it is now
}

double UsageMeter::stranded_gpus() const {
  return (seconds_ > 0 ? stranded_seconds_ / seconds_ : stranded_) / core::kWholeMilli;
}

std::pair<std::string, double> UsageMeter::hottest() const {
  std::pair<std::string, double> best{"", -1};
  for (const auto& [name, usage] : nodes_) {
    const double load = usage.seconds > 0 ? usage.load_seconds / usage.seconds : usage.load;
    if (load > best.second) best = {name, load};
  }
  return {best.first, 100 * std::max(best.second, 0.0)};
}

}  // namespace jogak::sim
