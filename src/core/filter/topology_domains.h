// SPDX-License-Identifier: Apache-2.0
// The values that live nodes have for one topology key, numbered densely, so that counting pods per
// domain is an array look-up. It describes the nodes at the time of build(): whoever keeps one
// builds it again when Cluster::topology_version() or a node's labels changed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/model/cluster.h"

namespace jogak::core {

class TopologyDomains {
 public:
  static constexpr std::int32_t kMissing = -1;

  void build(const Cluster& cluster, std::string_view key);

  // False: no node of the cluster ever had the key; then every node misses it.
  bool known() const { return known_; }
  Symbol key() const { return key_; }
  // Number of the node's domain, or kMissing where the node lacks the label.
  std::int32_t of(NodeId node) const { return of_node_[node.value]; }
  std::size_t size() const { return values_.size(); }
  Symbol value(std::int32_t domain) const { return values_[static_cast<std::size_t>(domain)]; }
  // Nearly every node is a domain of its own.
  bool per_node() const { return 2 * size() > nodes_; }

 private:
  bool known_ = false;
  Symbol key_;
  std::size_t nodes_ = 0;              // live ones
  std::vector<std::int32_t> of_node_;  // by NodeId
  std::vector<Symbol> values_;         // by domain
};

// Remembers an answer per small id, so that strings are compared once per identity and not per pod.
class AnswerCache {
 public:
  template <class Compute>
  bool get(std::uint32_t id, Compute&& compute) {
    if (id >= answers_.size()) answers_.resize(std::size_t{id} + 1, kUnknown);
    std::int8_t& answer = answers_[id];
    if (answer == kUnknown) answer = compute() ? 1 : 0;
    return answer == 1;
  }
  void clear() { answers_.clear(); }

 private:
  static constexpr std::int8_t kUnknown = -1;
  std::vector<std::int8_t> answers_;
};

}  // namespace jogak::core
