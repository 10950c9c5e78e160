// SPDX-License-Identifier: Apache-2.0
// From a line of a class file to the differences: import, evaluate, compare with each acceptable
// result and keep the nearest.
#include "test/golden/scenario.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "core/plan/evaluation.h"
#include "import/import.h"
#include "kube/json_scan.h"
#include "test/golden/canonical.h"

namespace jogak::golden {

namespace {

using nlohmann::json;

// The lists of `cluster`, and what their items are.
constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
    {"namespaces", "Namespace"},
    {"priorityClasses", "PriorityClass"},
    {"nodes", "Node"},
    {"pods", "Pod"},
    {"services", "Service"},
    {"replicationControllers", "ReplicationController"},
    {"replicaSets", "ReplicaSet"},
    {"statefulSets", "StatefulSet"},
    {"podDisruptionBudgets", "PodDisruptionBudget"},
    {"persistentVolumes", "PersistentVolume"},
    {"persistentVolumeClaims", "PersistentVolumeClaim"},
    {"storageClasses", "StorageClass"},
    {"csiNodes", "CSINode"},
    {"csiDrivers", "CSIDriver"},
    {"csiStorageCapacities", "CSIStorageCapacity"},
    {"volumeAttachments", "VolumeAttachment"},
};

Result<void> add_cluster(std::string_view text, importer::ImportBatch& batch) {
  kube::JsonScanner scanner(text);
  return scanner.each_field([&](std::string_view list, std::string_view items) -> Result<void> {
    const auto* const kind =
        std::ranges::find(kKinds, list, &std::pair<std::string_view, std::string_view>::first);
    if (kind == std::end(kKinds)) return invalid("unknown list {}", list);
    kube::JsonScanner item_scanner(items);
    return item_scanner.each_item(
        [&](std::string_view item) { return batch.add_object(item, kind->second, "cluster"); });
  });
}

Result<json> evaluate_pod(core::Cluster& cluster, const json& pod) {
  const std::string ns = pod.at("metadata").at("namespace");
  const std::string name = pod.at("metadata").at("name");
  const auto id = cluster.find_pod(ns, name);
  if (!id) return invalid("the pod is not in the cluster after import");
  const std::uint64_t before = cluster.digest();
  const core::Evaluation evaluation = core::evaluate(cluster, *id);
  if (cluster.digest() != before) return invalid("the evaluation changed the cluster");
  if (const std::string recount = cluster.recount(); !recount.empty()) {
    return invalid("recount: {}", recount);
  }
  return canonical(cluster, evaluation);
}

// Bugs of the original after which its own result is acceptable too.
bool may_keep_bug(const json& names) {
  return std::ranges::all_of(names, [](const json& name) {
    return name == "not-found-suffix" || name == "attached-volume-counted-twice";
  });
}

std::vector<json> acceptable(const json& result, const json* right_result, const json& bugs) {
  std::vector<json> results;
  if (right_result != nullptr) results.push_back(*right_result);
  if (right_result == nullptr || may_keep_bug(bugs)) results.push_back(result);
  const std::size_t given = results.size();
  for (std::size_t i = 0; i < given; ++i) {
    if (!results[i].contains("alternatives")) continue;
    const json alternatives = results[i]["alternatives"];
    results.insert(results.end(), alternatives.begin(), alternatives.end());
  }
  for (json& r : results) r = canonical(r);
  return results;
}

}  // namespace

std::vector<std::string> scenario_classes(const std::string& folder) {
  constexpr std::string_view kSuffix = ".jsonl.gz";
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(kSuffix)) result.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::ranges::sort(result);
  return result;
}

Result<void> for_each_record(const std::string& folder, std::string_view class_name,
                             const std::function<void(std::string_view record)>& fn) {
  const std::string path = fmt::format("{}/{}.jsonl.gz", folder, class_name);
  JOGAK_TRY(const std::string text, read_file(path));
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) fn(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Outcome run_record(std::string_view record) {
  Outcome outcome;
  json result;
  json bugs = json::array();
  std::unique_ptr<json> right_result;
  core::Cluster cluster;
  const auto run = [&]() -> Result<json> {
    importer::ImportBatch batch;
    kube::JsonScanner scanner(record);
    JOGAK_TRY_VOID(scanner.each_field([&](std::string_view key, std::string_view value) {
      if (key == "id") outcome.id = json::parse(value);
      if (key == "result") result = json::parse(value);
      if (key == "right_result") right_result = std::make_unique<json>(json::parse(value));
      if (key == "known_bug") bugs = json::parse(value);
      if (key == "cluster") return add_cluster(value, batch);
      if (key == "pod") {
        outcome.pod = json::parse(value);
        return batch.add_object(value, "Pod", "pod");
      }
      return Result<void>();
    }));
    JOGAK_TRY_VOID(batch.apply(cluster));
    return evaluate_pod(cluster, outcome.pod);
  };
  auto got = run();
  if (!got) {
    outcome.differences.push_back(got.error().what);
    return outcome;
  }
  outcome.got = std::move(*got);
  bool first = true;
  for (json& want : acceptable(result, right_result.get(), bugs)) {
    std::vector<std::string> differences = compare(outcome.got, want);
    if (!first && differences.size() >= outcome.differences.size()) continue;
    first = false;
    outcome.differences = std::move(differences);
    outcome.want = std::move(want);
    if (outcome.differences.empty()) break;
  }
  return outcome;
}

}  // namespace jogak::golden
