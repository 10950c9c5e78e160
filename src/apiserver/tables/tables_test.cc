// SPDX-License-Identifier: Apache-2.0
//
// One object a case, as YAML, and the row that `kubectl get -o wide` shows of it.
#include "apiserver/tables/tables.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

// 200 seconds after the objects were made.
constexpr std::string_view kMade = "2026-01-01T00:00:00Z";
TimeUs test_now() { return *parse_time(kMade) + 200 * kSecondInUs; }

Resource resource_of(std::string_view group, std::string_view kind) {
  static const schema::Struct any{};
  Resource resource;
  resource.group = group;
  resource.version = "v1";
  resource.kind = kind;
  resource.type = &any;
  return resource;
}

Doc parsed(std::string_view yaml) {
  auto result = codec::parse_yaml(yaml);
  EXPECT_TRUE(result.has_value()) << yaml;
  return result ? std::move(result->doc) : Doc();
}

// Cells, with "|" between; strings bare, the rest as JSON.
std::string row_of(const Doc& cells) {
  std::string row;
  for (const Doc& cell : cells.items()) {
    row += &cell == &cells.items().front() ? "" : "|";
    row += cell.is_string() ? cell.as_string() : cell.json(JsonWriter::Style::Compact);
  }
  return row;
}

std::string printed(std::string_view group, std::string_view kind, std::string_view yaml) {
  Doc object = parsed(yaml);
  object.at("metadata").set_default("name", "x");
  object.at("metadata").set_default("creationTimestamp", kMade);
  return row_of(table_cells(resource_of(group, kind), object, test_now()));
}

std::string pod_row(std::string_view yaml) { return printed("", "Pod", yaml); }

TEST(PodTable, IsPendingAtFirst) {
  EXPECT_EQ(pod_row("{spec: {containers: [{name: c}]}, status: {phase: Pending}}"),
            "x|0/1|Pending|0|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, ShowsGatesBeforeThePhase) {
  EXPECT_EQ(pod_row("{spec: {containers: [{name: c}]}, status: {phase: Pending, conditions: "
                    "[{type: PodScheduled, status: 'False', reason: SchedulingGated}]}}"),
            "x|0/1|SchedulingGated|0|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, CountsRestartsAndWhenTheLastWas) {
  EXPECT_EQ(pod_row("{spec: {containers: [{name: c}], nodeName: n1}, status: {phase: Running, "
                    "podIPs: [{ip: 10.0.0.5}], containerStatuses: [{ready: true, restartCount: 2, "
                    "state: {running: {}}, lastState: {terminated: "
                    "{finishedAt: '2026-01-01T00:01:20Z'}}}]}}"),
            "x|1/1|Running|2 (2m ago)|3m20s|10.0.0.5|n1|<none>|<none>");
}

TEST(PodTable, TellsWhyAContainerWaits) {
  EXPECT_EQ(pod_row("{spec: {containers: [{name: c}]}, status: {phase: Running, "
                    "nominatedNodeName: n2, containerStatuses: [{restartCount: 3, "
                    "state: {waiting: {reason: CrashLoopBackOff}}}]}}"),
            "x|0/1|CrashLoopBackOff|3|3m20s|<none>|<none>|n2|<none>");
}

TEST(PodTable, TellsHowAContainerEnded) {
  const auto ended = [](std::string_view how) {
    return pod_row(
        "{spec: {containers: [{name: c}]}, status: {phase: Failed, containerStatuses: "
        "[{state: {terminated: " +
        std::string(how) + "}}]}}");
  };
  EXPECT_EQ(ended("{reason: OOMKilled, exitCode: 137}"),
            "x|0/1|OOMKilled|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(ended("{signal: 9, exitCode: 137}"),
            "x|0/1|Signal:9|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(ended("{exitCode: 1}"), "x|0/1|ExitCode:1|0|3m20s|<none>|<none>|<none>|<none>");
}

// Of two containers one is done: the pod runs while the other does, and else failed.
TEST(PodTable, LooksPastACompletedContainer) {
  constexpr std::string_view kDone = "{state: {terminated: {reason: Completed}}}";
  const auto with = [&](std::string_view other, std::string_view ready) {
    return pod_row(
        "{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Running, "
        "conditions: [{type: Ready, status: '" +
        std::string(ready) + "'}], containerStatuses: [" + std::string(kDone) + ", " +
        std::string(other) + "]}}");
  };
  EXPECT_EQ(with("{ready: true, state: {running: {}}}", "True"),
            "x|1/2|Running|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("{ready: true, state: {running: {}}}", "False"),
            "x|1/2|NotReady|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("{state: {terminated: {reason: Error, exitCode: 1}}}", "False"),
            "x|0/2|Error|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with(kDone, "False"), "x|0/2|Completed|0|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, FollowsInitContainers) {
  const auto with = [](std::string_view statuses) {
    return pod_row(
        "{spec: {initContainers: [{name: i}, {name: j}], containers: [{name: c}]}, "
        "status: {phase: Pending, initContainerStatuses: " +
        std::string(statuses) + "}}");
  };
  EXPECT_EQ(with("[{name: i, state: {running: {}}}]"),
            "x|0/1|Init:0/2|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("[{name: i, state: {terminated: {exitCode: 0}}}, "
                 "{name: j, state: {waiting: {reason: PodInitializing}}}]"),
            "x|0/1|Init:1/2|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("[{name: i, restartCount: 4, state: {waiting: {reason: ErrImagePull}}}]"),
            "x|0/1|Init:ErrImagePull|4|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("[{name: i, state: {terminated: {exitCode: 2}}}]"),
            "x|0/1|Init:ExitCode:2|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("[{name: i, state: {terminated: {exitCode: 2, signal: 15}}}]"),
            "x|0/1|Init:Signal:15|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(with("[{name: i, state: {terminated: {exitCode: 2, reason: Error}}}]"),
            "x|0/1|Init:Error|0|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, CountsSidecarsAsContainers) {
  EXPECT_EQ(pod_row("{spec: {initContainers: [{name: s, restartPolicy: Always}], containers: "
                    "[{name: c}]}, status: {phase: Running, initContainerStatuses: [{name: s, "
                    "started: true, ready: true, restartCount: 1, state: {running: {}}}], "
                    "containerStatuses: [{ready: true, state: {running: {}}}]}}"),
            "x|2/2|Running|1|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, TerminatesUnlessItIsOver) {
  const auto deleted = [](std::string_view status) {
    return pod_row(
        "{metadata: {deletionTimestamp: '2026-01-01T00:00:30Z'}, spec: {containers: "
        "[{name: c}]}, status: " +
        std::string(status) + "}");
  };
  EXPECT_EQ(deleted("{phase: Running}"), "x|0/1|Terminating|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(deleted("{phase: Succeeded}"), "x|0/1|Succeeded|0|3m20s|<none>|<none>|<none>|<none>");
  EXPECT_EQ(deleted("{phase: Running, reason: NodeLost}"),
            "x|0/1|Unknown|0|3m20s|<none>|<none>|<none>|<none>");
}

TEST(PodTable, CountsReadinessGates) {
  EXPECT_EQ(pod_row("{spec: {containers: [{name: c}], readinessGates: [{conditionType: a}, "
                    "{conditionType: b}]}, status: {phase: Running, conditions: "
                    "[{type: a, status: 'True'}, {type: b, status: 'False'}]}}"),
            "x|0/1|Running|0|3m20s|<none>|<none>|<none>|1/2");
}

TEST(PodTable, MarksRowsOfFinishedPods) {
  const Resource pods = resource_of("", "Pod");
  EXPECT_TRUE(table_row_conditions(pods, parsed("{status: {phase: Running}}")).is_null());
  const Doc failed = table_row_conditions(pods, parsed("{status: {phase: Failed}}"));
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed.items()[0]["type"].as_string(), "Completed");
  EXPECT_EQ(failed.items()[0]["status"].as_string(), "True");
  EXPECT_EQ(failed.items()[0]["reason"].as_string(), "Failed");
  EXPECT_EQ(table_row_conditions(pods, parsed("{status: {phase: Succeeded}}"))
                .items()[0]["reason"]
                .as_string(),
            "Succeeded");
  EXPECT_TRUE(table_row_conditions(resource_of("batch", "Job"), parsed("{status: {phase: Failed}}"))
                  .is_null());
}

TEST(NodeTable, ShowsRolesConditionsAndAddresses) {
  EXPECT_EQ(printed("", "Node",
                    "{metadata: {labels: {node-role.kubernetes.io/gpu: '', kubernetes.io/role: a}},"
                    " spec: {unschedulable: true}, status: {conditions: [{type: Ready, "
                    "status: 'True'}], addresses: [{type: InternalIP, address: 192.0.2.9}], "
                    "nodeInfo: {kubeletVersion: v1.36.3, osImage: linux, kernelVersion: '6.1', "
                    "architecture: amd64, containerRuntimeVersion: 'containerd://2.1'}}}"),
            "x|Ready,SchedulingDisabled|a,gpu|3m20s|v1.36.3|192.0.2.9|<none>|linux|6.1 (amd64)|"
            "containerd://2.1");
  EXPECT_EQ(printed("", "Node", "{status: {conditions: [{type: Ready, status: Unknown}]}}"),
            "x|NotReady|<none>|3m20s||<none>|<none>|<unknown>|<unknown>|<unknown>");
  EXPECT_EQ(printed("", "Node", "{}"),
            "x|Unknown|<none>|3m20s||<none>|<none>|<unknown>|<unknown>|<unknown>");
}

TEST(WorkloadTable, ShowsReplicas) {
  constexpr std::string_view kTemplate =
      "selector: {matchLabels: {app: d}}, template: {spec: {containers: [{name: c, image: a:1}, "
      "{name: s, image: b:2}]}}";
  EXPECT_EQ(printed("apps", "Deployment",
                    "{spec: {replicas: 6, " + std::string(kTemplate) +
                        "}, status: {readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1}}"),
            "x|1/6|2|1|3m20s|c,s|a:1,b:2|app=d");
  EXPECT_EQ(printed("apps", "ReplicaSet",
                    "{spec: {replicas: 3, " + std::string(kTemplate) +
                        "}, status: {replicas: 2, readyReplicas: 1}}"),
            "x|3|2|1|3m20s|c,s|a:1,b:2|app=d");
  EXPECT_EQ(
      printed("apps", "StatefulSet",
              "{spec: {replicas: 2, " + std::string(kTemplate) + "}, status: {readyReplicas: 2}}"),
      "x|2/2|3m20s|c,s|a:1,b:2");
  EXPECT_EQ(printed("apps", "DaemonSet",
                    "{spec: {selector: {matchLabels: {a: d}}, template: {spec: {nodeSelector: "
                    "{gpu: 'yes'}, containers: [{name: c, image: a:1}]}}}, status: "
                    "{desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, "
                    "updatedNumberScheduled: 2, numberAvailable: 1}}"),
            "x|5|4|3|2|1|gpu=yes|3m20s|c|a:1|a=d");
  EXPECT_EQ(printed("", "ReplicationController",
                    "{spec: {replicas: 1, selector: {b: d, a: c}, template: {spec: {containers: "
                    "[{name: c, image: a:1}]}}}}"),
            "x|1|0|0|3m20s|c|a:1|a=c,b=d");
}

TEST(WorkloadTable, ShowsHowAJobStands) {
  const auto job = [](std::string_view spec, std::string_view status) {
    return printed("batch", "Job",
                   "{spec: {" + std::string(spec) +
                       "selector: {matchLabels: {a: b}}, template: "
                       "{spec: {containers: [{name: c, image: i}]}}}, status: {" +
                       std::string(status) + "}}");
  };
  EXPECT_EQ(job("completions: 2, parallelism: 1, ", "startTime: '2026-01-01T00:00:10Z'"),
            "x|Running|0/2|3m10s|3m20s|c|i|a=b");
  EXPECT_EQ(job("completions: 2, ",
                "succeeded: 2, startTime: '2026-01-01T00:00:10Z', "
                "completionTime: '2026-01-01T00:00:40Z', "
                "conditions: [{type: Complete, status: 'True'}]"),
            "x|Complete|2/2|30s|3m20s|c|i|a=b");
  EXPECT_EQ(job("parallelism: 3, ", "conditions: [{type: Suspended, status: 'True'}]"),
            "x|Suspended|0/1 of 3||3m20s|c|i|a=b");
  EXPECT_EQ(job("", "conditions: [{type: Failed, status: 'True'}]"), "x|Failed|0/1||3m20s|c|i|a=b");
}

TEST(WorkloadTable, ShowsCronJobs) {
  EXPECT_EQ(printed("batch", "CronJob",
                    "{spec: {schedule: '*/5 * * * *', suspend: false, jobTemplate: {spec: "
                    "{template: {spec: {containers: [{name: c, image: i}]}}}}}, status: {active: "
                    "[{name: a}], lastScheduleTime: '2026-01-01T00:02:00Z'}}"),
            "x|*/5 * * * *|<none>|False|1|80s|3m20s|c|i|<none>");
}

TEST(WorkloadTable, ShowsBudgetsAndRevisions) {
  EXPECT_EQ(printed("policy", "PodDisruptionBudget",
                    "{spec: {minAvailable: 50%}, status: {disruptionsAllowed: 1}}"),
            "x|50%|N/A|1|3m20s");
  EXPECT_EQ(printed("policy", "PodDisruptionBudget", "{spec: {maxUnavailable: 1}}"),
            "x|N/A|1|0|3m20s");
  EXPECT_EQ(printed("apps", "ControllerRevision",
                    "{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, "
                    "name: s, controller: true}]}, revision: 3}"),
            "x|statefulset.apps/s|3|3m20s");
}

TEST(ServiceTable, ShowsAddressesAndPorts) {
  const auto service = [](std::string_view spec, std::string_view status = "{}") {
    return printed("", "Service",
                   "{spec: " + std::string(spec) + ", status: " + std::string(status) + "}");
  };
  EXPECT_EQ(service("{type: ClusterIP, clusterIPs: [10.0.0.7], ports: [{port: 80, protocol: TCP}],"
                    " selector: {app: d}}"),
            "x|ClusterIP|10.0.0.7|<none>|80/TCP|3m20s|app=d");
  EXPECT_EQ(service("{type: NodePort, clusterIPs: [10.0.0.7], externalIPs: [192.0.2.3], ports: "
                    "[{port: 80, nodePort: 30080, protocol: TCP}, {port: 53, protocol: UDP}]}"),
            "x|NodePort|10.0.0.7|192.0.2.3|80:30080/TCP,53/UDP|3m20s|<none>");
  EXPECT_EQ(service("{type: LoadBalancer, clusterIPs: [10.0.0.7]}"),
            "x|LoadBalancer|10.0.0.7|<pending>|<none>|3m20s|<none>");
  EXPECT_EQ(service("{type: LoadBalancer, clusterIPs: [10.0.0.7]}",
                    "{loadBalancer: {ingress: [{ip: 192.0.2.8}, {hostname: a.example}]}}"),
            "x|LoadBalancer|10.0.0.7|192.0.2.8,a.example|<none>|3m20s|<none>");
  EXPECT_EQ(service("{type: ExternalName, externalName: db.example}"),
            "x|ExternalName|<none>|db.example|<none>|3m20s|<none>");
}

TEST(ServiceTable, ShowsAtMostThreeEndpoints) {
  EXPECT_EQ(printed("", "Endpoints", "{}"), "x|<none>|3m20s");
  EXPECT_EQ(printed("", "Endpoints",
                    "{subsets: [{addresses: [{ip: 10.0.0.1}, {ip: 10.0.0.2}], ports: "
                    "[{port: 80}, {port: 443}]}]}"),
            "x|10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 1 more...|3m20s");
  EXPECT_EQ(
      printed("", "Endpoints", "{subsets: [{addresses: [{ip: 'fd00::1'}], ports: [{port: 80}]}]}"),
      "x|[fd00::1]:80|3m20s");
  EXPECT_EQ(printed("discovery.k8s.io", "EndpointSlice",
                    "{addressType: IPv4, ports: [{port: 80}, {name: a}, {}], endpoints: "
                    "[{addresses: [10.0.0.1]}]}"),
            "x|IPv4|80,a,*|10.0.0.1|3m20s");
  EXPECT_EQ(printed("discovery.k8s.io", "EndpointSlice", "{addressType: IPv4}"),
            "x|IPv4|<unset>|<unset>|3m20s");
}

TEST(ConfigTable, CountsKeys) {
  EXPECT_EQ(printed("", "ConfigMap", "{data: {a: b}, binaryData: {c: AA==}}"), "x|2|3m20s");
  EXPECT_EQ(printed("", "Secret", "{type: Opaque, data: {a: AA==}}"), "x|Opaque|1|3m20s");
  EXPECT_EQ(printed("", "ServiceAccount", "{}"), "x|3m20s");
}

TEST(ConfigTable, SplitsQuotasIntoRequestsAndLimits) {
  EXPECT_EQ(printed("", "ResourceQuota",
                    "{status: {hard: {pods: '3', limits.cpu: '8', count/configmaps: '3', "
                    "requests.nvidia.com/gpu: '2'}, used: {pods: '3', limits.cpu: 500m}}}"),
            "x|count/configmaps: 0/3, pods: 3/3, requests.nvidia.com/gpu: 0/2|limits.cpu: 500m/8|"
            "3m20s");
}

TEST(ConfigTable, ShowsEventsOfBothKinds) {
  EXPECT_EQ(printed("", "Event",
                    "{firstTimestamp: '2026-01-01T00:00:20Z', lastTimestamp: "
                    "'2026-01-01T00:03:00Z', type: Normal, reason: Scheduled, count: 2, message: "
                    "' m\n', involvedObject: {kind: Pod, name: p, fieldPath: 'spec.x'}, source: "
                    "{component: sched, host: n1}}"),
            "20s|Normal|Scheduled|pod/p|spec.x|sched, n1|m|3m|2|x");
  EXPECT_EQ(printed("events.k8s.io", "Event",
                    "{eventTime: '2026-01-01T00:00:20.000000Z', firstTimestamp: null, "
                    "lastTimestamp: null, type: Warning, reason: Failed, "
                    "involvedObject: {kind: Pod}, reportingComponent: sched, "
                    "reportingInstance: sched-1}"),
            "3m|Warning|Failed|pod||sched, sched-1||3m|1|x");
}

TEST(StorageTable, ShowsVolumesAndClaims) {
  EXPECT_EQ(printed("", "PersistentVolume",
                    "{spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany, ReadWriteOnce],"
                    " persistentVolumeReclaimPolicy: Retain, storageClassName: fast, volumeMode: "
                    "Filesystem, claimRef: {namespace: a, name: b}}, status: {phase: Bound}}"),
            "x|1Gi|RWO,RWX|Retain|Bound|a/b|fast|<unset>||3m20s|Filesystem");
  EXPECT_EQ(printed("", "PersistentVolumeClaim",
                    "{spec: {storageClassName: fast, volumeMode: Block, resources: {requests: "
                    "{storage: 1Gi}}}, status: {phase: Pending}}"),
            "x|Pending||||fast|<unset>|3m20s|Block");
  EXPECT_EQ(printed("", "PersistentVolumeClaim",
                    "{spec: {volumeName: v}, status: {phase: Bound, accessModes: "
                    "[ReadWriteOncePod], capacity: {storage: 2Gi}}}"),
            "x|Bound|v|2Gi|RWOP||<unset>|3m20s|<unset>");
}

TEST(StorageTable, ShowsClassesAndDrivers) {
  EXPECT_EQ(printed("storage.k8s.io", "StorageClass",
                    "{metadata: {annotations: {storageclass.kubernetes.io/is-default-class: "
                    "'true'}}, provisioner: p}"),
            "x (default)|p|Delete|Immediate|false|3m20s");
  EXPECT_EQ(printed("storage.k8s.io", "CSINode", "{spec: {drivers: [{name: a}]}}"), "x|1|3m20s");
  EXPECT_EQ(printed("storage.k8s.io", "CSIDriver",
                    "{spec: {attachRequired: false, volumeLifecycleModes: [Persistent]}}"),
            "x|false|false|false|<unset>|false|Persistent|3m20s");
  EXPECT_EQ(printed("storage.k8s.io", "VolumeAttachment",
                    "{spec: {attacher: a, nodeName: n1, source: {persistentVolumeName: v}}, "
                    "status: {attached: true}}"),
            "x|a|v|n1|true|3m20s");
}

TEST(SchedulingTable, ShowsPrioritiesGroupsAndDevices) {
  EXPECT_EQ(printed("scheduling.k8s.io", "PriorityClass", "{value: 1000, preemptionPolicy: Never}"),
            "x|1000|false|3m20s|Never");
  EXPECT_EQ(printed("scheduling.k8s.io", "PodGroup",
                    "{spec: {schedulingPolicy: {gang: {minCount: 2}}, podGroupTemplateRef: "
                    "{workload: {workloadName: w}}}, status: {conditions: "
                    "[{type: PodGroupScheduled, status: 'True'}]}}"),
            "x|Gang|w|Scheduled|3m20s");
  EXPECT_EQ(printed("scheduling.k8s.io", "PodGroup",
                    "{spec: {schedulingPolicy: {basic: {}}}, status: {conditions: "
                    "[{type: PodGroupScheduled, status: 'False'}]}}"),
            "x|Basic|<none>|Unschedulable|3m20s");
  EXPECT_EQ(printed("resource.k8s.io", "ResourceClaim", "{}"), "x|pending|3m20s");
  EXPECT_EQ(printed("resource.k8s.io", "ResourceClaim",
                    "{status: {allocation: {}, reservedFor: [{name: p}]}}"),
            "x|allocated,reserved|3m20s");
  EXPECT_EQ(printed("resource.k8s.io", "ResourceClaim",
                    "{metadata: {deletionTimestamp: '2026-01-01T00:00:30Z'}, "
                    "status: {allocation: {}}}"),
            "x|deleted,allocated|3m20s");
  EXPECT_EQ(printed("resource.k8s.io", "ResourceSlice",
                    "{spec: {nodeName: n1, driver: gpu.example, pool: {name: p}}}"),
            "x|n1|gpu.example|p|3m20s");
  EXPECT_EQ(printed("coordination.k8s.io", "Lease", "{spec: {holderIdentity: me}}"), "x|me|3m20s");
}

TEST(AutoscalerTable, ShowsEveryKindOfMetric) {
  const auto targets = [](std::string_view metrics, std::string_view current = "[]") {
    return printed("autoscaling", "HorizontalPodAutoscaler",
                   "{spec: {scaleTargetRef: {kind: Deployment, name: d}, maxReplicas: 5, "
                   "metrics: " +
                       std::string(metrics) + "}, status: {currentReplicas: 2, currentMetrics: " +
                       std::string(current) + "}}");
  };
  const auto row = [](std::string_view text) {
    return "x|Deployment/d|" + std::string(text) + "|<unset>|5|2|3m20s";
  };
  constexpr std::string_view kCpu =
      "{type: Resource, resource: {name: cpu, target: {averageUtilization: 50}}}";
  EXPECT_EQ(targets("[]"), row("<none>"));
  EXPECT_EQ(targets("[" + std::string(kCpu) + "]"), row("cpu: <unknown>/50%"));
  EXPECT_EQ(targets("[" + std::string(kCpu) + "]",
                    "[{type: Resource, resource: {current: {averageUtilization: 30}}}]"),
            row("cpu: 30%/50%"));
  EXPECT_EQ(targets("[{type: ContainerResource, containerResource: {name: memory, target: "
                    "{averageValue: 1Gi}}}]"),
            row("memory: <unknown>/1Gi"));
  EXPECT_EQ(targets("[{type: Pods, pods: {target: {averageValue: '10'}}}]",
                    "[{pods: {current: {averageValue: '7'}}}]"),
            row("7/10"));
  EXPECT_EQ(targets("[{type: External, external: {target: {averageValue: '10'}}}]"),
            row("<unknown>/10 (avg)"));
  EXPECT_EQ(targets("[{type: Object, object: {target: {value: '10'}}}]",
                    "[{object: {current: {value: '3'}}}]"),
            row("3/10"));
  EXPECT_EQ(targets("[" + std::string(kCpu) + ", " + std::string(kCpu) + ", {type: New}]"),
            row("cpu: <unknown>/50%, cpu: <unknown>/50% + 1 more..."));
}

TEST(RbacTable, ShowsSubjectsByKind) {
  EXPECT_EQ(printed("rbac.authorization.k8s.io", "RoleBinding",
                    "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: "
                    "User, name: v}, {kind: Group, name: g}, {kind: ServiceAccount, namespace: ns, "
                    "name: s}]}"),
            "x|Role/r|3m20s|u, v|g|ns/s");
}

TEST(NetworkTable, ShowsIngresses) {
  EXPECT_EQ(printed("networking.k8s.io", "Ingress",
                    "{spec: {ingressClassName: nginx, rules: [{host: a}, {host: b}], tls: [{}]}, "
                    "status: {loadBalancer: {ingress: [{ip: 10.0.0.2}, {hostname: h}]}}}"),
            "x|nginx|a,b|10.0.0.2,h|80, 443|3m20s");
  EXPECT_EQ(printed("networking.k8s.io", "Ingress", "{spec: {rules: [{}]}}"),
            "x|<none>|*||80|3m20s");
  EXPECT_EQ(printed("networking.k8s.io", "Ingress",
                    "{spec: {rules: [{host: a}, {host: b}, {host: c}, {host: d}, {}]}}"),
            "x|<none>|a,b,c + 2 more...||80|3m20s");
}

TEST(NetworkTable, ShowsTheRest) {
  EXPECT_EQ(
      printed("networking.k8s.io", "IngressClass",
              "{metadata: {annotations: {ingressclass.kubernetes.io/is-default-class: "
              "'true'}}, spec: {controller: c, parameters: {apiGroup: g, kind: K, name: p}}}"),
      "x (default)|c|K.g/p|3m20s");
  EXPECT_EQ(
      printed("networking.k8s.io", "NetworkPolicy", "{spec: {podSelector: {matchLabels: {a: b}}}}"),
      "x|a=b|3m20s");
  EXPECT_EQ(printed("networking.k8s.io", "NetworkPolicy", "{spec: {podSelector: {}}}"),
            "x|<none>|3m20s");
  EXPECT_EQ(
      printed("networking.k8s.io", "ServiceCIDR", "{spec: {cidrs: [10.0.0.0/24, fd00::/64]}}"),
      "x|10.0.0.0/24,fd00::/64|3m20s");
  EXPECT_EQ(printed("networking.k8s.io", "IPAddress",
                    "{spec: {parentRef: {resource: services, namespace: ns, name: s}}}"),
            "x|services/ns/s");
}

TEST(PolicyTable, ShowsAdmission) {
  constexpr std::string_view kGroup = "admissionregistration.k8s.io";
  EXPECT_EQ(printed(kGroup, "MutatingWebhookConfiguration", "{webhooks: [{}, {}]}"), "x|2|3m20s");
  EXPECT_EQ(printed(kGroup, "ValidatingAdmissionPolicy",
                    "{spec: {validations: [{}], paramKind: {apiVersion: a/v1, kind: K}}}"),
            "x|1|a/v1/K|3m20s");
  EXPECT_EQ(printed(kGroup, "MutatingAdmissionPolicy", "{spec: {mutations: [{}]}}"),
            "x|1|<unset>|3m20s");
  EXPECT_EQ(printed(kGroup, "ValidatingAdmissionPolicyBinding",
                    "{spec: {policyName: p, paramRef: {name: r}}}"),
            "x|p|*/r|3m20s");
}

TEST(PolicyTable, ShowsFlowsAndRequests) {
  constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";
  EXPECT_EQ(printed(kFlow, "FlowSchema",
                    "{spec: {priorityLevelConfiguration: {name: l}, matchingPrecedence: 5}, "
                    "status: {conditions: [{type: Dangling, status: 'False'}]}}"),
            "x|l|5|<none>|3m20s|False");
  EXPECT_EQ(printed(kFlow, "PriorityLevelConfiguration",
                    "{spec: {type: Limited, limited: {nominalConcurrencyShares: 9, "
                    "limitResponse: {queuing: {queues: 1, handSize: 2, queueLengthLimit: 3}}}}}"),
            "x|Limited|9|1|2|3|3m20s");
  EXPECT_EQ(printed(kFlow, "PriorityLevelConfiguration", "{spec: {type: Exempt}}"),
            "x|Exempt|<none>|<none>|<none>|<none>|3m20s");
  EXPECT_EQ(printed("certificates.k8s.io", "CertificateSigningRequest",
                    "{spec: {signerName: s, username: u, expirationSeconds: 3600}, "
                    "status: {conditions: [{type: Approved}], certificate: YQ==}}"),
            "x|3m20s|s|u|60m|Approved,Issued");
}

TEST(PlainTable, ShowsTheTimeItself) {
  EXPECT_EQ(printed("", "LimitRange", "{}"), "x|2026-01-01T00:00:00Z");
  const std::vector<Column> columns = table_columns(resource_of("", "LimitRange"));
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[1].name, "Created At");
  EXPECT_EQ(columns[1].type, "date");
}

TEST(Tables, HaveACellForEveryColumn) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"", "Pod"},
      {"", "PodTemplate"},
      {"", "Node"},
      {"", "Namespace"},
      {"", "ComponentStatus"},
      {"apps", "Deployment"},
      {"apps", "ReplicaSet"},
      {"", "ReplicationController"},
      {"apps", "StatefulSet"},
      {"apps", "DaemonSet"},
      {"apps", "ControllerRevision"},
      {"batch", "Job"},
      {"batch", "CronJob"},
      {"policy", "PodDisruptionBudget"},
      {"autoscaling", "Scale"},
      {"", "Service"},
      {"", "Endpoints"},
      {"discovery.k8s.io", "EndpointSlice"},
      {"", "ConfigMap"},
      {"", "Secret"},
      {"", "ServiceAccount"},
      {"", "ResourceQuota"},
      {"", "Event"},
      {"events.k8s.io", "Event"},
      {"", "PersistentVolume"},
      {"", "PersistentVolumeClaim"},
      {"storage.k8s.io", "StorageClass"},
      {"storage.k8s.io", "CSINode"},
      {"storage.k8s.io", "CSIDriver"},
      {"storage.k8s.io", "VolumeAttachment"},
      {"scheduling.k8s.io", "PriorityClass"},
      {"scheduling.k8s.io", "PodGroup"},
      {"scheduling.k8s.io", "Workload"},
      {"resource.k8s.io", "DeviceClass"},
      {"resource.k8s.io", "ResourceClaim"},
      {"resource.k8s.io", "ResourceClaimTemplate"},
      {"resource.k8s.io", "ResourceSlice"},
      {"coordination.k8s.io", "Lease"},
      {"node.k8s.io", "RuntimeClass"},
      {"autoscaling", "HorizontalPodAutoscaler"},
      {"rbac.authorization.k8s.io", "RoleBinding"},
      {"rbac.authorization.k8s.io", "ClusterRoleBinding"},
      {"networking.k8s.io", "Ingress"},
      {"networking.k8s.io", "IngressClass"},
      {"networking.k8s.io", "NetworkPolicy"},
      {"networking.k8s.io", "ServiceCIDR"},
      {"networking.k8s.io", "IPAddress"},
      {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"},
      {"admissionregistration.k8s.io", "MutatingAdmissionPolicy"},
      {"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"},
      {"flowcontrol.apiserver.k8s.io", "FlowSchema"},
      {"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"},
      {"certificates.k8s.io", "CertificateSigningRequest"},
      {"storage.k8s.io", "CSIStorageCapacity"},
      {"storage.k8s.io", "VolumeAttributesClass"},
      {"", "Unheard"}};
  for (const auto& [group, kind] : kKinds) {
    const Resource resource = resource_of(group, kind);
    EXPECT_EQ(table_cells(resource, Doc::object(), test_now()).size(),
              table_columns(resource).size())
        << group << " " << kind;
    EXPECT_EQ(table_column_definitions(resource).size(), table_columns(resource).size());
  }
}

TEST(Tables, ShowAnEmptyObjectAsABookmarkHasIt) {
  EXPECT_EQ(row_of(table_cells(resource_of("", "ConfigMap"), Doc::object(), test_now())),
            "|0|<unknown>");
}

// Autoscalers of version 1 are shown like those of version 2, in which they are stored.
TEST(Tables, GoByTheStorageVersion) {
  struct Renaming : Strategy {
    Doc to_storage(Doc object) const override {
      object.at("metadata").set("name", "stored");
      return object;
    }
  };
  Resource resource = resource_of("", "ServiceAccount");
  resource.strategy = std::make_shared<Renaming>();
  resource.is_storage_version = false;
  EXPECT_EQ(row_of(table_cells(resource, Doc::object(), test_now())), "stored|<unknown>");
}

}  // namespace
}  // namespace jogak::api
