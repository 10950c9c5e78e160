// SPDX-License-Identifier: Apache-2.0
//
// Nodes, namespaces and the health of components.
#include <set>
#include <string>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kNodeColumns[] = {
    kNameColumn,
    {.name = "Status", .description = "Whether the node is ready and takes pods"},
    {.name = "Roles", .description = "Roles given by labels"},
    kAgeColumn,
    {.name = "Version", .description = "Version of the kubelet"},
    {.name = "Internal-IP", .priority = 1, .description = "First internal address"},
    {.name = "External-IP", .priority = 1, .description = "First external address"},
    {.name = "OS-Image", .priority = 1, .description = "Operating system"},
    {.name = "Kernel-Version", .priority = 1, .description = "Kernel, and the architecture"},
    {.name = "Container-Runtime", .priority = 1, .description = "Container runtime and version"},
};

std::string roles_text(const Doc& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const Doc::Member& label : meta(node)["labels"].members()) {
    if (label.key.starts_with(kPrefix) && label.key.size() > kPrefix.size()) {
      roles.insert(label.key.substr(kPrefix.size()));
    } else if (label.key == "kubernetes.io/role" && !label.value.as_string().empty()) {
      roles.insert(label.value.as_string());
    }
  }
  return roles.empty() ? "<none>" : join({roles.begin(), roles.end()}, ",");
}

std::string address_text(const Doc& node, std::string_view type) {
  for (const Doc& address : node.get("status", "addresses").items()) {
    if (address["type"].as_string() == type) {
      return address["address"].as_string();
    }
  }
  return "<none>";
}

void print_node(const Doc& node, TimeUs now, Doc::Items& cells) {
  const Doc& ready = condition_of(node, "Ready");
  std::string status = "Unknown";
  if (!ready.is_null()) {
    status = ready["status"].as_string() == "True" ? "Ready" : "NotReady";
  }
  if (node.get("spec", "unschedulable").as_bool()) {
    status += ",SchedulingDisabled";
  }
  const Doc& info = node.get("status", "nodeInfo");
  std::string kernel = text_or(info["kernelVersion"], "<unknown>");
  if (!info["architecture"].as_string().empty()) {
    kernel += " (" + info["architecture"].as_string() + ")";
  }
  cells.emplace_back(name_of(node));
  cells.emplace_back(status);
  cells.emplace_back(roles_text(node));
  cells.emplace_back(age_of(node, now));
  cells.emplace_back(info["kubeletVersion"].as_string());
  cells.emplace_back(address_text(node, "InternalIP"));
  cells.emplace_back(address_text(node, "ExternalIP"));
  cells.emplace_back(text_or(info["osImage"], "<unknown>"));
  cells.emplace_back(kernel);
  cells.emplace_back(text_or(info["containerRuntimeVersion"], "<unknown>"));
}

constexpr ColumnFact kNamespaceColumns[] = {
    kNameColumn, {.name = "Status", .description = "Active or Terminating"}, kAgeColumn};

void print_namespace(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("status", "phase").as_string());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kComponentColumns[] = {
    kNameColumn,
    {.name = "Status", .description = "Healthy or not"},
    {.name = "Message", .description = "What the component said"},
    {.name = "Error", .description = "What went wrong"},
};

void print_component(const Doc& object, TimeUs, Doc::Items& cells) {
  std::string status = "Unknown", message, error;
  for (const Doc& condition : object["conditions"].items()) {
    if (condition["type"].as_string() == "Healthy") {
      status = condition["status"].as_string() == "True" ? "Healthy" : "Unhealthy";
      message = condition["message"].as_string();
      error = condition["error"].as_string();
      break;
    }
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(status);
  cells.emplace_back(message);
  cells.emplace_back(error);
}

constexpr Printer kPrinters[] = {
    {"", "Node", kNodeColumns, print_node},
    {"", "Namespace", kNamespaceColumns, print_namespace},
    {"", "ComponentStatus", kComponentColumns, print_component},
};

}  // namespace

std::span<const Printer> node_printers() { return kPrinters; }

}  // namespace jogak::api
