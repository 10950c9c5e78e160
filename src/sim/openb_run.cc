// SPDX-License-Identifier: Apache-2.0
// The loop of the openb experiment and its records.
#include "sim/openb_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/digest.h"
#include "base/mono_clock.h"
#include "base/units.h"
#include "core/engine/scheduler.h"
#include "core/plan/validate.h"
#include "core/policy/gpu_view.h"

namespace jogak::sim {

namespace {

constexpr std::int64_t kPodsPerNode = 1001;  // as the published experiment has it

core::NodeSpec node_spec(const OpenbNode& node, std::int32_t rank) {
  core::NodeSpec spec;
  spec.name = node.name;
  spec.allocatable = {
      {"cpu", node.cpu_milli}, {"memory", node.memory_mib * kBytesPerMib}, {"pods", kPodsPerNode}};
  spec.gpu_model = node.model;
  spec.gpus.resize(static_cast<std::size_t>(node.gpus));
  spec.order = rank;
  return spec;
}

core::PodShape pod_shape(const OpenbPod& pod) {
  core::PodShape shape;
  const std::int64_t memory = pod.memory_mib * kBytesPerMib;
  shape.requests = {{"cpu", pod.cpu_milli}, {"memory", memory}};
  shape.nonzero_cpu = pod.cpu_milli;
  shape.nonzero_memory = memory;
  if (pod.gpus > 0) {
    const bool is_share = pod.gpu_milli < core::kWholeMilli;
    shape.gpu.kind = is_share ? core::GpuAsk::ShareMilli : core::GpuAsk::Whole;
    shape.gpu.count = pod.gpus;
    shape.gpu.amount = is_share ? pod.gpu_milli : 0;
    shape.gpu.models = pod.models;
  }
  return shape;
}

std::string holds_text(const std::vector<core::GpuHold>& holds) {
  std::string text;
  for (const core::GpuHold& hold : holds) {
    if (!text.empty()) text += ' ';
    text += std::to_string(hold.gpu);
    if (hold.amount > 0) text += ":" + std::to_string(hold.amount);
  }
  return text;
}

class OpenbRun {
 public:
  OpenbRun(const OpenbNodes& nodes, const OpenbVariant& variant, const OpenbOrder& order,
           const OpenbRunOptions& options, core::Policy& policy)
      : nodes_(nodes),
        variant_(variant),
        order_(order),
        options_(options),
        scheduler_(cluster_, policy) {}

  Result<void> prepare(const core::WorkloadMix& mix);
  OpenbResult run();

 private:
  void step(std::size_t position, std::int32_t pod);
  void book(const core::Decision& decision, std::size_t position, const OpenbPod& pod);
  void fail(const OpenbPod& pod);
  void record();
  std::int64_t fragmentation_of(core::NodeId node);
  void finish();

  const OpenbNodes& nodes_;
  const OpenbVariant& variant_;
  const OpenbOrder& order_;
  const OpenbRunOptions& options_;
  core::Cluster cluster_;
  core::Scheduler scheduler_;
  core::IdentityId identity_;
  std::vector<core::ShapeId> shapes_;  // by pod index
  core::GpuView view_;
  core::FragMix frag_;
  std::vector<std::int64_t> frag_of_node_;  // by node slot
  std::int64_t frag_total_ = 0;
  std::int64_t arrived_milli_ = 0;
  std::vector<std::int32_t> sorted_;  // scratch
  std::vector<std::int64_t> durations_ns_;
  using FailureKey =
      std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t, std::vector<std::string>>;
  std::map<FailureKey, OpenbFailures> failures_;
  Digest digest_;
  OpenbResult result_;
};

Result<void> OpenbRun::prepare(const core::WorkloadMix& mix) {
  result_.variant = variant_.name;
  result_.policy = options_.policy;
  result_.seed = order_.seed;
  result_.published_order = order_.is_published;
  result_.capacity_milli = nodes_.gpu_milli();
  result_.pods = static_cast<std::int64_t>(order_.arrivals.size());
  for (std::size_t i = 0; i < nodes_.nodes.size(); ++i) {
    JOGAK_TRY_VOID(cluster_.upsert_node(node_spec(nodes_.nodes[i], order_.node_rank[i])));
  }
  identity_ = cluster_.intern_identity({"default", {}, "", ""});
  for (const OpenbPod& pod : variant_.pods.pods) {
    shapes_.push_back(cluster_.intern_shape(pod_shape(pod)));
  }
  scheduler_.set_mix(mix);
  view_.prepare(cluster_);
  frag_.prepare(cluster_, variant_.mix);
  frag_of_node_.assign(cluster_.nodes().size(), 0);
  for (const core::NodeId node : cluster_.node_order()) {
    frag_of_node_[node.value] = fragmentation_of(node);
    frag_total_ += frag_of_node_[node.value];
  }
  durations_ns_.reserve(order_.arrivals.size());
  return {};
}

std::int64_t OpenbRun::fragmentation_of(core::NodeId id) {
  const core::Node& node = cluster_.node(id);
  sorted_ = view_.look(node, core::GpuAsk::Whole).milli;
  std::ranges::sort(sorted_);
  return frag_.fragmentation(node.gpu_model, core::free_cpu(node), sorted_);
}

void OpenbRun::book(const core::Decision& decision, std::size_t position, const OpenbPod& pod) {
  result_.allocated_milli += pod.gpu_total();
  std::int64_t& frag = frag_of_node_[decision.node.value];
  frag_total_ -= frag;
  frag = fragmentation_of(decision.node);
  frag_total_ += frag;
  const std::string_view node = cluster_.text(cluster_.node(decision.node).name);
  digest_.add(node).add(decision.holds.size());
  for (const core::GpuHold& hold : decision.holds) {
    digest_.add(hold.gpu).add(hold.amount).add(hold.mig_start);
  }
  if (options_.keep_placements) {
    result_.placements.push_back(fmt::format("{},{},{},{},{},{},{}", result_.variant,
                                             result_.policy, result_.seed, position, pod.name, node,
                                             holds_text(decision.holds)));
  }
}

void OpenbRun::fail(const OpenbPod& pod) {
  OpenbFailures& class_failures =
      failures_[{pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models}];
  class_failures.example = pod;
  ++class_failures.pods;
  class_failures.gpu_milli += pod.gpu_total();
  digest_.add("").add(0);
}

void OpenbRun::step(std::size_t position, std::int32_t index) {
  const OpenbPod& pod = variant_.pods.pods[static_cast<std::size_t>(index)];
  arrived_milli_ += pod.gpu_total();
  digest_.add(pod.name);
  // Clones share a name in the trace; here each pod needs its own.
  const std::string name = fmt::format("{}.{}", pod.name, position);
  const core::PodId id =
      cluster_.add_pending(name, name, shapes_[static_cast<std::size_t>(index)], identity_);
  const std::int64_t start_ns = mono_now_ns();
  const core::Decision decision = scheduler_.decide(id);
  std::string broken;
  if (options_.check && decision.node.valid()) broken = core::validate(cluster_, decision);
  JOGAK_CHECK(broken.empty(), "pod {}: {}", name, broken);
  if (decision.node.valid()) scheduler_.accept(decision);
  durations_ns_.push_back(mono_now_ns() - start_ns);
  if (decision.node.valid()) {
    book(decision, position, pod);
  } else {
    fail(pod);
    cluster_.remove_pod(id);
  }
  record();
}

void OpenbRun::record() {
  const std::size_t at = percent_column(arrived_milli_, result_.capacity_milli);
  if (at >= kOpenbColumns) return;
  OpenbColumn& column = result_.columns[at];
  ++column.records;
  column.allocated_milli += result_.allocated_milli;
  column.fragmented += frag_total_;
}

OpenbResult OpenbRun::run() {
  const std::int64_t start_ns = mono_now_ns();
  for (std::size_t i = 0; i < order_.arrivals.size(); ++i) step(i, order_.arrivals[i]);
  result_.timing.run_ns = mono_now_ns() - start_ns;
  finish();
  return std::move(result_);
}

void OpenbRun::finish() {
  for (const core::NodeId id : cluster_.node_order()) {
    const core::Node& node = cluster_.node(id);
    result_.cpu_milli += node.cpu_requested;
    result_.cpu_capacity_milli += node.cpu_allocatable;
    result_.memory_mib += node.memory_requested / kBytesPerMib;
    result_.memory_capacity_mib += node.memory_allocatable / kBytesPerMib;
    if (!node.pods.empty()) ++result_.nodes_used;
    for (const core::Gpu& gpu : node.gpus) {
      if (!gpu.fully_free()) ++result_.devices_touched;
    }
    sorted_ = view_.look(node, core::GpuAsk::Whole).milli;
    std::ranges::sort(sorted_);
    result_.frag += frag_.breakdown(node.gpu_model, core::free_cpu(node), sorted_);
  }
  result_.frag_weight = frag_.total_weight();
  for (auto& [key, failures] : failures_) result_.failures.push_back(std::move(failures));
  std::ranges::stable_sort(result_.failures, std::greater<>{}, &OpenbFailures::gpu_milli);
  result_.digest = digest_.value();
  std::ranges::sort(durations_ns_);
  for (const std::int64_t ns : durations_ns_) result_.timing.total_ns += ns;
  if (!durations_ns_.empty()) {
    result_.timing.p50_ns = durations_ns_[durations_ns_.size() / 2];
    result_.timing.p99_ns = durations_ns_[durations_ns_.size() * 99 / 100];
  }
  if (!options_.check) return;
  JOGAK_CHECK(result_.frag.fragmented() == frag_total_);
  std::string broken = cluster_.recount();
  if (broken.empty()) broken = core::validate_cluster(cluster_);
  JOGAK_CHECK(broken.empty(), "{}", broken);
}

}  // namespace

std::size_t percent_column(std::int64_t a, std::int64_t b) {
  const std::int64_t scaled = a * 100;
  const std::int64_t floor = scaled / b;
  const std::int64_t twice = 2 * (scaled - floor * b);
  const bool goes_up = twice > b || (twice == b && floor % 2 == 1);
  return static_cast<std::size_t>(floor + (goes_up ? 1 : 0));
}

double OpenbResult::allocated_percent(std::size_t column) const {
  const OpenbColumn& c = columns[column];
  if (c.records == 0) return std::numeric_limits<double>::quiet_NaN();
  return 100.0 * static_cast<double>(c.allocated_milli) /
         (static_cast<double>(c.records) * static_cast<double>(capacity_milli));
}

double OpenbResult::fragmented_percent(std::size_t column) const {
  const OpenbColumn& c = columns[column];
  if (c.records == 0) return std::numeric_limits<double>::quiet_NaN();
  const double weight = static_cast<double>(c.records) * static_cast<double>(frag_weight);
  return 100.0 * static_cast<double>(c.fragmented) / (weight * static_cast<double>(capacity_milli));
}

std::int64_t OpenbResult::failed_pods() const {
  std::int64_t sum = 0;
  for (const OpenbFailures& f : failures) sum += f.pods;
  return sum;
}

std::string openb_class_text(const OpenbPod& pod) {
  std::string text = fmt::format("{}m cpu {} MiB", pod.cpu_milli, pod.memory_mib);
  if (pod.gpus > 0) text += fmt::format(" {}x{}m gpu", pod.gpus, pod.gpu_milli);
  for (std::size_t i = 0; i < pod.models.size(); ++i) {
    text += (i == 0 ? " " : "|") + pod.models[i];
  }
  return text;
}

Result<OpenbResult> run_openb(const OpenbNodes& nodes, const OpenbVariant& variant,
                              const OpenbOrder& order, const core::WorkloadMix& mix,
                              const OpenbRunOptions& options) {
  JOGAK_TRY(const auto policy,
            core::make_policy(options.policy, static_cast<std::uint64_t>(order.seed)));
  OpenbRun run(nodes, variant, order, options, *policy);
  JOGAK_TRY_VOID(run.prepare(mix));
  return run.run();
}

}  // namespace jogak::sim
