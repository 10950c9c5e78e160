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

Verdict node_ports_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                          Reasons* reasons) {
  for (const HostPort& wanted : pod.shape->spec.host_ports) {
    if (wanted.port <= 0) continue;
    const bool taken = std::ranges::any_of(
        node.ports, [&](const UsedPort& used) { return conflicts(cluster, wanted, used); });
    if (taken) {
      return refuse(Plugin::NodePorts, Code::Unschedulable, reasons,
                    "node(s) didn't have free ports for the requested pod ports");
    }
  }
  return {};
}

}  // namespace jogak::core
