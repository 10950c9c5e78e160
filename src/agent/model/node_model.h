// SPDX-License-Identifier: Apache-2.0
//
// The one model of the node: GPUs and their instances, what was measured, what is wrong, who holds
// what. Events go in, an immutable snapshot comes out, and every part of the agent (plugin, labels,
// exporter, inspect) reads that. Pure: no clock, no I/O; one owner.
//
//   nvml::Worker --facts, samples, events--> NodeModel --snapshot()--> exporter, plugin, labels
//   PodResources --holdings----------------^
//   /proc        --owners of processes-----^
//
// A snapshot shares what did not change with the one before it, so taking one each second is cheap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/node_health.h"
#include "agent/model/event_window.h"
#include "agent/model/holders.h"
#include "base/loop.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// Owners of processes, by pid as the host counts.
using ProcessOwners = std::map<std::int64_t, Holder>;

// What went over an NVLink, or over all of them, between the last two samples. In the unit that
// DCGM publishes: KiB/s/1000, whole.
struct LinkRate {
  std::int64_t tx = 0, rx = 0, both = 0;
};

// What the API server says of the pods of this node; only where somebody asks for it.
struct PodFacts {
  std::string uid;
  std::vector<std::pair<std::string, std::string>> labels;
  friend bool operator==(const PodFacts&, const PodFacts&) = default;
};
using PodTable = std::map<std::pair<std::string, std::string>, PodFacts>;  // namespace, name

// One GPU, in a snapshot.
struct GpuView {
  std::string uuid;
  // Null: the driver does not list it any more (its place is in `health` still).
  const nvml::GpuFacts* facts = nullptr;
  // The last good one; null: none yet, or the GPU is lost since.
  std::shared_ptr<const nvml::GpuSample> sample;
  TimeUs last_sample = 0;      // when it was asked successfully; 0 never
  std::string last_failure;    // "" none since the last good sample
  std::uint64_t last_xid = 0;  // 0 none since the agent started
  TimeUs last_xid_time = 0;
  // By XID, and by bit number of the clock event reasons (how often each began).
  std::shared_ptr<const EventWindow> xids;
  std::shared_ptr<const EventWindow> clock_events;
  LinkRate nvlink_rate = {};
  // Of each link; null: links are not read one by one.
  std::shared_ptr<const std::vector<LinkRate>> link_rates;
};

struct NodeSnapshot {
  TimeUs time = 0;
  // Grows when anything changed but what was measured: facts, holders, owners. Samples leave it.
  std::uint64_t structure = 0;
  std::shared_ptr<const nvml::NodeFacts> facts;  // never null; empty before the first look
  bool has_facts = false;
  std::vector<GpuView> gpus;  // as facts->gpus, then those not listed any more
  std::shared_ptr<const NodeHealthView> health;
  std::uint64_t health_changes = 0;
  std::shared_ptr<const std::vector<Holding>> holdings;
  std::shared_ptr<const HolderIndex> holders;
  std::string holdings_problem;  // "" none; else why the holders may be old
  std::shared_ptr<const ProcessOwners> owners;
  std::shared_ptr<const PodTable> pods;  // never null

  const GpuView* find(std::string_view uuid) const;
};

struct NodeModelOptions {
  HealthOptions health = {};
  TimeUs xid_window = 300 * kSecondInUs;
  TimeUs clock_event_window = 300 * kSecondInUs;
};

class NodeModel {
 public:
  explicit NodeModel(NodeModelOptions options = {});

  void on_facts(nvml::NodeFacts facts, TimeUs now);
  void on_facts_failure(const Error& error, TimeUs now);
  void on_sample(nvml::GpuSample sample);
  void on_sample_failure(const std::string& uuid, const Error& error, TimeUs now);
  void on_event(const nvml::GpuEvent& event);
  // All holdings there are; what is not among them is free.
  void on_holdings(std::vector<Holding> holdings, TimeUs now);
  // The kubelet could not be asked: what was known stays.
  void on_holdings_failure(const Error& error, TimeUs now);
  void on_owners(ProcessOwners owners);
  // All pods of the node, as far as they are known.
  void on_pods(PodTable pods);
  void on_tick(TimeUs now);
  // The operator says that a GPU ("" all) is well. False: no such GPU.
  bool clear_health(std::string_view uuid, TimeUs now);

  // Pids that the last samples show, sorted: the ones whose owners are worth finding.
  std::vector<std::int64_t> pids() const;
  std::uint64_t health_changes() const { return health_.changes(); }
  std::shared_ptr<const NodeSnapshot> snapshot(TimeUs now);

 private:
  struct Gpu {
    std::shared_ptr<const nvml::GpuSample> sample;
    TimeUs last_sample = 0;
    std::string last_failure;
    std::uint64_t last_xid = 0;
    TimeUs last_xid_time = 0;
    std::shared_ptr<EventWindow> xids, clock_events;
    std::uint64_t throttle_reasons = 0;
    LinkRate nvlink_rate = {};
    std::shared_ptr<const std::vector<LinkRate>> link_rates;
  };
  Gpu* find(std::string_view uuid);
  void index_holders();
  void count_clock_events(Gpu& gpu, const nvml::GpuSample& sample) const;
  static void measure_links(Gpu& gpu, const nvml::GpuSample& sample);

  NodeModelOptions options_;
  NodeHealth health_;
  std::map<std::string, Gpu, std::less<>> gpus_;  // by uuid
  std::shared_ptr<const nvml::NodeFacts> facts_;
  bool has_facts_ = false;
  std::shared_ptr<const std::vector<Holding>> holdings_;
  std::shared_ptr<const HolderIndex> holders_;
  std::string holdings_problem_;
  std::shared_ptr<const ProcessOwners> owners_;
  std::shared_ptr<const PodTable> pods_;
  std::uint64_t structure_ = 1;
  std::shared_ptr<const NodeHealthView> health_view_;
  std::optional<std::uint64_t> health_view_changes_;
};

}  // namespace jogak::agent
