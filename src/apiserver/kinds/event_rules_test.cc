// SPDX-License-Identifier: Apache-2.0
// Events: both groups on one table, and how strictly each is checked.
#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc core_event() {
  return json(R"({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
                  "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p"},
                  "reason": "Scheduled", "message": "m", "type": "Normal",
                  "source": {"component": "sched"}, "count": 1,
                  "firstTimestamp": "2024-01-01T00:00:00Z"})");
}

Doc new_event() {
  return json(R"({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
                  "regarding": {"kind": "Pod", "namespace": "ns", "name": "p"},
                  "reason": "Failed", "note": "n", "type": "Warning", "action": "Binding",
                  "reportingController": "sched", "reportingInstance": "sched-1",
                  "eventTime": "2024-01-01T00:00:00.000000Z"})");
}

TEST(Event, AnOldOneIsReadInTheNewGroup) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(core_event()).has_value());
  const Doc read = bench.get(with(new_event(), {}));
  EXPECT_EQ(read["note"], Doc("m"));
  EXPECT_EQ(read.get("regarding", "name"), Doc("p"));
  EXPECT_EQ(read["deprecatedSource"], json(R"({"component": "sched"})"));
  EXPECT_EQ(read["deprecatedCount"], Doc(1));
  EXPECT_EQ(read["deprecatedFirstTimestamp"], Doc("2024-01-01T00:00:00Z"));
  EXPECT_TRUE(read["eventTime"].is_null());
}

TEST(Event, ANewOneIsReadInTheOldGroup) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(new_event()).has_value());
  const Doc read = bench.get(core_event());
  EXPECT_EQ(read["apiVersion"], Doc("v1"));
  EXPECT_EQ(read["message"], Doc("n"));
  EXPECT_EQ(read["reportingComponent"], Doc("sched"));
  EXPECT_EQ(read["source"], Doc::object());
  EXPECT_TRUE(read["firstTimestamp"].is_null());
  EXPECT_FALSE(read.has("count"));
}

TEST(Event, TheOldGroupIsLenient) {
  WorkloadBench bench;
  expect_creates(
      bench, core_event(),
      {{"right", {}},
       {"type", {"type=Bad"}},
       {"no name rule", {"metadata/name=A_b"}},
       {"slash", {"metadata/name=a%b"}, "Invalid metadata.name"},
       {"other namespace",
        {"involvedObject/namespace=default"},
        "Invalid involvedObject.namespace"},
       {"no namespace", {"involvedObject"}, "Invalid involvedObject.namespace"},
       {"no namespace in default", {"metadata/namespace=default", "involvedObject"}},
       {"a time makes it new",
        {"eventTime=2024-01-01T00:00:00.000000Z"},
        "Required reportingComponent, Invalid reportingComponent, Invalid reportingComponent, "
        "Required reportingInstance, Required action"}});
}

TEST(Event, TheNewGroupIsStrict) {
  WorkloadBench bench;
  expect_creates(
      bench, new_event(),
      {{"right", {}},
       {"no time", {"eventTime"}, "Required eventTime"},
       {"type", {"type=Bad"}, "Invalid type"},
       {"neither", {"eventTime", "type"}, "Required eventTime, Invalid type"},
       {"controller",
        {"reportingController"},
        "Required reportingController, Invalid reportingController, "
        "Invalid reportingController"},
       {"instance", {"reportingInstance"}, "Required reportingInstance"},
       {"action", {"action"}, "Required action"},
       {"reason", {"reason"}, "Required reason"},
       {"long note", {"note=" + std::string(1025, 'x')}, "Invalid message"},
       {"longest note", {"note=" + std::string(1024, 'x')}},
       {"long reason", {"reason=" + std::string(129, 'x')}, "Invalid reason"},
       {"old members",
        {"deprecatedCount=1", "deprecatedSource/host=h",
         "deprecatedFirstTimestamp=2024-01-01T00:00:00Z"},
        "Invalid firstTimestamp, Invalid count, Invalid source"},
       {"series", {"series/count=1"}, "Invalid series.count, Required series.lastObservedTime"},
       {"nothing in particular",
        {"regarding", "metadata/namespace=x"},
        "Invalid involvedObject.namespace"}});
}

TEST(Event, TheNewGroupFreezesAllButTheSeries) {
  WorkloadBench bench;
  expect_edits(
      bench, new_event(),
      {{"series", {R"(series={"count": 2, "lastObservedTime": "2024-01-01T00:00:05.000000Z"})"}},
       {"broken series",
        {R"(series={"count": 1, "lastObservedTime": "2024-01-01T00:00:05.000000Z"})"},
        "Invalid series.count"},
       {"note", {"note=changed"}, "Invalid message"},
       {"reason", {"reason=changed"}, "Invalid reason, Invalid reason"},
       {"object", {"regarding/name=q"}, "Invalid involvedObject"},
       {"controller", {"reportingController=x"}, "Invalid reportingController"},
       {"time", {"eventTime=2024-01-01T00:00:01.000000Z"}, "Invalid eventTime"}});
  expect_edits(bench, core_event(), {{"count", {"count=2", "message=changed"}}});
}

TEST(Event, RefusalsOfTheNewGroupNameTheCoreOne) {
  WorkloadBench bench;
  const auto made = bench.create(with(new_event(), {"type=Bad"}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, "Event");
  EXPECT_EQ(made.error().group, "");
}

TEST(Event, IsSelectedByTheNamesOfItsGroup) {
  WorkloadBench bench;
  const Strategy& old_rules = *bench.resource_of(core_event()).strategy;
  EXPECT_EQ(old_rules.field(core_event(), "involvedObject.kind"), "Pod");
  EXPECT_EQ(old_rules.field(core_event(), "source"), "sched");
  EXPECT_EQ(old_rules.field(with(core_event(), {"source", "reportingComponent=x"}), "source"), "x");
  const auto fields = bench.resource_of(new_event()).strategy->selectable_fields();
  EXPECT_NE(std::ranges::find(fields, "regarding.kind"), fields.end());
  EXPECT_EQ(std::ranges::find(fields, "involvedObject.kind"), fields.end());
  const Strategy& new_rules = *bench.resource_of(new_event()).strategy;
  EXPECT_EQ(new_rules.stored_field("regarding.kind"), "involvedObject.kind");
  EXPECT_EQ(new_rules.stored_field("reportingController"), "reportingComponent");
  EXPECT_EQ(new_rules.stored_field("metadata.name"), "metadata.name");
  EXPECT_EQ(old_rules.stored_field("reason"), "reason");
}

}  // namespace
}  // namespace jogak::api
