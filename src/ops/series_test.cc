// SPDX-License-Identifier: Apache-2.0
//
// What a scrape shows of the cluster, the API, the watches and the process.
#include "ops/series.h"

#include <gtest/gtest.h>

#include "core/model/testing.h"

namespace jogak::ops {
namespace {

using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

bool has(const Registry& registry, std::string_view line) {
  const std::string text = "\n" + registry.expose(ExpositionFormat::Text);
  return text.find("\n" + std::string(line) + "\n") != std::string::npos;
}

TEST(Series, GpusByModel) {
  core::Cluster cluster;
  NodeBuilder a100("n1");
  a100.gpus("NVIDIA-A100-SXM4-40GB", 4, 40960);
  a100.spec().gpus[2].health = core::GpuHealth::Unhealthy;
  a100.spec().gpus[3].mig_enabled = true;
  a100.spec().gpus[3].mig_dynamic = true;
  add(cluster, a100);
  add(cluster, PodBuilder("whole").gpus(1).on("n1", {{0, 0, -1}}));
  add(cluster, PodBuilder("share").gpu_milli(250).on("n1", {{1, 250, -1}}));
  add(cluster, PodBuilder("mig").mig("2g.10gb").on("n1", {{3, 0, 0}}));  // 2 of 8 slices
  add(cluster, NodeBuilder("n2")
                   .resource("nvidia.com/gpu", 8)
                   .label("nvidia.com/gpu.product", "NVIDIA-H100"));
  add(cluster, PodBuilder("counted").resource("nvidia.com/gpu", 3).on("n2"));
  add(cluster, NodeBuilder("n3").resource("nvidia.com/gpu", 1));
  add(cluster, NodeBuilder("n4"));

  const auto totals = gpu_totals(cluster);
  ASSERT_EQ(totals.size(), 3U);
  const GpuTotals& detailed = totals.at("NVIDIA-A100-SXM4-40GB");
  EXPECT_DOUBLE_EQ(detailed.capacity, 4);
  EXPECT_DOUBLE_EQ(detailed.unhealthy, 1);
  EXPECT_DOUBLE_EQ(detailed.allocated, 1 + 0.25 + 2.0 / 8);
  EXPECT_DOUBLE_EQ(totals.at("NVIDIA-H100").allocated, 3);
  EXPECT_DOUBLE_EQ(totals.at("unknown").capacity, 1);

  Registry registry;
  add_cluster_series(registry, cluster, [] { return std::size_t{2}; });
  EXPECT_TRUE(has(registry, R"(jogak_gpu_capacity{model="NVIDIA-H100"} 8)"));
  EXPECT_TRUE(has(registry, R"(jogak_gpu_allocated{model="NVIDIA-A100-SXM4-40GB"} 1.5)"));
  EXPECT_TRUE(has(registry, R"(scheduler_cache_size{type="nodes"} 4)"));
  EXPECT_TRUE(has(registry, R"(scheduler_cache_size{type="pods"} 4)"));
  EXPECT_TRUE(has(registry, R"(scheduler_cache_size{type="assumed_pods"} 2)"));
}

TEST(Series, Informers) {
  std::vector<InformerView> views(2);
  views[0].resource = "pods";
  views[0].objects = 7;
  views[0].state.is_synced = true;
  views[0].state.lists = 2;
  views[1].resource = "nodes";
  views[1].state.failing_since = 10 * kSecondInUs;
  Registry registry;
  add_informer_series(registry, [&] { return views; }, [] { return 12'500 * kMsInUs; });
  EXPECT_TRUE(has(registry, R"(jogak_informer_objects{resource="pods"} 7)"));
  EXPECT_TRUE(has(registry, R"(jogak_informer_synced{resource="pods"} 1)"));
  EXPECT_TRUE(has(registry, R"(jogak_informer_synced{resource="nodes"} 0)"));
  EXPECT_TRUE(has(registry, R"(jogak_informer_lists_total{resource="pods"} 2)"));
  EXPECT_TRUE(has(registry, R"(jogak_informer_failing_seconds{resource="pods"} 0)"));
  EXPECT_TRUE(has(registry, R"(jogak_informer_failing_seconds{resource="nodes"} 2.5)"));
}

TEST(Series, ApiCallsUnderClientGosNames) {
  Registry registry;
  ApiSeries series(registry, "h:1");
  series.called({.method = "POST", .status = 201, .duration = 4 * kMsInUs});
  series.called({.method = "POST", .status = 409, .duration = 30 * kMsInUs});
  series.called({.method = "GET", .status = 0, .duration = 0});
  EXPECT_TRUE(
      has(registry, R"(rest_client_requests_total{code="201",method="POST",host="h:1"} 1)"));
  EXPECT_TRUE(
      has(registry, R"(rest_client_requests_total{code="<error>",method="GET",host="h:1"} 1)"));
  EXPECT_TRUE(
      has(registry,
          R"(rest_client_request_duration_seconds_bucket{verb="POST",host="h:1",le="0.005"} 1)"));
  EXPECT_TRUE(
      has(registry, R"(rest_client_request_duration_seconds_count{verb="POST",host="h:1"} 2)"));
}

TEST(Series, Leader) {
  Registry registry;
  bool is_leader = false;
  add_leader_series(registry, "jogak-scheduler", [&] { return is_leader; });
  EXPECT_TRUE(has(registry, R"(leader_election_master_status{name="jogak-scheduler"} 0)"));
  is_leader = true;
  EXPECT_TRUE(has(registry, R"(leader_election_master_status{name="jogak-scheduler"} 1)"));
}

TEST(Series, Drift) {
  Registry registry;
  DriftSeries series(registry);
  EXPECT_TRUE(has(registry, R"(jogak_cache_drift_objects{kind="pod-missing"} 0)"));
  live::DriftReport report;
  report.items.push_back({live::DriftKind::PodNode, "t/a", ""});
  report.counts[static_cast<std::size_t>(live::DriftKind::PodNode)] = 1;
  series.checked(report, 5 * kSecondInUs);
  EXPECT_TRUE(has(registry, R"(jogak_cache_drift_objects{kind="pod-node"} 1)"));
  EXPECT_TRUE(has(registry, R"(jogak_cache_drift_checks_total{result="drift"} 1)"));
  EXPECT_TRUE(has(registry, "jogak_cache_drift_last_check_timestamp_seconds 5"));
  series.checked({}, 6 * kSecondInUs);
  series.failed();
  EXPECT_TRUE(has(registry, R"(jogak_cache_drift_objects{kind="pod-node"} 0)"));
  EXPECT_TRUE(has(registry, R"(jogak_cache_drift_checks_total{result="error"} 1)"));
}

TEST(Series, Process) {
  Registry registry;
  add_process_series(registry, "1.2.3");
  EXPECT_TRUE(has(registry, R"(jogak_build_info{version="1.2.3"} 1)"));
  const std::string text = registry.expose(ExpositionFormat::Text);
  for (const char* name : {"process_cpu_seconds_total ", "process_resident_memory_bytes ",
                           "process_virtual_memory_bytes ", "process_start_time_seconds ",
                           "process_open_fds ", "process_max_fds "}) {
    EXPECT_NE(text.find("\n" + std::string(name)), std::string::npos) << name;
  }
  // Some megabytes, and started after 2020.
  const std::size_t at = text.find("\nprocess_resident_memory_bytes ");
  EXPECT_GT(std::stod(text.substr(at + 31)), 1e6);
  const std::size_t start = text.find("\nprocess_start_time_seconds ");
  EXPECT_GT(std::stod(text.substr(start + 28)), 1.58e9);
}

}  // namespace
}  // namespace jogak::ops
