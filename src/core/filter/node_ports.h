// SPDX-License-Identifier: Apache-2.0
// NodePorts: the host ports asked for must be free on the node, address by address.
#pragma once

#include <cstdint>
#include <vector>

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

// Ports of pods that were taken away or guessed during a try. kube-scheduler keeps one entry per
// address, protocol and port, so that the first of several users to leave frees it while the others
// stay, and its victims follow from that. Several users of one port on a node come about only by
// binding past the scheduler; the ledger itself counts them all.
class PortMoves {
 public:
  // As FilterCycle::pod_moved().
  void pod_moved(const Cluster& cluster, PodId moved, NodeId node, int delta);
  // The port counts as free, whoever else uses it.
  bool freed(Symbol node, const UsedPort& port) const;

 private:
  struct Entry {
    Symbol node;
    UsedPort port;
    bool freed = false;
    std::int32_t guesses = 0;  // nominated pods that were put there
  };
  Entry& entry(Symbol node, const UsedPort& port);
  std::vector<Entry> entries_;
};

Verdict node_ports_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                          Reasons* reasons, const PortMoves* moves = nullptr);

}  // namespace jogak::core
