// SPDX-License-Identifier: Apache-2.0
// Resource slices, their devices, and device classes.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc slice() {
  return json(R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                  "metadata": {"name": "s"},
                  "spec": {"driver": "gpu.example", "nodeName": "n1",
                           "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                           "devices": [{"name": "gpu-0"}]}})");
}

std::string device(std::string_view members) {
  return R"(spec/devices=[{"name": "gpu-0", )" + std::string(members) + "}]";
}

TEST(ResourceSlice, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, slice(),
      {{"right", {}},
       {"driver", {"spec/driver"}, "Required spec.driver"},
       {"pool", {"spec/pool={}"}, "Required spec.pool.name, Invalid spec.pool.resourceSliceCount"},
       {"pool in parts", {"spec/pool/name=a/b"}},
       {"pool in capitals", {"spec/pool/name=a/B"}, "Invalid spec.pool.name"},
       {"generation", {"spec/pool/generation=-1"}, "Invalid spec.pool.generation"},
       {"nowhere", {"spec/nodeName"}, "Required spec"},
       {"two places", {"spec/allNodes=true"}, "Invalid spec"},
       {"not all nodes", {"spec/allNodes=false"}, "Invalid spec.allNodes"},
       {"no node", {"spec/nodeName="}, "Invalid spec.nodeName, Required spec"},
       {"selector",
        {"spec/nodeName", "spec/nodeSelector/nodeSelectorTerms=[{}, {}]"},
        "Invalid spec.nodeSelector.nodeSelectorTerms"},
       {"device", {R"(spec/devices=[{"name": "Bad_"}])"}, "Invalid spec.devices[0].name"},
       {"device twice",
        {R"(spec/devices=[{"name": "a"}, {"name": "a"}])"},
        "Duplicate spec.devices[1]"},
       {"counters with devices",
        {R"(spec/sharedCounters=[{"name": "c", "counters": {"m": {"value": "1"}}}])"},
        "Invalid spec"},
       {"counters",
        {"spec/devices",
         R"(spec/sharedCounters=[{"name": "c", "counters": {"m": {"value": "1"}}}])"}},
       {"empty counters",
        {"spec/devices", "spec/sharedCounters=[{}]"},
        "Required spec.sharedCounters[0].name, Required spec.sharedCounters[0].counters"}});
}

TEST(ResourceSlice, DevicesAreChecked) {
  WorkloadBench bench;
  std::string many;
  for (int i = 0; i < 33; ++i) {
    many += (i == 0 ? "\"a" : ", \"a") + std::to_string(i) + R"(": {"int": 1})";
  }
  const std::string at = "spec.devices[0].";
  const std::vector<std::string> causes = {"Invalid " + at + "attributes[a]",
                                           "Invalid " + at + "attributes[a].version",
                                           "TooLong " + at + "attributes[a].string",
                                           "Invalid " + at + "attributes",
                                           "Required " + at + "taints[0].effect",
                                           "NotSupported " + at + "taints[0].effect",
                                           "Forbidden " + at + "capacity[m].requestPolicy",
                                           "Required " + at +
                                               "consumesCounters[0].counterSet, Required " + at +
                                               "consumesCounters[0].counters"};
  expect_creates(
      bench, slice(),
      {{"right", {device(R"("attributes": {"d/a": {"int": 1}, "b": {"version": "1.2.3-a.1+b"}},
                            "capacity": {"m": {"value": "1Gi"}})")}},
       {"no value", {device(R"("attributes": {"a": {}})")}, causes[0]},
       {"two values", {device(R"("attributes": {"a": {"int": 1, "bool": true}})")}, causes[0]},
       {"version", {device(R"("attributes": {"a": {"version": "1.2"}})")}, causes[1]},
       {"zero in front", {device(R"("attributes": {"a": {"version": "1.02.3"}})")}, causes[1]},
       {"long",
        {device(R"("attributes": {"a": {"string": ")" + std::string(65, 'x') + "\"}}")},
        causes[2]},
       {"name", {device(R"("attributes": {"1a": {"int": 1}})")}, causes[3]},
       {"domain", {device(R"("attributes": {"A_/a": {"int": 1}})")}, causes[3]},
       {"no domain", {device(R"("attributes": {"/a": {"int": 1}})")}, causes[3]},
       {"many", {device("\"attributes\": {" + many + "}")}, "Invalid spec.devices[0]"},
       {"taint", {device(R"("taints": [{"key": "a", "effect": "None"}])")}},
       {"taint without effect", {device(R"("taints": [{"key": "a"}])")}, causes[4]},
       {"taint with another", {device(R"("taints": [{"key": "a", "effect": "X"}])")}, causes[5]},
       {"policy of one user",
        {device(R"("capacity": {"m": {"value": "1", "requestPolicy": {}}})")},
        causes[6]},
       {"counters", {device(R"("consumesCounters": [{}])")}, causes[7]},
       {"place", {device(R"("allNodes": true)")}, "Invalid spec.devices[0]"},
       {"place of its own",
        {"spec/nodeName", "spec/perDeviceNodeSelection=true", device(R"("allNodes": true)")}},
       {"no place",
        {"spec/nodeName", "spec/perDeviceNodeSelection=true"},
        "Required spec.devices[0]"}});
}

TEST(ResourceSlice, SharesOfCapacityAreChecked) {
  WorkloadBench bench;
  const auto shared = [](std::string_view policy) {
    return std::vector<std::string>{device(R"("allowMultipleAllocations": true,
                  "capacity": {"m": {"value": "10", "requestPolicy": )" +
                                           std::string(policy) + "}}")};
  };
  const std::string at = "spec.devices[0].capacity[m].requestPolicy";
  const std::vector<std::string> causes = {"Forbidden " + at,
                                           "Required " + at + ".default",
                                           "Invalid " + at + ".validValues[1]",
                                           "Invalid " + at + ".validValues",
                                           "Required " + at + ".validRange.min",
                                           "Invalid " + at + ".validRange.min",
                                           "Invalid " + at + ".validRange.max",
                                           "Invalid " + at + ".validRange.step"};
  expect_creates(
      bench, slice(),
      {{"nothing", shared("{}")},
       {"values", shared(R"({"default": "1", "validValues": ["1", "2"]})")},
       {"range",
        shared(R"({"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}})")},
       {"both", shared(R"({"validValues": ["1"], "validRange": {"min": "1"}})"), causes[0]},
       {"no default", shared(R"({"validValues": ["1"]})"), causes[1]},
       {"no default of a range", shared(R"({"validRange": {"min": "1"}})"), causes[1]},
       {"order", shared(R"({"default": "1", "validValues": ["2", "1"]})"), causes[2]},
       {"too large", shared(R"({"default": "1", "validValues": ["1", "11"]})"), causes[2]},
       {"default", shared(R"({"default": "3", "validValues": ["1", "2"]})"), causes[3]},
       {"no minimum", shared(R"({"default": "1", "validRange": {}})"), causes[4]},
       {"below", shared(R"({"default": "1", "validRange": {"min": "2"}})"), causes[5]},
       {"above", shared(R"({"default": "5", "validRange": {"min": "2", "max": "4"}})"), causes[6]},
       {"step", shared(R"({"default": "3", "validRange": {"min": "2", "step": "2"}})"),
        causes[7]}});
}

TEST(ResourceSlice, SomeMembersStayAndChangesAreCounted) {
  WorkloadBench bench;
  expect_edits(bench, slice(),
               {{"driver", {"spec/driver=other"}, "Invalid spec.driver"},
                {"pool", {"spec/pool/name=n2"}, "Invalid spec.pool.name"},
                {"node", {"spec/nodeName=n2"}, "Invalid spec.nodeName"}});
  const auto made = bench.create(slice());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
  const auto labelled = bench.edit(slice(), {R"(metadata/labels={"a": "b"})"});
  ASSERT_TRUE(labelled.has_value());
  EXPECT_EQ(meta(*labelled)["generation"], Doc(1));
  const auto changed = bench.edit(slice(), {"spec/pool/generation=2"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["generation"], Doc(2));
}

TEST(ResourceSlice, TaintsKeepTheirTime) {
  WorkloadBench bench;
  const std::string taint = device(R"("taints": [{"key": "a", "effect": "NoSchedule"}])");
  const auto made = bench.create(with(slice(), {taint}));
  ASSERT_TRUE(made.has_value());
  const Doc& added = made->get("spec", "devices").items()[0]["taints"].items()[0]["timeAdded"];
  EXPECT_EQ(added, meta(*made)["creationTimestamp"]);
  const auto again = bench.edit(slice(), {taint});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(meta(*again)["generation"], Doc(1));
}

TEST(ResourceSlice, GatedMembersGo) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(slice(), {device(R"("nodeAllocatableResourceMappings": {"cpu": {}},
                          "attributes": {"a": {"int": 1, "ints": [1, 2]}})")}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "devices").items()[0],
            json(R"({"name": "gpu-0", "attributes": {"a": {"int": 1}}})"));
}

TEST(ResourceSlice, WarnsOfCapitals) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(with(slice(), {"spec/driver=GPU.example"})).has_value());
  EXPECT_EQ(bench.warnings().size(), 1U);
}

TEST(DeviceClass, IsRefused) {
  WorkloadBench bench;
  const Doc base = json(R"({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
                            "metadata": {"name": "c"}, "spec": {}})");
  expect_creates(
      bench, base,
      {{"right", {R"(spec/selectors=[{"cel": {"expression": "true"}}])"}},
       {"expression",
        {R"(spec/selectors=[{"cel": {"expression": "device.driver =="}}])"},
        "Invalid spec.selectors[0].cel.expression"},
       {"long",
        {R"(spec/selectors=[{"cel": {"expression": ")" + std::string(10 * 1024 + 1, '1') + "\"}}]"},
        "TooLong spec.selectors[0].cel.expression"},
       {"configuration", {"spec/config=[{}]"}, "Required spec.config[0].opaque"},
       {"resource", {"spec/extendedResourceName=nvidia.com/gpu"}},
       {"native resource",
        {"spec/extendedResourceName=gpu"},
        "Invalid spec.extendedResourceName"}});
  const auto made = bench.create(base);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
}

}  // namespace
}  // namespace jogak::api
