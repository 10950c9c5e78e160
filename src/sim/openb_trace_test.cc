// SPDX-License-Identifier: Apache-2.0
// Reading openb files, strictly, and drawing orders.
#include "sim/openb_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace jogak::sim {
namespace {

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "b,64000,262144,2,P100\n"
    "a,96000,393216,8,G2\n";

constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p0,1000,2000,1,500,\n"
    "p1,2000,0,0,0,T4\n"
    "p2,3000,4000,2,1000,V100M32|G2\n"
    "p3,1000,2000,1,500,\n";

TEST(OpenbTrace, ReadsNodesInNameOrder) {
  const auto nodes = parse_openb_nodes("n.csv", kNodes, {});
  ASSERT_TRUE(nodes.has_value());
  EXPECT_EQ(nodes->nodes[0].name, "a");
  EXPECT_EQ(nodes->gpu_milli(), 10000);
}

TEST(OpenbTrace, ReadsPods) {
  const auto pods = parse_openb_pods("p.csv", kPods, {});
  ASSERT_TRUE(pods.has_value()) << pods.error().what;
  ASSERT_EQ(pods->pods.size(), 4U);
  EXPECT_EQ(pods->pods[0].gpu_total(), 500);
  EXPECT_TRUE(pods->pods[1].models.empty());  // models count only where there is a GPU
  EXPECT_EQ(pods->pods[2].models, (std::vector<std::string>{"G2", "V100M32"}));
  const auto mix = openb_mix(*pods);
  ASSERT_EQ(mix.size(), 3U);
  EXPECT_EQ(mix[0].weight, 2);
}

struct BadCase {
  std::string_view row;
  std::string_view error;
};

TEST(OpenbTrace, SaysWhatIsWrongWithARow) {
  for (const BadCase& bad :
       {BadCase{"p9,12a,1,0,0,", "column cpu_milli"},
        BadCase{"p9,1,1,1,0,", "column gpu_milli: 1 to 1000"},
        BadCase{"p9,1,1,2,500,", "column gpu_milli: 1000 for a pod"},
        BadCase{"p9,1,1,33,1000,", "column num_gpu"}, BadCase{"p9,1,1,1,1001,", "column gpu_milli"},
        BadCase{"p9,-1,1,0,0,", "column cpu_milli"},
        BadCase{"p9,1,1,1,1000,|T4", "column gpu_spec"},
        BadCase{"p0,1,1,0,0,", "column name: named before"}, BadCase{"p9,1,1", "3 fields"}}) {
    const std::string text = std::string(kPods) + std::string(bad.row) + "\n";
    const auto strict = parse_openb_pods("p.csv", text, {});
    ASSERT_FALSE(strict.has_value()) << bad.row;
    EXPECT_NE(strict.error().what.find("p.csv:6"), std::string::npos) << strict.error().what;
    EXPECT_NE(strict.error().what.find(bad.error), std::string::npos) << strict.error().what;
    const auto lenient = parse_openb_pods("p.csv", text, {.skip_bad = true});
    ASSERT_TRUE(lenient.has_value()) << bad.row;
    EXPECT_EQ(lenient->pods.size(), 4U);
    EXPECT_EQ(lenient->skipped.size(), 1U);
    EXPECT_EQ(lenient->pod_of_row.back(), OpenbPods::kNoPod);
  }
}

TEST(OpenbTrace, NamesAMissingColumn) {
  const auto pods = parse_openb_pods("p.csv", "name,cpu_mili\nx,1\n", {});
  ASSERT_FALSE(pods.has_value());
  EXPECT_NE(pods.error().what.find("no column cpu_milli"), std::string::npos);
}

class OpenbOrders : public ::testing::Test {
 protected:
  OpenbNodes nodes = *parse_openb_nodes("n.csv", kNodes, {});
  OpenbPods pods = *parse_openb_pods("p.csv", kPods, {});
  std::string error_of(std::string_view text) {
    const auto orders = parse_openb_orders("o.txt", text, nodes, pods, {42});
    return orders ? "" : orders.error().what;
  }
};

TEST_F(OpenbOrders, ReadsTheSeedAskedFor) {
  const auto orders = parse_openb_orders("o.txt",
                                         "arrivals 41 2 0 9\nnodeorder 41 2 1 0\n"
                                         "arrivals 42 5 3 2 0 1 2\nnodeorder 42 2 1 0\n",
                                         nodes, pods, {42});
  ASSERT_TRUE(orders.has_value()) << orders.error().what;
  EXPECT_EQ(orders->at(0).arrivals, (std::vector<std::int32_t>{3, 2, 0, 1, 2}));
  EXPECT_EQ(orders->at(0).node_rank, (std::vector<std::int32_t>{1, 0}));
}

TEST_F(OpenbOrders, RefusesWhatCannotBe) {
  EXPECT_NE(error_of("arrivals 42 1 4\n").find("o.txt:1: field 4"), std::string::npos);
  EXPECT_NE(error_of("arrivals 42 2 1\n").find("says 2 numbers, 1 follow"), std::string::npos);
  EXPECT_NE(error_of("nodeorder 42 2 1 1\n").find("not a permutation"), std::string::npos);
  EXPECT_NE(error_of("arrivals 42 1 1\n").find("no nodeorder line for seed 42"), std::string::npos);
  EXPECT_NE(error_of("departures 42 1 1\n").find("expected arrivals or nodeorder"),
            std::string::npos);
  EXPECT_NE(error_of("arrivals 42 1 1\narrivals 42 1 1\n").find("given twice"), std::string::npos);
}

TEST_F(OpenbOrders, DrawsOriginalsFirstThenClonesUpTo130Percent) {
  const OpenbOrder order = draw_openb_order(nodes, pods, 1);
  std::vector<std::int32_t> head(order.arrivals.begin(), order.arrivals.begin() + 4);
  std::ranges::sort(head);
  EXPECT_EQ(head, (std::vector<std::int32_t>{0, 1, 2, 3}));
  std::int64_t asked = 0;
  for (const std::int32_t i : order.arrivals) {
    asked += pods.pods[static_cast<std::size_t>(i)].gpu_total();
  }
  EXPECT_LE(asked, 13000 + 1000);  // the stop rule looks at one device of a pod
  EXPECT_GT(asked, 13000 - 2000);
  EXPECT_EQ(draw_openb_order(nodes, pods, 1).arrivals, order.arrivals);
  EXPECT_NE(draw_openb_order(nodes, pods, 2).arrivals, order.arrivals);
}

TEST_F(OpenbOrders, TakesPodsOutWhereTheyAskForTooMuch) {
  nodes.nodes.resize(1);
  nodes.nodes[0].gpus = 1;  // 1300 milli at most; the pods ask for 3000
  const OpenbOrder order = draw_openb_order(nodes, pods, 1);
  std::int64_t asked = 0;
  for (const std::int32_t i : order.arrivals) {
    asked += pods.pods[static_cast<std::size_t>(i)].gpu_total();
  }
  EXPECT_LE(asked, 1300);
  EXPECT_LT(order.arrivals.size(), 4U);
}

}  // namespace
}  // namespace jogak::sim
