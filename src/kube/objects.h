// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API objects that scheduling reads, cut down to the fields it reads. Names follow
// the API. Amounts of resources are int64_t: cpu in milli-CPU, all else in whole units, rounded up
// as the API machinery does. Nothing here knows the decision core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace jogak::kube {

using StringMap = std::vector<std::pair<std::string, std::string>>;   // sorted by key, unique
using Resources = std::vector<std::pair<std::string, std::int64_t>>;  // sorted by name, unique

struct ObjectMeta {
  std::string ns;
  std::string name;
  std::string uid;
  StringMap labels;
  StringMap annotations;   // only jogak.io/* and the volume ones some rule reads
  std::string owner_kind;  // of the owner reference with controller: true
  std::string owner_name;
  std::string owner_uid;
  bool deleting = false;  // has a deletionTimestamp
};

enum class Operator : std::uint8_t { In, NotIn, Exists, DoesNotExist, Gt, Lt };

struct SelectorRequirement {
  std::string key;
  Operator op = Operator::In;
  std::vector<std::string> values;
};

struct LabelSelector {
  StringMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
};

struct NodeSelectorTerm {
  std::vector<SelectorRequirement> match_expressions;
  std::vector<SelectorRequirement> match_fields;
};

// ---- nodes ----------------------------------------------------------------------------------

enum class TaintEffect : std::uint8_t { NoSchedule, PreferNoSchedule, NoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::NoSchedule;
};

struct ContainerImage {
  std::vector<std::string> names;
  std::int64_t size_bytes = 0;
};

struct Node {
  ObjectMeta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;
  Resources allocatable;  // capacity where the object names no allocatable
  std::vector<ContainerImage> images;
  std::vector<std::string> declared_features;
};

// ---- pods -----------------------------------------------------------------------------------

enum class TolerationOperator : std::uint8_t { Equal, Exists, Lt, Gt };

struct Toleration {
  std::string key;
  TolerationOperator op = TolerationOperator::Equal;
  std::string value;
  std::optional<TaintEffect> effect;
};

struct PodAffinityTerm {
  std::int32_t weight = 0;  // of a preferred term
  std::optional<LabelSelector> selector;
  std::string topology_key;
  std::vector<std::string> namespaces;
  std::optional<LabelSelector> namespace_selector;
  std::vector<std::string> match_label_keys;
  std::vector<std::string> mismatch_label_keys;
};

struct PodAffinity {
  std::vector<PodAffinityTerm> required;
  std::vector<PodAffinityTerm> preferred;
};

struct PreferredNodeTerm {
  std::int32_t weight = 0;
  NodeSelectorTerm term;
};

struct NodeAffinity {
  std::optional<std::vector<NodeSelectorTerm>> required;
  std::vector<PreferredNodeTerm> preferred;
};

struct TopologySpreadConstraint {
  std::int32_t max_skew = 1;
  std::string topology_key;
  bool do_not_schedule = true;
  std::optional<LabelSelector> selector;
  std::vector<std::string> match_label_keys;
  std::int32_t min_domains = 1;
  bool honor_node_affinity = true;
  bool honor_node_taints = false;
};

struct ContainerPort {
  std::string host_ip;
  std::string protocol;
  std::int32_t host_port = 0;
  std::int32_t container_port = 0;
};

struct ResizableResources {
  Resources requests;
  Resources limits;
  std::optional<Resources> in_effect;  // status: resources.requests
  std::optional<Resources> allocated;  // status: allocatedResources
};

struct Container {
  std::string name;
  std::string image;
  ResizableResources resources;
  std::vector<ContainerPort> ports;
  bool sidecar = false;                  // init container with restartPolicy Always
  bool restarts_all_containers = false;  // a restart rule with action RestartAllContainers
};

// A volume of a pod that some filter or score reads; other kinds are dropped.
struct Volume {
  enum class Kind : std::uint8_t { Claim, Ephemeral, GcePd, AwsEbs, Iscsi, Rbd, Image };
  std::string name;
  Kind kind = Kind::Claim;
  std::string source;  // claim name, pd name, volume id, IQN, image reference; Ephemeral: empty
  bool read_only = false;
  std::string pool;                   // Rbd
  std::string image;                  // Rbd
  std::vector<std::string> monitors;  // Rbd
};

struct Pod {
  ObjectMeta meta;
  std::string node_name;
  std::string scheduler_name;
  std::optional<std::int32_t> priority;
  std::string priority_class_name;
  std::optional<bool> never_preempts;  // preemptionPolicy
  StringMap node_selector;
  NodeAffinity node_affinity;
  PodAffinity pod_affinity;
  PodAffinity pod_anti_affinity;
  std::vector<Toleration> tolerations;
  std::vector<TopologySpreadConstraint> spread;
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  ResizableResources pod_level;
  Resources overhead;
  std::vector<Volume> volumes;
  std::vector<std::string> scheduling_gates;
  bool host_network = false;
  bool host_users = true;
  bool has_resource_claims = false;  // spec.resourceClaims (DRA)
  bool has_pod_group = false;        // spec.schedulingGroup or spec.workloadRef
  // status
  bool finished = false;  // phase Succeeded or Failed
  std::string nominated_node_name;
  std::optional<std::int64_t> start_time;  // nanoseconds since 1970
  bool resize_infeasible = false;          // condition PodResizePending, reason Infeasible
  bool preemption_victim = false;  // condition DisruptionTarget by the scheduler's preemption
  std::string refusal;             // message of condition PodScheduled while that is False
};

// ---- the rest -------------------------------------------------------------------------------

struct Namespace {
  ObjectMeta meta;
};

struct PriorityClass {
  ObjectMeta meta;
  std::int32_t value = 0;
  bool global_default = false;
  bool never_preempts = false;
};

struct PodDisruptionBudget {
  ObjectMeta meta;
  std::optional<LabelSelector> selector;
  std::int32_t disruptions_allowed = 0;
  std::vector<std::string> disrupted_pods;
};

// Service, ReplicationController, ReplicaSet, StatefulSet: what default spreading counts by.
struct Workload {
  std::string kind;
  ObjectMeta meta;
  std::optional<LabelSelector> selector;
};

struct PersistentVolume {
  ObjectMeta meta;
  std::int64_t capacity_bytes = 0;
  std::string storage_class;
  std::vector<std::string> access_modes;
  std::string volume_mode;
  std::optional<std::vector<NodeSelectorTerm>> node_affinity;
  std::string claim_ns;
  std::string claim_name;
  std::string claim_uid;
  std::string phase;
  std::string csi_driver;  // empty: not a CSI volume
  std::string csi_handle;
  std::string migrated_from;  // "kubernetes.io/aws-ebs": in-tree, given as the CSI volume it became
  std::string attributes_class;
};

struct PersistentVolumeClaim {
  ObjectMeta meta;
  std::string phase;
  std::string volume_name;
  std::optional<std::string> storage_class;
  std::vector<std::string> access_modes;
  std::string volume_mode;
  std::int64_t request_bytes = 0;
  std::optional<LabelSelector> selector;
  std::string attributes_class;
};

struct StorageClass {
  ObjectMeta meta;
  std::string provisioner;
  bool wait_for_first_consumer = false;
  std::vector<NodeSelectorTerm> allowed_topologies;
};

struct CsiNode {
  struct Driver {
    std::string name;
    std::optional<std::int64_t> count;
  };
  ObjectMeta meta;
  std::vector<Driver> drivers;
  std::vector<std::string> migrated_plugins;
};

struct CsiDriver {
  ObjectMeta meta;
  bool storage_capacity = false;
};

struct CsiStorageCapacity {
  ObjectMeta meta;
  std::string storage_class;
  std::optional<LabelSelector> node_topology;
  std::optional<std::int64_t> capacity_bytes;
  std::optional<std::int64_t> maximum_volume_bytes;
};

struct VolumeAttachment {
  ObjectMeta meta;
  std::string attacher;
  std::string node_name;
  std::string pv_name;
};

// A kind that scheduling does not read.
struct OtherKind {
  std::string kind;
};

using Object = std::variant<OtherKind, Node, Pod, Namespace, PriorityClass, PodDisruptionBudget,
                            Workload, PersistentVolume, PersistentVolumeClaim, StorageClass,
                            CsiNode, CsiDriver, CsiStorageCapacity, VolumeAttachment>;

}  // namespace jogak::kube
