// SPDX-License-Identifier: Apache-2.0
// services/NAME/proxy: how far a request gets.
#include <gtest/gtest.h>

#include "apiserver/kinds/service_rules.h"
#include "apiserver/kinds/testing/workload_bench.h"

namespace jogak::api {
namespace {

Doc service() {
  return json(R"({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                  "spec": {"ports": [{"name": "http", "port": 80},
                                     {"name": "tls", "port": 443}]}})");
}

Doc endpoints() {
  return json(R"({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"},
                  "subsets": [{"addresses": [{"ip": "10.1.0.1"}],
                               "ports": [{"name": "http", "port": 8080}]}]})");
}

// The message of the refusal.
std::string ask(WorkloadBench& bench, std::string_view name) {
  Call call;
  call.resource = &bench.resource_of(service());
  call.subresource = "proxy";
  call.ns = "ns";
  call.name = name;
  const auto answer = refuse_service_proxy(bench.ops(), call);
  EXPECT_FALSE(answer.has_value());
  return answer.has_value() ? std::string()
                            : std::to_string(answer.error().code) + " " + answer.error().message;
}

TEST(ServiceProxy, FindsServicePortAndEndpoints) {
  WorkloadBench bench;
  EXPECT_EQ(ask(bench, "web:80"), "404 services \"web\" not found");
  ASSERT_EQ(refusal(bench.create(service())), "");
  EXPECT_EQ(ask(bench, "web:81"), "503 no service port 81 found for service \"web\"");
  EXPECT_EQ(ask(bench, "web:80"), "404 endpoints \"web\" not found");
  EXPECT_EQ(ask(bench, "web"), "404 endpoints \"web\" not found");
  ASSERT_EQ(refusal(bench.create(endpoints())), "");
  EXPECT_EQ(ask(bench, "web:443"), "503 no endpoints available for service \"web:443\"");
  EXPECT_EQ(ask(bench, "web"), "503 no endpoints available for service \"web\"");
  for (const std::string_view name : {"web:80", "web:http", "http:web:80", ":web:http"}) {
    EXPECT_TRUE(ask(bench, name).starts_with("503 error trying to reach service")) << name;
  }
}

TEST(ServiceProxy, RefusesNamesThatSayNothing) {
  WorkloadBench bench;
  for (const std::string_view name : {"", ":80", "ftp:web:80", "http::80", "a:b:c:d"}) {
    EXPECT_EQ(ask(bench, name), "400 invalid service request \"" + std::string(name) + "\"");
  }
}

}  // namespace
}  // namespace jogak::api
