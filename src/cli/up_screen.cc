// SPDX-License-Identifier: Apache-2.0
//
// Nodes that are alike make one row; the longest list is cut.
#include "cli/up_screen.h"

#include <map>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"
#include "base/text_table.h"

namespace jogak::cli {

namespace {

constexpr std::size_t kRowsMax = 12;

struct Group {
  std::size_t count = 0;
  std::string first, last, rack, product, devices, taints;
};

// "8 x nvidia.com/gpu"
std::string devices_of(const Doc& node) {
  std::string text;
  for (const auto& [name, amount] : node.get("status", "capacity").members()) {
    if (!api::is_extended_resource(name) || amount.as_string() == "0") continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} x {}", amount.as_string(), name);
  }
  return text;
}

std::string taints_of(const Doc& node) {
  std::string text;
  for (const Doc& taint : node.get("spec", "taints").items()) {
    const std::string& key = taint["key"].as_string();
    if (key.starts_with("node.kubernetes.io/")) continue;  // the node's state, not its purpose
    if (!text.empty()) text += ", ";
    text += key;
    if (taint.has("value")) text += "=" + taint["value"].as_string();
    text += ":" + taint["effect"].as_string();
  }
  return text;
}

// Nodes alike in what matters here, in the order of their names.
std::vector<Group> groups_of(const std::vector<Doc>& nodes) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (const Doc& node : nodes) {
    const Doc& labels = api::meta(node)["labels"];
    Group group{.count = 1,
                .first = api::name_of(node),
                .last = api::name_of(node),
                .rack = labels["jogak.io/rack"].as_string(),
                .product = labels["nvidia.com/gpu.product"].as_string(),
                .devices = devices_of(node),
                .taints = taints_of(node)};
    const std::string key =
        fmt::format("{}|{}|{}|{}", group.rack, group.product, group.devices, group.taints);
    const auto [it, is_new] = index.try_emplace(key, groups.size());
    if (is_new) {
      groups.push_back(std::move(group));
    } else {
      ++groups[it->second].count;
      groups[it->second].last = api::name_of(node);
    }
  }
  return groups;
}

}  // namespace

std::string up_screen(playground::Up& up, const std::string& kubeconfig, const std::string& kubectl,
                      TimeUs start_time) {
  const std::vector<Doc> nodes = up.playground().api().list("nodes");
  const std::vector<Group> groups = groups_of(nodes);
  TextTable table({{.title = "NODES", .align = Align::Right},
                   {.title = "NAMES"},
                   {.title = "RACK"},
                   {.title = "DEVICES EACH"},
                   {.title = "PRODUCT"},
                   {.title = "TAINT"}});
  for (std::size_t i = 0; i < std::min(groups.size(), kRowsMax); ++i) {
    const Group& group = groups[i];
    table.add(group.count, group.count == 1 ? group.first : group.first + " .. " + group.last,
              group.rack, group.devices, group.product, group.taints);
  }
  std::string text = fmt::format("Jogak playground: {} nodes, ready in {} ms at {}\n\n",
                                 nodes.size(), start_time / kMsInUs, up.access().url);
  text += table.text();
  if (groups.size() > kRowsMax) {
    text += fmt::format("... and {} more kinds of nodes\n", groups.size() - kRowsMax);
  }
  text += fmt::format(
      "\nIn another terminal:\n\n"
      "  export KUBECONFIG={0}\n"
      "  {1} get nodes -L jogak.io/rack,nvidia.com/gpu.product\n"
      "  {1} apply -f examples/playground/1-gpu-pod.yaml\n"
      "  {1} get pods -o wide -w\n\n"
      "More in examples/playground/. Ctrl-C stops everything.\n",
      kubeconfig, kubectl);
  return text;
}

}  // namespace jogak::cli
