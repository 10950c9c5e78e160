// SPDX-License-Identifier: Apache-2.0
//
// Manifests as YAML, and the pods that would come of them.
#include "cli/new_objects.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "playground/fleet.h"

namespace jogak::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NewObjectsTest : public ::testing::Test {
 protected:
  Result<NewObjects> read(std::string_view yaml) {
    auto documents = playground::read_manifests(yaml, "x.yaml");
    EXPECT_TRUE(documents.has_value()) << documents.error().what;
    options.has_pod = [this](std::string_view ns, std::string_view name) {
      return taken.contains(std::string(ns) + "/" + std::string(name));
    };
    NewObjects objects;
    JOGAK_TRY_VOID(add_new_objects(std::move(*documents), "x.yaml", options, objects));
    return objects;
  }
  NewObjects take(std::string_view yaml) {
    auto objects = read(yaml);
    EXPECT_TRUE(objects.has_value()) << objects.error().what;
    return objects.value_or(NewObjects());
  }
  std::string error(std::string_view yaml) {
    const auto objects = read(yaml);
    return objects.has_value() ? "no error" : objects.error().what;
  }
  static const Doc& object(const NewObjects& objects, std::string_view kind,
                           std::string_view name) {
    static const Doc none;
    for (const NewObjects::Object& o : objects.objects) {
      if (o.doc["kind"].as_string() == kind && o.doc.get("metadata", "name").as_string() == name) {
        return o.doc;
      }
    }
    return none;
  }

  NewObjectOptions options;
  std::set<std::string> taken;
};

TEST_F(NewObjectsTest, APodIsTakenAsItIs) {
  const NewObjects objects = take(R"(
kind: Pod
metadata: {name: a, namespace: team, labels: {app: x}}
spec: {containers: [{name: main}]}
)");
  EXPECT_THAT(objects.pods, ElementsAre("team/a"));
  EXPECT_EQ(object(objects, "Pod", "a").get("metadata", "labels", "app").as_string(), "x");
}

TEST_F(NewObjectsTest, WhatNamesNoNamespaceGetsTheOneGiven) {
  options.ns = "mine";
  const NewObjects objects = take(R"(
kind: Pod
metadata: {name: a}
spec: {containers: [{name: main}]}
---
kind: PriorityClass
metadata: {name: high}
value: 10
)");
  EXPECT_THAT(objects.pods, ElementsAre("mine/a"));
  EXPECT_FALSE(object(objects, "PriorityClass", "high")["metadata"].has("namespace"));
}

TEST_F(NewObjectsTest, AGeneratedNameIsTheNextThatIsFree) {
  taken = {"default/a-0"};
  const NewObjects objects = take(R"(
kind: Pod
metadata: {generateName: a-}
spec: {containers: [{name: main}]}
---
kind: Pod
metadata: {generateName: a-}
spec: {containers: [{name: main}]}
)");
  EXPECT_THAT(objects.pods, ElementsAre("default/a-1", "default/a-2"));
}

TEST_F(NewObjectsTest, ADeploymentBecomesAReplicaSetWithItsPods) {
  taken = {"default/web-1"};
  const NewObjects objects = take(R"(
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {a: b}}
    spec: {containers: [{name: main}], priorityClassName: high}
)");
  EXPECT_THAT(objects.pods, ElementsAre("default/web-0", "default/web-2", "default/web-3"));
  const Doc& set = object(objects, "ReplicaSet", "web-new");
  EXPECT_EQ(set.get("spec", "selector", "matchLabels", "pod-template-hash").as_string(), "new");
  const Doc& pod = object(objects, "Pod", "web-2");
  EXPECT_EQ(pod.get("metadata", "labels", "pod-template-hash").as_string(), "new");
  EXPECT_EQ(pod.get("metadata", "annotations", "a").as_string(), "b");
  EXPECT_EQ(pod.get("spec", "priorityClassName").as_string(), "high");
  const Doc& owner = pod.get("metadata", "ownerReferences").items().at(0);
  EXPECT_EQ(owner["kind"].as_string(), "ReplicaSet");
  EXPECT_EQ(owner["name"].as_string(), "web-new");
  EXPECT_TRUE(owner["controller"].as_bool());
}

TEST_F(NewObjectsTest, WithoutReplicasThereIsOne) {
  const NewObjects objects = take(R"(
kind: ReplicaSet
metadata: {name: web}
spec: {template: {spec: {containers: [{name: main}]}}}
)");
  EXPECT_THAT(objects.pods, ElementsAre("default/web-0"));
  EXPECT_FALSE(object(objects, "ReplicaSet", "web").is_null());
}

TEST_F(NewObjectsTest, AStatefulSetKeepsItsOrdinalsAndMakesClaims) {
  options.default_storage_class = "fast";
  taken = {"default/db-5"};
  const NewObjects objects = take(R"(
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  ordinals: {start: 5}
  template: {spec: {containers: [{name: main}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)");
  EXPECT_THAT(objects.pods, ElementsAre("default/db-6"));
  const Doc& claim = object(objects, "PersistentVolumeClaim", "data-db-6");
  EXPECT_EQ(claim.get("spec", "storageClassName").as_string(), "fast");
  const Doc& pod = object(objects, "Pod", "db-6");
  EXPECT_EQ(pod.get("spec", "volumes")
                .items()
                .at(0)
                .get("persistentVolumeClaim", "claimName")
                .as_string(),
            "data-db-6");
  EXPECT_EQ(pod.get("metadata", "labels", "apps.kubernetes.io/pod-index").as_string(), "6");
}

TEST_F(NewObjectsTest, AJobRunsSoManyAtOnceAsItSaysAndNoMoreThanInAll) {
  const std::string_view job = R"(
kind: Job
metadata: {{name: train}}
spec: {{{}, template: {{spec: {{containers: [{{name: main}}]}}}}}}
)";
  const auto pods = [&](std::string_view spec) {
    return take(fmt::format(fmt::runtime(job), spec)).pods.size();
  };
  EXPECT_EQ(pods("completions: null"), 1U);
  EXPECT_EQ(pods("parallelism: 4"), 4U);
  EXPECT_EQ(pods("parallelism: 4, completions: 3"), 3U);
  EXPECT_EQ(pods("completions: 3"), 1U);
  EXPECT_EQ(pods("parallelism: 0"), 0U);
}

TEST_F(NewObjectsTest, ASuspendedJobIsLeftOutAndSaysSo) {
  const NewObjects objects = take(R"(
kind: Job
metadata: {name: train}
spec: {suspend: true, template: {spec: {containers: [{name: main}]}}}
)");
  EXPECT_THAT(objects.pods, IsEmpty());
  EXPECT_THAT(objects.left_out, ElementsAre("Job default/train (it is suspended)"));
}

TEST_F(NewObjectsTest, WhatMakesNoPodsHereIsNamed) {
  const NewObjects objects = take(R"(
kind: ConfigMap
metadata: {name: c}
---
kind: DaemonSet
metadata: {name: d}
)");
  EXPECT_THAT(objects.left_out,
              ElementsAre("ConfigMap default/c (no pods are made of this kind)",
                          "DaemonSet default/d (its pods are not made here; give them, or a "
                          "Deployment or Job)"));
}

TEST_F(NewObjectsTest, ListsAreTakenApart) {
  const NewObjects objects = take(R"(
kind: List
items:
- {kind: Pod, metadata: {name: a}, spec: {containers: [{name: main}]}}
- {kind: Pod, metadata: {name: b}, spec: {containers: [{name: main}]}}
)");
  EXPECT_THAT(objects.pods, ElementsAre("default/a", "default/b"));
}

TEST_F(NewObjectsTest, ErrorsNameTheFileTheObjectAndTheField) {
  taken = {"default/a"};
  EXPECT_EQ(error("{kind: Pod, metadata: {name: a}, spec: {containers: [{name: m}]}}"),
            "x.yaml: Pod default/a: is there already; give the new one another name");
  EXPECT_EQ(error("{kind: Pod, metadata: {name: b}, spec: {}}"),
            "x.yaml: Pod default/b: spec.containers: is required, at least one");
  EXPECT_EQ(
      error("{kind: Pod, metadata: {name: b}, spec: {nodeName: n1, containers: [{name: m}]}}"),
      "x.yaml: Pod default/b: spec.nodeName: goes past every scheduler; leave it out (the state of "
      "a whole cluster goes to --cluster)");
  EXPECT_EQ(error("{kind: Deployment, metadata: {name: d}, spec: {replicas: -1, selector: {a: b}, "
                  "template: {spec: {containers: [{name: m}]}}}}"),
            "x.yaml: Deployment default/d: spec.replicas: must be a whole number from 0 to 100000");
  EXPECT_EQ(error("{kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: "
                  "[{name: m}]}}}}"),
            "x.yaml: Deployment default/d: spec.selector: is required");
  EXPECT_EQ(error("{kind: Job, spec: {}}"), "x.yaml: Job default/: metadata.name: is required");
  EXPECT_EQ(error("{a: b}"), "x.yaml: an object without a kind; want Kubernetes manifests");
}

}  // namespace
}  // namespace jogak::cli
