// SPDX-License-Identifier: Apache-2.0
//
// deploy/jogak-scheduler.yaml against the program: its roles grant what ops/permissions.cc lists,
// no more and no less, and its configuration is one that the program takes.
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/doc.h"
#include "base/file.h"
#include "live/config.h"
#include "ops/permissions.h"
#include "playground/fleet.h"

namespace jogak::cli {
namespace {

using Grants = std::set<std::string>;

std::vector<Doc> manifest() {
  const auto text = read_file(std::string(JOGAK_SOURCE_DIR) + "/deploy/jogak-scheduler.yaml");
  EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().what);
  auto objects = playground::read_manifests(text.value_or(""), "deploy");
  EXPECT_TRUE(objects.has_value()) << (objects ? "" : objects.error().what);
  return objects.value_or(std::vector<Doc>{});
}

const Doc& find(const std::vector<Doc>& objects, std::string_view kind) {
  static const Doc kNone;
  for (const Doc& object : objects) {
    if (object["kind"].as_string() == kind) return object;
  }
  ADD_FAILURE() << "no " << kind;
  return kNone;
}

// "list poddisruptionbudgets.policy", and " named NAME" where a rule names objects.
Grants grants_of(const Doc& role) {
  Grants grants;
  for (const Doc& rule : role["rules"].items()) {
    std::string names;
    for (const Doc& name : rule["resourceNames"].items()) names += " named " + name.as_string();
    for (const Doc& group : rule["apiGroups"].items()) {
      for (const Doc& resource : rule["resources"].items()) {
        const std::string& full = resource.as_string();
        const std::size_t slash = std::min(full.find('/'), full.size());
        for (const Doc& verb : rule["verbs"].items()) {
          const ops::Permission permission{
              verb.as_string(), group.as_string(), std::string_view(full).substr(0, slash),
              slash < full.size() ? std::string_view(full).substr(slash + 1) : ""};
          grants.insert(permission_text(permission) + names);
        }
      }
    }
  }
  return grants;
}

TEST(DeployManifest, RolesGrantWhatIsAskedForAndNothingElse) {
  Grants everywhere;
  Grants lease;
  for (const ops::Permission& permission : ops::permissions()) {
    const bool is_named = permission.is_lease && permission.verb != "create";
    (permission.is_lease ? lease : everywhere)
        .insert(permission_text(permission) + (is_named ? " named jogak-scheduler" : ""));
  }
  const std::vector<Doc> objects = manifest();
  EXPECT_EQ(grants_of(find(objects, "ClusterRole")), everywhere);
  EXPECT_EQ(grants_of(find(objects, "Role")), lease);
}

TEST(DeployManifest, TheConfigurationIsTakenAndTheProbesFitIt) {
  const std::vector<Doc> objects = manifest();
  const auto config = live::read_config(
      "scheduler.yaml", find(objects, "ConfigMap")["data"]["scheduler.yaml"].as_string());
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(config->leader_election.name, "jogak-scheduler");
  EXPECT_TRUE(config->leader_election.is_on);
  const Doc& pod = find(objects, "Deployment").get("spec", "template", "spec");
  const Doc& container = pod["containers"].items().at(0);
  EXPECT_EQ(container["ports"].items().at(0)["containerPort"].as_int(), config->server.port);
  EXPECT_NE(config->server.bind_address, "127.0.0.1") << "the kubelet comes from outside";
  // A clean stop waits for bindings (5 s) and gives the lease up (5 s).
  EXPECT_GE(pod["terminationGracePeriodSeconds"].as_int(), 11);
}

}  // namespace
}  // namespace jogak::cli
