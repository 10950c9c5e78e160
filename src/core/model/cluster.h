// SPDX-License-Identifier: Apache-2.0
// The cluster state: the one owner of nodes, pods and the device ledger. It changes only through
// the calls below, which a driver makes for each event; a scheduling decision reads it and tries
// moves in a transaction that is rolled back or kept.
//
//   pod:   (unknown) --add--> Pending --place--> Placed --unplace--> Pending --remove--> (unknown)
//                        \---- add with bound_node ---^        bound to an unknown node: Orphan
//
// Not thread-safe: one thread owns it. Reading from several threads while nobody writes is fine.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "core/model/ids.h"
#include "core/model/mig.h"
#include "core/model/node.h"
#include "core/model/pod.h"
#include "core/model/spec.h"
#include "core/model/symbol.h"

namespace jogak::core {

// One line of the change log, so that caches follow what changed instead of re-reading the cluster.
struct Change {
  NodeId node;
  PodId pod;               // valid: this pod was placed (+1) on or taken (-1) from the node
  std::int32_t delta = 0;  // 0: the node itself changed (facts, liveness)
  ShapeId shape;           // of the pod
  IdentityId identity;
  bool terminating = false;
};

struct ImageInfo {
  Symbol name;
  std::int64_t size_bytes = 0;
  std::int32_t node_count = 0;
};

// Storage and policy objects, read by a few filters. Keys are "name" or "ns/name".
struct Objects {
  std::map<std::string, NamespaceSpec, std::less<>> namespaces;
  std::map<std::string, PdbSpec, std::less<>> pdbs;
  std::map<std::string, WorkloadSpec, std::less<>> workloads;  // "Kind/ns/name"
  std::map<std::string, PersistentVolumeSpec, std::less<>> pvs;
  std::map<std::string, PersistentVolumeClaimSpec, std::less<>> pvcs;
  std::map<std::string, StorageClassSpec, std::less<>> storage_classes;
  std::map<std::string, CsiNodeSpec, std::less<>> csi_nodes;
  std::map<std::string, CsiDriverSpec, std::less<>> csi_drivers;
  std::map<std::string, CsiStorageCapacitySpec, std::less<>> csi_capacities;
  std::map<std::string, VolumeAttachmentSpec, std::less<>> attachments;
};

class Cluster {
 public:
  Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // ---- events ----
  // Adds a node or replaces the facts of the one with this name (nothing changes where they are the
  // same); usage of pods there is kept, and
  // orphans bound to the name move in. Errors: Invalid with the field (duplicate label, negative
  // capacity, a GPU or MIG instance that cannot be).
  Result<NodeId> upsert_node(const NodeSpec& spec);
  // Pods still placed there become orphans: they hold nothing until the node or their end is seen.
  void remove_node(NodeId node);
  // Adds a pod or replaces the one with this uid. A pod with bound_node is placed there at once,
  // also over the node's capacity: what is observed is never refused. Holds that cannot be (a GPU
  // the node lacks, another number than asked for) make the pod's devices unknown. Errors: Invalid
  // (empty name, negative numbers, a request that overflows).
  Result<PodId> upsert_pod(const PodSpec& spec);
  // Fast path of the above for a pending pod whose shape and identity are already interned.
  PodId add_pending(std::string_view name, std::string_view uid, ShapeId shape,
                    IdentityId identity);
  void remove_pod(PodId pod);
  void set_terminating(PodId pod, bool is_terminating = true);
  // Gives up the shapes and identities that no pod has any more; their ids are used again. Caches
  // by ShapeId or IdentityId are stale when intern_epoch() moved. Returns how many went. O(pods).
  std::size_t collect_interned();
  std::uint64_t intern_epoch() const { return intern_epoch_; }
  // Shapes and identities kept, used or not.
  std::size_t interned() const {
    return shapes_.size() + identities_.size() - free_shapes_.size() - free_identities_.size();
  }
  // Kubernetes objects that only filters read. Every change bumps objects_version().
  Objects& mutable_objects() {
    ++objects_version_;
    return objects_;
  }
  // The same where `change` says whether it changed anything.
  template <class Change>
  bool change_objects(Change change) {
    if (!change(objects_)) return false;
    ++objects_version_;
    return true;
  }

  // ---- moves (also used inside transactions) ----
  // Books the pod on the node. `holds` names its devices (empty if it asks for none); every hold
  // must be legal (checked), requests may overbook only where the pod is observed as bound.
  void place(PodId pod, NodeId node, std::span<const GpuHold> holds);
  // As place() for a pod whose devices nobody knows: that many of the node's count as busy.
  void place_unknown(PodId pod, NodeId node);
  // Inside a transaction: puts a pod back where unplace() took it from, devices as they were. What
  // was observed there need not be legal (a device may have turned unhealthy), so nothing is
  // checked.
  void place_back(PodId pod, NodeId node, std::span<const GpuHold> holds, bool holds_known);
  void unplace(PodId pod);
  // kNoNode clears. Does not book anything.
  void nominate(PodId pod, NodeId node);

  // ---- transactions ----
  // Moves after checkpoint() are undone in reverse by rollback_to(); contents, including versions
  // and the order of Node::pods, are then exactly as before. Rolling back ends the checkpoint and
  // all later ones. Events are not allowed while a transaction is open.
  using Checkpoint = std::size_t;
  Checkpoint checkpoint();
  void rollback_to(Checkpoint mark);
  void commit();  // ends all open checkpoints

  // ---- interning ----
  ShapeId intern_shape(const PodShape& shape);
  IdentityId intern_identity(const Identity& identity);
  Symbol symbol(std::string_view text) { return symbols_.intern(text); }
  const SymbolTable& symbols() const { return symbols_; }
  std::string_view text(Symbol s) const { return symbols_.text(s); }
  std::string_view scalar_name(ScalarId id) const { return text(scalar_names_[id.value]); }
  std::optional<ScalarId> find_scalar(std::string_view name) const;

  // ---- reading ----
  std::span<const Node> nodes() const { return nodes_; }  // includes dead slots (alive == false)
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  std::optional<NodeId> find_node(std::string_view name) const;
  std::size_t node_count() const { return alive_nodes_; }
  // Live nodes by (order, name): the order in which equal scores are settled.
  std::span<const NodeId> node_order() const;
  // Position of a live node in node_order().
  std::uint32_t rank(NodeId id) const;

  std::span<const Pod> pods() const { return pods_; }  // includes free slots (state Gone)
  const Pod& pod(PodId id) const { return pods_[id.value]; }
  std::optional<PodId> find_pod(std::string_view ns, std::string_view name) const;
  std::string pod_full_name(PodId id) const;  // "ns/name"
  const Shape& shape(ShapeId id) const { return shapes_[id.value]; }
  const Shape& shape_of(PodId id) const { return shapes_[pods_[id.value].shape.value]; }
  const Identity& identity(IdentityId id) const { return identities_[id.value]; }
  const Identity& identity_of(PodId id) const {
    return identities_[pods_[id.value].identity.value];
  }
  std::size_t shape_count() const { return shapes_.size(); }
  // Pods with a nomination, in id order. Few.
  std::span<const PodId> nominated_pods() const { return nominated_; }
  // Placed pods that carry any pod (anti-)affinity term: zero lets filters skip the symmetric side.
  std::int64_t placed_with_affinity() const { return placed_with_affinity_; }

  // Instances in use on one device, by profile (index within the device's MigModel).
  MigCounts mig_counts(const Node& node, std::int32_t gpu) const;

  const Objects& objects() const { return objects_; }
  std::uint64_t objects_version() const { return objects_version_; }
  const std::vector<ImageInfo>& images() const { return images_; }
  std::optional<ImageId> find_image(std::string_view name) const;

  // ---- change log ----
  // Entries [change_begin(), change_end()) are available; older ones are gone and a reader that
  // missed them starts over.
  std::uint64_t change_begin() const { return change_base_; }
  std::uint64_t change_end() const { return change_base_ + changes_.size(); }
  const Change& change(std::uint64_t index) const {
    return changes_[static_cast<std::size_t>(index - change_base_)];
  }
  // Bumps when node_order() or the set of nodes changed.
  std::uint64_t topology_version() const { return topology_version_; }
  // Bumps when labels or taints of a node that was known already changed: what topology rules count
  // by.
  std::uint64_t labels_version() const { return labels_version_; }
  // Bumps when what a node that was known already has to give changed: amounts, devices, their
  // health.
  std::uint64_t capacity_version() const { return capacity_version_; }

  // Digest of all nodes, pods, holds and usage, without regard to the order of events. Objects are
  // not in it.
  std::uint64_t digest() const;
  // Recomputes every node's usage and device ledger from the pods alone and compares; the first
  // difference as text, empty if none. Shares no code with place/unplace.
  std::string recount() const;

 private:
  enum class UndoKind : std::uint8_t { Place, Unplace, Nominate };
  // What it takes to undo one move; versions are put back because contents are.
  struct Undo {
    UndoKind kind;
    bool holds_known = true;
    PodId pod;
    NodeId node;                // where it was placed, or the former nomination
    std::uint32_t slot = 0;     // Unplace: position in Node::pods
    std::uint64_t version = 0;  // the node's, before the move
    std::vector<GpuHold> holds;
  };

  Result<void> check_node(const NodeSpec& spec) const;
  Result<void> check_pod(const PodSpec& spec) const;
  static std::uint64_t spec_digest(const NodeSpec& spec);
  bool is_same_place(const Pod& pod, const PodSpec& spec, ShapeId shape, IdentityId identity) const;
  void set_pod_state(PodId pod, const PodSpec& spec);
  void set_node_facts(Node& node, const NodeSpec& spec, bool is_new);
  void set_node_capacity(Node& node, const NodeSpec& spec);
  void set_node_gpus(Node& node, const NodeSpec& spec);
  void set_node_images(Node& node, const NodeSpec& spec);
  void book(const Pod& pod, Node& node, int sign);
  void book_devices(const Pod& pod, Node& node, int sign);
  void rebook_devices(Node& node);
  static bool plausible(const GpuRequest& ask, const Node& node, std::span<const GpuHold> holds);
  std::uint16_t claimed_slices(const Node& node, std::int32_t gpu) const;
  void check_holds(const Pod& pod, const Node& node, std::span<const GpuHold> holds) const;
  void check_instance(const Shape& shape, const Node& node, std::span<const GpuHold> before,
                      const GpuHold& hold) const;
  void log_change(NodeId node, PodId pod, int delta);
  void touch(Node& node) { node.version = ++version_clock_; }
  // After an observation: may set the mark. After a pod left: may only clear it.
  static void note_over(Node& node, bool observed);
  void do_place(PodId pod, NodeId node, std::vector<GpuHold> holds, bool known);
  void do_unplace(PodId pod);
  void do_nominate(PodId pod, NodeId node);
  void place_observed(PodId pod, NodeId node, std::vector<GpuHold> holds, bool known);
  void adopt_orphans(NodeId node);
  ScalarId scalar_id(std::string_view name);
  PodId new_pod_slot();
  std::uint64_t pod_digest(const Pod& pod) const;
  std::uint64_t node_digest(const Node& node) const;

  SymbolTable symbols_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint32_t, NodeId> node_by_name_;  // by symbol; looked up only
  std::vector<NodeId> free_nodes_;
  std::size_t alive_nodes_ = 0;
  std::vector<Pod> pods_;
  std::vector<PodId> free_pods_;
  std::unordered_multimap<std::uint64_t, PodId> pod_by_name_;  // by digest of ns and name
  std::vector<PodId> nominated_;
  std::vector<PodId> orphans_;
  std::deque<Shape> shapes_;
  std::unordered_multimap<std::uint64_t, ShapeId> shape_by_digest_;
  std::deque<Identity> identities_;
  std::unordered_multimap<std::uint64_t, IdentityId> identity_by_digest_;
  std::vector<ShapeId> free_shapes_;
  std::vector<IdentityId> free_identities_;
  std::uint64_t intern_epoch_ = 1;
  std::vector<Symbol> scalar_names_;
  std::unordered_map<std::uint32_t, ScalarId> scalar_by_name_;
  std::vector<ImageInfo> images_;
  std::unordered_map<std::uint32_t, ImageId> image_by_name_;
  Objects objects_;
  std::uint64_t objects_version_ = 1;
  std::uint64_t version_clock_ = 0;
  std::uint64_t topology_version_ = 1;
  std::uint64_t labels_version_ = 1;
  std::uint64_t capacity_version_ = 1;
  std::int64_t placed_with_affinity_ = 0;
  std::deque<Change> changes_;
  std::uint64_t change_base_ = 0;
  std::vector<Undo> journal_;
  std::vector<std::size_t> marks_;  // open checkpoints: length of the journal at each
  mutable std::vector<NodeId> order_;
  mutable std::vector<std::uint32_t> rank_;
  mutable std::uint64_t order_version_ = 0;
};

}  // namespace jogak::core
