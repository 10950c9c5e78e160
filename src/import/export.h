// SPDX-License-Identifier: Apache-2.0
// The inverse of import.h: a cluster as a v1 List that import_list reads back to an equal cluster
// (same Cluster::digest(), same decisions). It is the format of snapshots. What a pod was written
// with is not kept, only what it amounts to: its requests appear as overhead, its containers as
// carriers of images and of the defaults that scores assume.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "core/model/cluster.h"

namespace jogak::importer {

struct ExportOptions {
  JsonWriter::Style style = JsonWriter::Style::Pretty;
  // spec.schedulerName of a pod, which the cluster itself does not keep; "" for the default.
  std::function<std::string_view(core::PodId)> scheduler_name = {};
};

// Nodes, pods, namespaces, budgets, workloads and storage objects, sorted by kind and name.
// Whatever was read from Kubernetes objects can be written. Errors: Invalid, naming the pod or node
// that no such object describes (a scenario may have such).
Result<std::string> export_list(const core::Cluster& cluster, const ExportOptions& options = {});

// ---- between the .cc files of this folder ----

// One pod as an object.
Result<void> write_pod(JsonWriter& json, const core::Cluster& cluster, core::PodId pod,
                       std::string_view scheduler_name);
void write_labels(JsonWriter& json, std::string_view key, const core::Labels& labels);
void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts);
// Nothing where there is no selector.
void write_selector(JsonWriter& json, std::string_view key,
                    const std::optional<core::LabelSelector>& selector);
void write_node_terms(JsonWriter& json, const std::vector<core::NodeSelectorTerm>& terms);
void write_node_term(JsonWriter& json, const core::NodeSelectorTerm& term);
// Value of the annotation jogak.io/gpu-holds: the devices given to a pod that asked in this way.
std::string holds_text(std::span<const core::GpuHold> holds, core::GpuAsk kind);
std::string_view effect_text(core::TaintEffect effect);
// "1500m" for cpu, plain numbers else.
std::string quantity_text(std::string_view resource, std::int64_t amount);

}  // namespace jogak::importer
