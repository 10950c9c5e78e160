// SPDX-License-Identifier: Apache-2.0
//
// Role bindings. Roles themselves have no columns of their own.
#include <string>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kColumns[] = {
    kNameColumn,
    {.name = "Role", .description = "Role that is given"},
    kAgeColumn,
    {.name = "Users", .priority = 1, .description = "Users that get it"},
    {.name = "Groups", .priority = 1, .description = "Groups that get it"},
    {.name = "ServiceAccounts", .priority = 1, .description = "Service accounts that get it"},
};

void print_binding(const Doc& object, TimeUs now, Doc::Items& cells) {
  std::vector<std::string> users, groups, accounts;
  for (const Doc& subject : object["subjects"].items()) {
    const std::string& kind = subject["kind"].as_string();
    const std::string& name = subject["name"].as_string();
    if (kind == "ServiceAccount") {
      accounts.push_back(subject["namespace"].as_string() + "/" + name);
    } else if (kind == "User") {
      users.push_back(name);
    } else if (kind == "Group") {
      groups.push_back(name);
    }
  }
  const Doc& role = object["roleRef"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(role["kind"].as_string() + "/" + role["name"].as_string());
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(join(users, ", "));
  cells.emplace_back(join(groups, ", "));
  cells.emplace_back(join(accounts, ", "));
}

constexpr Printer kPrinters[] = {
    {"rbac.authorization.k8s.io", "RoleBinding", kColumns, print_binding},
    {"rbac.authorization.k8s.io", "ClusterRoleBinding", kColumns, print_binding},
};

}  // namespace

std::span<const Printer> rbac_printers() { return kPrinters; }

}  // namespace jogak::api
