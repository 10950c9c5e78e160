// SPDX-License-Identifier: Apache-2.0
// See scored_resources.h.
#include "core/score/scored_resources.h"

#include <algorithm>

namespace jogak::core {
namespace {

std::int64_t scalar_ask(const Shape& shape, ScalarId id) {
  const auto it = std::ranges::find(shape.scalars, id, &ScalarRequest::id);
  return it == shape.scalars.end() ? 0 : it->amount;
}

std::int64_t scored(std::int64_t own, std::int64_t otherwise) { return own >= 0 ? own : otherwise; }

}  // namespace

std::vector<ScoredResource> scored_resources(const Cluster& cluster, const Shape& shape,
                                             std::span<const ResourceWeight> weights, Usage usage) {
  const bool nonzero = usage == Usage::NonZero;
  std::vector<ScoredResource> resources;
  resources.reserve(weights.size());
  for (const ResourceWeight& weight : weights) {
    ScoredResource resource;
    resource.weight = weight.weight;
    if (weight.name == "cpu") {
      resource.kind = ScoredResource::Kind::Cpu;
      resource.ask = nonzero ? scored(shape.spec.scored_cpu, shape.spec.nonzero_cpu) : shape.cpu;
    } else if (weight.name == "memory") {
      resource.kind = ScoredResource::Kind::Memory;
      resource.ask =
          nonzero ? scored(shape.spec.scored_memory, shape.spec.nonzero_memory) : shape.memory;
    } else if (weight.name == "ephemeral-storage") {
      resource.kind = ScoredResource::Kind::Storage;
      resource.ask = shape.storage;
    } else if (const auto id = cluster.find_scalar(weight.name)) {
      resource.kind = ScoredResource::Kind::Scalar;
      resource.scalar = *id;
      resource.ask = scalar_ask(shape, *id);
    }
    resources.push_back(resource);
  }
  return resources;
}

ResourceUse resource_use(const Node& node, const ScoredResource& resource, Usage usage) {
  const bool nonzero = usage == Usage::NonZero;
  switch (resource.kind) {
    case ScoredResource::Kind::Cpu:
      return {node.cpu_allocatable, nonzero ? node.cpu_nonzero : node.cpu_requested};
    case ScoredResource::Kind::Memory:
      return {node.memory_allocatable, nonzero ? node.memory_nonzero : node.memory_requested};
    case ScoredResource::Kind::Storage:
      return {node.storage_allocatable, node.storage_requested};
    case ScoredResource::Kind::Scalar:
      if (resource.ask == 0) return {};
      if (const ScalarAmount* const amount = node.scalar(resource.scalar)) {
        return {amount->allocatable, amount->requested};
      }
      return {};
    case ScoredResource::Kind::Unknown:
      return {};
  }
  return {};
}

}  // namespace jogak::core
