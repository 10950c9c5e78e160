// SPDX-License-Identifier: Apache-2.0
//
// Loading objects of another cluster: in any order, with owners found again, and with errors that
// name the object.
#include "playground/playground.h"

#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/sim_loop.h"
#include "playground/fleet.h"

namespace jogak::playground {
namespace {

using testing::HasSubstr;

class Load : public testing::Test {
 protected:
  Load() {
    PlaygroundOptions options;
    options.has_controllers = options.has_kubelets = options.has_scheduler = false;
    auto made = Playground::make(loop_, std::move(options));
    EXPECT_TRUE(made.has_value());
    playground_ = *std::move(made);
  }
  Result<std::size_t> load(std::string_view text) {
    return playground_->load(*read_manifests(text, "test"));
  }
  Doc get(std::string_view resource, std::string_view ns, std::string_view name) {
    auto found = playground_->api().get(resource, ns, name);
    return found.has_value() ? *std::move(found) : Doc();
  }

  SimLoop loop_;
  std::unique_ptr<Playground> playground_;
};

constexpr std::string_view kPod =
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, "
    "spec: {priorityClassName: high, containers: [{name: c, image: i}]}}\n";

TEST_F(Load, AnyOrderWorks) {
  const auto loaded = load(std::string(kPod) +
                           "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
                           "metadata: {name: high}, value: 7}\n"
                           "---\n{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().what;
  EXPECT_EQ(*loaded, 3U);
  EXPECT_EQ(get("pods", "team", "p").get("spec", "priority").as_int(), 7);
}

TEST_F(Load, WhatIsThereIsLeftAlone) {
  ASSERT_TRUE(
      load("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: old}}").has_value());
  const auto again = load("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: new}}");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, 0U);
  EXPECT_EQ(get("configmaps", "default", "a").get("data", "k").as_string(), "old");
}

TEST_F(Load, OwnersAreFoundAgainOrDropped) {
  const auto loaded = load(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: "
      "[{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: old-r}, "
      "{apiVersion: v1, kind: Secret, name: s, uid: nobody}]}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: old-p, resourceVersion: '9', "
      "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: old-r}]}, "
      "spec: {containers: [{name: c, image: i}]}, status: {phase: Running}}\n---\n"
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, uid: old-r}, spec: "
      "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
      "{containers: [{name: c, image: i}]}}}}\n");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().what;
  const Doc set = get("replicasets.apps", "default", "r");
  const Doc pod = get("pods", "default", "p");
  ASSERT_EQ(api::meta(pod)["ownerReferences"].size(), 1U);
  EXPECT_EQ(api::meta(pod)["ownerReferences"].items()[0]["uid"].as_string(), api::uid_of(set));
  EXPECT_NE(api::uid_of(pod), "old-p");
  EXPECT_EQ(pod.get("status", "phase").as_string(), "Running");
}

TEST_F(Load, ErrorsNameTheObject) {
  const auto unknown = load("{apiVersion: no.such/v1, kind: Thing, metadata: {name: t}}");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().what, HasSubstr("Thing /t"));
  const auto wrong = load("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().what, HasSubstr("Pod /p"));
  const auto nowhere = load(kPod);
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_THAT(nowhere.error().what, HasSubstr("team"));
}

TEST(PlaygroundMake, RefusesAPolicyThatDoesNotExist) {
  SimLoop loop;
  PlaygroundOptions options;
  options.scheduler.set_policy("wishful");
  EXPECT_FALSE(Playground::make(loop, std::move(options)).has_value());
}

}  // namespace
}  // namespace jogak::playground
