// SPDX-License-Identifier: Apache-2.0
//
// Nodes are made from a table of a few models; a cluster file is the simulator's, or manifests.
#include "playground/fleet.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "playground/gpu_machine.h"
#include "sim/samples.h"

namespace jogak::playground {

namespace {

constexpr std::string_view kSimulated = "jogak.io/simulated";
constexpr std::string_view kRackLabel = "jogak.io/rack";
constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr int kRacks = 2;
constexpr int kNodesPerRack = 4;

Doc node(const std::string& name, std::string_view rack, std::string_view role) {
  Doc object = Doc::object();
  object.set("apiVersion", "v1").set("kind", "Node");
  Doc& labels = object.at("metadata").set("name", name).at("labels");
  labels.set(kSimulated, "true")
      .set("kubernetes.io/hostname", name)
      .set("kubernetes.io/os", "linux")
      .set("kubernetes.io/arch", "amd64")
      .set(fmt::format("node-role.kubernetes.io/{}", role), "")
      .set(kZoneLabel, "zone-a")
      .set(kRackLabel, rack);
  return object;
}

void set_capacity(Doc& object, std::string_view cpu, std::string_view memory,
                  std::string_view resource, std::int64_t count) {
  Doc& capacity = object.at("status", "capacity");
  capacity.set("cpu", cpu).set("memory", memory).set("pods", "110");
  if (count > 0) capacity.set(resource, std::to_string(count));
}

void set_gpu_labels(Doc& object, std::string_view product, int count, std::int64_t memory_mib) {
  object.at("metadata", "labels")
      .set("nvidia.com/gpu.present", "true")
      .set("nvidia.com/gpu.product", product)
      .set("nvidia.com/gpu.count", std::to_string(count))
      .set("nvidia.com/gpu.memory", std::to_string(memory_mib));
}

Doc gpu_taint() {
  return Doc::object()
      .set("key", "nvidia.com/gpu")
      .set("value", "true")
      .set("effect", "NoSchedule");
}

// "H100" -> "H100-80" where only one model has that part.
Result<std::string> full_groups(std::string_view groups) {
  std::string out;
  const std::string names = sim::sample_model_names();
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find(','), groups.size());
    std::string group(groups.substr(0, end));
    groups.remove_prefix(std::min(end + 1, groups.size()));
    const std::size_t last = group.rfind('x');
    const std::string model = last == std::string::npos ? group : group.substr(last + 1);
    std::vector<std::string> found;
    for (std::string_view rest = names; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(", "), rest.size());
      const std::string_view name = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 2, rest.size()));
      if (name == model) found.assign(1, std::string(name));
      if (name == model) break;
      if (!model.empty() && name.find(model) != std::string_view::npos) found.emplace_back(name);
    }
    if (found.size() == 1 && model != "CPU") group = group.substr(0, last + 1) + found[0];
    if (found.size() > 1 && model != "CPU") {
      return invalid("--nodes: model {} is {} or {}; say which", model, found[0], found[1]);
    }
    out += (out.empty() ? "" : ",") + group;
  }
  return out;
}

Result<std::int64_t> racks_of(std::string_view topology) {
  if (topology.empty()) return 0;
  constexpr std::string_view kRacksIs = "racks=";
  std::int64_t racks = 0;
  const std::string_view number =
      topology.starts_with(kRacksIs) ? topology.substr(kRacksIs.size()) : std::string_view();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), racks);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() || racks < 1) {
    return invalid("--topology: \"{}\" is not racks=N with N of at least 1", topology);
  }
  return racks;
}

// One group of nodes of a scenario file.
std::vector<Doc> nodes_of_group(const Doc& group) {
  std::vector<Doc> nodes;
  const std::int64_t count = group["count"].as_int(1);
  const auto text = [](const Doc& value) {
    return value.is_number() ? value.number_text() : value.as_string();
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string& base = group["name"].as_string();
    const std::string name = count == 1 ? base : fmt::format("{}-{}", base, i);
    Doc object = node(name, "", group.has("gpu") ? "gpu" : "cpu");
    object.at("metadata", "labels").erase(kRackLabel);
    for (const auto& [key, value] : group["labels"].members()) {
      object.at("metadata", "labels").set(key, value);
    }
    const std::int64_t gpus = group.get("gpu", "count").as_int(0);
    set_capacity(object, text(group["cpu"]), text(group["memory"]), "nvidia.com/gpu", gpus);
    if (gpus > 0) {
      object.at("metadata", "labels").set("nvidia.com/gpu.product", group.get("gpu", "model"));
    }
    for (const Doc& taint : group["taints"].items()) {
      Doc full = taint;
      full.set_default("effect", "NoSchedule");
      object.at("spec", "taints").push(std::move(full));
    }
    nodes.push_back(std::move(object));
  }
  return nodes;
}

}  // namespace

std::vector<Doc> default_fleet() {
  std::vector<Doc> nodes;
  for (int rack = 0; rack < kRacks; ++rack) {
    const std::string rack_name = fmt::format("rack-{}", rack);
    for (int i = 0; i < kNodesPerRack; ++i) {
      Doc object = node(fmt::format("train-{}-{}", rack, i), rack_name, "training");
      set_gpu_labels(object, "NVIDIA-A100-SXM4-80GB", 8, 81'920);
      set_capacity(object, "128", "1Ti", "nvidia.com/gpu", 8);
      name_gpus(object);
      object.at("spec", "taints").push(gpu_taint());
      nodes.push_back(std::move(object));
    }
  }
  for (int i = 0; i < 2; ++i) {
    Doc object = node(fmt::format("mig-{}", i), "rack-2", "inference");
    set_gpu_labels(object, "NVIDIA-A100-SXM4-80GB", 2, 81'920);
    object.at("metadata", "labels").set("nvidia.com/mig.strategy", "mixed");
    object.at("metadata", "labels").set("nvidia.com/mig.config", "all-1g.10gb");
    set_capacity(object, "32", "256Gi", "nvidia.com/mig-1g.10gb", 14);
    name_gpus(object);
    nodes.push_back(std::move(object));
  }
  for (int i = 0; i < 2; ++i) {
    Doc object = node(fmt::format("cpu-{}", i), "rack-2", "cpu");
    set_capacity(object, "32", "128Gi", "", 0);
    nodes.push_back(std::move(object));
  }
  return nodes;
}

Result<std::vector<Doc>> fleet_of(std::string_view groups, std::string_view topology,
                                  std::uint64_t seed) {
  JOGAK_TRY(const std::int64_t racks, racks_of(topology));
  JOGAK_TRY(const std::string full, full_groups(groups));
  auto parsed = sim::parse_sample_groups(full);
  if (!parsed) return in_context("--nodes", std::move(parsed).error());
  const Doc list = sim::sample_cluster_k8s(*parsed, seed);
  std::vector<Doc> nodes = list["items"].items();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Doc& labels = nodes[i].at("metadata", "labels");
    labels.set(kSimulated, "true");
    if (racks > 0) {
      labels.set(kRackLabel, fmt::format("rack-{}", i % static_cast<std::size_t>(racks)));
    }
    name_gpus(nodes[i]);
  }
  return nodes;
}

Result<std::vector<Doc>> read_manifests(std::string_view text, std::string_view name) {
  std::vector<Doc> documents;
  const auto take = [&](std::string_view part) -> Result<void> {
    const bool is_empty = std::ranges::all_of(
        part, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
    if (is_empty) return {};
    auto parsed = codec::parse_yaml(part);  // JSON is YAML
    if (!parsed.has_value()) return in_context(name, std::move(parsed).error());
    if (!parsed->doc.is_null()) documents.push_back(std::move(parsed->doc));
    return {};
  };
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == "---" || line.starts_with("--- ")) {
      JOGAK_TRY_VOID(take(text.substr(begin, at - begin)));
      begin = std::min(end + 1, text.size());
    }
    at = end + 1;
  }
  JOGAK_TRY_VOID(take(text.substr(begin)));
  return documents;
}

Result<std::vector<Doc>> objects_of_file(std::string_view text, std::string_view name) {
  std::vector<Doc> objects;
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size() - 1);
  std::vector<Doc> documents;
  if (!text.empty() && text[first] == '{') {  // a dump may be large: the quick reader
    auto parsed = codec::parse_json(text);
    if (!parsed.has_value()) return in_context(name, std::move(parsed).error());
    documents.push_back(std::move(parsed->doc));
  } else {
    JOGAK_TRY(documents, read_manifests(text, name));
  }
  for (Doc& document : documents) {
    if (document["kind"].as_string().ends_with("List")) {
      for (Doc& item : document.at("items").items()) objects.push_back(std::move(item));
    } else if (document.has("kind")) {
      objects.push_back(std::move(document));
    } else if (document["nodes"].is_array()) {
      for (const Doc& group : document["nodes"].items()) {
        for (Doc& made : nodes_of_group(group)) objects.push_back(std::move(made));
      }
    } else {
      return invalid(
          "{}: neither a Kubernetes object with a kind nor a scenario with nodes; give "
          "the output of `kubectl get ... -o json` or of `jogak gen cluster`",
          name);
    }
  }
  if (objects.empty()) return invalid("{}: holds no objects", name);
  for (Doc& object : objects) {  // nodes of elsewhere have no kubelet here but a simulated one
    if (object["kind"].as_string() != "Node") continue;
    object.at("metadata").at("labels").set(kSimulated, "true");
    name_gpus(object);
  }
  return objects;
}

}  // namespace jogak::playground
