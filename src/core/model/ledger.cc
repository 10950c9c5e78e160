// SPDX-License-Identifier: Apache-2.0
// The ledger: what a placed pod takes from its node and devices, booked and taken back by the same
// lines with opposite sign, and a recount from the pods alone that shares none of them.
#include <fmt/core.h>
#include <algorithm>

#include "base/check.h"
#include "core/model/cluster.h"
#include "core/model/mig.h"

namespace jogak::core {
namespace {

// The device's profile that the pod asks for, or nullptr.
const MigProfile* asked_profile(const Gpu& gpu, const Shape& shape) {
  if (gpu.mig_model == 0xff || shape.mig_profile.empty()) return nullptr;
  const std::int32_t profile = shape.mig_profile[gpu.mig_model];
  if (profile < 0) return nullptr;
  return &mig_models()[gpu.mig_model].profiles[static_cast<std::size_t>(profile)];
}

// Memory slices of a partitioned device that the hold takes. Pods and nodes report separately, so
// an observed hold may not be what the device looks like now (partitioning was switched, the
// profile is another model's): then nobody knows which slices, and all count as taken.
std::uint16_t hold_mask(const Gpu& gpu, const Shape& shape, const GpuHold& hold) {
  if (!gpu.mig_enabled || gpu.mig_model == 0xff) return 0;
  const std::int32_t slices = mig_models()[gpu.mig_model].slices;
  const MigProfile* const profile = asked_profile(gpu, shape);
  if (profile == nullptr || hold.mig_start < 0 || hold.mig_start + profile->size > slices) {
    return mig_mask(0, slices);
  }
  return mig_mask(hold.mig_start, profile->size);
}

}  // namespace

void Cluster::book(const Pod& pod, Node& node, int sign) {
  const Shape& shape = shapes_[pod.shape.value];
  node.cpu_requested += sign * shape.cpu;
  node.memory_requested += sign * shape.memory;
  node.storage_requested += sign * shape.storage;
  node.cpu_nonzero += sign * shape.spec.nonzero_cpu;
  node.memory_nonzero += sign * shape.spec.nonzero_memory;
  for (const ScalarRequest& ask : shape.scalars) {
    auto at = std::lower_bound(node.scalars.begin(), node.scalars.end(), ask.id,
                               [](const ScalarAmount& s, ScalarId id) { return s.id < id; });
    if (at == node.scalars.end() || at->id != ask.id) {
      at = node.scalars.insert(at, {ask.id, 0, 0});
    }
    at->requested += sign * ask.amount;
  }
  for (const HostPort& port : shape.spec.host_ports) {
    const UsedPort used{symbols_.intern(port.ip), symbols_.intern(port.protocol), port.port};
    if (sign > 0) {
      node.ports.push_back(used);
    } else {
      const auto at = std::find(node.ports.begin(), node.ports.end(), used);
      JOGAK_CHECK(at != node.ports.end());
      node.ports.erase(at);
    }
  }
  if (shape.spec.gpu.kind != GpuAsk::None && !node.gpus.empty()) book_devices(pod, node, sign);
}

void Cluster::book_devices(const Pod& pod, Node& node, int sign) {
  const Shape& shape = shapes_[pod.shape.value];
  const GpuAsk kind = shape.spec.gpu.kind;
  if (!pod.holds_known) {
    // Each of its devices may be any of the node's.
    node.unknown_gpus += sign * shape.spec.gpu.count;
    return;
  }
  for (const GpuHold& hold : pod.holds) {
    Gpu& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
    gpu.owner_count = static_cast<std::uint16_t>(gpu.owner_count + sign);
    gpu.free_units -= sign * gpu.units_of(kind, hold.amount);
    if (!gpu.mig_enabled) continue;
    // Observed holds may overlap (a faulty report): a slice stays used while anyone claims it.
    gpu.mig_used_mask =
        sign > 0 ? static_cast<std::uint16_t>(gpu.mig_used_mask | hold_mask(gpu, shape, hold))
                 : claimed_slices(node, hold.gpu);
  }
}

// By the pods listed on the node now.
std::uint16_t Cluster::claimed_slices(const Node& node, std::int32_t gpu) const {
  unsigned mask = 0;
  for (const PodId id : node.pods) {
    const Pod& pod = pods_[id.value];
    if (!pod.holds_known) continue;
    for (const GpuHold& hold : pod.holds) {
      if (hold.gpu != gpu) continue;
      mask |= hold_mask(node.gpus[static_cast<std::size_t>(gpu)], shapes_[pod.shape.value], hold);
    }
  }
  return static_cast<std::uint16_t>(mask);
}

// After the node's devices were replaced by fresh ones: books every pod again. A hold on a device
// that is no longer there becomes unknown, for the pod still runs on something.
void Cluster::rebook_devices(Node& node) {
  node.unknown_gpus = 0;
  if (node.gpus.empty()) return;
  for (const PodId id : node.pods) {
    Pod& pod = pods_[id.value];
    if (shapes_[pod.shape.value].spec.gpu.kind == GpuAsk::None) continue;
    if (!plausible(shapes_[pod.shape.value].spec.gpu, node, pod.holds)) pod.holds_known = false;
    if (!pod.holds_known) pod.holds.clear();
    book_devices(pod, node, +1);
  }
}

// What a decision may book; observation (upsert_pod) is not held to it.
void Cluster::check_holds(const Pod& pod, const Node& node, std::span<const GpuHold> holds) const {
  const Shape& shape = shapes_[pod.shape.value];
  const GpuRequest& ask = shape.spec.gpu;
  if (ask.kind == GpuAsk::None || node.gpus.empty()) {
    JOGAK_CHECK(holds.empty(), "devices for a pod that asks for none");
    return;
  }
  JOGAK_CHECK(holds.size() == static_cast<std::size_t>(ask.count), "{} devices for a request of {}",
              holds.size(), ask.count);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const GpuHold& hold = holds[i];
    JOGAK_CHECK(hold.gpu >= 0 && static_cast<std::size_t>(hold.gpu) < node.gpus.size());
    const Gpu& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
    JOGAK_CHECK(gpu.health == GpuHealth::Healthy, "device {} is not healthy", hold.gpu);
    if (ask.kind == GpuAsk::Mig) {
      check_instance(shape, node, holds.first(i), hold);
      continue;
    }
    JOGAK_CHECK(i == 0 || holds[i - 1].gpu < hold.gpu, "devices must ascend");
    JOGAK_CHECK(gpu.usable() && hold.amount == ask.amount);
    JOGAK_CHECK(gpu.units_of(ask.kind, hold.amount) <= gpu.free_units, "device {} is taken",
                hold.gpu);
    JOGAK_CHECK(ask.kind != GpuAsk::Whole || gpu.fully_free(), "device {} is shared", hold.gpu);
  }
}

// One more instance beside those that others hold and those the pod was given just before.
void Cluster::check_instance(const Shape& shape, const Node& node, std::span<const GpuHold> before,
                             const GpuHold& hold) const {
  const Gpu& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
  const MigProfile* const profile = asked_profile(gpu, shape);
  JOGAK_CHECK(gpu.mig_enabled && profile != nullptr, "device {} has no {}", hold.gpu,
              shape.spec.gpu.mig_profile);
  JOGAK_CHECK(hold.mig_start >= 0 && (profile->starts >> hold.mig_start & 1) == 1,
              "{} cannot start at slice {}", profile->name, hold.mig_start);
  unsigned used = gpu.mig_used_mask;
  for (const GpuHold& other : before) {
    if (other.gpu == hold.gpu) used |= hold_mask(gpu, shape, other);
  }
  JOGAK_CHECK((used & mig_mask(hold.mig_start, profile->size)) == 0,
              "MIG slices of device {} are taken", hold.gpu);
  if (gpu.mig_dynamic) return;
  const MigSlot slot{static_cast<std::int16_t>(hold.gpu), shape.mig_profile[gpu.mig_model],
                     static_cast<std::int16_t>(hold.mig_start)};
  JOGAK_CHECK(std::ranges::find(node.mig_slots, slot) != node.mig_slots.end(),
              "device {} has no instance at slice {}", hold.gpu, hold.mig_start);
}

MigCounts Cluster::mig_counts(const Node& node, std::int32_t gpu) const {
  MigCounts counts{};
  const std::uint8_t model = node.gpus[static_cast<std::size_t>(gpu)].mig_model;
  if (model == 0xff) return counts;
  for (const PodId id : node.pods) {
    const Pod& pod = pods_[id.value];
    const Shape& shape = shapes_[pod.shape.value];
    if (shape.spec.gpu.kind != GpuAsk::Mig || shape.mig_profile[model] < 0) continue;
    for (const GpuHold& hold : pod.holds) {
      if (hold.gpu == gpu) ++counts[static_cast<std::size_t>(shape.mig_profile[model])];
    }
  }
  return counts;
}

// ---- digest and recount ---------------------------------------------------------------------

std::uint64_t Cluster::node_digest(const Node& node) const {
  Digest d;
  d.add(text(node.name)).add(node.unschedulable).add(node.order).add(text(node.gpu_model));
  d.add(node.cpu_allocatable).add(node.cpu_requested).add(node.cpu_nonzero);
  d.add(node.memory_allocatable).add(node.memory_requested).add(node.memory_nonzero);
  d.add(node.storage_allocatable).add(node.storage_requested).add(node.pods_allocatable);
  d.add(node.unknown_gpus).add(node.pods.size()).add(node.ports.size());
  std::uint64_t sum = 0;  // by name, not by id: ids depend on the order of events
  for (const NodeLabel& l : node.labels) {
    sum += Digest().add(text(l.key)).add(text(l.value)).value();
  }
  for (const ScalarAmount& s : node.scalars) {
    if (s.allocatable == 0 && s.requested == 0) continue;
    sum += Digest().add(scalar_name(s.id)).add(s.allocatable).add(s.requested).value();
  }
  for (const ImageId id : node.images) {
    const ImageInfo& image = images_[id.value];
    sum += Digest().add(text(image.name)).add(image.size_bytes).add("image").value();
  }
  for (const UsedPort& p : node.ports) {
    sum += Digest().add(text(p.ip)).add(text(p.protocol)).add(p.port).value();
  }
  d.add(sum);
  for (const Symbol feature : node.features) d.add(text(feature));
  for (const Taint& t : node.taints) d.add(t.key).add(t.value).add(t.effect);
  for (const Gpu& g : node.gpus) {
    d.add(g.capacity_units).add(g.free_units).add(g.owner_count).add(g.mig_used_mask);
    d.add(g.health).add(g.mig_enabled).add(g.mig_dynamic).add(g.numa_node).add(g.nvlink_mask);
    d.add(g.memory_mib);
  }
  for (const MigSlot& s : node.mig_slots) d.add(s.gpu).add(s.profile).add(s.start);
  return d.value();
}

std::uint64_t Cluster::pod_digest(const Pod& pod) const {
  const Identity& identity = identities_[pod.identity.value];
  Digest d;
  d.add(identity.ns).add(pod.name).add(pod.uid).add(shapes_[pod.shape.value].digest);
  d.add(identity.owner_kind).add(identity.owner_name).add(identity.labels.size());
  for (const auto& [key, value] : identity.labels) d.add(key).add(value);
  d.add(pod.state).add(pod.terminating).add(pod.preemption_victim);
  // Where a node only counts its devices there is nothing to know.
  const bool only_counted =
      pod.node.valid() && nodes_[pod.node.value].gpus.empty() && pod.holds.empty();
  d.add(pod.holds_known || only_counted).add(pod.start_time).add(text(pod.orphan_node));
  d.add(pod.node.valid() ? text(nodes_[pod.node.value].name) : std::string_view{});
  d.add(pod.nominated.valid() ? text(nodes_[pod.nominated.value].name) : std::string_view{});
  for (const GpuHold& h : pod.holds) d.add(h.gpu).add(h.amount).add(h.mig_start);
  return d.value();
}

std::uint64_t Cluster::digest() const {
  std::uint64_t sum = 0;
  for (const Node& node : nodes_) {
    if (node.alive) sum += node_digest(node);
  }
  for (const Pod& pod : pods_) {
    if (pod.state != PodState::Gone) sum += pod_digest(pod);
  }
  return sum;
}

namespace {

// A node's usage as the pods alone tell it.
struct Recounted {
  std::int64_t cpu = 0, memory = 0, storage = 0, cpu_nonzero = 0, memory_nonzero = 0;
  std::int64_t pods = 0, ports = 0, unknown = 0;
  std::vector<std::int64_t> scalars;  // by ScalarId
  std::vector<std::int64_t> taken;    // units per device
  std::vector<std::int64_t> owners;   // per device
  std::vector<std::uint16_t> slices;  // per device
};

void recount_slices(std::uint16_t& slices, const Gpu& gpu, const GpuRequest& ask,
                    const GpuHold& hold) {
  const MigModel& model = mig_models()[gpu.mig_model];
  std::int32_t first = 0;
  std::int32_t end = model.slices;  // where it is not known which
  const std::int32_t profile =
      ask.kind == GpuAsk::Mig ? find_mig_profile(model, ask.mig_profile) : -1;
  if (profile >= 0 && hold.mig_start >= 0) {
    const std::int32_t size = model.profiles[static_cast<std::size_t>(profile)].size;
    if (hold.mig_start + size <= model.slices) {
      first = hold.mig_start;
      end = first + size;
    }
  }
  for (std::int32_t s = first; s < end; ++s) slices = static_cast<std::uint16_t>(slices | 1U << s);
}

void recount_devices(Recounted& sum, const Node& node, const Pod& pod, const Shape& shape) {
  const GpuRequest& ask = shape.spec.gpu;
  if (ask.kind == GpuAsk::None || node.gpus.empty()) return;
  if (!pod.holds_known) {
    sum.unknown += ask.count;
    return;
  }
  for (const GpuHold& hold : pod.holds) {
    const auto g = static_cast<std::size_t>(hold.gpu);
    const Gpu& gpu = node.gpus[g];
    ++sum.owners[g];
    const std::int64_t memory = std::max(gpu.memory_mib, 1);
    if (ask.kind == GpuAsk::Whole) sum.taken[g] += 1000 * memory;
    if (ask.kind == GpuAsk::ShareMilli) sum.taken[g] += hold.amount * memory;
    if (ask.kind == GpuAsk::ShareMib) sum.taken[g] += std::int64_t{1000} * hold.amount;
    if (ask.kind == GpuAsk::Mig && !gpu.mig_enabled) sum.taken[g] += 1000 * memory;
    if (gpu.mig_enabled) recount_slices(sum.slices[g], gpu, ask, hold);
  }
}

std::string compare(const Recounted& sum, const Node& node, std::string_view name) {
  const auto differs = [&](std::string_view what, std::int64_t booked, std::int64_t counted) {
    return booked == counted ? std::string{}
                             : fmt::format("node {}: {} booked {}, the pods add up to {}", name,
                                           what, booked, counted);
  };
  std::string d = differs("cpu", node.cpu_requested, sum.cpu);
  if (d.empty()) d = differs("memory", node.memory_requested, sum.memory);
  if (d.empty()) d = differs("ephemeral-storage", node.storage_requested, sum.storage);
  if (d.empty()) d = differs("non-zero cpu", node.cpu_nonzero, sum.cpu_nonzero);
  if (d.empty()) d = differs("non-zero memory", node.memory_nonzero, sum.memory_nonzero);
  if (d.empty()) d = differs("pods", node.pod_count(), sum.pods);
  if (d.empty()) d = differs("host ports", static_cast<std::int64_t>(node.ports.size()), sum.ports);
  if (d.empty()) d = differs("unknown devices", node.unknown_gpus, sum.unknown);
  for (const ScalarAmount& s : node.scalars) {
    if (d.empty()) d = differs("scalar resource", s.requested, sum.scalars[s.id.value]);
  }
  for (std::size_t g = 0; g < node.gpus.size() && d.empty(); ++g) {
    const Gpu& gpu = node.gpus[g];
    d = differs(fmt::format("units of device {}", g), gpu.capacity_units - gpu.free_units,
                sum.taken[g]);
    if (d.empty())
      d = differs(fmt::format("owners of device {}", g), gpu.owner_count, sum.owners[g]);
    if (d.empty())
      d = differs(fmt::format("slices of device {}", g), gpu.mig_used_mask, sum.slices[g]);
  }
  return d;
}

}  // namespace

std::string Cluster::recount() const {
  std::vector<Recounted> sums(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    sums[n].scalars.assign(scalar_names_.size(), 0);
    sums[n].taken.assign(nodes_[n].gpus.size(), 0);
    sums[n].owners.assign(nodes_[n].gpus.size(), 0);
    sums[n].slices.assign(nodes_[n].gpus.size(), 0);
  }
  for (const Pod& pod : pods_) {
    if (pod.state != PodState::Placed) continue;
    Recounted& sum = sums[pod.node.value];
    const Shape& shape = shapes_[pod.shape.value];
    for (const auto& [name, amount] : shape.spec.requests) {
      if (name == "cpu")
        sum.cpu += amount;
      else if (name == "memory")
        sum.memory += amount;
      else if (name == "ephemeral-storage")
        sum.storage += amount;
      else if (name != "pods" && amount != 0)
        sum.scalars[find_scalar(name)->value] += amount;
    }
    sum.cpu_nonzero += shape.spec.nonzero_cpu;
    sum.memory_nonzero += shape.spec.nonzero_memory;
    sum.ports += static_cast<std::int64_t>(shape.spec.host_ports.size());
    ++sum.pods;
    recount_devices(sum, nodes_[pod.node.value], pod, shape);
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    if (!node.alive && !node.pods.empty()) return "a removed node still has pods";
    if (std::string d = compare(sums[n], node, text(node.name)); !d.empty()) return d;
  }
  return {};
}

}  // namespace jogak::core
