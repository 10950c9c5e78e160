// SPDX-License-Identifier: Apache-2.0
// The openb experiment end to end on a trace made up here, with the trace's shapes at a twentieth
// of its size; and on the real one where JOGAK_TRACES names its folder. The full comparison with
// the published results is bench/openb.sh.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/csv.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "sim/openb_report.h"

namespace jogak::sim {
namespace {

constexpr std::uint64_t kTraceSeed = 1;

OpenbNodes made_up_nodes() {
  struct Kind {
    int count;
    OpenbNode node;
  };
  const Kind kinds[] = {{28, {"g2", 96000, 393216, 8, "G2"}},
                        {19, {"t4", 104000, 524288, 2, "T4"}},
                        {6, {"p100", 16000, 122880, 2, "P100"}},
                        {3, {"v100", 32000, 131072, 4, "V100"}}};
  OpenbNodes nodes;
  for (const Kind& kind : kinds) {
    for (int i = 0; i < kind.count; ++i) {
      nodes.nodes.push_back(kind.node);
      nodes.nodes.back().name += fmt::format("-{:02}", i);
    }
  }
  std::ranges::sort(nodes.nodes, {}, &OpenbNode::name);
  return nodes;
}

// Asks for about 98 % of the GPUs there are, in the real trace's proportions of pod kinds.
OpenbVariant made_up_variant(const OpenbNodes& nodes) {
  Rng rng(kTraceSeed, "made-up openb");
  static constexpr std::int32_t kShares[] = {810, 500, 460, 250, 160};
  OpenbVariant variant;
  variant.name = "made-up";
  std::int64_t asked = 0;
  while (asked < nodes.gpu_milli() * 98 / 100) {
    OpenbPod pod;
    pod.name = fmt::format("pod-{:04}", variant.pods.pods.size());
    const std::uint64_t kind = rng.below(100);
    pod.gpus = kind < 13 ? 0 : kind < 97 ? 1 : kind < 98 ? 2 : kind < 99 ? 4 : 8;
    pod.gpu_milli = kind < 13 ? 0 : kind < 51 ? kShares[rng.below(5)] : 1000;
    pod.cpu_milli = static_cast<std::int64_t>(1000 * (1 + rng.below(12)));
    pod.memory_mib = static_cast<std::int64_t>(1024 * (2 + rng.below(30)));
    asked += pod.gpu_total();
    variant.pods.pods.push_back(std::move(pod));
  }
  variant.mix = openb_mix(variant.pods);
  for (std::int64_t seed = 42; seed < 47; ++seed) {
    variant.orders.push_back(draw_openb_order(nodes, variant.pods, seed));
  }
  return variant;
}

std::vector<OpenbResult> run_all(const OpenbNodes& nodes, const OpenbVariant& variant,
                                 const std::vector<std::string_view>& policies, bool check,
                                 std::size_t jobs) {
  std::vector<OpenbResult> results(policies.size() * variant.orders.size());
  parallel_for(results.size(), jobs, [&](std::size_t i) {
    const OpenbOrder& order = variant.orders[i % variant.orders.size()];
    auto result = run_openb(nodes, variant, order, variant.mix,
                            {.policy = policies[i / variant.orders.size()], .check = check});
    if (result) results[i] = *std::move(result);
  });
  return results;
}

TEST(OpenbBaselines, RankAsPublishedOnAMadeUpTrace) {
  const OpenbNodes nodes = made_up_nodes();
  const OpenbVariant variant = made_up_variant(nodes);
  const std::vector<std::string_view> policies = {"random", "dot-product", "best-fit", "fgd"};
  const auto summaries = summarize(run_all(nodes, variant, policies, true, 1));
  ASSERT_EQ(summaries.size(), policies.size());
  std::map<std::string, double> allocated;
  for (const OpenbSummary& s : summaries) {
    EXPECT_EQ(s.runs, 5);
    allocated[s.policy] = s.allocated[100].mean;
  }
  EXPECT_LT(allocated["random"] + 1, allocated["dot-product"]);
  EXPECT_LT(allocated["dot-product"], allocated["best-fit"]);
  EXPECT_LT(allocated["best-fit"], allocated["fgd"]);
  EXPECT_GT(allocated["fgd"], 93);
}

TEST(OpenbBaselines, ThreadsChangeNothing) {
  const OpenbNodes nodes = made_up_nodes();
  const OpenbVariant variant = made_up_variant(nodes);
  std::vector<std::string_view> policies;
  for (const core::PolicyInfo& info : core::policies()) policies.push_back(info.name);
  const auto one = run_all(nodes, variant, policies, false, 1);
  const auto four = run_all(nodes, variant, policies, false, 4);
  EXPECT_EQ(openb_doc(one, summarize(one), false).json(),
            openb_doc(four, summarize(four), false).json());
}

// Curves of one published run by column, "" where the file has none.
std::map<std::size_t, double> published_curve(const std::string& dir, std::string_view policy,
                                              std::int64_t seed) {
  std::map<std::size_t, double> curve;
  const std::string file = dir + "/expected/alloc_by_arrival.csv";
  const auto text = read_file(file);
  if (!text) return curve;
  auto csv = CsvReader::open(file, *text);
  while (csv && *csv->next()) {
    if (csv->field(*csv->column("workload")) != "openb_pod_list_default") continue;
    if (csv->field(*csv->column("sc_policy")) != policy) continue;
    if (*csv->integer(*csv->column("seed")) != seed) continue;
    for (std::size_t column = 1; column <= 80; ++column) {
      const auto at = csv->find_column(std::to_string(column));
      if (at && !csv->field(*at).empty()) {
        curve[column] = std::strtod(std::string(csv->field(*at)).c_str(), nullptr);
      }
    }
  }
  return curve;
}

TEST(OpenbBaselines, FollowThePublishedCurveWhileEverythingFits) {
  const char* dir = std::getenv("JOGAK_TRACES");
  if (dir == nullptr) GTEST_SKIP() << "JOGAK_TRACES does not name the openb traces";
  const auto data = load_openb({.dir = dir,
                                .variants = {"default"},
                                .seeds = {42, 43},
                                .order_dir = std::string(dir) + "/sequences"});
  ASSERT_TRUE(data.has_value()) << data.error().what;
  const OpenbVariant& variant = data->variants.front();
  for (const OpenbOrder& order : variant.orders) {
    const auto run =
        run_openb(data->nodes, variant, order, variant.mix, {.policy = "fgd", .check = true});
    ASSERT_TRUE(run.has_value());
    const auto curve = published_curve(dir, "06-FGD", order.seed);
    ASSERT_FALSE(curve.empty());
    for (const auto& [column, percent] : curve) {
      EXPECT_NEAR(run->allocated_percent(column), percent, 0.006) << "column " << column;
    }
  }
}

}  // namespace
}  // namespace jogak::sim
