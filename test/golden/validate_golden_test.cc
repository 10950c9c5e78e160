// SPDX-License-Identifier: Apache-2.0
// The independent checker against the recorded verdicts: it must let every feasible node pass and
// refuse every other one, except where it is laxer by intention (claims that are not bound yet,
// what nominated pods ask beyond resources). So neither can be wrong alone.
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/plan/validate.h"
#include "import/import.h"
#include "test/golden/scenario.h"

namespace jogak::golden {
namespace {

using nlohmann::json;

const std::string kFolder = std::string(JOGAK_SOURCE_DIR) + "/test/golden/kube-scheduler-1.36";

const std::map<std::string, std::string> kKinds = {
    {"namespaces", "Namespace"},
    {"priorityClasses", "PriorityClass"},
    {"nodes", "Node"},
    {"pods", "Pod"},
    {"persistentVolumes", "PersistentVolume"},
    {"persistentVolumeClaims", "PersistentVolumeClaim"},
    {"storageClasses", "StorageClass"},
    {"csiNodes", "CSINode"},
    {"csiDrivers", "CSIDriver"},
    {"volumeAttachments", "VolumeAttachment"},
};

Result<void> import_record(const json& record, core::Cluster& cluster) {
  importer::ImportBatch batch;
  for (const auto& [list, kind] : kKinds) {
    if (!record["cluster"].contains(list)) continue;
    for (const json& item : record["cluster"][list]) {
      JOGAK_TRY_VOID(batch.add_object(item.dump(), kind, "cluster"));
    }
  }
  JOGAK_TRY_VOID(batch.add_object(record["pod"].dump(), "Pod", "pod"));
  JOGAK_TRY_VOID(batch.apply(cluster));
  return {};
}

struct Tally {
  int passed = 0;
  int refused = 0;
  int lax = 0;
  std::string wrong;
};

// Refusals that the checker does not repeat.
bool may_pass(const core::Cluster& cluster, const std::string& plugin, core::NodeId node) {
  if (plugin == "VolumeBinding") return true;
  for (const core::PodId other : cluster.nominated_pods()) {
    if (cluster.pod(other).nominated == node) return true;
  }
  return false;
}

void check_record(const json& record, Tally& tally) {
  const json& result = record.contains("right_result") ? record["right_result"] : record["result"];
  if (!result.contains("nodes")) return;
  const std::string id = record["id"];
  core::Cluster cluster;
  const auto imported = import_record(record, cluster);
  ASSERT_TRUE(imported.has_value()) << id << ": " << imported.error().what;
  EXPECT_EQ(core::validate_cluster(cluster), "") << id;
  const auto pod = cluster.find_pod(record["pod"]["metadata"]["namespace"].get<std::string>(),
                                    record["pod"]["metadata"]["name"].get<std::string>());
  ASSERT_TRUE(pod.has_value()) << id;
  for (const auto& [name, verdict] : result["nodes"].items()) {
    core::Decision decision;
    decision.pod = *pod;
    decision.node = cluster.find_node(name).value_or(core::kNoNode);
    const std::string broken = core::validate(cluster, decision);
    const bool feasible = verdict["feasible"];
    if (feasible && broken.empty()) ++tally.passed;
    if (!feasible && !broken.empty()) ++tally.refused;
    if (feasible == broken.empty()) continue;
    const std::string plugin = verdict.value("plugin", "");
    if (!feasible && may_pass(cluster, plugin, decision.node)) {
      ++tally.lax;
      continue;
    }
    tally.wrong += fmt::format("{} {}: the checker says \"{}\", recorded {}\n", id, name, broken,
                               verdict.dump());
  }
}

TEST(ValidateGolden, AgreesWithTheRecordedVerdicts) {
  Tally tally;
  for (const std::string& name : scenario_classes(kFolder)) {
    const auto read = for_each_record(
        kFolder, name, [&](std::string_view record) { check_record(json::parse(record), tally); });
    ASSERT_TRUE(read.has_value()) << read.error().what;
  }
  EXPECT_EQ(tally.wrong, "");
  EXPECT_GT(tally.passed, 6000);
  EXPECT_GT(tally.refused, 8000);
  EXPECT_LT(tally.lax, 500) << "the checker became a rubber stamp";
}

}  // namespace
}  // namespace jogak::golden
