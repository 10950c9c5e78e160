// SPDX-License-Identifier: Apache-2.0
// Leases.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"

namespace jogak::api {
namespace {

Doc lease() {
  return json(R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                  "metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})");
}

TEST(Lease, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, lease(),
      {{"right", {"spec/leaseDurationSeconds=1", "spec/leaseTransitions=0"}},
       {"no spec", {"spec"}},
       {"duration", {"spec/leaseDurationSeconds=0"}, "Invalid spec.leaseDurationSeconds"},
       {"transitions", {"spec/leaseTransitions=-1"}, "Invalid spec.leaseTransitions"}});
}

TEST(Lease, ElectionByTheServerIsOff) {
  WorkloadBench bench;
  const auto made = bench.create(
      with(lease(), {"spec/strategy=OldestEmulationVersion", "spec/preferredHolder=b"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"], json(R"({"holderIdentity": "a"})"));
}

TEST(Lease, APutCreatesAndMustNameTheVersion) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.update(lease())), "");
  EXPECT_EQ(refusal(bench.update(lease())), "Invalid metadata.resourceVersion");
  const Doc stored = bench.get(lease());
  EXPECT_EQ(refusal(bench.update(with(stored, {"spec/holderIdentity=b"}))), "");
  EXPECT_EQ(refusal(bench.update(stored)), "409 Conflict");
}

}  // namespace
}  // namespace jogak::api
