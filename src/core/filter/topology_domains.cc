// SPDX-License-Identifier: Apache-2.0
// See topology_domains.h.
#include "core/filter/topology_domains.h"

#include <unordered_map>

namespace jogak::core {

void TopologyDomains::build(const Cluster& cluster, std::string_view key) {
  values_.clear();
  of_node_.assign(cluster.nodes().size(), kMissing);
  nodes_ = cluster.node_count();
  key_ = Symbol{};
  known_ = cluster.symbols().find(key, key_);
  if (!known_) return;

  std::unordered_map<std::uint32_t, std::int32_t> domain_of_value;
  for (std::size_t i = 0; i < of_node_.size(); ++i) {
    const Node& node = cluster.nodes()[i];
    if (!node.alive) continue;
    const Symbol* const value = node.label(key_);
    if (value == nullptr) continue;
    const auto next = static_cast<std::int32_t>(values_.size());
    const auto [it, is_new] = domain_of_value.try_emplace(value->value, next);
    if (is_new) values_.push_back(*value);
    of_node_[i] = it->second;
  }
}

}  // namespace jogak::core
