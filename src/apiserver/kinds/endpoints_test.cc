// SPDX-License-Identifier: Apache-2.0
// Endpoints and endpoint slices: defaults, every refusal, warnings.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc endpoints() {
  return json(R"({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"},
                  "subsets": [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}]})");
}

Doc slice() {
  return json(R"({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                  "metadata": {"name": "e"}, "addressType": "IPv4",
                  "endpoints": [{"addresses": ["10.1.0.1"]}], "ports": [{"port": 80}]})");
}

TEST(Endpoints, GetTheirDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(endpoints());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["subsets"].items()[0]["ports"], json(R"([{"port": 80, "protocol": "TCP"}])"));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(Endpoints, AreRefusedOnCreate) {
  WorkloadBench bench;
  const std::string address = "subsets/0/addresses/0/";
  const std::string port = "subsets/0/ports/0/";
  expect_creates(
      bench, endpoints(),
      {{"right", {}},
       {"nothing at all", {"subsets"}},
       {"no addresses", {"subsets/0/addresses"}, "Required subsets[0]"},
       {"only such that are not ready",
        {"subsets/0/addresses", R"(subsets/0/notReadyAddresses=[{"ip": "10.1.0.2"}])"}},
       {"address",
        {address + "ip=x"},
        "Invalid subsets[0].addresses[0].ip, Invalid "
        "subsets[0].addresses[0].ip"},
       {"address of this host", {address + "ip=127.0.0.1"}, "Invalid subsets[0].addresses[0].ip"},
       {"host name", {address + "hostname=A_"}, "Invalid subsets[0].addresses[0].hostname"},
       {"node", {address + "nodeName=A_"}, "Invalid subsets[0].addresses[0].nodeName"},
       {"not ready address",
        {R"(subsets/0/notReadyAddresses=[{"ip": "0.0.0.0"}])"},
        "Invalid subsets[0].notReadyAddresses[0].ip"},
       {"port", {port + "port=0"}, "Invalid subsets[0].ports[0].port"},
       {"port name", {port + "name=A_"}, "Invalid subsets[0].ports[0].name"},
       {"two ports need names",
        {R"(subsets/0/ports=[{"port": 1}, {"port": 2, "name": "b"}])"},
        "Required subsets[0].ports[0].name"},
       {"protocol", {port + "protocol=X"}, "NotSupported subsets[0].ports[0].protocol"},
       {"app protocol",
        {port + R"(appProtocol="a b")"},
        "Invalid subsets[0].ports[0].appProtocol"}});
}

TEST(Endpoints, ChangesAreChecked) {
  WorkloadBench bench;
  expect_edits(bench, endpoints(),
               {{"labels", {"metadata/labels/a=b"}},
                {"address", {"subsets/0/addresses/0/ip=10.1.0.9"}},
                {"wrong address",
                 {"subsets/0/addresses/0/ip=127.0.0.9"},
                 "Invalid subsets[0].addresses[0].ip"}});
}

TEST(Endpoints, AnOddSpellingIsWarnedAbout) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(endpoints(), {"subsets/0/addresses/0/ip=2001:DB8::1"}))), "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].starts_with("subsets[0].addresses[0].ip: IPv6 address"));
}

TEST(EndpointSlice, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(slice());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["ports"], json(R"([{"name": "", "protocol": "TCP", "port": 80}])"));
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
}

TEST(EndpointSlice, IsRefusedOnCreate) {
  WorkloadBench bench;
  const std::string endpoint = "endpoints/0/";
  expect_creates(
      bench, slice(),
      {{"right", {}},
       {"empty", {"endpoints", "ports"}},
       {"no type", {"addressType"}, "Required addressType"},
       {"type", {"addressType=X"}, "NotSupported addressType"},
       {"no address", {endpoint + "addresses=[]"}, "Required endpoints[0].addresses"},
       {"address", {endpoint + R"(addresses=["x"])"}, "Invalid endpoints[0].addresses[0]"},
       {"address of this host",
        {endpoint + R"(addresses=["127.0.0.1"])"},
        "Invalid endpoints[0].addresses[0]"},
       {"other family", {endpoint + R"(addresses=["fd00::1"])"}, "Invalid endpoints[0].addresses"},
       {"v6 in a slice of v4's", {"addressType=IPv6"}, "Invalid endpoints[0].addresses"},
       {"v6", {"addressType=IPv6", endpoint + R"(addresses=["fd00::1"])"}},
       {"v6 in an odd spelling",
        {"addressType=IPv6", endpoint + R"(addresses=["FD00::1"])"},
        "Invalid endpoints[0].addresses[0]"},
       {"name", {"addressType=FQDN", endpoint + R"(addresses=["a.example."])"}},
       {"name of one part",
        {"addressType=FQDN", endpoint + R"(addresses=["a"])"},
        "Invalid endpoints[0].addresses[0]"},
       {"no name",
        {"addressType=FQDN", endpoint + R"(addresses=["A_"])"},
        "Invalid endpoints[0].addresses[0]"},
       {"empty name",
        {"addressType=FQDN", endpoint + R"(addresses=[""])"},
        "Required endpoints[0].addresses[0]"},
       {"node", {endpoint + "nodeName=A_"}, "Invalid endpoints[0].nodeName"},
       {"host name", {endpoint + "hostname=A_"}, "Invalid endpoints[0].hostname"},
       {"zone hint",
        {endpoint + R"(hints/forZones=[{"name": "a"}, {"name": "a"}, {"name": "b c"}])"},
        "Duplicate endpoints[0].hints.forZones[1].name, Invalid "
        "endpoints[0].hints.forZones[2].name"},
       {"node hint",
        {endpoint + R"(hints/forNodes=[{"name": "a"}, {"name": "a"}, {"name": "B"}])"},
        "Duplicate endpoints[0].hints.forNodes[1].name, Invalid "
        "endpoints[0].hints.forNodes[2].name"},
       {"port name", {"ports/0/name=A_"}, "Invalid ports[0].name"},
       {"port twice", {R"(ports=[{"port": 1}, {"port": 2}])"}, "Duplicate ports[1].name"},
       {"protocol", {"ports/0/protocol=X"}, "NotSupported ports[0].protocol"},
       {"app protocol", {R"(ports/0/appProtocol="a b")"}, "Invalid ports[0].appProtocol"}});
}

TEST(EndpointSlice, ListsAreLimited) {
  WorkloadBench bench;
  const auto repeated = [](std::string_view item, int count) {
    std::string list = "[";
    for (int i = 0; i < count; ++i) list += (i > 0 ? "," : "") + std::string(item);
    return list + "]";
  };
  expect_creates(bench, slice(),
                 {{"endpoints",
                   {"endpoints=" + repeated(R"({"addresses": ["10.0.0.1"]})", 1001)},
                   "TooMany endpoints"},
                  {"addresses",
                   {"endpoints/0/addresses=" + repeated(R"("10.0.0.1")", 101)},
                   "TooMany endpoints[0].addresses"},
                  {"zones",
                   {"endpoints/0/hints/forZones=" + repeated(R"({"name": "a"})", 9)},
                   "TooMany endpoints[0].hints.forZones"},
                  {"nodes",
                   {"endpoints/0/hints/forNodes=" + repeated(R"({"name": "a"})", 9)},
                   "TooMany endpoints[0].hints.forNodes"}});
}

TEST(EndpointSlice, ItsTypeStays) {
  WorkloadBench bench;
  expect_edits(
      bench, with(slice(), {"endpoints"}),
      {{"type", {"addressType=IPv6"}, "Invalid addressType"}, {"ports", {"ports/0/port=81"}}});
}

TEST(EndpointSlice, LabelsRaiseTheGeneration) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(slice()).has_value());
  EXPECT_EQ(meta(*bench.edit(slice(), {"metadata/annotations/a=b"}))["generation"], Doc(1));
  EXPECT_EQ(meta(*bench.edit(slice(), {"metadata/labels/a=b"}))["generation"], Doc(2));
  EXPECT_EQ(meta(*bench.edit(slice(), {"ports/0/port=81"}))["generation"], Doc(3));
}

TEST(EndpointSlice, DeprecatedTopologyIsNotTaken) {
  WorkloadBench bench;
  const auto made = bench.create(
      with(slice(), {R"(endpoints/0/deprecatedTopology={"kubernetes.io/hostname": "n"})"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_FALSE((*made)["endpoints"].items()[0].has("deprecatedTopology"));
}

TEST(EndpointSlice, NamesAreWarnedAbout) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(
                with(slice(), {"addressType=FQDN", R"(endpoints/0/addresses=["a.example"])"}))),
            "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_EQ(bench.warnings()[0], "spec.addressType: FQDN endpoints are deprecated");
}

}  // namespace
}  // namespace jogak::api
