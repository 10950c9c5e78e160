// SPDX-License-Identifier: Apache-2.0
//
// Compares the cluster that the driver keeps in memory with one freshly listed from the API server.
// A healthy driver is never wrong for long, but always a little late; so a difference counts only
// where memory said the same before the listing and some seconds after it. What changed meanwhile
// is left out, and counted as such.
//
//   DriftCheck check(cluster);        remembers what memory says
//   check.add(page) ...               nodes and pods, as the server lists them
//   (let some seconds pass)
//   check.finish(cluster, {})         what differs
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/cluster.h"

namespace jogak::live {

enum class DriftKind : std::uint8_t {
  PodMissing,  // the server has it, memory does not
  PodExtra,    // the other way round
  PodNode,     // on another node
  PodUid,      // another pod of the same name
  PodDevices,  // other devices
  NodeMissing,
  NodeExtra,
  NodeFacts,    // capacity, labels, taints, devices
  DeviceTwice,  // pods that together hold more of a device than there is
  Ledger,       // the sums in memory are not those of its pods: a fault of the scheduler
};
inline constexpr std::size_t kDriftKinds = 10;
std::string_view drift_kind_name(DriftKind kind);  // "pod-missing"

struct Drift {
  DriftKind kind = DriftKind::PodMissing;
  std::string object;  // "team/a", "node1"
  std::string detail;  // "in memory on n1, on the server on n2"
};

struct DriftReport {
  std::vector<Drift> items;  // nodes, then pods, each by name
  std::array<std::size_t, kDriftKinds> counts{};
  std::size_t nodes = 0, pods = 0;  // looked at, of either side
  std::size_t changing = 0;         // left out: they changed during the check
  std::size_t unreadable = 0;       // listed objects that could not be understood

  bool is_clean() const { return items.empty(); }
  // For people, one line an item, at most `items_max` of them.
  std::string text(std::size_t items_max = 50) const;
};

class DriftCheck {
 public:
  explicit DriftCheck(const core::Cluster& memory);
  ~DriftCheck();

  // A NodeList or PodList, or a page of one. Errors: Invalid, not such a list.
  Result<void> add(std::string_view list);
  // One item of such a list: "Node" or "Pod".
  Result<void> add_object(std::string_view kind, std::string_view json);

  // Pods whose binding is under way: the server may not know of it yet, however long it takes.
  using IsAssumed = std::function<bool(std::string_view ns, std::string_view name)>;
  DriftReport finish(const core::Cluster& memory, const IsAssumed& is_assumed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::live
