// SPDX-License-Identifier: Apache-2.0
// What services are given and what they may ask for: addresses, families, node ports, and how these
// live through changes.
#include <gtest/gtest.h>

#include <set>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

KindOptions with_range(std::string_view range) {
  KindOptions options;
  options.service_range = range;
  return options;
}

Doc service(std::string_view name = "s") {
  Doc object = json(R"({"apiVersion": "v1", "kind": "Service", "metadata": {},
                        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}})");
  object.at("metadata", "name") = name;
  return object;
}

Doc node_port(std::string_view name = "s") { return with(service(name), {"spec/type=NodePort"}); }

std::int64_t node_port_of(const Doc& object, std::size_t i = 0) {
  return object["spec"]["ports"].items().at(i)["nodePort"].as_int();
}

TEST(ServiceAddresses, AreDistinctUntilTheRangeIsFull) {
  WorkloadBench bench(with_range("10.3.0.0/28"));
  std::set<std::string> seen;
  for (int i = 0; i < 14; ++i) {
    const auto made = bench.create(service("s" + std::to_string(i)));
    ASSERT_EQ(refusal(made), "");
    EXPECT_TRUE(seen.insert((*made)["spec"]["clusterIP"].as_string()).second);
  }
  EXPECT_TRUE(seen.contains("10.3.0.1"));
  EXPECT_TRUE(seen.contains("10.3.0.14"));
  EXPECT_EQ(refusal(bench.create(service("more"))), "InternalError spec.clusterIPs");
}

TEST(ServiceAddresses, ComeBackWithADeletion) {
  WorkloadBench bench(with_range("10.3.0.0/30"));
  ASSERT_EQ(refusal(bench.create(service("a"))), "");
  ASSERT_EQ(refusal(bench.create(service("b"))), "");
  ASSERT_NE(refusal(bench.create(service("c"))), "");
  ASSERT_TRUE(bench.remove(service("a")).has_value());
  EXPECT_EQ(refusal(bench.create(service("c"))), "");
}

TEST(ServiceAddresses, LeaveTheLowerPartToThoseWhoAsk) {
  WorkloadBench bench;
  for (int i = 0; i < 50; ++i) {
    const auto made = bench.create(service("s" + std::to_string(i)));
    ASSERT_EQ(refusal(made), "");
    const std::string ip = (*made)["spec"]["clusterIP"].as_string();
    EXPECT_GT(std::stoi(ip.substr(ip.rfind('.') + 1)), 16) << ip;
  }
}

TEST(ServiceAddresses, MayBeAskedFor) {
  WorkloadBench bench;
  const auto made = bench.create(with(service(), {"spec/clusterIP=10.0.0.7"}));
  ASSERT_EQ(refusal(made), "");
  EXPECT_EQ((*made)["spec"]["clusterIPs"], Doc::strings({"10.0.0.7"}));
}

TEST(ServiceAddresses, AreRefusedAlone) {
  // what else is wrong with the service is not said
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(service("first"), {"spec/clusterIP=10.0.0.7"}))), "");
  expect_creates(
      bench, with(service(), {"spec/ports/0/port=0"}),
      {{"taken", {"spec/clusterIP=10.0.0.7"}, "Invalid spec.clusterIPs"},
       {"outside", {"spec/clusterIP=10.9.0.7"}, "Invalid spec.clusterIPs"},
       {"network", {"spec/clusterIP=10.0.0.0"}, "Invalid spec.clusterIPs"},
       {"broadcast", {"spec/clusterIP=10.0.0.255"}, "Invalid spec.clusterIPs"},
       {"no address", {"spec/clusterIP=x"}, "Invalid spec.clusterIPs[0]"},
       {"other family", {"spec/clusterIP=fd00::1"}, "Invalid spec.clusterIPs[0]"},
       {"list alone", {R"(spec/clusterIPs=["10.0.0.8"])"}, "Invalid spec.clusterIPs"},
       {"two of them",
        {"spec/clusterIP=10.0.0.8", R"(spec/clusterIPs=["10.0.0.9"])"},
        "Invalid spec.clusterIPs"},
       {"none and more",
        {"spec/clusterIP=None", R"(spec/clusterIPs=["None", "10.0.0.9"])"},
        "Invalid spec.clusterIPs"},
       {"three",
        {"spec/clusterIP=10.0.0.8", R"(spec/clusterIPs=["10.0.0.8", "fd00::1", "fd00::2"])"},
        "Invalid spec.clusterIPs"},
       {"two of a family",
        {"spec/clusterIP=10.0.0.8", R"(spec/clusterIPs=["10.0.0.8", "10.0.0.9"])"},
        "Invalid spec.clusterIPs"},
       {"two without policy",
        {"spec/clusterIP=10.0.0.8", R"(spec/clusterIPs=["10.0.0.8", "fd00::1"])"},
        "Invalid spec.ipFamilyPolicy, Invalid spec.clusterIPs[1]"}});
}

TEST(ServiceFamilies, MustBeOfTheCluster) {
  WorkloadBench bench;
  expect_creates(
      bench, service(),
      {{"the one", {R"(spec/ipFamilies=["IPv4"])"}},
       {"other", {R"(spec/ipFamilies=["IPv6"])"}, "Invalid spec.ipFamilies[0]"},
       {"unknown", {R"(spec/ipFamilies=["IPv5"])"}, "NotSupported spec.ipFamilies[0]"},
       {"twice", {R"(spec/ipFamilies=["IPv4", "IPv4"])"}, "Duplicate spec.ipFamilies[1]"},
       {"two without policy",
        {R"(spec/ipFamilies=["IPv4", "IPv6"])"},
        "Invalid spec.ipFamilyPolicy"},
       {"two required", {"spec/ipFamilyPolicy=RequireDualStack"}, "Invalid spec.ipFamilyPolicy"},
       {"policy", {"spec/ipFamilyPolicy=X"}, "NotSupported spec.ipFamilyPolicy"},
       {"address of another family",
        {R"(spec/ipFamilies=["IPv6"])", "spec/clusterIP=10.0.0.8"},
        "Invalid spec.clusterIPs[0]"},
       {"headless of the other",
        {R"(spec/ipFamilies=["IPv6"])", "spec/clusterIP=None"},
        "Invalid spec.ipFamilies[0]"},
       {"headless without selector may have any",
        {R"(spec/ipFamilies=["IPv6"])", "spec/clusterIP=None", "spec/selector"}}});
}

TEST(ServiceFamilies, AV6ClusterHasV6Services) {
  WorkloadBench bench(with_range("fd00::/112"));
  const auto made = bench.create(service());
  ASSERT_EQ(refusal(made), "");
  EXPECT_EQ((*made)["spec"]["ipFamilies"], Doc::strings({"IPv6"}));
  EXPECT_TRUE((*made)["spec"]["clusterIP"].as_string().starts_with("fd00::"));
}

TEST(NodePorts, AreDistinct) {
  WorkloadBench bench;
  std::set<std::int64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const auto made = bench.create(node_port("s" + std::to_string(i)));
    ASSERT_EQ(refusal(made), "");
    EXPECT_TRUE(seen.insert(node_port_of(*made)).second);
    EXPECT_GE(node_port_of(*made), 30086);
  }
}

TEST(NodePorts, MayBeAskedFor) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(node_port("first"), {"spec/ports/0/nodePort=30005"}))), "");
  expect_creates(bench, node_port(),
                 {{"free", {"spec/ports/0/nodePort=30006"}},
                  {"taken", {"spec/ports/0/nodePort=30005"}, "Invalid spec.ports[0].nodePort"},
                  {"too low", {"spec/ports/0/nodePort=80"}, "Invalid spec.ports[0].nodePort"},
                  {"too high", {"spec/ports/0/nodePort=32768"}, "Invalid spec.ports[0].nodePort"},
                  {"one for two",
                   {R"(spec/ports=[{"name": "a", "port": 1, "nodePort": 30050},
                                   {"name": "b", "port": 2, "nodePort": 30050}])"},
                   "Invalid spec.ports[1].nodePort"}});
}

TEST(NodePorts, AreSharedByProtocolsOfAPort) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(node_port(), {R"(spec/ports=[{"name": "t", "port": 53, "protocol": "TCP"},
                                   {"name": "u", "port": 53, "protocol": "UDP"}])"}));
  ASSERT_EQ(refusal(made), "");
  EXPECT_EQ(node_port_of(*made, 0), node_port_of(*made, 1));
  const auto asked = bench.create(
      with(node_port("t"), {R"(spec/ports=[{"name": "t", "port": 53, "protocol": "TCP"},
                                {"name": "u", "port": 53, "protocol": "UDP",
                                 "nodePort": 30053}])"}));
  ASSERT_EQ(refusal(asked), "");
  EXPECT_EQ(node_port_of(*asked, 0), 30053);
}

TEST(NodePorts, TheHealthPortIsOneOfThem) {
  WorkloadBench bench;
  const Doc local = with(service(), {"spec/type=LoadBalancer", "spec/externalTrafficPolicy=Local"});
  expect_creates(
      bench, local,
      {{"free", {"spec/healthCheckNodePort=30200"}},
       {"taken", {"spec/healthCheckNodePort=30200"}, "InternalError spec.healthCheckNodePort"}});
}

TEST(ServiceChange, AnUpdateWithoutTheAddressKeepsIt) {
  WorkloadBench bench;
  const auto made = bench.create(node_port());
  ASSERT_EQ(refusal(made), "");
  const auto changed = bench.update(with(node_port(), {"spec/selector/x=y"}));
  ASSERT_EQ(refusal(changed), "");
  EXPECT_EQ((*changed)["spec"]["clusterIP"], (*made)["spec"]["clusterIP"]);
  EXPECT_EQ((*changed)["spec"]["clusterIPs"], (*made)["spec"]["clusterIPs"]);
  EXPECT_EQ((*changed)["spec"]["ipFamilies"], (*made)["spec"]["ipFamilies"]);
  EXPECT_EQ(node_port_of(*changed), node_port_of(*made));
}

TEST(ServiceChange, AnAddressIsNeverExchanged) {
  WorkloadBench bench;
  expect_edits(bench, with(service(), {"spec/clusterIP=10.0.0.9"}),
               {{"single and list",
                 {"spec/clusterIP=10.0.0.5", R"(spec/clusterIPs=["10.0.0.5"])"},
                 "Invalid spec.clusterIPs[0]"},
                {"single alone", {"spec/clusterIP=10.0.0.5"}, "Invalid spec.clusterIPs[0]"},
                {"made headless", {"spec/clusterIP=None"}, "Invalid spec.clusterIPs[0]"},
                {"list alone", {R"(spec/clusterIPs=["10.0.0.5"])"}, "Invalid spec.clusterIPs"},
                {"left out", {"spec/clusterIP", "spec/clusterIPs"}},
                {"families", {R"(spec/ipFamilies=["IPv6"])"}, "Invalid spec.clusterIPs[0]"}});
}

TEST(ServiceChange, AHeadlessServiceStaysSo) {
  WorkloadBench bench;
  expect_edits(bench, with(service(), {"spec/clusterIP=None"}),
               {{"left out", {"spec/clusterIP", "spec/clusterIPs"}},
                {"gets one", {"spec/clusterIP=10.0.0.5"}, "Invalid spec.clusterIPs[0]"}});
}

TEST(ServiceChange, AnExternalNameGivesItsAddressBack) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(node_port())), "");
  const auto changed =
      bench.edit(service(), {"spec/type=ExternalName", "spec/externalName=a.example"});
  ASSERT_EQ(refusal(changed), "");
  for (const std::string_view gone : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy",
                                      "externalTrafficPolicy", "internalTrafficPolicy"}) {
    EXPECT_FALSE((*changed)["spec"].has(gone)) << gone;
  }
  EXPECT_EQ(node_port_of(*changed), 0);
  const auto back = bench.edit(service(), {"spec/type=ClusterIP"});
  ASSERT_EQ(refusal(back), "");
  EXPECT_EQ((*back)["spec"]["clusterIPs"].size(), 1U);
  EXPECT_EQ((*back)["spec"]["ipFamilies"], Doc::strings({"IPv4"}));
}

TEST(ServiceChange, ATypeWithoutNodePortsLosesThem) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(
                with(service(), {"spec/type=LoadBalancer", "spec/externalTrafficPolicy=Local",
                                 "spec/loadBalancerClass=a.io/b"}))),
            "");
  const auto changed = bench.edit(service(), {"spec/type=ClusterIP"});
  ASSERT_EQ(refusal(changed), "");
  for (const std::string_view gone : {"healthCheckNodePort", "allocateLoadBalancerNodePorts",
                                      "loadBalancerClass", "externalTrafficPolicy"}) {
    EXPECT_FALSE((*changed)["spec"].has(gone)) << gone;
  }
  EXPECT_EQ(node_port_of(*changed), 0);
}

TEST(ServiceChange, ABalancerThatIsNoneLosesItsStatus) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(service(), {"spec/type=LoadBalancer"}))), "");
  ASSERT_EQ(refusal(bench.edit(service(), {R"(status/loadBalancer/ingress=[{"ip": "1.2.3.4"}])"},
                               "status")),
            "");
  const auto changed = bench.edit(service(), {"spec/type=ClusterIP"});
  ASSERT_EQ(refusal(changed), "");
  EXPECT_EQ((*changed)["status"], json(R"({"loadBalancer": {}})"));
}

TEST(ServiceChange, ANewPortGetsANodePort) {
  WorkloadBench bench;
  const auto made = bench.create(with(node_port(), {"spec/ports/0/name=a"}));
  ASSERT_EQ(refusal(made), "");
  const auto changed =
      bench.edit(node_port(), {R"(spec/ports/1={"name": "b", "port": 81, "targetPort": 81})"});
  ASSERT_EQ(refusal(changed), "");
  EXPECT_EQ(node_port_of(*changed, 0), node_port_of(*made));
  EXPECT_NE(node_port_of(*changed, 1), node_port_of(*changed, 0));
  EXPECT_NE(node_port_of(*changed, 1), 0);
}

TEST(ServiceChange, ANodePortMayMove) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(node_port("first"), {"spec/ports/0/nodePort=30005"}))), "");
  expect_edits(bench, node_port(),
               {{"free", {"spec/ports/0/nodePort=30007"}},
                {"taken", {"spec/ports/0/nodePort=30005"}, "Invalid spec.ports[0].nodePort"}});
}

TEST(ServiceChange, ABalancersClassAndHealthPortStay) {
  WorkloadBench bench;
  const Doc local = with(service(), {"spec/type=LoadBalancer", "spec/externalTrafficPolicy=Local",
                                     "spec/loadBalancerClass=a.io/b"});
  expect_edits(
      bench, local,
      {{"class", {"spec/loadBalancerClass=a.io/c"}, "Invalid spec.loadBalancerClass"},
       {"health port", {"spec/healthCheckNodePort=30300"}, "Forbidden spec.healthCheckNodePort"},
       {"health port left out", {"spec/healthCheckNodePort"}}});
}

TEST(ServiceChange, PutMakesAService) {
  WorkloadBench bench;
  const auto made = bench.update(service());
  ASSERT_EQ(refusal(made), "");
  EXPECT_EQ((*made)["spec"]["clusterIPs"].size(), 1U);
}

}  // namespace
}  // namespace jogak::api
