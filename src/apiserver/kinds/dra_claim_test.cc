// SPDX-License-Identifier: Apache-2.0
// Resource claims, their templates, and the status that schedulers and drivers write.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc claim() {
  return json(R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                  "metadata": {"name": "c"}, "spec": {"devices": {"requests": [
                    {"name": "r", "exactly": {"deviceClassName": "x"}}]}}})");
}

// A request with these members besides its class.
std::string exactly(std::string_view members) {
  return R"(spec/devices/requests=[{"name": "r", "exactly": {"deviceClassName": "x", )" +
         std::string(members) + "}}]";
}

TEST(ResourceClaim, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(with(claim(), {"status/reservedFor=[]"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "devices", "requests").items()[0]["exactly"],
            json(R"({"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1})"));
  EXPECT_FALSE(meta(*made).has("generation"));
  EXPECT_EQ((*made)["status"], Doc::object());
}

TEST(ResourceClaim, AlternativesHaveDefaultsToo) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(claim(), {R"(spec/devices/requests=[{"name": "r", "firstAvailable": [
                     {"name": "a", "deviceClassName": "x"},
                     {"name": "b", "deviceClassName": "y", "allocationMode": "All"}]}])"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "devices", "requests").items()[0]["firstAvailable"],
            json(R"([{"name": "a", "deviceClassName": "x", "allocationMode": "ExactCount",
                      "count": 1},
                     {"name": "b", "deviceClassName": "y", "allocationMode": "All"}])"));
}

TEST(ResourceClaim, RequestsAreChecked) {
  WorkloadBench bench;
  const std::string at = "spec.devices.requests[0].exactly.";
  const std::vector<std::string> causes = {"Invalid " + at + "count",
                                           "NotSupported " + at + "allocationMode",
                                           "Invalid " + at + "selectors[0].cel.expression",
                                           "Required " + at + "selectors[0].cel",
                                           "Invalid " + at + "tolerations[0].value",
                                           "Required " + at + "tolerations[0].operator",
                                           "NotSupported " + at + "tolerations[0].effect"};
  expect_creates(
      bench, claim(),
      {{"right", {exactly(R"("count": 3)")}},
       {"no class",
        {"spec/devices/requests=[{\"name\": \"r\", \"exactly\": {}}]"},
        "Required spec.devices.requests[0].exactly.deviceClassName"},
       {"neither",
        {R"(spec/devices/requests=[{"name": "r"}])"},
        "Required spec.devices.requests[0]"},
       {"both",
        {R"(spec/devices/requests=[{"name": "r", "exactly": {"deviceClassName": "x"},
             "firstAvailable": [{"name": "a", "deviceClassName": "x"}]}])"},
        "Invalid spec.devices.requests[0]"},
       {"name", {R"(spec/devices/requests/0/name=A)"}, "Invalid spec.devices.requests[0].name"},
       {"negative", {exactly(R"("count": -1)")}, causes[0]},
       {"count of all", {exactly(R"("allocationMode": "All", "count": 2)")}, causes[0]},
       {"mode", {exactly(R"("allocationMode": "Some")")}, causes[1]},
       {"expression", {exactly(R"("selectors": [{"cel": {"expression": "1 +"}}])")}, causes[2]},
       {"no expression", {exactly(R"("selectors": [{}])")}, causes[3]},
       {"tolerates all", {exactly(R"("tolerations": [{"operator": "Exists"}])")}},
       {"toleration",
        {exactly(R"("tolerations": [{"operator": "Exists", "value": "a"}])")},
        causes[4]},
       {"toleration without operator", {exactly(R"("tolerations": [{"key": "a"}])")}, causes[5]},
       {"toleration of nothing",
        {exactly(R"("tolerations": [{"operator": "Exists", "effect": "X"}])")},
        causes[6]}});
}

TEST(ResourceClaim, ExpressionsOfDrivers) {
  WorkloadBench bench;
  const auto refused = [&](const std::string& expression) {
    Doc object = claim();
    object.set("metadata", Doc::object().set("generateName", "c-"));
    object.at("spec", "devices", "requests")
        .items()[0]
        .at("exactly", "selectors")
        .push(Doc::object().set("cel", Doc::object().set("expression", expression)));
    return !refusal(bench.create(object)).empty();
  };
  for (const std::string right :
       {R"(device.driver == "gpu.example")", R"(device.attributes["gpu.example"].index < 4)",
        R"(device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) >= 0)",
        R"("gpu.example" in device.attributes && !(device.attributes["gpu.example"].ok == false))",
        R"(device.attributes["a.b"].?model.orValue("") == "x")",
        "true ? device.driver != '' : [1, 2].exists(i, i > 1)", "-1 + 2 * 3 % 4 > 0 // why"}) {
    EXPECT_FALSE(refused(right)) << right;
  }
  for (const std::string wrong : {"", "device.driver ==", "device..driver", "(true", "a b", "1 +",
                                  "\"open", "{", "x ? y", "f(,)", "&& true"}) {
    EXPECT_TRUE(refused(wrong)) << wrong;
  }
}

TEST(ResourceClaim, ConstraintsAndConfiguration) {
  WorkloadBench bench;
  expect_creates(
      bench, claim(),
      {{"constraint",
        {R"(spec/devices/constraints=[{"requests": ["r"], "matchAttribute": "a/b"}])"}},
       {"unknown request",
        {R"(spec/devices/constraints=[{"requests": ["nope"], "matchAttribute": "a/b"}])"},
        "Invalid spec.devices.constraints[0].requests[0]"},
       {"alternative of an exact request",
        {R"(spec/devices/constraints=[{"requests": ["r/a"], "matchAttribute": "a/b"}])"},
        "Invalid spec.devices.constraints[0].requests[0]"},
       {"parts",
        {R"(spec/devices/constraints=[{"requests": ["r/a/b"], "matchAttribute": "a/b"}])"},
        "Invalid spec.devices.constraints[0].requests[0]"},
       {"twice",
        {R"(spec/devices/constraints=[{"requests": ["r", "r"], "matchAttribute": "a/b"}])"},
        "Duplicate spec.devices.constraints[0].requests[1]"},
       {"no attribute", {"spec/devices/constraints=[{}]"}, "Required spec.devices.constraints[0]"},
       {"attribute",
        {R"(spec/devices/constraints=[{"matchAttribute": "b"}])"},
        "Invalid spec.devices.constraints[0].matchAttribute"},
       {"distinct",
        {R"(spec/devices/constraints=[{"distinctAttribute": "a/1b"}])"},
        "Invalid spec.devices.constraints[0].distinctAttribute"},
       {"configuration",
        {R"(spec/devices/config=[{"opaque": {"driver": "a", "parameters": {"x": 1}}}])"}},
       {"no configuration", {"spec/devices/config=[{}]"}, "Required spec.devices.config[0].opaque"},
       {"no object",
        {R"(spec/devices/config=[{"opaque": {"driver": "a", "parameters": 1}}])"},
        "Invalid spec.devices.config[0].opaque.parameters"},
       {"nothing",
        {R"(spec/devices/config=[{"opaque": {}}])"},
        "Required spec.devices.config[0].opaque.driver, "
        "Required spec.devices.config[0].opaque.parameters"}});
}

TEST(ResourceClaim, AdminAccessNeedsAMarkedNamespace) {
  WorkloadBench bench;
  const Doc admin = with(claim(), {exactly(R"("adminAccess": true)")});
  EXPECT_EQ(refusal(bench.create(admin)), "Forbidden spec.devices.requests[0].adminAccess");
  ASSERT_TRUE(bench
                  .create(json(R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {
      "name": "ns", "labels": {"resource.kubernetes.io/admin-access": "true"}}})"))
                  .has_value());
  EXPECT_EQ(refusal(bench.create(admin)), "");
}

TEST(ResourceClaim, TheSpecStays) {
  WorkloadBench bench;
  expect_edits(bench, claim(),
               {{"label", {R"(metadata/labels={"a": "b"})"}},
                {"request", {exactly(R"("count": 2)")}, "Invalid spec"}});
}

constexpr std::string_view kAllocation =
    R"("allocation": {"devices": {"results": [
         {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]}})";
constexpr std::string_view kReserved =
    R"("reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}])";

class ClaimStatus : public testing::Test {
 protected:
  ClaimStatus() { EXPECT_TRUE(bench_.create(claim()).has_value()); }
  std::string write(const std::string& status) {
    return refusal(bench_.edit(claim(), {"status={" + status + "}"}, "status"));
  }
  static std::string text(std::string_view a, std::string_view b = "", std::string_view c = "") {
    std::string all(a);
    for (const std::string_view more : {b, c}) {
      if (!more.empty()) all += ", " + std::string(more);
    }
    return all;
  }

  WorkloadBench bench_;
};

TEST_F(ClaimStatus, AReservationNeedsAnAllocation) {
  EXPECT_EQ(write(text(kReserved)), "Forbidden status.reservedFor");
  EXPECT_EQ(write(text(kAllocation, kReserved)), "");
  EXPECT_EQ(write(text(kReserved)), "Forbidden status.reservedFor");
  EXPECT_EQ(write(""), "");
}

TEST_F(ClaimStatus, ConsumersAreChecked) {
  EXPECT_EQ(write(text(kAllocation, R"("reservedFor": [{}])")),
            "Required status.reservedFor[0].resource, Required status.reservedFor[0].name, "
            "Required status.reservedFor[0].uid");
  EXPECT_EQ(write(text(kAllocation,
                       R"("reservedFor": [{"resource": "pods", "name": "a", "uid": "u"},
                                          {"resource": "pods", "name": "b", "uid": "u"}])")),
            "Duplicate status.reservedFor[1]");
}

TEST_F(ClaimStatus, ResultsAreChecked) {
  const std::string at = "status.allocation.devices.results[0].";
  EXPECT_EQ(write(R"("allocation": {"devices": {"results": [{"request": "x", "device": "A"}]}})"),
            "Invalid " + at + "request, Required " + at + "driver, Required " + at +
                "pool, Invalid " + at + "device");
  EXPECT_EQ(write(R"("allocation": {"nodeSelector": {}})"),
            "Required status.allocation.nodeSelector.nodeSelectorTerms");
  EXPECT_EQ(write(R"("allocation": {"devices": {"results": [
                       {"request": "r", "driver": "d", "pool": "a/b", "device": "gpu-0",
                        "shareID": "X", "bindingConditions": ["a"]}]}})"),
            "Invalid " + at + "bindingFailureConditions, Invalid " + at + "shareID");
  EXPECT_EQ(write(R"("allocation": {"devices": {"config": [{"source": "Odd"}]}})"),
            "NotSupported status.allocation.devices.config[0].source, "
            "Required status.allocation.devices.config[0].opaque");
}

TEST_F(ClaimStatus, AnAllocationStays) {
  ASSERT_EQ(write(text(kAllocation)), "");
  EXPECT_EQ(write(R"("allocation": {"devices": {"results": [
                       {"request": "r", "driver": "d", "pool": "p", "device": "gpu-1"}]}})"),
            "Invalid status.allocation");
}

TEST_F(ClaimStatus, ADeletedClaimGetsNoNewConsumers) {
  ASSERT_TRUE(bench_.edit(claim(), {R"(metadata/finalizers=["a.b/c"])"}).has_value());
  ASSERT_EQ(write(text(kAllocation, kReserved)), "");
  ASSERT_TRUE(bench_.remove(claim()).has_value());
  EXPECT_EQ(
      write(text(kAllocation, R"("reservedFor": [{"resource": "pods", "name": "q", "uid": "v"}])")),
      "Forbidden status.reservedFor");
  EXPECT_EQ(write(text(kAllocation)), "");
}

TEST_F(ClaimStatus, DriversSpeakOfAllocatedDevices) {
  const std::string device = R"("devices": [{"driver": "d", "pool": "p", "device": "gpu-0", )";
  const std::string ready = R"("conditions": [{"type": "Ready", "status": "True", "reason": "x",
                               "lastTransitionTime": "2024-01-01T00:00:00Z"}]}])";
  EXPECT_EQ(write(device + ready), "Invalid status.devices[0]");
  ASSERT_EQ(write(text(kAllocation, device + ready)), "");
  EXPECT_EQ(write(text(kAllocation, device + R"("data": 5}])")), "Invalid status.devices[0].data");
  EXPECT_EQ(
      write(text(kAllocation, device + R"("networkData": {"ips": ["10.0.0.1/24", "10.0.0.1"]}}])")),
      "Invalid status.devices[0].networkData.ips[1]");
  // what is no longer allocated loses its status
  EXPECT_EQ(write(device + ready), "");
  EXPECT_FALSE(bench_.get(claim())["status"].has("devices"));
}

TEST(ClaimTemplate, IsChecked) {
  WorkloadBench bench;
  const Doc base = json(R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                            "metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [
                              {"name": "r", "exactly": {"deviceClassName": "x"}}]}}}})");
  const auto made = bench.create(base);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "spec", "devices", "requests").items()[0].get("exactly", "count"),
            Doc(1));
  EXPECT_EQ(made->get("spec", "metadata"), Doc::object());
  EXPECT_EQ(refusal(bench.edit(base, {R"(spec/metadata/labels={"a": "b"})"})), "Invalid spec");
  expect_creates(
      bench, base,
      {{"label", {R"(spec/metadata/labels={"a b": "c"})"}, "Invalid spec.metadata.labels"},
       {"request",
        {R"(spec/spec/devices/requests=[{"name": "r"}])"},
        "Required spec.spec.devices.requests[0]"}});
}

}  // namespace
}  // namespace jogak::api
