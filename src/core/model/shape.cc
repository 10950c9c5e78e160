// SPDX-License-Identifier: Apache-2.0
// Interning of shapes and identities: equal specs get one id, found by a digest of their fields and
// confirmed by comparison.
#include <algorithm>

#include "base/check.h"
#include "core/model/cluster.h"
#include "core/model/mig.h"

namespace jogak::core {
namespace {

void add(Digest& d, const std::vector<std::string>& list) {
  d.add(list.size());
  for (const std::string& s : list) d.add(s);
}

void add(Digest& d, const std::vector<Requirement>& list) {
  d.add(list.size());
  for (const Requirement& r : list) {
    d.add(r.key).add(r.op);
    add(d, r.values);
  }
}

void add(Digest& d, const std::optional<LabelSelector>& selector) {
  d.add(selector.has_value());
  if (selector) add(d, selector->requirements);
}

void add(Digest& d, const NodeSelectorTerm& term) {
  add(d, term.labels);
  add(d, term.fields);
}

void add(Digest& d, const std::vector<PodAffinityTerm>& terms) {
  d.add(terms.size());
  for (const PodAffinityTerm& t : terms) {
    add(d, t.selector);
    d.add(t.topology_key).add(t.weight);
    add(d, t.namespaces);
    add(d, t.namespace_selector);
  }
}

void add(Digest& d, const std::vector<SpreadConstraint>& constraints) {
  d.add(constraints.size());
  for (const SpreadConstraint& c : constraints) {
    d.add(c.max_skew).add(c.topology_key).add(c.hard).add(c.min_domains);
    d.add(c.honor_node_affinity).add(c.honor_node_taints);
    add(d, c.selector);
    add(d, c.match_label_keys);
  }
}

void add_placement(Digest& d, const PodShape& s) {
  d.add(s.node_name);
  add(d, s.node_selector);
  d.add(s.node_affinity.has_value());
  if (s.node_affinity) {
    d.add(s.node_affinity->size());
    for (const NodeSelectorTerm& t : *s.node_affinity) add(d, t);
  }
  d.add(s.preferred_node.size());
  for (const PreferredNodeTerm& t : s.preferred_node) {
    d.add(t.weight);
    add(d, t.term);
  }
  d.add(s.tolerations.size());
  for (const Toleration& t : s.tolerations) {
    d.add(t.key).add(t.exists).add(t.value).add(t.effect.has_value());
    if (t.effect) d.add(*t.effect);
  }
  add(d, s.spread);
  add(d, s.required_affinity);
  add(d, s.required_anti_affinity);
  add(d, s.preferred_affinity);
  add(d, s.preferred_anti_affinity);
}

std::uint64_t digest_of(const PodShape& s) {
  Digest d;
  d.add(s.requests.size());
  for (const auto& [name, amount] : s.requests) d.add(name).add(amount);
  d.add(s.scored_cpu).add(s.scored_memory);
  d.add(s.nonzero_cpu).add(s.nonzero_memory).add(s.priority).add(s.preemption);
  d.add(s.gpu.kind).add(s.gpu.count).add(s.gpu.amount).add(s.gpu.mig_profile);
  add(d, s.gpu.models);
  add_placement(d, s);
  d.add(s.host_ports.size());
  for (const HostPort& p : s.host_ports) d.add(p.ip).add(p.protocol).add(p.port);
  d.add(s.volumes.size());
  for (const VolumeRef& v : s.volumes) {
    d.add(v.kind).add(v.name).add(v.read_only).add(v.pool).add(v.image);
    add(d, v.monitors);
  }
  add(d, s.images);
  d.add(s.container_count);
  add(d, s.required_features);
  add(d, s.gates);
  return d.value();
}

std::uint64_t digest_of(const Identity& identity) {
  Digest d;
  d.add(identity.ns).add(identity.owner_kind).add(identity.owner_name);
  for (const auto& [key, value] : identity.labels) d.add(key).add(value);
  return d.value();
}

template <class T, class Id>
Id put_interned(std::deque<T>& all, std::vector<Id>& free, T value) {
  if (free.empty()) {
    all.push_back(std::move(value));
    return Id{static_cast<std::uint32_t>(all.size() - 1)};
  }
  const Id id = free.back();
  free.pop_back();
  all[id.value] = std::move(value);
  return id;
}

void set_flags(Shape& shape) {
  const PodShape& s = shape.spec;
  shape.has_affinity_terms = !s.required_affinity.empty() || !s.required_anti_affinity.empty() ||
                             !s.preferred_affinity.empty() || !s.preferred_anti_affinity.empty();
  shape.has_pod_constraints = shape.has_affinity_terms || !s.spread.empty();
  shape.has_volumes = !s.volumes.empty();
}

}  // namespace

ShapeId Cluster::intern_shape(const PodShape& spec) {
  const std::uint64_t digest = digest_of(spec);
  const auto [first, last] = shape_by_digest_.equal_range(digest);
  for (auto it = first; it != last; ++it) {
    if (shapes_[it->second.value].spec == spec) return it->second;
  }
  Shape shape;
  shape.spec = spec;
  shape.digest = digest;
  for (const auto& [name, amount] : spec.requests) {
    JOGAK_CHECK(amount >= 0, "request of {} is negative", name);
    if (name == "cpu") {
      shape.cpu = amount;
    } else if (name == "memory") {
      shape.memory = amount;
    } else if (name == "ephemeral-storage") {
      shape.storage = amount;
    } else if (name != "pods" && amount != 0) {
      shape.scalars.push_back({scalar_id(name), amount});
    }
  }
  std::sort(shape.scalars.begin(), shape.scalars.end(),
            [](const ScalarRequest& a, const ScalarRequest& b) { return a.id < b.id; });
  for (const std::string& model : spec.gpu.models) {
    shape.gpu_models.push_back(symbols_.intern(model));
  }
  if (spec.gpu.kind == GpuAsk::Mig) {
    for (const MigModel& model : mig_models()) {
      shape.mig_profile.push_back(
          static_cast<std::int8_t>(find_mig_profile(model, spec.gpu.mig_profile)));
    }
  }
  set_flags(shape);
  const ShapeId id = put_interned(shapes_, free_shapes_, std::move(shape));
  shape_by_digest_.emplace(digest, id);
  return id;
}

IdentityId Cluster::intern_identity(const Identity& identity) {
  const std::uint64_t digest = digest_of(identity);
  const auto [first, last] = identity_by_digest_.equal_range(digest);
  for (auto it = first; it != last; ++it) {
    if (identities_[it->second.value] == identity) return it->second;
  }
  const IdentityId id = put_interned(identities_, free_identities_, Identity(identity));
  identity_by_digest_.emplace(digest, id);
  return id;
}

ScalarId Cluster::scalar_id(std::string_view name) {
  const Symbol symbol = symbols_.intern(name);
  const auto it = scalar_by_name_.find(symbol.value);
  if (it != scalar_by_name_.end()) return it->second;
  const ScalarId id{static_cast<std::uint32_t>(scalar_names_.size())};
  scalar_names_.push_back(symbol);
  scalar_by_name_.emplace(symbol.value, id);
  return id;
}

std::optional<ScalarId> Cluster::find_scalar(std::string_view name) const {
  Symbol symbol;
  if (!symbols_.find(name, symbol)) return std::nullopt;
  const auto it = scalar_by_name_.find(symbol.value);
  if (it == scalar_by_name_.end()) return std::nullopt;
  return it->second;
}

}  // namespace jogak::core
