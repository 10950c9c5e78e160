// SPDX-License-Identifier: Apache-2.0
// Whole files into a cluster: what arrives, what is refused, and that a refusal changes nothing.
#include "import/import.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "core/filter/gpu_devices.h"

namespace jogak::importer {
namespace {

using core::Cluster;

std::string list(std::string_view items) {
  return R"({"apiVersion":"v1","kind":"List","items":[)" + std::string(items) + "]}";
}

std::string node(std::string_view name, std::string_view annotations = "{}",
                 std::string_view product = "NVIDIA-A100-SXM4-80GB") {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"{}","annotations":{},
           "labels":{{"nvidia.com/gpu.product":"{}","nvidia.com/gpu.memory":"81920"}}}},
          "status":{{"allocatable":{{"cpu":"64","memory":"256Gi","pods":"110",
                                     "nvidia.com/gpu":"2"}}}}}})",
      name, annotations, product);
}

std::string annotated_node(std::string_view name) {
  return node(name, R"({"jogak.io/gpus":"[{\"nvlink\":[1]},{\"nvlink\":[0]}]"})");
}

struct PodText {
  std::string_view name;
  std::string_view annotations = "{}";
  std::string_view spec = "";  // more fields of the spec, with a comma in front
  std::string_view resources = R"({"requests":{"cpu":"1"}})";
};

std::string pod(const PodText& p) {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"team-a","annotations":{}}},
          "spec":{{"containers":[{{"name":"main","image":"busybox","resources":{}}}]{}}}}})",
      p.name, p.annotations, p.resources, p.spec);
}

ImportReport import_ok(Cluster& cluster, const std::string& text) {
  const auto report = import_list(text, "cluster.json", cluster);
  EXPECT_TRUE(report.has_value()) << report.error().what;
  return report.value_or(ImportReport{});
}

std::string import_error(const std::string& text) {
  Cluster cluster;
  const std::uint64_t before = cluster.digest();
  const auto report = import_list(text, "cluster.json", cluster);
  EXPECT_EQ(cluster.digest(), before) << "half imported";
  EXPECT_EQ(cluster.node_count(), 0U);
  return report ? "no error" : report.error().what;
}

const core::Pod& pod_of(const Cluster& cluster, std::string_view name) {
  const auto id = cluster.find_pod("team-a", name);
  EXPECT_TRUE(id.has_value()) << name;
  return cluster.pod(id.value_or(core::PodId{0}));
}

const core::PodShape& shape_of(const Cluster& cluster, std::string_view name) {
  return cluster.shape(pod_of(cluster, name).shape).spec;
}

TEST(Import, NodesAndPodsInAnyOrderAndForm) {
  Cluster cluster;
  const ImportReport report = import_ok(
      cluster, list(pod({.name = "a", .spec = R"(,"nodeName":"n1")"}) + "," + node("n1")) +
                   pod({.name = "b"}) + R"({"kind":"ConfigMap","data":{}})" +
                   R"({"kind":"NamespaceList","items":[{"metadata":{"name":"team-a"}}]})");
  EXPECT_EQ(report.nodes, 1U);
  EXPECT_EQ(report.pods, 2U);
  EXPECT_EQ(report.others, 1U);
  EXPECT_EQ(report.skipped.at("ConfigMap"), 1U);
  EXPECT_EQ(pod_of(cluster, "a").state, core::PodState::Placed);
  EXPECT_EQ(pod_of(cluster, "b").state, core::PodState::Pending);
  const core::Node& n1 = cluster.node(*cluster.find_node("n1"));
  EXPECT_EQ(n1.cpu_allocatable, 64000);
  EXPECT_EQ(n1.cpu_requested, 1000);
  EXPECT_TRUE(cluster.objects().namespaces.contains("team-a"));
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Import, FinishedPodsCountForNothing) {
  Cluster cluster;
  const ImportReport report = import_ok(cluster, list(R"({"kind":"Pod","metadata":{"name":"done"},
                                  "spec":{"nodeName":"n1"},"status":{"phase":"Succeeded"}})"));
  EXPECT_EQ(report.pods, 0U);
  EXPECT_EQ(report.finished, (std::vector<std::string>{"default/done"}));
}

TEST(Import, TheLaterOfTwoCounts) {
  Cluster cluster;
  const ImportReport report =
      import_ok(cluster, list(node("n1") + "," + pod({.name = "a"}) + "," +
                              pod({.name = "a", .spec = R"(,"nodeName":"n1")"})));
  EXPECT_EQ(report.pods, 1U);
  EXPECT_EQ(pod_of(cluster, "a").state, core::PodState::Placed);
}

TEST(Import, PrioritiesComeFromClasses) {
  Cluster cluster;
  import_ok(cluster,
            list(R"({"kind":"PriorityClass","metadata":{"name":"high"},"value":100,
               "preemptionPolicy":"Never"},
              {"kind":"PriorityClass","metadata":{"name":"usual"},"value":7,
               "globalDefault":true},)" +
                 pod({.name = "named", .spec = R"(,"priorityClassName":"high")"}) + "," +
                 pod({.name = "own", .spec = R"(,"priorityClassName":"high","priority":5)"}) + "," +
                 pod({.name = "system", .spec = R"(,"priorityClassName":"system-node-critical")"}) +
                 "," + pod({.name = "silent"})));
  EXPECT_EQ(shape_of(cluster, "named").priority, 100);
  EXPECT_EQ(shape_of(cluster, "named").preemption, core::PreemptionPolicy::Never);
  EXPECT_EQ(shape_of(cluster, "own").priority, 5);
  EXPECT_EQ(shape_of(cluster, "system").priority, 2000001000);
  EXPECT_EQ(shape_of(cluster, "silent").priority, 7);
  EXPECT_EQ(import_error(pod({.name = "x", .spec = R"(,"priorityClassName":"nope")"})),
            "cluster.json: Pod team-a/x: spec.priorityClassName: no PriorityClass \"nope\" among "
            "the objects; add it or set spec.priority");
}

TEST(Import, WholeGpusAreAskedForWhetherOrNotNodesNameTheirDevices) {
  const PodText text = {.name = "a", .resources = R"({"limits":{"nvidia.com/gpu":"2"}})"};
  Cluster plain;
  import_ok(plain, list(node("n1") + "," + pod(text)));
  Cluster detailed;
  import_ok(detailed, list(annotated_node("n1") + "," + pod(text)));
  EXPECT_EQ(shape_of(plain, "a"), shape_of(detailed, "a"));
  EXPECT_EQ(shape_of(detailed, "a").gpu.kind, core::GpuAsk::Whole);
  EXPECT_EQ(shape_of(detailed, "a").gpu.count, 2);
  const core::Node& n1 = detailed.node(*detailed.find_node("n1"));
  ASSERT_EQ(n1.gpus.size(), 2U);
  EXPECT_EQ(n1.gpus[0].memory_mib, 81920);  // from the label
  EXPECT_EQ(n1.gpus[0].nvlink_mask, 2U);
}

TEST(Import, SharesAndModels) {
  Cluster cluster;
  import_ok(
      cluster,
      list(annotated_node("n1") + "," + node("n2", "{}", "Tesla-T4") + "," +
           pod({.name = "milli", .annotations = R"({"jogak.io/gpu-milli":"500",
                 "jogak.io/gpu-models":"T4, a100,H100"})"}) +
           "," +
           pod({.name = "mib",
                .annotations = R"({"jogak.io/gpu-memory-mib":"4096","jogak.io/gpu-count":"2"})"}) +
           "," + pod({.name = "mig", .annotations = R"({"jogak.io/mig-profile":"1g.10gb"})"})));
  const core::GpuRequest& milli = shape_of(cluster, "milli").gpu;
  EXPECT_EQ(milli.kind, core::GpuAsk::ShareMilli);
  EXPECT_EQ(milli.amount, 500);
  EXPECT_EQ(milli.count, 1);
  EXPECT_EQ(milli.models, (std::vector<std::string>{"H100", "T4", "a100"}));
  EXPECT_EQ(shape_of(cluster, "mib").gpu.kind, core::GpuAsk::ShareMib);
  EXPECT_EQ(shape_of(cluster, "mib").gpu.count, 2);
  EXPECT_EQ(shape_of(cluster, "mig").gpu.mig_profile, "1g.10gb");
}

TEST(Import, HoldsOfBoundPods) {
  constexpr std::string_view kGpu1 = R"({"limits":{"nvidia.com/gpu":"1"}})";
  constexpr std::string_view kOn = R"(,"nodeName":"n1")";
  Cluster cluster;
  import_ok(cluster, list(annotated_node("n1") + "," +
                          pod({.name = "known",
                               .annotations = R"({"jogak.io/gpu-holds":"[{\"gpu\":1}]"})",
                               .spec = kOn,
                               .resources = kGpu1}) +
                          "," + pod({.name = "unknown", .spec = kOn, .resources = kGpu1})));
  EXPECT_TRUE(pod_of(cluster, "known").holds_known);
  EXPECT_EQ(pod_of(cluster, "known").holds.at(0).gpu, 1);
  EXPECT_FALSE(pod_of(cluster, "unknown").holds_known);
  EXPECT_EQ(cluster.node(*cluster.find_node("n1")).unknown_gpus, 1);
  EXPECT_EQ(import_error(list(annotated_node("n1") + "," +
                              pod({.name = "x",
                                   .annotations = R"({"jogak.io/gpu-holds":"[{\"gpu\":2}]"})",
                                   .spec = kOn,
                                   .resources = kGpu1}))),
            "cluster.json: Pod team-a/x: metadata.annotations[\"jogak.io/gpu-holds\"]: names gpu "
            "2, but node n1 has 2 devices in its annotation jogak.io/gpus");
}

// An init container asked for two, the app for one: the kubelet keeps both for the pod and lists
// one.
TEST(Import, FewerHoldsThanAskedForAreUnknownAndMoreAreAnError) {
  constexpr std::string_view kTwo = R"({"limits":{"nvidia.com/gpu":"2"}})";
  constexpr std::string_view kOne = R"({"limits":{"nvidia.com/gpu":"1"}})";
  constexpr std::string_view kOn = R"(,"nodeName":"n1")";
  Cluster cluster;
  import_ok(cluster, list(annotated_node("n1") + "," +
                          pod({.name = "init",
                               .annotations = R"({"jogak.io/gpu-holds":"[{\"gpu\":1}]"})",
                               .spec = kOn,
                               .resources = kTwo})));
  EXPECT_FALSE(pod_of(cluster, "init").holds_known);
  EXPECT_EQ(cluster.node(*cluster.find_node("n1")).unknown_gpus, 2);
  EXPECT_EQ(
      import_error(list(annotated_node("n1") + "," +
                        pod({.name = "x",
                             .annotations = R"({"jogak.io/gpu-holds":"[{\"gpu\":0},{\"gpu\":1}]"})",
                             .spec = kOn,
                             .resources = kOne}))),
      "cluster.json: Pod team-a/x: metadata.annotations[\"jogak.io/gpu-holds\"]: names 2 "
      "devices, but the pod asks for 1");
}

TEST(Import, HoldsOnANodeThatNamesNoDevicesAreUnknown) {
  Cluster cluster;
  import_ok(cluster, list(node("n1") + "," +
                          pod({.name = "a",
                               .annotations = R"({"jogak.io/gpu-holds":"[{\"gpu\":1}]"})",
                               .spec = R"(,"nodeName":"n1")",
                               .resources = R"({"limits":{"nvidia.com/gpu":"1"}})"})));
  EXPECT_EQ(pod_of(cluster, "a").state, core::PodState::Placed);
}

TEST(Import, SaysWhatIsWrongWithGpuAnnotations) {
  const auto error = [](std::string_view annotations, std::string_view resources = "{}",
                        std::string_view spec = "") {
    const std::string text = import_error(
        pod({.name = "x", .annotations = annotations, .spec = spec, .resources = resources}));
    constexpr std::string_view kPrefix = "cluster.json: Pod team-a/x: ";
    return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  };
  EXPECT_EQ(error(R"({"jogak.io/gpu-milli":"0.5"})"),
            "metadata.annotations[\"jogak.io/gpu-milli\"]: \"0.5\" is not a whole number between 1 "
            "and 999; use e.g. \"500\"");
  EXPECT_EQ(error(R"({"jogak.io/gpu-milli":"1000"})"),
            "metadata.annotations[\"jogak.io/gpu-milli\"]: 1000 is a whole device; ask for it with "
            "the resource nvidia.com/gpu: 1");
  EXPECT_EQ(error(R"({"jogak.io/gpu-milli":"5","jogak.io/gpu-memory-mib":"5"})"),
            "metadata.annotations[\"jogak.io/gpu-memory-mib\"]: cannot be used together with "
            "jogak.io/gpu-milli");
  EXPECT_EQ(error(R"({"jogak.io/gpu-count":"2"})"),
            "metadata.annotations[\"jogak.io/gpu-count\"]: goes with jogak.io/gpu-milli, "
            "jogak.io/gpu-memory-mib or jogak.io/mig-profile; whole devices are asked for with the "
            "resource nvidia.com/gpu");
  EXPECT_EQ(error(R"({"jogak.io/mig-profile":"9g.1gb"})"),
            "metadata.annotations[\"jogak.io/mig-profile\"]: \"9g.1gb\" is not a MIG profile; use "
            "e.g. \"1g.10gb\"");
  EXPECT_EQ(error(R"({"jogak.io/gpu-models":"A100"})"),
            "metadata.annotations[\"jogak.io/gpu-models\"]: names GPU models, but the pod asks for "
            "no GPU");
  EXPECT_EQ(error(R"({"jogak.io/gpu-milli":"5"})", R"({"limits":{"nvidia.com/gpu":"1"}})"),
            "metadata.annotations: a share of a GPU and the resource nvidia.com/gpu exclude each "
            "other; remove one");
  EXPECT_EQ(error(R"({"jogak.io/gpu-milli":"5","jogak.io/gpu-holds":"[{\"gpu\":0}]"})", "{}",
                  R"(,"nodeName":"n1")"),
            "metadata.annotations[\"jogak.io/gpu-holds\"]: does not fit what the pod asks for; use "
            "e.g. [{\"gpu\": 0, \"milli\": 500}]");
}

TEST(Import, SaysWhatIsWrongWithDevices) {
  EXPECT_EQ(
      import_error(node("n1", R"({"jogak.io/gpus":"[{\"memoryMib\":1}]"})")),
      "cluster.json: Node n1: metadata.annotations[\"jogak.io/gpus\"]: [0].memoryMib: unknown "
      "field; did you mean memoryMiB?");
  EXPECT_EQ(
      import_error(node("n1", R"({"jogak.io/gpus":"[{\"mig\":{\"enabled\":true}}]"})", "Tesla-T4")),
      "cluster.json: Node n1: metadata.annotations[\"jogak.io/gpus\"]: [0].mig: no MIG "
      "geometry is known for the model \"Tesla-T4\"; set the label nvidia.com/gpu.product, "
      "e.g. \"NVIDIA-A100-SXM4-80GB\"");
  const std::string overlapping = R"({"jogak.io/gpus":"[{\"mig\":{\"enabled\":true,\"instances\":[
      {\"profile\":\"3g.40gb\",\"start\":0},{\"profile\":\"1g.10gb\",\"start\":2}]}}]"})";
  std::string one_line;
  for (const char c : overlapping) {
    if (c != '\n') one_line += c;
  }
  EXPECT_EQ(import_error(node("n1", one_line)),
            "cluster.json: Node n1: metadata.annotations[\"jogak.io/gpus\"]: [0].mig.instances: "
            "1g.10gb cannot start at slice 2 there");
}

// As the agent writes it of a GPU whose 3g.20gb is cut into parts (annotations_test.cc there).
TEST(Import, AnInstanceThatIsNotListedIsNotGivenOut) {
  Cluster cluster;
  import_ok(cluster, node("n1",
                          R"({"jogak.io/gpus":"[{\"mig\":{\"enabled\":true,)"
                          R"(\"instances\":[{\"profile\":\"1g.5gb\",\"start\":4}]}}]"})",
                          "NVIDIA-A100-SXM4-40GB"));
  for (const auto& [name, profile, places] :
       {std::tuple("small", "1g.5gb", 1), std::tuple("half", "3g.20gb", 0)}) {
    import_ok(cluster,
              pod({.name = name,
                   .annotations = fmt::format(R"({{"jogak.io/mig-profile":"{}"}})", profile)}));
    const core::Shape& shape = cluster.shape_of(*cluster.find_pod("team-a", name));
    EXPECT_EQ(
        core::count_mig_places(cluster, shape, cluster.node(*cluster.find_node("n1")), 9, false),
        places)
        << profile;
  }
}

TEST(Import, HugeRequestsAreRefusedAndHugeCapacityIsCut) {
  EXPECT_EQ(import_error(pod({.name = "x", .resources = R"({"requests":{"nvidia.com/gpu":
                                               "9223372036854775807"}})"})),
            "cluster.json: Pod team-a/x: spec: the requests for nvidia.com/gpu add up to "
            "9223372036854775807; more than 1125899906842624 is not accepted");
  Cluster cluster;
  import_ok(cluster, R"({"kind":"Node","metadata":{"name":"n1"},
                         "status":{"allocatable":{"example.com/x":"9223372036854775807"}}})");
  const core::Node& n1 = cluster.node(*cluster.find_node("n1"));
  EXPECT_EQ(n1.scalars.at(0).allocatable, core::kMaxAmount);
}

TEST(Import, NothingIsHalfImported) {
  const std::string good = node("n1") + "," + pod({.name = "a"}) + ",";
  EXPECT_EQ(import_error(list(good + R"({"kind":"Pod","metadata":{"name":"b"}})")),
            "cluster.json: Pod b: spec: is required");
  EXPECT_EQ(import_error(list(good + node("n2")) + R"({"kind")"),
            "cluster.json: the text ends where a colon after the name of a field should be; it is "
            "not complete");
}

TEST(Import, LimitsAtPodLevelAreRequestsToo) {
  Cluster cluster;
  import_ok(cluster, pod({.name = "a", .spec = R"(,"resources":{"limits":{"cpu":"4",
                                                  "memory":"1Gi"}})"}));
  // cpu: the container's request stands; memory: only the limit speaks.
  const core::ResourceList want = {{"cpu", 1000}, {"memory", 1 << 30}};
  EXPECT_EQ(shape_of(cluster, "a").requests, want);
}

TEST(Import, LabelKeysAreMergedOnlyWhereNoApiServerDidIt) {
  const auto text = [](std::string_view name, std::string_view uid) {
    return fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"team-a","uid":"{}",
              "labels":{{"ver":"v1","tier":"db"}}}},
            "spec":{{"containers":[{{"name":"main"}}],"affinity":{{"podAffinity":
              {{"requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"zone",
                "labelSelector":{{}},"matchLabelKeys":["ver"],
                "mismatchLabelKeys":["tier","none"]}}]}}}}}}}})",
        name, uid);
  };
  Cluster cluster;
  import_ok(cluster, text("written", "") + text("stored", "u1"));
  const auto requirements = [&cluster](std::string_view name) {
    return shape_of(cluster, name).required_affinity.at(0).selector->requirements;
  };
  EXPECT_TRUE(requirements("stored").empty());
  ASSERT_EQ(requirements("written").size(), 2U);
  EXPECT_EQ(requirements("written")[0], (core::Requirement{"ver", core::SelectorOp::In, {"v1"}}));
  EXPECT_EQ(requirements("written")[1],
            (core::Requirement{"tier", core::SelectorOp::NotIn, {"db"}}));
}

TEST(Import, ObjectsKeepTheirNames) {
  Cluster cluster;
  import_ok(cluster, list(R"({"kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"n"}},
                    {"kind":"StorageClass","metadata":{"name":"fast"}},
                    {"kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"n"}},
                    {"kind":"PersistentVolume","metadata":{"name":"v"}},
                    {"kind":"Service","metadata":{"name":"s"},"spec":{"selector":{"a":"b"}}},
                    {"kind":"CSINode","metadata":{"name":"k"}},
                    {"kind":"CSIDriver","metadata":{"name":"d"}},
                    {"kind":"CSIStorageCapacity","metadata":{"name":"e","namespace":"n"}},
                    {"kind":"VolumeAttachment","metadata":{"name":"w"}})"));
  const core::Objects& objects = cluster.objects();
  EXPECT_EQ(objects.pdbs.at("n/b").name, "b");
  EXPECT_EQ(objects.storage_classes.at("fast").name, "fast");
  EXPECT_EQ(objects.pvcs.at("n/c").ns, "n");
  EXPECT_EQ(objects.pvs.at("v").name, "v");
  EXPECT_EQ(objects.workloads.at("Service/default/s").selector->requirements.size(), 1U);
  EXPECT_EQ(objects.csi_nodes.at("k").name, "k");
  EXPECT_EQ(objects.csi_drivers.at("d").name, "d");
  EXPECT_EQ(objects.csi_capacities.at("n/e").name, "e");
  EXPECT_EQ(objects.attachments.at("w").name, "w");
}

}  // namespace
}  // namespace jogak::importer
