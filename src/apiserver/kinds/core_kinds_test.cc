// SPDX-License-Identifier: Apache-2.0
// Names, verbs and subresources of the core kinds, the objects of a fresh server, shared checks.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/core.h>

#include "apiserver/kinds/core_initial.h"
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

std::string joined(const auto& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ",") + std::string(word);
  return text;
}

// "plural singular Kind ns|- verbs short names" and "/subresource verbs" behind it.
std::string line_of(const Resource& resource) {
  constexpr std::string_view kAll = "create,delete,deletecollection,get,list,patch,update,watch";
  const std::string verbs = joined(verb_names(resource.verbs));
  std::string line = fmt::format("{} {} {} {} {} [{}]", resource.plural, resource.singular,
                                 resource.kind, resource.is_namespaced ? "ns" : "-",
                                 verbs == kAll ? "all" : verbs, joined(resource.short_names));
  for (const Subresource& sub : resource.subresources) {
    line += fmt::format(" /{} {} {}", sub.name, sub.kind, joined(verb_names(sub.verbs)));
  }
  return line;
}

std::string lines_of(const Registry& registry, std::string_view group, std::string_view version) {
  std::vector<std::string> lines;
  for (const auto& resource : registry.all()) {
    if (resource->group == group && resource->version == version) {
      lines.push_back(line_of(*resource));
    }
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(CoreKinds, AreNamedAsOnARealServer) {
  Registry registry;
  KindOptions options;
  options.has_pod_groups = true;
  add_core_kinds(registry, options);
  EXPECT_EQ(lines_of(registry, "", "v1"),
            "componentstatuses componentstatus ComponentStatus - get,list [cs]\n"
            "configmaps configmap ConfigMap ns all [cm]\n"
            "events event Event ns all [ev]\n"
            "limitranges limitrange LimitRange ns all [limits]\n"
            "namespaces namespace Namespace - create,delete,get,list,patch,update,watch [ns] "
            "/finalize Namespace update /status Namespace get,patch,update\n"
            "nodes node Node - all [no] /proxy NodeProxyOptions create,delete,get,patch,update "
            "/status Node get,patch,update\n"
            "persistentvolumeclaims persistentvolumeclaim PersistentVolumeClaim ns all [pvc] "
            "/status PersistentVolumeClaim get,patch,update\n"
            "persistentvolumes persistentvolume PersistentVolume - all [pv] "
            "/status PersistentVolume get,patch,update\n"
            "resourcequotas resourcequota ResourceQuota ns all [quota] "
            "/status ResourceQuota get,patch,update\n"
            "secrets secret Secret ns all []\n"
            "serviceaccounts serviceaccount ServiceAccount ns all [sa] "
            "/token TokenRequest create\n");
  EXPECT_EQ(lines_of(registry, "events.k8s.io", "v1"), "events event Event ns all [ev]\n");
  EXPECT_EQ(lines_of(registry, "coordination.k8s.io", "v1"), "leases lease Lease ns all []\n");
  EXPECT_EQ(lines_of(registry, "node.k8s.io", "v1"),
            "runtimeclasses runtimeclass RuntimeClass - all []\n");
  EXPECT_EQ(lines_of(registry, "scheduling.k8s.io", "v1"),
            "priorityclasses priorityclass PriorityClass - all [pc]\n");
  EXPECT_EQ(lines_of(registry, "scheduling.k8s.io", "v1alpha2"),
            "podgroups podgroup PodGroup ns all [] /status PodGroup get,patch,update\n"
            "workloads workload Workload ns all []\n");
  EXPECT_EQ(lines_of(registry, "storage.k8s.io", "v1"),
            "csidrivers csidriver CSIDriver - all []\n"
            "csinodes csinode CSINode - all []\n"
            "csistoragecapacities csistoragecapacity CSIStorageCapacity ns all []\n"
            "storageclasses storageclass StorageClass - all [sc]\n"
            "volumeattachments volumeattachment VolumeAttachment - all [] "
            "/status VolumeAttachment get,patch,update\n");
  EXPECT_EQ(lines_of(registry, "resource.k8s.io", "v1"),
            "deviceclasses deviceclass DeviceClass - all []\n"
            "resourceclaims resourceclaim ResourceClaim ns all [] "
            "/status ResourceClaim get,patch,update\n"
            "resourceclaimtemplates resourceclaimtemplate ResourceClaimTemplate ns all []\n"
            "resourceslices resourceslice ResourceSlice - all []\n");
  EXPECT_EQ(lines_of(registry, "rbac.authorization.k8s.io", "v1"),
            "clusterrolebindings clusterrolebinding ClusterRoleBinding - all []\n"
            "clusterroles clusterrole ClusterRole - all []\n"
            "rolebindings rolebinding RoleBinding ns all []\n"
            "roles role Role ns all []\n");
}

TEST(CoreKinds, BothEventGroupsShareATable) {
  Registry registry;
  add_core_kinds(registry, {});
  const Resource* stored = registry.find_storage("events");
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(stored->group, "");
  EXPECT_EQ(registry.find("events.k8s.io", "v1", "events")->table, "events");
}

TEST(InitialObjects, AreAllAccepted) {
  WorkloadBench bench;
  std::vector<std::string> made;
  for (const Doc& object : initial_objects({}, 1'700'000'000 * kSecondInUs)) {
    EXPECT_EQ(refusal(bench.create(object)), "") << name_of(object);
    made.push_back(object["kind"].as_string() + "/" + name_of(object));
  }
  EXPECT_EQ(joined(made),
            "Namespace/kube-system,Namespace/kube-public,Namespace/kube-node-lease,"
            "Namespace/default,PriorityClass/system-node-critical,"
            "PriorityClass/system-cluster-critical,Service/kubernetes,"
            "ConfigMap/extension-apiserver-authentication,"
            "ConfigMap/kube-apiserver-legacy-service-account-token-tracking");
}

TEST(InitialObjects, TheServerHasTheFirstAddress) {
  for (const auto& [range, address] : std::vector<std::pair<std::string, std::string>>{
           {"10.0.0.0/24", "10.0.0.1"}, {"10.255.255.0/24", "10.255.255.1"}, {"fd00::/112", ""}}) {
    KindOptions options;
    options.service_range = range;
    std::string found;
    for (const Doc& object : initial_objects(options, 0)) {
      if (object["kind"].as_string() == "Service") {
        found = object.get("spec", "clusterIP").as_string();
      }
    }
    EXPECT_EQ(found, address);
  }
}

TEST(CoreRules, SameIsWhatGoCannotTellApart) {
  struct Row {
    std::string_view a, b;
    bool is_same;
  };
  for (const auto& [a, b, is_same] :
       std::vector<Row>{{"null", "0", true},
                        {"null", R"("")", true},
                        {"null", "false", true},
                        {"null", "[]", true},
                        {"null", R"({"a": {"b": ""}})", true},
                        {R"({"a": 1})", R"({"a": 1, "b": null})", true},
                        {R"({"a": 1})", R"({"a": 2})", false},
                        {R"({"a": 1})", R"({"b": 1})", false},
                        {R"([1, 0])", R"([1])", false},
                        {R"([{"a": 0}])", R"([{}])", true},
                        {"true", "null", false},
                        {R"("x")", "null", false}}) {
    EXPECT_EQ(same(json(a), json(b)), is_same) << a << " " << b;
    EXPECT_EQ(same(json(b), json(a)), is_same) << b << " " << a;
  }
}

TEST(CoreRules, AddressRanges) {
  for (const std::string_view right :
       {"10.0.0.0/8", "010.000.000.000/8", "0.0.0.0/0", "1.2.3.4/32", "::/0", "fd00::1/128"}) {
    EXPECT_TRUE(is_cidr(right)) << right;
  }
  for (const std::string_view wrong : {"", "/", "10.0.0.0", "10.0.0/8", "10.0.0.0/33", "::/129",
                                       "10.0.0.0/", "10.0.0.0/a", "10.0.0.256/8", "x/8"}) {
    EXPECT_FALSE(is_cidr(wrong)) << wrong;
  }
}

TEST(CoreRules, PathSegments) {
  EXPECT_TRUE(check_path_segment("system:a.b_c").empty());
  for (const std::string_view wrong : {".", "..", "a/b", "a%b"}) {
    EXPECT_EQ(check_path_segment(wrong).size(), 1U) << wrong;
  }
  EXPECT_EQ(check_path_segment("a/b%c").size(), 2U);
}

}  // namespace
}  // namespace jogak::api
