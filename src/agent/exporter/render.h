// SPDX-License-Identifier: Apache-2.0
//
// A snapshot of the node as Prometheus reads it: dcgm-exporter's series by the counters file, and
// ours under jogak_gpu_. One pass over the counters; labels are written once and kept until the
// structure of the node changes, so that a second's work is mostly copying.
//
// What is told of whom:
//   - a GPU without instances: its own series;
//   - a GPU cut into instances: what is measured of an instance (memory, profiling) as series of
//     the instance, and what belongs to the board (power, heat, clocks, errors) once, as a series
//     of the GPU, so that sums count it once. MigParent::Repeat gives dcgm-exporter's view instead,
//     where each instance repeats the values of its board;
//   - a device that one pod holds carries its pod; one that several share carries none, and what
//     each pod uses of it is in jogak_gpu_pod_* (with virtual_gpus also in the DCGM fields that
//     NVML tells by process), never the value of the device copied to each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/exporter/counters.h"
#include "agent/model/node_model.h"
#include "base/metrics.h"
#include "base/result.h"

namespace jogak::agent {

enum class MigParent : std::uint8_t { Once, Repeat };
Result<MigParent> parse_mig_parent(std::string_view text);  // "once", "repeat"

// Which devices are told, as dcgm-exporter's -d: "f" (whole GPUs, and instances where there are
// some), "g" or "g:0,2-4" (GPUs), "i" or "i:0,3" (instances, numbered through the node), or both
// kinds with a plus between: "g:0+i".
struct DeviceChoice {
  bool flex = true;
  // Without flex; a list names some of the kind, an empty one all.
  bool gpus = false, instances = false;
  std::vector<int> gpu_ids = {}, instance_ids = {};
  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};
Result<DeviceChoice> parse_device_choice(std::string_view text);

struct RenderOptions {
  Counters counters = default_counters(Naming::Classic);
  Naming naming = Naming::Classic;  // of the host's label: Hostname or hostname
  std::string hostname = {};        // "" no such label
  DeviceChoice devices = {};
  MigParent mig_parent = MigParent::Once;
  bool pod_labels = true;       // from the holders
  bool pod_uid = false;         // as a label too, where it is known
  bool pod_k8s_labels = false;  // the labels of the pod, where NodeSnapshot::pods has it
  // RE2 expressions of which one is found in the label's name; none: every label.
  std::vector<std::string> pod_label_allowlist = {};
  bool old_names = false;         // uuid, pod_name, pod_namespace, container_name
  bool blanks_to_dashes = false;  // in modelName
  bool virtual_gpus = false;      // shared DCGM fields by pod too, and a label vgpu
  bool own_series = true;         // jogak_gpu_*
  TimeUs xid_window = 300 * kSecondInUs;
  TimeUs clock_event_window = 300 * kSecondInUs;
};

// Invalid names the first expression that is none.
Result<void> check_label_allowlist(const std::vector<std::string>& expressions);

// Batch jobs by device: "0" is a GPU by index, "0.7" its GPU instance 7.
using JobTable = std::map<std::string, std::vector<std::string>, std::less<>>;

class Renderer {
 public:
  // The expressions of the allow list are good ones.
  explicit Renderer(RenderOptions options);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // All families, each once and whole; of OpenMetrics without the "# EOF" at the end. Equal
  // snapshots give equal text.
  std::string render(const NodeSnapshot& node, ExpositionFormat format);

  // From the next render() on.
  void set_counters(Counters counters);

  // Who runs where, as the label hpc_job; several jobs of one device with commas between.
  void set_jobs(JobTable jobs);

  const RenderOptions& options() const { return options_; }

 private:
  struct Entity;
  struct LabelFilter;
  void index(const NodeSnapshot& node);
  void add_gpu(const NodeSnapshot& node, const GpuView& gpu, std::size_t at, int& instances_seen);
  std::string device_labels(const NodeSnapshot& node, const nvml::GpuFacts& gpu,
                            const nvml::MigInstanceFacts* mig) const;
  void append_pod_labels(std::string& labels, const PodFacts& pod) const;
  void append_jobs(std::string& labels, const nvml::GpuFacts& gpu,
                   const nvml::MigInstanceFacts* mig) const;
  std::string holder_labels(const NodeSnapshot& node, const DeviceHolder& holder) const;
  void add_counter(std::string& out, const NodeSnapshot& node, const CounterSpec& spec,
                   ExpositionFormat format) const;
  void add_shares(std::string& out, const NodeSnapshot& node, const CounterSpec& spec,
                  const Entity& entity) const;
  void add_special(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                   const Entity& entity) const;
  static void add_health(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                         const Entity& entity);
  static void add_peers(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                        const Entity& entity);
  void add_own(std::string& out, const NodeSnapshot& node, ExpositionFormat format) const;
  void add_pod_series(std::string& out, const NodeSnapshot& node, ExpositionFormat format) const;

  RenderOptions options_;
  std::unique_ptr<LabelFilter> label_filter_;
  JobTable jobs_;
  std::vector<Entity> entities_;
  std::optional<std::uint64_t> structure_;
  std::size_t size_hint_ = 0;
};

}  // namespace jogak::agent
