// SPDX-License-Identifier: Apache-2.0
//
// Tables of facts. Their source: the markers in k8s.io/api 0.36 and what is generated from them.
#include "apiserver/rest/openapi_facts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace jogak::api {
namespace {

// Values are separated by "|".
constexpr std::string_view kProtocols = "SCTP|TCP|UDP";
constexpr std::string_view kPullPolicies = "Always|IfNotPresent|Never";
constexpr std::string_view kTaintEffects = "NoExecute|NoSchedule|PreferNoSchedule";
constexpr std::string_view kAccessModes =
    "ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod";
constexpr std::string_view kNodePolicies = "Honor|Ignore";
constexpr std::string_view kMessagePolicies = "FallbackToLogsOnError|File";
constexpr std::string_view kVolumeModes = "Block|Filesystem";
constexpr std::string_view kPreemption = "Never|PreemptLowerPriority";
constexpr std::string_view kUpdateStrategies = "OnDelete|RollingUpdate";
constexpr std::string_view kProfiles = "Localhost|RuntimeDefault|Unconfined";
constexpr std::string_view kTrafficPolicies = "Cluster|Local";
constexpr std::string_view kAllocationModes = "All|ExactCount";
constexpr std::string_view kDeviceEffects = "NoExecute|NoSchedule|None";
constexpr std::string_view kReclaimPolicies = "Delete|Recycle|Retain";
constexpr std::string_view kDisruptionModes = "Pod|PodGroup";
constexpr std::string_view kQuotaScopes =
    "BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|"
    "PriorityClass|Terminating|VolumeAttributesClass";
constexpr std::string_view kSignals =
    "SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|"
    "SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|"
    "SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|"
    "SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|"
    "SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|"
    "SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|"
    "SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|"
    "SIGWINCH|SIGXCPU|SIGXFSZ";

struct EnumFact {
  std::string_view type, member, values;
};

// Sorted by type, then member.
constexpr EnumFact kEnums[] = {
    {"apiextensions.v1.ValidationRule", "reason",
     "FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|FieldValueRequired"},
    {"apps.v1.DaemonSetUpdateStrategy", "type", kUpdateStrategies},
    {"apps.v1.DeploymentStrategy", "type", "Recreate|RollingUpdate"},
    {"apps.v1.StatefulSetSpec", "podManagementPolicy", "OrderedReady|Parallel"},
    {"apps.v1.StatefulSetUpdateStrategy", "type", kUpdateStrategies},
    {"batch.v1.CronJobSpec", "concurrencyPolicy", "Allow|Forbid|Replace"},
    {"batch.v1.JobSpec", "completionMode", "Indexed|NonIndexed"},
    {"batch.v1.JobSpec", "podReplacementPolicy", "Failed|TerminatingOrFailed"},
    {"batch.v1.PodFailurePolicyOnExitCodesRequirement", "operator", "In|NotIn"},
    {"batch.v1.PodFailurePolicyRule", "action", "Count|FailIndex|FailJob|Ignore"},
    {"core.v1.AppArmorProfile", "type", kProfiles},
    {"core.v1.AzureDiskVolumeSource", "cachingMode", "None|ReadOnly|ReadWrite"},
    {"core.v1.AzureDiskVolumeSource", "kind", "Dedicated|Managed|Shared"},
    {"core.v1.Container", "imagePullPolicy", kPullPolicies},
    {"core.v1.Container", "terminationMessagePolicy", kMessagePolicies},
    {"core.v1.ContainerPort", "protocol", kProtocols},
    {"core.v1.ContainerStatus", "stopSignal", kSignals},
    {"core.v1.EndpointPort", "protocol", kProtocols},
    {"core.v1.EphemeralContainer", "imagePullPolicy", kPullPolicies},
    {"core.v1.EphemeralContainer", "terminationMessagePolicy", kMessagePolicies},
    {"core.v1.HTTPGetAction", "scheme", "HTTP|HTTPS"},
    {"core.v1.HostPathVolumeSource", "type",
     "|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket"},
    {"core.v1.ImageVolumeSource", "pullPolicy", kPullPolicies},
    {"core.v1.Lifecycle", "stopSignal", kSignals},
    {"core.v1.ModifyVolumeStatus", "status", "InProgress|Infeasible|Pending"},
    {"core.v1.NamespaceStatus", "phase", "Active|Terminating"},
    {"core.v1.NodeSelectorRequirement", "operator", "DoesNotExist|Exists|Gt|In|Lt|NotIn"},
    {"core.v1.NodeStatus", "phase", "Pending|Running|Terminated"},
    {"core.v1.PersistentVolumeClaimSpec", "accessModes", kAccessModes},
    {"core.v1.PersistentVolumeClaimSpec", "volumeMode", kVolumeModes},
    {"core.v1.PersistentVolumeClaimStatus", "accessModes", kAccessModes},
    {"core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses",
     "ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|"
     "NodeResizeInfeasible|NodeResizePending"},
    {"core.v1.PersistentVolumeClaimStatus", "phase", "Bound|Lost|Pending"},
    {"core.v1.PersistentVolumeSpec", "accessModes", kAccessModes},
    {"core.v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy", kReclaimPolicies},
    {"core.v1.PersistentVolumeSpec", "volumeMode", kVolumeModes},
    {"core.v1.PersistentVolumeStatus", "phase", "Available|Bound|Failed|Pending|Released"},
    {"core.v1.PodSecurityContext", "fsGroupChangePolicy", "Always|OnRootMismatch"},
    {"core.v1.PodSecurityContext", "supplementalGroupsPolicy", "Merge|Strict"},
    {"core.v1.PodSpec", "dnsPolicy", "ClusterFirst|ClusterFirstWithHostNet|Default|None"},
    {"core.v1.PodSpec", "preemptionPolicy", kPreemption},
    {"core.v1.PodSpec", "restartPolicy", "Always|Never|OnFailure"},
    {"core.v1.PodStatus", "phase", "Failed|Pending|Running|Succeeded|Unknown"},
    {"core.v1.PodStatus", "qosClass", "BestEffort|Burstable|Guaranteed"},
    {"core.v1.PortStatus", "protocol", kProtocols},
    {"core.v1.ResourceQuotaSpec", "scopes", kQuotaScopes},
    {"core.v1.ScopedResourceSelectorRequirement", "operator", "DoesNotExist|Exists|In|NotIn"},
    {"core.v1.ScopedResourceSelectorRequirement", "scopeName", kQuotaScopes},
    {"core.v1.SeccompProfile", "type", kProfiles},
    {"core.v1.SecurityContext", "procMount", "Default|Unmasked"},
    {"core.v1.ServicePort", "protocol", kProtocols},
    {"core.v1.ServiceSpec", "externalTrafficPolicy", kTrafficPolicies},
    {"core.v1.ServiceSpec", "internalTrafficPolicy", kTrafficPolicies},
    {"core.v1.ServiceSpec", "ipFamilies", "|IPv4|IPv6"},
    {"core.v1.ServiceSpec", "ipFamilyPolicy", "PreferDualStack|RequireDualStack|SingleStack"},
    {"core.v1.ServiceSpec", "sessionAffinity", "ClientIP|None"},
    {"core.v1.ServiceSpec", "type", "ClusterIP|ExternalName|LoadBalancer|NodePort"},
    {"core.v1.Taint", "effect", kTaintEffects},
    {"core.v1.Toleration", "effect", kTaintEffects},
    {"core.v1.Toleration", "operator", "Equal|Exists|Gt|Lt"},
    {"core.v1.TopologySpreadConstraint", "nodeAffinityPolicy", kNodePolicies},
    {"core.v1.TopologySpreadConstraint", "nodeTaintsPolicy", kNodePolicies},
    {"core.v1.TopologySpreadConstraint", "whenUnsatisfiable", "DoNotSchedule|ScheduleAnyway"},
    {"core.v1.VolumeMount", "mountPropagation", "Bidirectional|HostToContainer|None"},
    {"discovery.v1.EndpointPort", "protocol", kProtocols},
    {"discovery.v1.EndpointSlice", "addressType", "FQDN|IPv4|IPv6"},
    {"policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy",
     "AlwaysAllow|IfHealthyBudget"},
    {"resource.v1.DeviceAllocationConfiguration", "source", "FromClaim|FromClass"},
    {"resource.v1.DeviceSubRequest", "allocationMode", kAllocationModes},
    {"resource.v1.DeviceTaint", "effect", kDeviceEffects},
    {"resource.v1.DeviceToleration", "effect", kDeviceEffects},
    {"resource.v1.DeviceToleration", "operator", "Equal|Exists"},
    {"resource.v1.ExactDeviceRequest", "allocationMode", kAllocationModes},
    {"scheduling.v1.PriorityClass", "preemptionPolicy", kPreemption},
    {"scheduling.v1alpha2.PodGroupSpec", "disruptionMode", kDisruptionModes},
    {"scheduling.v1alpha2.PodGroupTemplate", "disruptionMode", kDisruptionModes},
    {"storage.v1.StorageClass", "reclaimPolicy", kReclaimPolicies},
    {"storage.v1.StorageClass", "volumeBindingMode", "Immediate|WaitForFirstConsumer"},
};

using Member = std::pair<std::string_view, std::string_view>;

constexpr Member kRequired[] = {
    {"authentication.v1.TokenReviewSpec", "token"},
    {"autoscaling.v1.HorizontalPodAutoscaler", "spec"},
    {"autoscaling.v2.HorizontalPodAutoscaler", "spec"},
    {"batch.v1.CronJob", "spec"},
    {"core.v1.ContainerRestartRule", "action"},
    {"core.v1.ContainerRestartRuleOnExitCodes", "operator"},
    {"core.v1.ImageVolumeStatus", "imageRef"},
    {"core.v1.PodCertificateProjection", "keyType"},
    {"core.v1.PodCertificateProjection", "signerName"},
    {"resource.v1.CapacityRequestPolicyRange", "min"},
    {"resource.v1.CounterSet", "counters"},
    {"resource.v1.DeviceCounterConsumption", "counters"},
};

// Members of which at most one is set, the member that says which ("" for none), and the Go names.
struct UnionFact {
  std::string_view type, discriminator;
  std::array<Member, 2> members;
};
constexpr UnionFact kUnions[] = {
    {"core.v1.AppArmorProfile", "type", {{{"localhostProfile", "LocalhostProfile"}}}},
    {"core.v1.PodSchedulingGroup", "", {{{"podGroupName", "PodGroupName"}}}},
    {"core.v1.SeccompProfile", "type", {{{"localhostProfile", "LocalhostProfile"}}}},
    {"scheduling.v1alpha2.PodGroupSchedulingPolicy", "", {{{"basic", "Basic"}, {"gang", "Gang"}}}},
    {"scheduling.v1alpha2.PodGroupTemplateReference", "", {{{"workload", "Workload"}}}},
};

// Defaults that are Go constants by name.
struct DefaultFact {
  std::string_view type, member, value;
};
constexpr DefaultFact kDefaults[] = {
    {"core.v1.AzureDiskVolumeSource", "cachingMode", "ReadWrite"},
    {"core.v1.AzureDiskVolumeSource", "kind", "Shared"},
};

// Maps and structs that are merged member by member, said outright.
constexpr Member kGranular[] = {
    {"core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses"},
    {"core.v1.PersistentVolumeSpec", "claimRef"},
};

// Packages whose group has another name.
constexpr Member kGroups[] = {
    {"core", ""},
    {"meta", ""},
    {"scheduling", "scheduling.k8s.io"},
    {"storage", "storage.k8s.io"},
    {"coordination", "coordination.k8s.io"},
    {"events", "events.k8s.io"},
    {"rbac", "rbac.authorization.k8s.io"},
    {"resource", "resource.k8s.io"},
    {"discovery", "discovery.k8s.io"},
    {"authentication", "authentication.k8s.io"},
    {"authorization", "authorization.k8s.io"},
    {"node", "node.k8s.io"},
    {"apiextensions", "apiextensions.k8s.io"},
};

}  // namespace

std::vector<std::string_view> enum_values(std::string_view type, std::string_view member) {
  const auto key = [](const EnumFact& fact) { return Member(fact.type, fact.member); };
  const auto it = std::ranges::lower_bound(kEnums, Member(type, member), {}, key);
  std::vector<std::string_view> values;
  if (it == std::end(kEnums) || key(*it) != Member(type, member)) {
    return values;
  }
  std::string_view left = it->values;
  for (std::size_t bar = 0; bar != std::string_view::npos;) {
    bar = left.find('|');
    values.push_back(left.substr(0, bar));
    left.remove_prefix(bar == std::string_view::npos ? 0 : bar + 1);
  }
  return values;
}

bool is_required_anyway(std::string_view type, std::string_view member) {
  return std::ranges::find(kRequired, Member(type, member)) != std::end(kRequired);
}

bool is_granular(std::string_view type, std::string_view member) {
  return std::ranges::find(kGranular, Member(type, member)) != std::end(kGranular);
}

std::string_view named_default(std::string_view type, std::string_view member) {
  const auto it = std::ranges::find_if(kDefaults, [&](const DefaultFact& fact) {
    return fact.type == type && fact.member == member;
  });
  return it == std::end(kDefaults) ? "" : it->value;
}

Doc unions_of(std::string_view type) {
  const auto it = std::ranges::find(kUnions, type, &UnionFact::type);
  if (it == std::end(kUnions)) {
    return {};
  }
  Doc names = Doc::object();
  for (const auto& [member, go_name] : it->members) {
    if (!member.empty()) {
      names.set(member, go_name);
    }
  }
  Doc entry = Doc::object();
  if (!it->discriminator.empty()) {
    entry.set("discriminator", it->discriminator);
  }
  entry.set("fields-to-discriminateBy", std::move(names));
  return Doc::array({std::move(entry)});
}

std::string_view group_of_package(std::string_view package) {
  const auto it = std::ranges::find(kGroups, package, &Member::first);
  return it == std::end(kGroups) ? package : it->second;
}

}  // namespace jogak::api
