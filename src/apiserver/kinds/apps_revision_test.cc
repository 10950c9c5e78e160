// SPDX-License-Identifier: Apache-2.0
// Controller revisions: data that is there and stays.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc revision() {
  return json(R"({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"},
                  "data": {"spec": {"replicas": 1}}, "revision": 3})");
}

TEST(ControllerRevision, IsStoredAsItCame) {
  WorkloadBench bench;
  const auto made = bench.create(revision());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["data"], json(R"({"spec": {"replicas": 1}})"));
  EXPECT_EQ((*made)["revision"], Doc(3));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(ControllerRevision, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(bench, revision(),
                 {{"right", {}},
                  {"number", {"revision=-1"}, "Invalid revision"},
                  {"no data", {"data"}, "Required data"},
                  {"no object", {"data=[1]"}, "Required data"},
                  {"both", {"data=5", "revision=-1"}, "Invalid revision, Required data"}});
}

TEST(ControllerRevision, DataNeverChanges) {
  WorkloadBench bench;
  expect_edits(bench, revision(),
               {{"number", {"revision=4"}},
                {"labels", {"metadata/labels/a=b"}},
                {"number below zero", {"revision=-1"}, "Invalid revision"},
                {"data", {"data/spec/replicas=2"}, "Invalid data"}});
}

}  // namespace
}  // namespace jogak::api
