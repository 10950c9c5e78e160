// SPDX-License-Identifier: Apache-2.0
//
// Binding, eviction, logs and streams of pods.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc pod(std::string_view name = "p") {
  Doc made = json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {},
                      "spec": {"containers": [{"name": "c", "image": "reg.example/a:1"}]}})");
  made.at("metadata").set("name", name);
  return made;
}

Call call_of(std::string name, Doc body, std::string subresource = {}) {
  Call call;
  call.subresource = std::move(subresource);
  call.ns = "ns";
  call.name = std::move(name);
  call.body = std::move(body);
  return call;
}

Doc binding(std::string_view name, std::string_view node) {
  Doc body = Doc::object();
  body.at("metadata").set("name", name);
  body.at("target").set("kind", "Node").set("name", node);
  return body;
}

class PodCalls : public testing::Test {
 protected:
  std::string bind(std::string_view name, const Doc& body) {
    Call call = call_of(std::string(name), body, "binding");
    return told(bind_pod(bench_.ops(), call));
  }
  std::string evict(std::string_view name, Doc options = {}) {
    Doc body = Doc::object();
    body.at("metadata").set("name", name);
    body.set("deleteOptions", std::move(options));
    Call call = call_of(std::string(name), std::move(body), "eviction");
    return told(evict_pod(bench_.ops(), call));
  }
  // "404 NotFound", or "201".
  static std::string told(const ApiResult<Answer>& answer) {
    if (answer.has_value()) {
      return std::to_string(answer->code);
    }
    return std::to_string(answer.error().code) + " " + answer.error().reason;
  }
  void run(std::string_view name) {
    ASSERT_EQ(bind(name, binding(name, "n1")), "201");
    const auto written =
        bench_.edit(pod(name),
                    {"status/phase=Running", R"(status/conditions=[{"type": "Ready",
            "status": "True"}])",
                     R"(status/containerStatuses=[{"name": "c", "image": "i",
            "imageID": "x", "state": {"running": {"startedAt": "2023-11-14T22:00:00Z"}}}])"},
                    "status");
    ASSERT_EQ(refusal(written), "");
  }

  WorkloadBench bench_;
};

TEST_F(PodCalls, BindingGivesANode) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  Doc body = binding("p", "n1");
  body.at("metadata", "annotations").set("gpu", "0,1");
  body.at("metadata", "labels").set("l", "m");
  EXPECT_EQ(bind("p", body), "201");
  const Doc bound = bench_.get(pod());
  EXPECT_EQ(bound["spec"]["nodeName"], Doc("n1"));
  EXPECT_EQ(meta(bound)["annotations"], json(R"({"gpu": "0,1"})"));
  EXPECT_EQ(meta(bound)["labels"], json(R"({"l": "m"})"));
  EXPECT_TRUE(condition_is(bound, "PodScheduled", "True"));
  EXPECT_EQ(meta(bound)["generation"], Doc(1));
  EXPECT_EQ(bind("p", binding("p", "n1")), "409 Conflict");
}

TEST_F(PodCalls, BindingTakesTheNodesTopology) {
  ASSERT_EQ(refusal(bench_.create(json(R"({"apiVersion": "v1", "kind": "Node", "metadata":
      {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z", "x": "y"}}})"))),
            "");
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(bind("p", binding("p", "n1")), "201");
  EXPECT_EQ(meta(bench_.get(pod()))["labels"], json(R"({"topology.kubernetes.io/zone": "z"})"));
}

TEST_F(PodCalls, BindingRefusals) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(bind("none", binding("none", "n1")), "404 NotFound");
  EXPECT_EQ(bind("p", binding("q", "n1")), "400 BadRequest");
  EXPECT_EQ(bind("p", binding("p", "")), "500 ");
  Doc service = binding("p", "n1");
  service.at("target").set("kind", "Service");
  EXPECT_EQ(bind("p", service), "500 ");
  Doc foreign = binding("p", "n1");
  foreign.at("metadata").set("uid", "11111111-2222-4333-8444-555555555555");
  EXPECT_EQ(bind("p", foreign), "409 Conflict");
  ASSERT_EQ(refusal(bench_.create(with(pod("g"), {R"(spec/schedulingGates=[{"name": "x"}])"}))),
            "");
  EXPECT_EQ(bind("g", binding("g", "n1")), "409 Conflict");
}

TEST_F(PodCalls, OldBindingsNameThePodInTheBody) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(bind("", binding("p", "n3")), "201");
  EXPECT_EQ(bench_.get(pod())["spec"]["nodeName"], Doc("n3"));
}

TEST_F(PodCalls, DryRunBindsNothing) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  Call call = call_of("p", binding("p", "n1"), "binding");
  call.is_dry_run = true;
  EXPECT_EQ(told(bind_pod(bench_.ops(), call)), "201");
  EXPECT_FALSE(bench_.get(pod())["spec"].has("nodeName"));
}

Doc budget(std::string_view name) {
  Doc made = json(R"({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {},
      "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})");
  made.at("metadata").set("name", name);
  return made;
}

TEST_F(PodCalls, EvictionWithoutABudgetDeletes) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(evict("p"), "201");  // Pending, without a node: gone
  EXPECT_FALSE(bench_.ops().get("pods", "ns", "p").has_value());
  EXPECT_EQ(evict("p"), "404 NotFound");
}

TEST_F(PodCalls, EvictionOfARunningPodIsGraceful) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  run("p");
  EXPECT_EQ(evict("p"), "201");
  const Doc going = bench_.get(pod());
  EXPECT_TRUE(is_deleting(going));
  EXPECT_EQ(condition_of(going, "DisruptionTarget")["reason"], Doc("EvictionByEvictionAPI"));
}

TEST_F(PodCalls, EvictionAsksTheBudget) {
  ASSERT_EQ(refusal(bench_.create(with(pod(), {R"(metadata/labels={"app": "x"})"}))), "");
  run("p");
  ASSERT_EQ(refusal(bench_.create(budget("b"))), "");
  EXPECT_EQ(evict("p"), "429 TooManyRequests");  // nobody has looked at the budget yet
  const auto allow = [&](int disruptions) {
    return refusal(bench_.edit(
        budget("b"),
        {"status/observedGeneration=1", "status/desiredHealthy=1", "status/currentHealthy=1",
         "status/disruptionsAllowed=" + std::to_string(disruptions)},
        "status"));
  };
  ASSERT_EQ(allow(0), "");
  EXPECT_EQ(evict("p"), "429 TooManyRequests");
  ASSERT_EQ(allow(1), "");
  EXPECT_EQ(evict("p"), "201");
  const Doc used = bench_.get(budget("b"));
  EXPECT_EQ(used["status"]["disruptionsAllowed"], Doc(0));
  EXPECT_TRUE(used["status"]["disruptedPods"].has("p"));
  EXPECT_EQ(condition_of(used, "DisruptionAllowed")["reason"], Doc("InsufficientPods"));
}

TEST_F(PodCalls, TwoBudgetsAreTooMany) {
  ASSERT_EQ(refusal(bench_.create(with(pod(), {R"(metadata/labels={"app": "x"})"}))), "");
  run("p");
  ASSERT_EQ(refusal(bench_.create(budget("a"))), "");
  ASSERT_EQ(refusal(bench_.create(budget("b"))), "");
  EXPECT_EQ(evict("p"), "500 ");
}

TEST_F(PodCalls, EvictionHonoursPreconditions) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(evict("p", json(R"({"preconditions": {"uid": "other"}})")), "409 Conflict");
  const Doc stored = bench_.get(pod());
  Doc options = Doc::object();
  options.at("preconditions").set("resourceVersion", meta(stored)["resourceVersion"]);
  EXPECT_EQ(evict("p", options), "201");
}

class PodLogs : public PodCalls {
 protected:
  ApiResult<Answer> log(std::vector<std::pair<std::string, std::string>> query = {}) {
    Call call = call_of("p", {}, "log");
    call.query = std::move(query);
    return read_pod_log(bench_.ops(), call);
  }
  std::string text(std::vector<std::pair<std::string, std::string>> query = {}) {
    const auto answer = log(std::move(query));
    return answer.has_value() ? answer->text : told(answer);
  }
};

TEST_F(PodLogs, NoNodeNoContent) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  EXPECT_EQ(told(log()), "204");
  EXPECT_EQ(told(log({{"container", "x"}})), "400 BadRequest");
}

TEST_F(PodLogs, SayWhatTheAnnotationSays) {
  ASSERT_EQ(refusal(bench_.create(
                with(pod(), {R"(metadata/annotations={"jogak.io/log": "one\ntwo\nthree"})"}))),
            "");
  run("p");
  EXPECT_EQ(text(), "one\ntwo\nthree\n");
  EXPECT_EQ(text({{"tailLines", "1"}}), "three\n");
  EXPECT_EQ(text({{"tailLines", "0"}}), "");
  EXPECT_EQ(text({{"limitBytes", "5"}}), "one\nt");
  EXPECT_EQ(text({{"timestamps", "true"}, {"tailLines", "1"}}), "2023-11-14T22:00:00Z three\n");
  EXPECT_EQ(text({{"sinceTime", "2023-11-14T23:00:00Z"}}), "");
  EXPECT_EQ(text({{"sinceSeconds", "1"}}), "");
}

TEST_F(PodLogs, Refusals) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  run("p");
  EXPECT_EQ(text({{"tailLines", "abc"}}), "400 BadRequest");
  EXPECT_EQ(text({{"tailLines", "-1"}}), "422 Invalid");
  EXPECT_EQ(text({{"limitBytes", "0"}}), "422 Invalid");
  EXPECT_EQ(text({{"previous", "true"}}), "400 BadRequest");
}

TEST_F(PodCalls, StreamsNeedARealContainer) {
  ASSERT_EQ(refusal(bench_.create(pod())), "");
  const auto ask = [&](std::string subresource) {
    Call call = call_of("p", {}, std::move(subresource));
    return told(refuse_pod_stream(bench_.ops(), call));
  };
  EXPECT_EQ(ask("exec"), "400 BadRequest");
  EXPECT_EQ(ask("proxy"), "400 BadRequest");
  run("p");
  EXPECT_EQ(ask("exec"), "501 ");
  EXPECT_EQ(ask("portforward"), "501 ");
}

}  // namespace
}  // namespace jogak::api
