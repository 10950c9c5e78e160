// SPDX-License-Identifier: Apache-2.0
// See node_ports.h.
#include "core/filter/node_ports.h"

#include <algorithm>
#include <string_view>

namespace jogak::core {
namespace {

constexpr std::string_view kEveryAddress = "0.0.0.0";

bool conflicts(const Cluster& cluster, const HostPort& wanted, const UsedPort& used) {
  if (wanted.port != used.port || wanted.protocol != cluster.text(used.protocol)) return false;
  const std::string_view used_ip = cluster.text(used.ip);
  return wanted.ip == used_ip || wanted.ip == kEveryAddress || used_ip == kEveryAddress;
}

}  // namespace

PortMoves::Entry& PortMoves::entry(Symbol node, const UsedPort& port) {
  const auto at = std::ranges::find_if(
      entries_, [&](const Entry& e) { return e.node == node && e.port == port; });
  if (at != entries_.end()) return *at;
  return entries_.emplace_back(node, port);
}

void PortMoves::pod_moved(const Cluster& cluster, PodId moved, NodeId node, int delta) {
  const bool guess = cluster.pod(moved).nominated.valid();
  for (const HostPort& port : cluster.shape_of(moved).spec.host_ports) {
    UsedPort used{{}, {}, port.port};
    // The pod is on the node, so that its texts are interned.
    if (!cluster.symbols().find(port.ip, used.ip)) continue;
    if (!cluster.symbols().find(port.protocol, used.protocol)) continue;
    Entry& e = entry(cluster.node(node).name, used);
    if (guess) {
      e.guesses += delta;
    } else {
      e.freed = delta < 0;
    }
  }
}

bool PortMoves::freed(Symbol node, const UsedPort& port) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) {
    return e.node == node && e.port == port && e.freed && e.guesses == 0;
  });
}

Verdict node_ports_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                          Reasons* reasons, const PortMoves* moves) {
  for (const HostPort& wanted : pod.shape->spec.host_ports) {
    if (wanted.port <= 0) continue;
    const bool taken = std::ranges::any_of(node.ports, [&](const UsedPort& used) {
      return conflicts(cluster, wanted, used) &&
             (moves == nullptr || !moves->freed(node.name, used));
    });
    if (taken) {
      return refuse(Plugin::NodePorts, Code::Unschedulable, reasons,
                    "node(s) didn't have free ports for the requested pod ports");
    }
  }
  return {};
}

}  // namespace jogak::core
