// SPDX-License-Identifier: Apache-2.0
// Namespaces: what is added to them, and the steps of their end.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc space() {
  return json(R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})");
}

TEST(Namespace, HasItsNameAsALabelAFinalizerAndAPhase) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(space(), {R"(metadata/labels={"team": "x"})", "status/phase=Terminating"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["labels"], json(R"({"kubernetes.io/metadata.name": "a", "team": "x"})"));
  EXPECT_EQ((*made)["spec"], json(R"({"finalizers": ["kubernetes"]})"));
  EXPECT_EQ((*made)["status"], json(R"({"phase": "Active"})"));
}

TEST(Namespace, AGeneratedNameIsALabelToo) {
  WorkloadBench bench;
  const auto made = bench.create(with(space(), {"metadata/name", "metadata/generateName=g-"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["labels"]["kubernetes.io/metadata.name"], Doc(name_of(*made)));
}

TEST(Namespace, KeepsOtherFinalizers) {
  WorkloadBench bench;
  const auto made = bench.create(with(space(), {R"(spec/finalizers=["x.y/z"])"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "finalizers"), json(R"(["x.y/z", "kubernetes"])"));
}

TEST(Namespace, IsRefused) {
  WorkloadBench bench;
  expect_creates(bench, space(),
                 {{"dots", {"metadata/name=a.b"}, "Invalid metadata.name"},
                  {"capital", {"metadata/name=A"}, "Invalid metadata.name"},
                  {"no name", {"metadata/name="}, "Required metadata.name"},
                  {"long",
                   {"metadata/name=" + std::string(64, 'x')},
                   "Invalid metadata.name, Invalid metadata.labels"},
                  {"finalizer", {R"(spec/finalizers=["own"])"}, "Invalid spec.finalizers"}});
}

TEST(Namespace, TheLabelCannotBeChanged) {
  WorkloadBench bench;
  const auto made = bench.create(space());
  ASSERT_TRUE(made.has_value());
  for (const std::string edit :
       {R"(metadata/labels={"kubernetes.io/metadata.name": "other"})", "metadata/labels"}) {
    const auto changed = bench.edit(space(), {edit});
    ASSERT_TRUE(changed.has_value());
    EXPECT_EQ(meta(*changed)["resourceVersion"], meta(*made)["resourceVersion"]) << edit;
  }
}

TEST(Namespace, SpecAndStatusAreNotForTheMainResource) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(space()).has_value());
  const auto changed = bench.edit(space(), {"spec/finalizers=[]", "status/phase=Terminating"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->get("spec", "finalizers"), json(R"(["kubernetes"])"));
  EXPECT_EQ(changed->get("status", "phase"), Doc("Active"));
}

TEST(Namespace, ThePhaseFollowsTheDeletion) {
  WorkloadBench bench;
  expect_edits(bench, space(), {{"early", {"status/phase=Terminating"}, "Invalid status.Phase"}},
               "status");
}

TEST(Namespace, EndsInTwoSteps) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(space()).has_value());
  const auto marked = bench.remove(space());
  ASSERT_TRUE(marked.has_value());
  EXPECT_FALSE(marked->is_gone);
  EXPECT_TRUE(is_deleting(marked->object));
  EXPECT_FALSE(meta(marked->object).has("deletionGracePeriodSeconds"));
  EXPECT_EQ(marked->object.get("status", "phase"), Doc("Terminating"));

  const auto again = bench.remove(space());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->object, marked->object);
  EXPECT_EQ(refusal(bench.edit(space(), {"status/phase=Active"}, "status")),
            "Invalid status.Phase");

  EXPECT_EQ(refusal(bench.edit(space(), {R"(spec/finalizers=["own"])"}, "finalize")),
            "Invalid spec.finalizers[0]");
  const auto gone = bench.edit(space(), {"spec/finalizers=[]"}, "finalize");
  ASSERT_TRUE(gone.has_value());
  EXPECT_FALSE(bench.ops().get("namespaces", "", "a").has_value());
}

TEST(Namespace, FinalizersOfItsMetadataHoldItToo) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(with(space(), {R"(metadata/finalizers=["x.y/z"])"})).has_value());
  ASSERT_TRUE(bench.remove(space()).has_value());
  ASSERT_TRUE(bench.edit(space(), {"spec/finalizers=[]"}, "finalize").has_value());
  EXPECT_TRUE(bench.ops().get("namespaces", "", "a").has_value());
  ASSERT_TRUE(bench.edit(space(), {"metadata/finalizers"}).has_value());
  EXPECT_FALSE(bench.ops().get("namespaces", "", "a").has_value());
}

}  // namespace
}  // namespace jogak::api
