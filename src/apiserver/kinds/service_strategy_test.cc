// SPDX-License-Identifier: Apache-2.0
// Services: every default, every refusal, status of load balancers, warnings.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc service() {
  return json(R"({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                  "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}})");
}

Doc external_name() {
  return with(service(), {"spec/type=ExternalName", "spec/externalName=a.example", "spec/ports"});
}

Doc balancer() { return with(service(), {"spec/type=LoadBalancer"}); }

TEST(Service, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(service());
  ASSERT_TRUE(made.has_value());
  const std::string ip = (*made)["spec"]["clusterIP"].as_string();
  Doc expected = json(R"({"ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
    "selector": {"a": "b"}, "type": "ClusterIP", "sessionAffinity": "None",
    "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster"})");
  expected.set("clusterIP", ip).set("clusterIPs", Doc::strings({ip}));
  EXPECT_EQ((*made)["spec"], expected);
  EXPECT_EQ((*made)["status"], json(R"({"loadBalancer": {}})"));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(Service, TargetPortsMayBeNames) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/ports/0/targetPort=web"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["ports"].items()[0]["targetPort"], Doc("web"));
}

TEST(Service, AffinityByClientHasATimeLimit) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/sessionAffinity=ClientIP"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], Doc(10800));
}

TEST(Service, WithoutAffinityItsLimitGoes) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(service(), {"spec/sessionAffinityConfig/clientIP/timeoutSeconds=5"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_FALSE((*made)["spec"].has("sessionAffinityConfig"));
}

TEST(Service, NodePortsAreForOutside) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/type=NodePort"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["externalTrafficPolicy"], Doc("Cluster"));
  const std::int64_t port = (*made)["spec"]["ports"].items()[0]["nodePort"].as_int();
  EXPECT_GE(port, 30000);
  EXPECT_LE(port, 32767);
}

TEST(Service, BalancersAllocateNodePortsUnlessToldNot) {
  WorkloadBench bench;
  const auto made = bench.create(balancer());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["allocateLoadBalancerNodePorts"], Doc(true));
  EXPECT_NE((*made)["spec"]["ports"].items()[0]["nodePort"].as_int(), 0);
  const auto without = bench.create(
      with(balancer(), {"metadata/name=t", "spec/allocateLoadBalancerNodePorts=false"}));
  ASSERT_TRUE(without.has_value());
  EXPECT_FALSE((*without)["spec"]["ports"].items()[0].has("nodePort"));
}

TEST(Service, ABalancerOfLocalTrafficHasAHealthPort) {
  WorkloadBench bench;
  const auto made = bench.create(with(balancer(), {"spec/externalTrafficPolicy=Local"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_GE((*made)["spec"]["healthCheckNodePort"].as_int(), 30000);
  EXPECT_NE((*made)["spec"]["healthCheckNodePort"],
            (*made)["spec"]["ports"].items()[0]["nodePort"]);
}

TEST(Service, AnExternalNameHasNoAddress) {
  WorkloadBench bench;
  const auto made = bench.create(external_name());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"],
            json(R"({"selector": {"a": "b"}, "type": "ExternalName", "sessionAffinity": "None",
                     "externalName": "a.example"})"));
}

TEST(Service, HeadlessOnesHaveNoAddressButFamilies) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/clusterIP=None"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["clusterIPs"], Doc::strings({"None"}));
  EXPECT_EQ((*made)["spec"]["ipFamilies"], Doc::strings({"IPv4"}));
  EXPECT_EQ((*made)["spec"]["ipFamilyPolicy"], Doc("SingleStack"));
}

TEST(Service, HeadlessWithoutSelectorMayHaveBothFamilies) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(service(), {"spec/clusterIP=None", "spec/selector", "spec/ports"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["ipFamilies"], Doc::strings({"IPv4", "IPv6"}));
  EXPECT_EQ((*made)["spec"]["ipFamilyPolicy"], Doc("RequireDualStack"));
}

TEST(Service, PreferringTwoFamiliesGetsTheOne) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/ipFamilyPolicy=PreferDualStack"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["ipFamilies"], Doc::strings({"IPv4"}));
  EXPECT_EQ((*made)["spec"]["clusterIPs"].size(), 1U);
}

TEST(Service, IsRefusedOnCreate) {
  WorkloadBench bench;
  const std::string port = "spec/ports/0/";
  expect_creates(
      bench, service(),
      {{"right", {}},
       {"name", {"metadata/name=a.b"}, "Invalid metadata.name"},
       {"no ports", {"spec/ports"}, "Required spec.ports"},
       {"port", {port + "port=0", port + "targetPort=1"}, "Invalid spec.ports[0].port"},
       {"port of nothing",
        {port + "port=70000"},
        "Invalid spec.ports[0].port, Invalid spec.ports[0].targetPort"},
       {"protocol", {port + "protocol=ICMP"}, "NotSupported spec.ports[0].protocol"},
       {"target name", {port + "targetPort=Web_"}, "Invalid spec.ports[0].targetPort"},
       {"app protocol", {port + R"(appProtocol="a b")"}, "Invalid spec.ports[0].appProtocol"},
       {"port name", {port + "name=A"}, "Invalid spec.ports[0].name"},
       {"two ports need names",
        {R"(spec/ports=[{"port": 1}, {"port": 2}])"},
        "Required spec.ports[0].name, Required spec.ports[1].name"},
       {"one name",
        {R"(spec/ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "a"}])"},
        "Duplicate spec.ports[1].name"},
       {"one port",
        {R"(spec/ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}])"},
        "Duplicate spec.ports[1]"},
       {"one port of two protocols",
        {R"(spec/ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b", "protocol": "UDP"}])"}},
       {"node port of an inner service",
        {port + "nodePort=30100"},
        "Forbidden spec.ports[0].nodePort"},
       {"selector", {R"(spec/selector={"a b": "c"})"}, "Invalid spec.selector"},
       {"affinity", {"spec/sessionAffinity=X"}, "NotSupported spec.sessionAffinity"},
       {"affinity time",
        {"spec/sessionAffinity=ClientIP",
         "spec/sessionAffinityConfig/clientIP/timeoutSeconds=86401"},
        "Invalid spec.sessionAffinityConfig.clientIP.timeoutSeconds"},
       {"external address", {R"(spec/externalIPs=["x"])"}, "Invalid spec.externalIPs[0]"},
       {"external address of this host",
        {R"(spec/externalIPs=["127.0.0.1"])"},
        "Invalid spec.externalIPs[0]"},
       {"type", {"spec/type=X"}, "NotSupported spec.type"},
       {"ranges",
        {R"(spec/loadBalancerSourceRanges=["10.0.0.0/8"])"},
        "Forbidden spec.LoadBalancerSourceRanges"},
       {"ranges in the old place",
        {R"(metadata/annotations={"service.beta.kubernetes.io/load-balancer-source-ranges": "x"})"},
        "Forbidden "
        "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges], Invalid "
        "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"},
       {"balancer ports",
        {"spec/allocateLoadBalancerNodePorts=true"},
        "Forbidden spec.allocateLoadBalancerNodePorts"},
       {"balancer class", {"spec/loadBalancerClass=a.io/b"}, "Forbidden spec.loadBalancerClass"},
       {"outer traffic",
        {"spec/externalTrafficPolicy=Local"},
        "Invalid spec.externalTrafficPolicy"},
       {"health port", {"spec/healthCheckNodePort=30100"}, "Invalid spec.healthCheckNodePort"},
       {"inner traffic",
        {"spec/internalTrafficPolicy=X"},
        "NotSupported spec.internalTrafficPolicy"},
       {"distribution", {"spec/trafficDistribution=X"}, "NotSupported spec.trafficDistribution"},
       {"topology",
        {R"(metadata/annotations={"service.kubernetes.io/topology-mode": "Auto",
                                  "service.kubernetes.io/topology-aware-hints": "Off"})"},
        "Invalid metadata.annotations[service.kubernetes.io/topology-mode]"}});
}

TEST(Service, BalancersAreRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, balancer(),
      {{"right", {R"(spec/loadBalancerSourceRanges=[" 10.0.0.0/8 "])"}},
       {"headless", {"spec/clusterIP=None"}, "Invalid spec.clusterIPs[0]"},
       {"range",
        {R"(spec/loadBalancerSourceRanges=["10.0.0.1/8"])"},
        "Invalid spec.LoadBalancerSourceRanges[0]"},
       {"class", {R"(spec/loadBalancerClass="a b")"}, "Invalid spec.loadBalancerClass"},
       {"traffic", {"spec/externalTrafficPolicy=X"}, "NotSupported spec.externalTrafficPolicy"}});
}

TEST(Service, ExternalNamesAreRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, external_name(),
      {{"right", {}},
       {"dot at the end", {"spec/externalName=a.example."}},
       {"none", {"spec/externalName"}, "Required spec.externalName"},
       {"name", {"spec/externalName=A_b"}, "Invalid spec.externalName"},
       {"address", {"spec/clusterIP=10.0.0.9"}, "Forbidden spec.clusterIPs"},
       {"families", {R"(spec/ipFamilies=["IPv4"])"}, "Forbidden spec.ipFamilies"},
       {"policy", {"spec/ipFamilyPolicy=SingleStack"}, "Forbidden spec.ipFamilyPolicy"}});
}

TEST(Service, StatusIsOfBalancers) {
  WorkloadBench bench;
  const std::string ingress = "status/loadBalancer/ingress=";
  expect_edits(bench, service(),
               {{"ingress",
                 {ingress + R"([{"ip": "1.2.3.4", "ipMode": "VIP"}])"},
                 "Forbidden status.loadBalancer.ingress"}},
               "status");
  expect_edits(
      bench, balancer(),
      {{"right", {ingress + R"([{"ip": "1.2.3.4"}, {"hostname": "a.example"}])"}},
       {"address", {ingress + R"([{"ip": "x"}])"}, "Invalid status.loadBalancer.ingress[0].ip"},
       {"mode",
        {ingress + R"([{"ip": "1.2.3.4", "ipMode": "X"}])"},
        "NotSupported status.loadBalancer.ingress[0].ipMode"},
       {"mode of a name",
        {ingress + R"([{"hostname": "a.example", "ipMode": "VIP"}])"},
        "Forbidden status.loadBalancer.ingress[0].ipMode"},
       {"name",
        {ingress + R"([{"hostname": "A_"}])"},
        "Invalid status.loadBalancer.ingress[0].hostname"},
       {"address as a name",
        {ingress + R"([{"hostname": "1.2.3.4"}])"},
        "Invalid status.loadBalancer.ingress[0].hostname"}},
      "status");
}

TEST(Service, AddressesOfABalancerAreVirtualByDefault) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(balancer()).has_value());
  const auto changed =
      bench.edit(balancer(), {R"(status/loadBalancer/ingress=[{"ip": "1.2.3.4"}])"}, "status");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ((*changed)["status"]["loadBalancer"]["ingress"].items()[0]["ipMode"], Doc("VIP"));
}

TEST(Service, IsWarnedAbout) {
  struct Warned {
    std::vector<std::string> edits;
    std::string_view warning;
  };
  const std::vector<Warned> rows = {
      {{R"(metadata/annotations={"service.kubernetes.io/topology-aware-hints": "Auto"})"},
       "annotation service.kubernetes.io/topology-aware-hints is deprecated"},
      {{"spec/clusterIP=None", "spec/loadBalancerIP=1.2.3.4"}, "spec.loadBalancerIP is ignored"},
      {{"spec/clusterIP=None", "spec/sessionAffinity=ClientIP"}, "spec.SessionAffinity is ignored"},
      {{R"(spec/externalIPs=["1.2.3.4"])"}, "spec.externalIPs is deprecated"},
      {{R"(spec/externalIPs=["1.2.3.4"])", "spec/clusterIP=None"}, "spec.externalIPs is ignored"},
      {{"spec/loadBalancerIP=FE80::1"}, "spec.loadBalancerIP: IPv6 address"},
      {{"spec/externalName=a.example"}, "spec.externalName is ignored"},
      {{"spec/trafficDistribution=PreferClose"}, "spec.trafficDistribution: \"PreferClose\""}};
  for (const Warned& row : rows) {
    WorkloadBench bench;
    ASSERT_EQ(refusal(bench.create(with(service(), row.edits))), "") << row.warning;
    ASSERT_FALSE(bench.warnings().empty()) << row.warning;
    EXPECT_TRUE(bench.warnings().front().starts_with(row.warning)) << bench.warnings().front();
  }
}

}  // namespace
}  // namespace jogak::api
