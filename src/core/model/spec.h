// SPDX-License-Identifier: Apache-2.0
// Input values of the decision core: what a node, a pod and the objects around them look like to
// the scheduler. They are plain values made at the border (Kubernetes JSON, traces, scenario files)
// and carried into the core by events. Field meaning follows the Kubernetes API; units are fixed
// here: cpu in milli-CPU, every other resource in whole units (bytes for memory and storage), GPU
// shares in thousandths of a device, GPU memory in MiB, time in nanoseconds since an epoch the
// driver chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace jogak::core {

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key, keys unique
using ResourceList = std::vector<std::pair<std::string, std::int64_t>>;  // sorted by name, unique

// Amounts above this are refused at the door, so that sums over any possible number of pods on a
// node cannot overflow: 2^50 (a pebibyte, or a trillion cores) times 2^12 pods stays below 2^63.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 50;
inline constexpr std::size_t kMaxGpus = 32;  // per node; nvlink_mask has a bit for each

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::max();

// ---- selectors ------------------------------------------------------------------------------

enum class SelectorOp : std::uint8_t { In, NotIn, Exists, DoesNotExist, Gt, Lt };

struct Requirement {
  std::string key;
  SelectorOp op = SelectorOp::In;
  std::vector<std::string> values;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

// matchLabels are folded in as `In` with one value. No requirement at all matches everything; a
// missing selector (std::nullopt where optional) matches nothing.
struct LabelSelector {
  std::vector<Requirement> requirements;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

// An empty term (neither labels nor fields) matches no node.
struct NodeSelectorTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;  // only metadata.name, In/NotIn, one value
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

struct PreferredNodeTerm {
  std::int32_t weight = 0;  // 1..100
  NodeSelectorTerm term;
  friend bool operator==(const PreferredNodeTerm&, const PreferredNodeTerm&) = default;
};

// ---- node -----------------------------------------------------------------------------------

enum class TaintEffect : std::uint8_t { NoSchedule, PreferNoSchedule, NoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::NoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

enum class GpuHealth : std::uint8_t { Healthy, Unhealthy, Unknown };

// One MIG instance that exists on a GPU, in memory slices of the model's placement grid (mig.h).
struct MigInstanceSpec {
  std::string profile;  // "1g.10gb"
  std::int32_t start = 0;
  friend bool operator==(const MigInstanceSpec&, const MigInstanceSpec&) = default;
};

struct GpuSpec {
  std::string uuid;               // may be empty
  std::int32_t memory_mib = 0;    // 0: not known; shares in MiB are then refused
  std::int32_t numa_node = -1;    // -1: not known
  std::uint32_t nvlink_mask = 0;  // bit i: direct NVLink to GPU i of this node
  GpuHealth health = GpuHealth::Healthy;
  bool mig_enabled = false;  // whole-GPU and share requests never use such a device
  bool mig_dynamic = false;  // the agent cuts instances on demand; else only `mig_instances`
  std::vector<MigInstanceSpec> mig_instances;
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

struct ImageSpec {
  std::vector<std::string> names;
  std::int64_t size_bytes = 0;
  friend bool operator==(const ImageSpec&, const ImageSpec&) = default;
};

struct NodeSpec {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
  ResourceList allocatable;  // "cpu" in milli; "pods" is the pod limit
  std::vector<ImageSpec> images;
  std::vector<std::string> declared_features;  // sorted
  // Device detail. Empty: the node has none and its GPUs are only counted as extended resources.
  std::string gpu_model;
  std::vector<GpuSpec> gpus;
  std::int32_t order =
      0;  // tie-break rank among nodes, smaller first; equal ranks fall to the name
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// ---- pod ------------------------------------------------------------------------------------

struct Toleration {
  std::string key;  // empty: every key (operator Exists)
  bool exists = false;
  std::string value;
  std::optional<TaintEffect> effect;  // nullopt: every effect
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct PodAffinityTerm {
  std::optional<LabelSelector> selector;
  std::string topology_key;
  std::vector<std::string> namespaces;
  std::optional<LabelSelector> namespace_selector;
  std::int32_t weight = 0;  // preferred terms: 1..100; required terms: 0
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

struct SpreadConstraint {
  std::int32_t max_skew = 1;
  std::string topology_key;
  bool hard = true;  // DoNotSchedule
  std::optional<LabelSelector> selector;
  std::vector<std::string> match_label_keys;
  std::int32_t min_domains = 1;
  bool honor_node_affinity = true;
  bool honor_node_taints = false;
  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

struct HostPort {
  std::string ip;        // "0.0.0.0" stands for every address
  std::string protocol;  // "TCP", "UDP", "SCTP"
  std::int32_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

enum class VolumeKind : std::uint8_t { Claim, Ephemeral, GcePd, AwsEbs, Iscsi, Rbd };

struct VolumeRef {
  VolumeKind kind = VolumeKind::Claim;
  std::string name;  // Claim/Ephemeral: claim name; GcePd: pdName; AwsEbs: volumeID; Iscsi: IQN
  bool read_only = false;
  std::string pool;                   // Rbd
  std::string image;                  // Rbd
  std::vector<std::string> monitors;  // Rbd
  friend bool operator==(const VolumeRef&, const VolumeRef&) = default;
};

enum class GpuAsk : std::uint8_t { None, Whole, ShareMilli, ShareMib, Mig };

// What the pod wants of devices. Independent of extended resources: a pod of a plain cluster asks
// for nvidia.com/gpu in `requests` and the border also sets Whole here where the node side has
// device detail.
struct GpuRequest {
  GpuAsk kind = GpuAsk::None;
  std::int32_t count = 0;           // devices (Whole, Share*) or instances (Mig)
  std::int32_t amount = 0;          // per device: thousandths (1..999) or MiB; 0 for Whole and Mig
  std::string mig_profile;          // Mig: "1g.10gb"
  std::vector<std::string> models;  // allowed GPU models, sorted; empty: any
  friend bool operator==(const GpuRequest&, const GpuRequest&) = default;
};

enum class PreemptionPolicy : std::uint8_t { LowerPriority, Never };

// Everything about a pod that a scheduling decision may read, apart from who it is (PodSpec below).
// Pods with equal shapes form an equivalence class and share every cached verdict.
struct PodShape {
  ResourceList requests;            // effective request (pod_requests.h); zero entries are kept
  std::int64_t nonzero_cpu = 0;     // milli; request with the 100m default per container
  std::int64_t nonzero_memory = 0;  // bytes; with the 200 MiB default
  // What NodeResourcesFit scores the pod itself with where that is not nonzero_*: kube-scheduler
  // forgets pod-level requests there, and there alone. -1: the same.
  std::int64_t scored_cpu = -1;
  std::int64_t scored_memory = -1;
  GpuRequest gpu;
  std::int32_t priority = 0;
  PreemptionPolicy preemption = PreemptionPolicy::LowerPriority;
  std::string node_name;                   // spec.nodeName asked for by hand; empty for normal pods
  std::vector<Requirement> node_selector;  // ANDed
  std::optional<std::vector<NodeSelectorTerm>> node_affinity;  // required; ORed
  std::vector<PreferredNodeTerm> preferred_node;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  std::vector<SpreadConstraint> spread;
  std::vector<PodAffinityTerm> required_affinity;
  std::vector<PodAffinityTerm> required_anti_affinity;
  std::vector<PodAffinityTerm> preferred_affinity;
  std::vector<PodAffinityTerm> preferred_anti_affinity;
  std::vector<VolumeRef> volumes;
  std::vector<std::string> images;   // normalised with a tag; init containers, containers, volumes
  std::int32_t container_count = 1;  // containers + init containers, for ImageLocality
  std::vector<std::string> required_features;  // sorted
  std::vector<std::string> gates;
  friend bool operator==(const PodShape&, const PodShape&) = default;
};

// One device (or MIG instance) held by a pod.
struct GpuHold {
  std::int32_t gpu = 0;         // index within the node
  std::int32_t amount = 0;      // Whole: 0; ShareMilli: thousandths; ShareMib: MiB
  std::int32_t mig_start = -1;  // Mig: first memory slice
  friend bool operator==(const GpuHold&, const GpuHold&) = default;
};

struct PodSpec {
  std::string ns;
  std::string name;
  std::string uid;  // identity; "ns/name" is used where empty
  Labels labels;
  std::string owner_kind;  // controller reference, for default spreading
  std::string owner_name;
  PodShape shape;
  std::string scheduler_name;
  // State as observed.
  std::string bound_node;  // non-empty: it holds its resources there
  std::optional<std::vector<GpuHold>>
      holds;  // nullopt on a bound GPU pod: which devices is unknown
  std::string nominated_node;
  bool terminating = false;           // deletionTimestamp set
  bool preemption_victim = false;     // DisruptionTarget condition by the scheduler's preemption
  std::int64_t start_time = kNoTime;  // status.startTime
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

// ---- other objects --------------------------------------------------------------------------

struct NamespaceSpec {
  std::string name;
  Labels labels;
  friend bool operator==(const NamespaceSpec&, const NamespaceSpec&) = default;
};

struct PdbSpec {
  std::string ns;
  std::string name;
  std::optional<LabelSelector> selector;  // empty or missing matches no pod
  std::int32_t disruptions_allowed = 0;
  std::vector<std::string> disrupted_pods;  // names
  friend bool operator==(const PdbSpec&, const PdbSpec&) = default;
};

// Service, ReplicationController, ReplicaSet or StatefulSet, for default spreading.
struct WorkloadSpec {
  std::string kind;  // "Service", "ReplicationController", "ReplicaSet", "StatefulSet"
  std::string ns;
  std::string name;
  std::optional<LabelSelector> selector;
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

// Volume of a CSI driver. In-tree volumes of a kind that Kubernetes moved to CSI (EBS, GCE PD, ...)
// are given as what they became, with the plugin they were; they count as CSI volumes only on nodes
// that say they migrated it (CsiNodeSpec::migrated_plugins).
struct CsiSource {
  std::string driver;
  std::string handle;
  std::string migrated_from;  // "kubernetes.io/aws-ebs"; empty: CSI from the start
  friend bool operator==(const CsiSource&, const CsiSource&) = default;
};

struct PersistentVolumeSpec {
  std::string name;
  Labels labels;
  std::int64_t capacity_bytes = 0;
  std::string storage_class;
  std::vector<std::string> access_modes;
  std::string volume_mode = "Filesystem";
  std::optional<std::vector<NodeSelectorTerm>> node_affinity;
  std::string claim_ns;  // claimRef; empty: unclaimed
  std::string claim_name;
  std::string claim_uid;  // empty: pre-bound by name only
  std::string phase;
  bool deleting = false;
  std::optional<CsiSource> csi;
  std::string attributes_class;  // volumeAttributesClassName
  friend bool operator==(const PersistentVolumeSpec&, const PersistentVolumeSpec&) = default;
};

struct PersistentVolumeClaimSpec {
  std::string ns;
  std::string name;
  std::string uid;
  std::string phase;
  std::string volume_name;
  std::optional<std::string> storage_class;  // nullopt: none named
  std::vector<std::string> access_modes;
  std::string volume_mode = "Filesystem";
  std::int64_t request_bytes = 0;
  std::optional<LabelSelector> selector;
  std::string selected_node;    // annotation volume.kubernetes.io/selected-node
  bool bind_completed = false;  // annotation pv.kubernetes.io/bind-completed present
  std::string owner_pod_uid;    // controller pod of a generic ephemeral claim
  bool deleting = false;
  std::string attributes_class;  // volumeAttributesClassName
  friend bool operator==(const PersistentVolumeClaimSpec&,
                         const PersistentVolumeClaimSpec&) = default;
};

struct StorageClassSpec {
  std::string name;
  std::string provisioner;
  bool wait_for_first_consumer = false;
  std::vector<NodeSelectorTerm> allowed_topologies;  // ORed; requirements are In
  friend bool operator==(const StorageClassSpec&, const StorageClassSpec&) = default;
};

struct CsiNodeSpec {
  std::string name;
  struct Driver {
    std::string name;
    std::optional<std::int64_t> limit;
    friend bool operator==(const Driver&, const Driver&) = default;
  };
  std::vector<Driver> drivers;
  // Annotation storage.alpha.kubernetes.io/migrated-plugins, split at the commas.
  std::vector<std::string> migrated_plugins;
  friend bool operator==(const CsiNodeSpec&, const CsiNodeSpec&) = default;
};

struct CsiDriverSpec {
  std::string name;
  bool storage_capacity = false;
  friend bool operator==(const CsiDriverSpec&, const CsiDriverSpec&) = default;
};

struct CsiStorageCapacitySpec {
  std::string ns;
  std::string name;
  std::string storage_class;
  std::optional<LabelSelector> node_topology;
  std::optional<std::int64_t> capacity_bytes;
  std::optional<std::int64_t> maximum_volume_bytes;
  friend bool operator==(const CsiStorageCapacitySpec&, const CsiStorageCapacitySpec&) = default;
};

struct VolumeAttachmentSpec {
  std::string name;
  std::string attacher;
  std::string node;
  std::string pv_name;
  friend bool operator==(const VolumeAttachmentSpec&, const VolumeAttachmentSpec&) = default;
};

}  // namespace jogak::core
