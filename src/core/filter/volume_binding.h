// SPDX-License-Identifier: Apache-2.0
// VolumeBinding, judged only: may the pod's claims be served on this node? Bound claims by the node
// affinity of their volume; claims that wait for their first consumer by a free volume that fits or
// by provisioning one here. Acting on the plan is the driver's business.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/filter/cycle.h"

namespace jogak::core {

class VolumeBindingFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  bool active() const { return !bound_.empty() || !waiting_.empty(); }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  // How the claims that wait for their first consumer are to be served on a node that check() lets
  // pass: by a volume, or by provisioning one there (no volume). Pointers as below.
  struct ClaimPlan {
    const PersistentVolumeClaimSpec* claim = nullptr;
    const PersistentVolumeSpec* volume = nullptr;
  };
  std::vector<ClaimPlan> plan(const Cluster& cluster, NodeId node) const;
  // Nothing of it depends on where pods are.
  void pod_moved(const Cluster&, const PodView&, PodId, NodeId, int) {}

 private:
  // An unbound claim of a WaitForFirstConsumer class. Pointers are into Cluster::objects(): whoever
  // keeps the filter builds it again when objects_version() changed.
  struct Waiting {
    const PersistentVolumeClaimSpec* claim = nullptr;
    const StorageClassSpec* storage_class = nullptr;
    std::vector<const PersistentVolumeSpec*> reserved;  // volumes pre-bound to it, by name
    std::vector<const PersistentVolumeSpec*> fitting;   // free ones, by (size, name)
    bool tracked = false;  // the driver says how much it can still make, and where:
    std::vector<const LabelSelector*> enough_at;
  };
  struct Answer {
    bool bindable = true;
    bool enough_storage = true;
  };

  // Who gets which volume on a node: matched[i] gets taken[i].
  struct Service {
    std::vector<const Waiting*> matched, to_provision;
    std::vector<const PersistentVolumeSpec*> taken;
  };

  // Text of what is wrong with a claim as such; empty: nothing.
  static std::string claim_problem(const Cluster& cluster, const PodView& pod,
                                   const VolumeRef& volume);
  static Waiting waiting_claim(const Cluster& cluster, const PersistentVolumeClaimSpec& claim,
                               const StorageClassSpec& storage_class);
  static const PersistentVolumeSpec* match(const Cluster& cluster, const Waiting& waiting,
                                           const Node& node,
                                           const std::vector<const PersistentVolumeSpec*>& taken);
  static Answer provision(const Cluster& cluster, const std::vector<const Waiting*>& claims,
                          const Node& node);
  // Nothing: a claim is promised to another node.
  std::optional<Service> serve(const Cluster& cluster, const Node& node) const;
  Answer serve_waiting(const Cluster& cluster, const Node& node) const;

  std::vector<const PersistentVolumeSpec*> bound_;  // in claim order; nullptr: no such volume
  std::vector<Waiting> waiting_;
};

}  // namespace jogak::core
