// SPDX-License-Identifier: Apache-2.0
// A pod as the core keeps it: a few words beside two interned parts that many pods share, the shape
// (what a decision reads) and the identity (what selectors see).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/ids.h"
#include "core/model/spec.h"
#include "core/model/symbol.h"

namespace jogak::core {

// Interned scalar request of a shape.
struct ScalarRequest {
  ScalarId id;
  std::int64_t amount = 0;
};

// A PodShape with its numbers laid out for the hot path.
struct Shape {
  PodShape spec;
  std::int64_t cpu = 0, memory = 0, storage = 0;  // effective requests; same units as Node
  std::vector<ScalarRequest> scalars;             // sorted by id; zero amounts are left out
  std::vector<Symbol> gpu_models;                 // symbolised spec.gpu.models
  std::vector<std::int8_t> mig_profile;           // per mig_models() entry: profile index or -1
  std::uint64_t digest = 0;                       // of the spec
  bool has_pod_constraints = false;               // spread or any pod (anti-)affinity of its own
  bool has_affinity_terms = false;                // any pod (anti-)affinity, required or preferred
  bool has_volumes = false;
};

struct Identity {
  std::string ns;
  Labels labels;
  std::string owner_kind;
  std::string owner_name;
  friend bool operator==(const Identity&, const Identity&) = default;
};

enum class PodState : std::uint8_t {
  Gone,     // slot free
  Pending,  // known, holds nothing
  Placed,   // holds resources on `node`: assumed or bound
  Orphan,   // bound to a node the cluster does not know
};

struct Pod {
  std::string name;  // without namespace; strings, not symbols: pods come and go for months
  std::string uid;
  ShapeId shape;
  IdentityId identity;
  NodeId node;         // Placed only
  NodeId nominated;    // valid: counts on that node for pods of lower or equal priority
  Symbol orphan_node;  // Orphan: the name it is bound to
  std::int64_t start_time = kNoTime;
  std::uint32_t generation = 0;
  std::uint32_t slot_in_node = 0;  // position in Node::pods
  PodState state = PodState::Gone;
  bool terminating = false;
  bool preemption_victim = false;
  bool holds_known = true;  // false: it has devices, but which ones nobody reported
  std::vector<GpuHold> holds;
};

}  // namespace jogak::core
