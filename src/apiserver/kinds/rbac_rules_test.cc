// SPDX-License-Identifier: Apache-2.0
// Roles and bindings.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"

namespace jogak::api {
namespace {

Doc object(std::string_view kind) {
  Doc made = json(R"({"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}})");
  made.set("kind", kind);
  return made;
}

TEST(Role, RulesAreChecked) {
  WorkloadBench bench;
  expect_creates(
      bench, object("Role"),
      {{"no rules", {}},
       {"odd name", {"metadata/name=system:a"}},
       {"slash in the name", {"metadata/name=.."}, "Invalid metadata.name"},
       {"right", {R"(rules=[{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}])"}},
       {"empty",
        {"rules=[{}]"},
        "Required rules[0].verbs, Required rules[0].apiGroups, Required rules[0].resources"},
       {"paths",
        {R"(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])"},
        "Invalid rules[0].nonResourceURLs"}});
  expect_creates(
      bench, object("ClusterRole"),
      {{"paths", {R"(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])"}},
       {"paths and resources",
        {R"(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["a"]}])"},
        "Invalid rules[0].nonResourceURLs"},
       {"aggregation", {"aggregationRule={}"}, "Required aggregationRule.clusterRoleSelectors"},
       {"selector",
        {R"(aggregationRule/clusterRoleSelectors=[{"matchLabels": {"a b": "c"}}])"},
        "Invalid aggregationRule.clusterRoleSelectors[0].matchLabels"}});
}

TEST(RoleBinding, HasDefaults) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(object("RoleBinding"), {R"(roleRef={"kind": "Role", "name": "x"})",
                                                R"(subjects=[{"kind": "User", "name": "u"},
                                                {"kind": "ServiceAccount", "name": "s"}])"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("roleRef", "apiGroup"), Doc("rbac.authorization.k8s.io"));
  EXPECT_EQ((*made)["subjects"],
            json(R"([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                     {"kind": "ServiceAccount", "name": "s"}])"));
}

TEST(RoleBinding, IsRefused) {
  WorkloadBench bench;
  const Doc binding = with(object("RoleBinding"), {R"(roleRef={"kind": "Role", "name": "x"})"});
  const Doc cluster_binding =
      with(object("ClusterRoleBinding"), {R"(roleRef={"kind": "ClusterRole", "name": "x"})"});
  expect_creates(bench, binding,
                 {{"cluster role", {"roleRef/kind=ClusterRole"}},
                  {"nothing", {"roleRef"}, "NotSupported roleRef.kind, Required roleRef.name"},
                  {"group", {"roleRef/apiGroup=x"}, "NotSupported roleRef.apiGroup"},
                  {"name", {"roleRef/name=a%b"}, "Invalid roleRef.name"},
                  {"subject",
                   {R"(subjects=[{"kind": "Robot"}])"},
                   "Required subjects[0].name, NotSupported subjects[0].kind"},
                  {"account",
                   {R"(subjects=[{"kind": "ServiceAccount", "name": "A", "apiGroup": "x"}])"},
                   "Invalid subjects[0].name, NotSupported subjects[0].apiGroup"},
                  {"user",
                   {R"(subjects=[{"kind": "User", "name": "A", "apiGroup": "x"}])"},
                   "NotSupported subjects[0].apiGroup"}});
  expect_creates(bench, cluster_binding,
                 {{"right", {}},
                  {"role of a namespace", {"roleRef/kind=Role"}, "NotSupported roleRef.kind"},
                  {"account without a namespace",
                   {R"(subjects=[{"kind": "ServiceAccount", "name": "a"}])"},
                   "Required subjects[0].namespace"}});
  expect_edits(bench, binding,
               {{"subjects", {R"(subjects=[{"kind": "User", "name": "u"}])"}},
                {"role", {"roleRef/name=y"}, "Invalid roleRef"}});
}

}  // namespace
}  // namespace jogak::api
