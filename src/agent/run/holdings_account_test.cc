// SPDX-License-Identifier: Apache-2.0
//
// Answers of kubelets of every age.
#include "agent/run/holdings_account.h"

#include <string>

#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

Holding held(const std::string& pod, const std::string& device) {
  return {.resource = "nvidia.com/gpu",
          .device_id = device,
          .holder = {.pod_namespace = "default", .pod = pod, .container = "main", .pod_uid = ""}};
}

const std::vector<Holding> kTwo = {held("b", "GPU-1"), held("a", "GPU-0")};

TEST(HoldingsAccount, a_settled_kubelet_is_believed) {
  HoldingsAccount account;
  EXPECT_EQ(account.judge(kTwo, HoldingsAccount::kSettles), kTwo);
  EXPECT_EQ(account.judge(std::vector<Holding>{}, HoldingsAccount::kSettles)->size(), 0U);
}

TEST(HoldingsAccount, a_young_kubelet_that_lacks_holders_is_not) {
  HoldingsAccount account;
  ASSERT_TRUE(account.judge(kTwo, std::nullopt));
  EXPECT_EQ(account.judge(std::vector<Holding>{}, 1).error().code, Errc::Unavailable);
  EXPECT_FALSE(account.judge(std::vector{held("a", "GPU-0")}, kSecondInUs));
  EXPECT_EQ(account.judge(kTwo, kSecondInUs), kTwo);
}

TEST(HoldingsAccount, a_young_kubelet_may_have_new_holders) {
  HoldingsAccount account;
  ASSERT_TRUE(account.judge(std::vector{held("a", "GPU-0")}, std::nullopt));
  EXPECT_EQ(account.judge(kTwo, 1), kTwo);
}

TEST(HoldingsAccount, nothing_from_a_young_kubelet_is_no_answer) {
  HoldingsAccount account;
  EXPECT_FALSE(account.judge(std::vector<Holding>{}, 0));
  EXPECT_TRUE(account.judge(std::vector<Holding>{}, HoldingsAccount::kSettles));
}

TEST(HoldingsAccount, what_was_not_believed_is_not_remembered) {
  HoldingsAccount account;
  ASSERT_TRUE(account.judge(kTwo, std::nullopt));
  EXPECT_FALSE(account.judge(std::vector{held("c", "GPU-2")}, 1));
  EXPECT_EQ(account.judge(kTwo, 2), kTwo);
}

TEST(HoldingsAccount, a_failure_stays_one) {
  HoldingsAccount account;
  EXPECT_EQ(account.judge(fail(Errc::Timeout, "late"), 1).error().code, Errc::Timeout);
}

}  // namespace
}  // namespace jogak::agent
