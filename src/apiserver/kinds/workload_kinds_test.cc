// SPDX-License-Identifier: Apache-2.0
// Names, verbs and subresources of every workload kind, as the real server's discovery has them.
#include <gtest/gtest.h>

#include "apiserver/kinds/kinds.h"

namespace jogak::api {
namespace {

struct Known {
  std::string_view group, version, plural, singular, kind, short_name, category, subresources;
};

constexpr Known kKinds[] = {
    {"", "v1", "endpoints", "endpoints", "Endpoints", "ep", "", ""},
    {"", "v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", "rc",
     "all", "scale status"},
    {"", "v1", "services", "service", "Service", "svc", "all", "proxy status"},
    {"discovery.k8s.io", "v1", "endpointslices", "endpointslice", "EndpointSlice", "", "", ""},
    {"apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", "", "", ""},
    {"apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", "all", "status"},
    {"apps", "v1", "deployments", "deployment", "Deployment", "deploy", "all", "scale status"},
    {"apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", "all", "scale status"},
    {"apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts", "all", "scale status"},
    {"batch", "v1", "cronjobs", "cronjob", "CronJob", "cj", "all", "status"},
    {"batch", "v1", "jobs", "job", "Job", "", "all", "status"},
    {"policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
     "", "status"},
    {"autoscaling", "v2", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", "hpa", "all", "status"},
    {"autoscaling", "v1", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", "hpa", "all", "status"},
};

Registry workload_registry() {
  Registry registry;
  add_workload_kinds(registry, {});
  return registry;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(WorkloadKinds, HaveTheNamesOfTheRealServer) {
  const Registry registry = workload_registry();
  EXPECT_EQ(registry.all().size(), std::size(kKinds));
  for (const Known& known : kKinds) {
    const Resource* resource = registry.find(known.group, known.version, known.plural);
    ASSERT_NE(resource, nullptr) << known.plural;
    EXPECT_EQ(resource->singular, known.singular);
    EXPECT_EQ(resource->kind, known.kind);
    EXPECT_EQ(resource->list_kind, std::string(known.kind) + "List");
    EXPECT_EQ(joined(resource->short_names), known.short_name) << known.plural;
    EXPECT_EQ(joined(resource->categories), known.category) << known.plural;
    EXPECT_EQ(resource->verbs, kAllVerbs);
    EXPECT_TRUE(resource->is_namespaced);
    std::vector<std::string> subresources;
    for (const Subresource& sub : resource->subresources) subresources.push_back(sub.name);
    EXPECT_EQ(joined(subresources), known.subresources) << known.plural;
  }
}

TEST(WorkloadKinds, SubresourcesAreReadAndChangedButNotMade) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    for (const Subresource& sub : resource->subresources) {
      if (sub.name == "proxy") continue;  // passes any request on
      EXPECT_EQ(verb_names(sub.verbs), (std::vector<std::string_view>{"get", "patch", "update"}))
          << resource->plural << "/" << sub.name;
      EXPECT_NE(sub.type, nullptr);
      EXPECT_EQ(sub.projection != nullptr, sub.name == "scale");
      EXPECT_EQ(sub.kind, sub.name == "scale" ? "Scale" : resource->kind);
    }
  }
}

TEST(WorkloadKinds, BothVersionsOfAutoscalersShareATable) {
  const Registry registry = workload_registry();
  const Resource* v1 = registry.find("autoscaling", "v1", "horizontalpodautoscalers");
  const Resource* v2 = registry.find("autoscaling", "v2", "horizontalpodautoscalers");
  ASSERT_NE(v1, nullptr);
  EXPECT_EQ(v1->table, v2->table);
  EXPECT_TRUE(v2->is_storage_version);
  EXPECT_TRUE(v2->is_preferred);
  EXPECT_FALSE(v1->is_storage_version);
  EXPECT_FALSE(v1->is_preferred);
}

TEST(WorkloadKinds, DeletionOfAJobOrAControllerKeepsThePods) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    const bool orphans = resource->plural == "jobs" || resource->plural == "replicationcontrollers";
    EXPECT_EQ(resource->strategy->orphans_by_default(), orphans) << resource->plural;
  }
}

TEST(WorkloadKinds, OnlyServicesAnswerTheirDeletionWithTheObject) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    EXPECT_EQ(resource->strategy->returns_deleted_object(), resource->plural == "services");
  }
}

TEST(WorkloadKinds, PutMakesServicesAndEndpoints) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    const bool makes = resource->plural == "services" || resource->plural == "endpoints";
    EXPECT_EQ(resource->strategy->allows_create_on_update(), makes) << resource->plural;
  }
}

TEST(WorkloadKinds, OnlyBudgetsNeedAVersionToBeReplaced) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    EXPECT_EQ(resource->strategy->allows_unconditional_update(),
              resource->kind != "PodDisruptionBudget");
  }
}

TEST(WorkloadKinds, TheseFieldsMayBeAskedFor) {
  const Registry registry = workload_registry();
  for (const auto& resource : registry.all()) {
    std::string fields;
    for (const std::string_view field : resource->strategy->selectable_fields()) {
      fields += std::string(field) + " ";
    }
    std::string_view expected;
    if (resource->kind == "Service") expected = "spec.clusterIP spec.type ";
    if (resource->kind == "Job") expected = "status.successful ";
    if (resource->kind == "ReplicationController") expected = "status.replicas ";
    EXPECT_EQ(fields, expected) << resource->plural;
  }
}

}  // namespace
}  // namespace jogak::api
