// SPDX-License-Identifier: Apache-2.0
//
// What was listed becomes a second cluster by the same readers; the two are compared by name. What
// memory said before the listing is kept as one digest an object.
#include "live/drift.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/digest.h"
#include "import/observe.h"
#include "kube/decode.h"

namespace jogak::live {

namespace {

using core::Cluster;
using core::GpuAsk;
using core::Node;
using core::NodeId;
using core::Pod;
using core::PodId;
using core::PodState;

constexpr std::array<std::string_view, kDriftKinds> kNames = {
    "pod-missing",  "pod-extra",  "pod-node",   "pod-uid",      "pod-devices",
    "node-missing", "node-extra", "node-facts", "device-twice", "ledger"};

// Names to ids, in order; Extra carries what the id alone does not say.
std::map<std::string, PodId> pods_by_name(const Cluster& cluster) {
  std::map<std::string, PodId> pods;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    const PodId id{i};
    if (cluster.pod(id).state != PodState::Gone) pods.emplace(cluster.pod_full_name(id), id);
  }
  return pods;
}

std::map<std::string, NodeId> nodes_by_name(const Cluster& cluster) {
  std::map<std::string, NodeId> nodes;
  for (const NodeId id : cluster.node_order()) {
    nodes.emplace(cluster.text(cluster.node(id).name), id);
  }
  return nodes;
}

// The node a pod is on, known or not; "" while it waits.
std::string_view node_name_of(const Cluster& cluster, const Pod& pod) {
  if (pod.state == PodState::Placed) return cluster.text(cluster.node(pod.node).name);
  if (pod.state == PodState::Orphan) return cluster.text(pod.orphan_node);
  return "";
}

std::string place_text(std::string_view node) {
  return node.empty() ? "waiting" : fmt::format("on {}", node);
}

std::uint64_t pod_facts(const Cluster& cluster, PodId id) {
  const Pod& pod = cluster.pod(id);
  Digest digest;
  digest.add(pod.uid).add(node_name_of(cluster, pod)).add(pod.holds_known).add(pod.holds.size());
  for (const core::GpuHold& hold : pod.holds) {
    digest.add(hold.gpu).add(hold.amount).add(hold.mig_start);
  }
  return digest.value();
}

// A node's own facts as text, one a line, so that the first that differs can be shown.
std::vector<std::pair<std::string, std::string>> node_facts(const Cluster& cluster,
                                                            const Node& node) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"cpu", std::to_string(node.cpu_allocatable) + "m"},
      {"memory", std::to_string(node.memory_allocatable)},
      {"ephemeral-storage", std::to_string(node.storage_allocatable)},
      {"pods", std::to_string(node.pods_allocatable)},
      {"unschedulable", node.unschedulable ? "true" : "false"}};
  for (const core::ScalarAmount& scalar : node.scalars) {
    if (scalar.allocatable == 0) continue;  // known here from pods alone
    facts.emplace_back(cluster.scalar_name(scalar.id), std::to_string(scalar.allocatable));
  }
  for (const core::NodeLabel& label : node.labels) {
    facts.emplace_back(fmt::format("label {}", cluster.text(label.key)), cluster.text(label.value));
  }
  for (const core::Taint& taint : node.taints) {
    facts.emplace_back(fmt::format("taint {} {}", taint.key, static_cast<int>(taint.effect)),
                       taint.value);
  }
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const core::Gpu& gpu = node.gpus[i];
    facts.emplace_back(fmt::format("gpu {}", i),
                       fmt::format("{} MiB, health {}, mig {}", gpu.memory_mib,
                                   static_cast<int>(gpu.health), gpu.mig_enabled));
  }
  std::ranges::sort(facts);
  return facts;
}

std::uint64_t node_digest(const Cluster& cluster, const Node& node) {
  Digest digest;
  for (const auto& [name, value] : node_facts(cluster, node)) digest.add(name).add(value);
  return digest.value();
}

// "cpu: 8000m in memory, 4000m on the server"; "" when nothing differs.
std::string first_difference(const Cluster& memory, const Node& ours, const Cluster& listed,
                             const Node& theirs) {
  const auto mine = node_facts(memory, ours);
  const auto real = node_facts(listed, theirs);
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : mine) both[name].first = value;
  for (const auto& [name, value] : real) both[name].second = value;
  for (const auto& [name, values] : both) {
    if (values.first == values.second) continue;
    const auto shown = [](const std::string& v) { return v.empty() ? std::string("nothing") : v; };
    return fmt::format("{}: {} in memory, {} on the server", name, shown(values.first),
                       shown(values.second));
  }
  return "";
}

// Memory slices of the instance that the pod holds there; 0 when its profile is not known.
std::uint16_t mig_slices(const Cluster& cluster, const Pod& pod, const core::Gpu& gpu,
                         const core::GpuHold& hold) {
  if (gpu.mig_model == 0xff || hold.mig_start < 0) return 0;
  const core::MigModel& model = core::mig_models()[gpu.mig_model];
  const std::int32_t profile =
      core::find_mig_profile(model, cluster.shape(pod.shape).spec.gpu.mig_profile);
  if (profile < 0) return 0;
  return core::mig_mask(hold.mig_start, model.profiles[static_cast<std::size_t>(profile)].size);
}

// Adds the pods of one node up by device, from their holds alone: the ledger is not asked.
void find_shared_devices(const Cluster& cluster, const Node& node, std::string_view where,
                         std::vector<Drift>& out) {
  struct Use {
    std::int64_t units = 0;
    std::uint16_t slices = 0;
    bool is_over = false;
    std::string pods;
  };
  std::vector<Use> uses(node.gpus.size());
  std::vector<PodId> pods = node.pods;
  std::ranges::sort(pods, {}, [&](PodId id) { return cluster.pod_full_name(id); });
  for (const PodId id : pods) {
    const Pod& pod = cluster.pod(id);
    const GpuAsk kind = cluster.shape_of(id).spec.gpu.kind;
    for (const core::GpuHold& hold : pod.holds) {
      if (hold.gpu < 0 || static_cast<std::size_t>(hold.gpu) >= uses.size()) continue;
      const core::Gpu& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
      Use& use = uses[static_cast<std::size_t>(hold.gpu)];
      if (kind == GpuAsk::Mig) {
        const std::uint16_t slices = mig_slices(cluster, pod, gpu, hold);
        use.is_over = use.is_over || (use.slices & slices) != 0 || use.units > 0;
        use.slices |= slices;
      } else {
        use.units += gpu.units_of(kind, hold.amount);
        use.is_over = use.is_over || use.units > gpu.capacity_units || use.slices != 0;
      }
      use.pods.append(use.pods.empty() ? "" : ", ").append(cluster.pod_full_name(id));
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].is_over) continue;
    out.push_back({DriftKind::DeviceTwice, std::string(cluster.text(node.name)),
                   fmt::format("{}: GPU {} is held by {}", where, i, uses[i].pods)});
  }
}

}  // namespace

std::string_view drift_kind_name(DriftKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string DriftReport::text(std::size_t items_max) const {
  std::string out =
      fmt::format("{} nodes and {} pods compared, {} differences ({} objects were changing)\n",
                  nodes, pods, items.size(), changing);
  for (std::size_t i = 0; i < std::min(items_max, items.size()); ++i) {
    out += fmt::format("{} {}: {}\n", drift_kind_name(items[i].kind), items[i].object,
                       items[i].detail);
  }
  if (items.size() > items_max) out += fmt::format("and {} more\n", items.size() - items_max);
  return out;
}

struct DriftCheck::Impl {
  // What memory said at the start, by a digest of the name; looked up only.
  std::unordered_map<std::uint64_t, std::uint64_t> pods_before, nodes_before;
  Cluster listed;
  kube::Decoder decoder;
  std::size_t unreadable = 0;

  static std::uint64_t key(std::string_view name) { return Digest().add(name).value(); }
  // Whether memory says of it what it said at the start; 0: it does not know it.
  static bool is_settled(const std::unordered_map<std::uint64_t, std::uint64_t>& before,
                         const std::string& name, std::uint64_t now) {
    const auto at = before.find(key(name));
    return (at == before.end() ? 0 : at->second) == now;
  }

  Result<void> take(const kube::RawObject& raw);
  void compare_nodes(const Cluster& memory, DriftReport& report) const;
  void compare_pods(const Cluster& memory, const IsAssumed& is_assumed, DriftReport& report) const;
  static std::optional<Drift> pod_drift(const Cluster& memory, PodId ours, const Cluster& listed,
                                        PodId theirs);
};

DriftCheck::DriftCheck(const Cluster& memory) : impl_(std::make_unique<Impl>()) {
  for (const auto& [name, id] : pods_by_name(memory)) {
    impl_->pods_before.emplace(Impl::key(name), pod_facts(memory, id));
  }
  for (const auto& [name, id] : nodes_by_name(memory)) {
    impl_->nodes_before.emplace(Impl::key(name), node_digest(memory, memory.node(id)));
  }
}

DriftCheck::~DriftCheck() = default;

Result<void> DriftCheck::Impl::take(const kube::RawObject& raw) {
  auto object = decoder.decode(raw);
  bool is_read = false;
  if (!object.has_value()) {
    ++unreadable;
    return {};
  }
  if (auto* node = std::get_if<kube::Node>(&*object)) {
    is_read = importer::observe_node(listed, std::move(*node)).has_value();
  } else if (auto* pod = std::get_if<kube::Pod>(&*object)) {
    is_read = pod->finished || importer::observe_pod(listed, std::move(*pod)).has_value();
  } else {
    return invalid("expected a list of nodes or pods");
  }
  if (!is_read) ++unreadable;
  return {};
}

Result<void> DriftCheck::add(std::string_view list) {
  JOGAK_TRY(const auto objects, kube::split_objects(list));
  for (const kube::RawObject& raw : objects) JOGAK_TRY_VOID(impl_->take(raw));
  return {};
}

Result<void> DriftCheck::add_object(std::string_view kind, std::string_view json) {
  return impl_->take({.kind = kind, .json = json});
}

void DriftCheck::Impl::compare_nodes(const Cluster& memory, DriftReport& report) const {
  const auto ours = nodes_by_name(memory);
  const auto theirs = nodes_by_name(listed);
  const auto add = [&](DriftKind kind, const std::string& name, std::string detail,
                       std::uint64_t now) {
    if (!is_settled(nodes_before, name, now)) {
      ++report.changing;
    } else {
      report.items.push_back({kind, name, std::move(detail)});
    }
  };
  report.nodes = ours.size();
  for (const auto& [name, id] : ours) {
    const Node& node = memory.node(id);
    const auto real = theirs.find(name);
    if (real == theirs.end()) {
      add(DriftKind::NodeExtra, name, "not on the server", node_digest(memory, node));
    } else if (std::string what = first_difference(memory, node, listed, listed.node(real->second));
               !what.empty()) {
      add(DriftKind::NodeFacts, name, std::move(what), node_digest(memory, node));
    }
    find_shared_devices(memory, node, "in memory", report.items);
  }
  for (const auto& [name, id] : theirs) {
    find_shared_devices(listed, listed.node(id), "on the server", report.items);
    if (ours.contains(name)) continue;
    ++report.nodes;
    add(DriftKind::NodeMissing, name, "not in memory", 0);
  }
}

std::optional<Drift> DriftCheck::Impl::pod_drift(const Cluster& memory, PodId ours,
                                                 const Cluster& listed, PodId theirs) {
  const Pod& mine = memory.pod(ours);
  const Pod& real = listed.pod(theirs);
  if (mine.uid != real.uid) {
    return Drift{DriftKind::PodUid,
                 {},
                 fmt::format("uid {} in memory, {} on the server", mine.uid, real.uid)};
  }
  const std::string_view here = node_name_of(memory, mine);
  const std::string_view there = node_name_of(listed, real);
  if (here != there) {
    return Drift{
        DriftKind::PodNode,
        {},
        fmt::format("{} in memory, {} on the server", place_text(here), place_text(there))};
  }
  if (mine.holds_known && real.holds_known && mine.holds != real.holds) {
    return Drift{DriftKind::PodDevices, {}, "other devices in memory than on the server"};
  }
  return std::nullopt;
}

void DriftCheck::Impl::compare_pods(const Cluster& memory, const IsAssumed& is_assumed,
                                    DriftReport& report) const {
  const auto ours = pods_by_name(memory);
  const auto theirs = pods_by_name(listed);
  const auto add = [&](const std::string& name, std::uint64_t now, Drift drift) {
    const std::size_t slash = name.find('/');
    if (is_assumed && is_assumed(name.substr(0, slash), name.substr(slash + 1))) {
      ++report.changing;
    } else if (!is_settled(pods_before, name, now)) {
      ++report.changing;
    } else {
      drift.object = name;
      report.items.push_back(std::move(drift));
    }
  };
  report.pods = ours.size();
  for (const auto& [name, id] : ours) {
    const auto real = theirs.find(name);
    if (real == theirs.end()) {
      add(name, pod_facts(memory, id), {DriftKind::PodExtra, {}, "not on the server"});
    } else if (auto drift = pod_drift(memory, id, listed, real->second)) {
      add(name, pod_facts(memory, id), *std::move(drift));
    }
  }
  for (const auto& [name, id] : theirs) {
    if (ours.contains(name)) continue;
    ++report.pods;
    add(name, 0, {DriftKind::PodMissing, {}, place_text(node_name_of(listed, listed.pod(id)))});
  }
}

DriftReport DriftCheck::finish(const Cluster& memory, const IsAssumed& is_assumed) const {
  DriftReport report;
  report.unreadable = impl_->unreadable;
  impl_->compare_nodes(memory, report);
  impl_->compare_pods(memory, is_assumed, report);
  if (const std::string wrong = memory.recount(); !wrong.empty()) {
    report.items.push_back({DriftKind::Ledger, "memory", wrong});
  }
  for (const Drift& drift : report.items) ++report.counts[static_cast<std::size_t>(drift.kind)];
  return report;
}

}  // namespace jogak::live
