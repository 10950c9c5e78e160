// SPDX-License-Identifier: Apache-2.0
//
// The health of all GPUs of a node: one GpuHealth each, so that what happens to one touches no
// other. What concerns the whole node (the driver is gone) is kept apart. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/gpu_health.h"
#include "base/loop.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// One GPU as it stands.
struct GpuHealthView {
  std::string uuid;
  int index = -1;
  std::string pci_bus_id;
  bool is_listed = true;  // by the driver, at the last look
  std::vector<HealthFact> facts;

  // The fact that keeps new pods away from the GPU, or from that instance of it; null: none. A fact
  // about one instance says nothing about the others, nor about the GPU as a whole while it is cut.
  const HealthFact* why_not(int gi_id = -1) const;
  bool is_usable(int gi_id = -1) const { return why_not(gi_id) == nullptr; }
  friend bool operator==(const GpuHealthView&, const GpuHealthView&) = default;
};

struct NodeHealthView {
  std::string driver_problem;  // "" none; else why no GPU can be asked
  TimeUs driver_problem_since = 0;
  std::vector<GpuHealthView> gpus;  // by index, those not listed any more last
  std::vector<int> nameless;        // indices of GPUs that were lost before they could be named
  const GpuHealthView* find(std::string_view uuid) const;
  friend bool operator==(const NodeHealthView&, const NodeHealthView&) = default;
};

// GPUs that went away are remembered until their place is taken, at most so many.
inline constexpr std::size_t kUnlistedMax = 64;

class NodeHealth {
 public:
  explicit NodeHealth(HealthOptions options = {}) : options_(std::move(options)) {}
  NodeHealth(const NodeHealth&) = delete;
  NodeHealth& operator=(const NodeHealth&) = delete;

  void on_facts(const nvml::NodeFacts& facts, TimeUs now);
  // The node's GPUs could not be listed: nothing is known to be wrong with any one of them.
  void on_facts_failure(const Error& error, TimeUs now);
  void on_sample(const nvml::GpuSample& sample);
  void on_failure(const std::string& uuid, const Error& error, TimeUs now);
  // An event of a GPU that nobody knows yet changes nothing; one without a uuid is the node's,
  // except that a GPU without a name is lost or back.
  void on_event(const nvml::GpuEvent& event);
  void on_tick(TimeUs now);
  // The operator's word: "" all GPUs. False: no such GPU.
  bool clear(std::string_view uuid, TimeUs now);

  // Grows whenever view() changed.
  std::uint64_t changes() const;
  NodeHealthView view() const;

 private:
  struct Gpu {
    GpuHealth health;
    int index = -1;
    std::string pci_bus_id;
    bool is_listed = true;
    TimeUs unlisted_at = 0;
  };
  void drop_replaced(const nvml::NodeFacts& facts);

  HealthOptions options_;
  std::map<std::string, Gpu, std::less<>> gpus_;  // by uuid
  std::optional<std::uint64_t> generation_;
  std::string driver_problem_;
  TimeUs driver_problem_since_ = 0;
  std::vector<int> nameless_;
  std::uint64_t changes_ = 0;  // beyond those of the GPUs that are here
};

}  // namespace jogak::agent
