// SPDX-License-Identifier: Apache-2.0
// Time averages over a cluster that changes: allocated and stranded GPU, and how full each node is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/policy/fragmentation.h"
#include "core/policy/gpu_view.h"

namespace jogak::sim {

class UsageMeter {
 public:
  // Averages count from `from_ns` to `to_ns`.
  UsageMeter(std::int64_t from_ns, std::int64_t to_ns) : from_ns_(from_ns), to_ns_(to_ns) {}

  void prepare(const core::Cluster& cluster, const core::WorkloadMix& mix);
  // The cluster was as last read until now.
  void advance(std::int64_t now_ns);
  // Reads again every node whose version has changed.
  void read(const core::Cluster& cluster);

  std::int64_t allocated_milli() const { return allocated_; }
  std::int64_t capacity_milli() const { return capacity_; }
  double allocated_percent() const;
  double stranded_gpus() const;
  // Name and average of the node whose fullest resource was fullest on average.
  std::pair<std::string, double> hottest() const;

 private:
  struct NodeUsage {
    std::uint64_t version = 0;
    std::int64_t capacity = 0, allocated = 0;  // GPU milli
    double stranded = 0;                       // GPU milli
    double load = 0;                           // of the fullest resource, 0 to 1
    double load_seconds = 0;
    double seconds = 0;
    std::string name;
    bool is_alive = false;
  };
  void read_node(const core::Cluster& cluster, const core::Node& node, NodeUsage& usage);

  std::int64_t from_ns_;
  std::int64_t to_ns_;
  std::int64_t now_ns_ = 0;
  core::GpuView view_;
  core::FragMix frag_;
  std::map<std::string, NodeUsage> nodes_;  // by name: a node that comes back is the same
  struct Slot {
    core::Symbol name;
    NodeUsage* usage = nullptr;  // into nodes_, whose entries stay where they are
  };
  std::vector<Slot> slots_;  // by node slot of the cluster
  std::vector<std::int32_t> sorted_;
  std::int64_t capacity_ = 0;
  std::int64_t allocated_ = 0;
  double stranded_ = 0;
  double capacity_seconds_ = 0;
  double allocated_seconds_ = 0;
  double stranded_seconds_ = 0;
  double seconds_ = 0;
};

}  // namespace jogak::sim
