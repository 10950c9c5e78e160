// SPDX-License-Identifier: Apache-2.0
// Dense ids of the cluster model. Each is an index into a vector owned by one Cluster; they are
// reused after removal, so a reader that keeps one across events must also keep the generation
// (PodKey).
#pragma once

#include <compare>
#include <cstdint>

namespace jogak::core {

struct NodeId {
  std::uint32_t value = 0xffffffffU;
  friend constexpr auto operator<=>(NodeId, NodeId) = default;
  constexpr bool valid() const { return value != 0xffffffffU; }
};
inline constexpr NodeId kNoNode{};

struct PodId {
  std::uint32_t value = 0xffffffffU;
  friend constexpr auto operator<=>(PodId, PodId) = default;
  constexpr bool valid() const { return value != 0xffffffffU; }
};
inline constexpr PodId kNoPod{};

struct ShapeId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(ShapeId, ShapeId) = default;
};

// Interned label set of a pod together with its namespace and controller: what selectors see.
struct IdentityId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(IdentityId, IdentityId) = default;
};

// Index of an extended ("scalar") resource name: everything but cpu, memory, ephemeral-storage,
// pods.
struct ScalarId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(ScalarId, ScalarId) = default;
};

struct ImageId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(ImageId, ImageId) = default;
};

}  // namespace jogak::core
