// SPDX-License-Identifier: Apache-2.0
//
// What the agent hears of its node and its pods, from a scripted API server.
#include "agent/run/cluster_watch.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::agent {
namespace {

using kube::testing::ScriptedHttp;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string node(int version, const std::string& labels, int heartbeat = 0) {
  return R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u",)"
         R"("resourceVersion":")" +
         std::to_string(version) + R"(","labels":{)" + labels +
         R"(},"annotations":{"jogak.io/x":"y"}},"status":{"conditions":[)"
         R"({"type":"Ready","status":"True","message":")" +
         std::to_string(heartbeat) + R"("}]}})";
}

std::string pod(int version, const std::string& name, const std::string& profile,
                const std::string& phase = "Pending") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ml","name":")" + name +
         R"(","uid":"u-)" + name + R"(","resourceVersion":")" + std::to_string(version) +
         R"(","annotations":{"jogak.io/mig-profile":")" + profile +
         R"("}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},)"
         R"("status":{"phase":")" +
         phase + R"("}})";
}

class ClusterWatchTest : public ::testing::Test {
 protected:
  ClusterWatchTest() {
    http_.serve([this](const ScriptedHttp::ExchangePtr& exchange) { serve(exchange); });
  }
  void serve(const ScriptedHttp::ExchangePtr& exchange) {
    const std::string target = exchange->request().target;
    const std::string kind = target.starts_with("/api/v1/nodes") ? "Node" : "Pod";
    targets_.push_back(target);
    if (target.find("sendInitialEvents") != std::string::npos) {
      return exchange->answer({.status = 400, .body = "{}"});
    }
    if (target.find("watch=") != std::string::npos) {
      exchange->head(200);
      watches_[kind] = exchange;
      return;
    }
    exchange->answer({.body = R"({"kind":")" + kind +
                              R"(List","apiVersion":"v1","metadata":{"resourceVersion":"5"},)"
                              R"("items":[)" +
                              lists_[kind] + "]}"});
  }
  void start(bool has_pods, bool has_pod_labels = false) {
    watch_ = std::make_unique<ClusterWatch>(
        api_, log_,
        ClusterWatch::Options{.node = "n1", .has_pods = has_pods, .has_pod_labels = has_pod_labels},
        ClusterWatch::Events{
            .on_node =
                [this](const Labels& labels, const std::map<std::string, std::string>& texts) {
                  labels_.push_back(labels);
                  annotations_ = texts;
                },
            .on_asks = [this](std::vector<MigAsk> asks) { asks_.push_back(std::move(asks)); },
            .on_pods = [this](PodTable pods) { tables_.push_back(std::move(pods)); }});
    loop_.run_for(kSecondInUs);
  }
  void tell(const std::string& kind, const std::string& type, const std::string& object) {
    watches_.at(kind)->body(R"({"type":")" + type + R"(","object":)" + object + "}\n");
    loop_.run_for(kSecondInUs);
  }

  SimLoop loop_;
  ScriptedHttp http_{loop_};
  kube::ApiClient api_{http_};
  CapturedLog lines_;
  Log log_{loop_, lines_};
  std::map<std::string, std::string> lists_;
  std::map<std::string, ScriptedHttp::ExchangePtr> watches_;
  std::vector<std::string> targets_;
  std::vector<Labels> labels_;
  std::map<std::string, std::string> annotations_;
  std::vector<std::vector<MigAsk>> asks_;
  std::vector<PodTable> tables_;
  std::unique_ptr<ClusterWatch> watch_;
};

TEST_F(ClusterWatchTest, LabelsAreToldWhenTheyChangeAndHeartbeatsAreNot) {
  lists_["Node"] = node(5, R"("a":"1")");
  start(false);
  EXPECT_THAT(labels_, ElementsAre(Labels{{"a", "1"}}));
  EXPECT_EQ(annotations_.at("jogak.io/x"), "y");
  tell("Node", "MODIFIED", node(6, R"("a":"1")", 1));
  EXPECT_THAT(labels_, SizeIs(1));
  tell("Node", "MODIFIED", node(7, R"("a":"2")", 1));
  EXPECT_THAT(labels_, ElementsAre(Labels{{"a", "1"}}, Labels{{"a", "2"}}));
  tell("Node", "DELETED", node(8, R"("a":"2")", 1));
  EXPECT_THAT(labels_, SizeIs(2));
}

TEST_F(ClusterWatchTest, OnlyItsOwnNodeIsAskedForAndNoPodsUnlessWanted) {
  lists_["Node"] = node(5, "");
  start(false);
  for (const std::string& target : targets_) {
    EXPECT_THAT(target, HasSubstr("fieldSelector=metadata.name%3Dn1"));
  }
}

TEST_F(ClusterWatchTest, PodsThatWantAnInstanceAreToldTogether) {
  lists_["Node"] = node(5, "");
  lists_["Pod"] = pod(3, "b", "1g.10gb") + "," + pod(4, "a", "3g.40gb") + "," +
                  pod(5, "done", "1g.10gb", "Succeeded") + "," + pod(5, "none", "");
  start(true);
  ASSERT_FALSE(asks_.empty());
  EXPECT_THAT(asks_.back(), ElementsAre(Field(&MigAsk::pod, PodName{"ml", "a"}),
                                        Field(&MigAsk::pod, PodName{"ml", "b"})));
  tell("Pod", "MODIFIED", pod(8, "a", "3g.40gb", "Failed"));
  EXPECT_THAT(asks_.back(), ElementsAre(Field(&MigAsk::pod, PodName{"ml", "b"})));
  tell("Pod", "DELETED", pod(9, "b", "1g.10gb"));
  EXPECT_THAT(asks_.back(), IsEmpty());
}

TEST_F(ClusterWatchTest, AWishThatCannotBeReadIsSaidAndTheOthersCount) {
  lists_["Node"] = node(5, "");
  lists_["Pod"] = pod(3, "bad", "big") + "," + pod(4, "good", "1g.10gb");
  start(true);
  EXPECT_THAT(asks_.back(), ElementsAre(Field(&MigAsk::pod, PodName{"ml", "good"})));
  EXPECT_THAT(lines_.lines, ElementsAre(HasSubstr("jogak.io/mig-profile")));
}

TEST_F(ClusterWatchTest, LabelsOfPodsAreToldWhereTheyAreWanted) {
  const auto labelled = [](int version, const std::string& labels) {
    return R"({"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ml","name":"a","uid":"u-a",)"
           R"("resourceVersion":")" +
           std::to_string(version) + R"(","labels":{)" + labels +
           R"(}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},)"
           R"("status":{"phase":"Running"}})";
  };
  lists_["Node"] = node(5, "");
  lists_["Pod"] = labelled(3, R"("app":"x")") + "," + pod(4, "done", "", "Succeeded");
  start(false, true);
  const std::pair<std::string, std::string> key("ml", "a");
  ASSERT_THAT(tables_, SizeIs(1));
  EXPECT_EQ(tables_[0], (PodTable{{key, {.uid = "u-a", .labels = {{"app", "x"}}}}}));
  EXPECT_THAT(asks_, IsEmpty());
  tell("Pod", "MODIFIED", labelled(6, R"("app":"x")"));
  EXPECT_THAT(tables_, SizeIs(1)) << "nothing that matters changed";
  tell("Pod", "MODIFIED", labelled(7, R"("app":"y")"));
  EXPECT_EQ(tables_.back().at(key).labels[0].second, "y");
  tell("Pod", "DELETED", labelled(8, R"("app":"y")"));
  EXPECT_THAT(tables_.back(), IsEmpty());
}

TEST_F(ClusterWatchTest, AnOutageIsToldOnce) {
  http_.serve([](const ScriptedHttp::ExchangePtr& exchange) {
    exchange->answer({.status = 503, .body = "not now"});
  });
  start(false);
  loop_.run_for(300 * kSecondInUs);
  EXPECT_THAT(lines_.lines, SizeIs(1));
}

// ---- read_mig_ask ----------------------------------------------------------------------------

Result<std::optional<MigAsk>> ask(const std::map<std::string, std::string>& annotations) {
  return read_mig_ask({"ml", "p"}, [&](std::string_view name) -> std::string_view {
    const auto at = annotations.find(std::string(name));
    return at == annotations.end() ? std::string_view() : at->second;
  });
}

TEST(MigAskOf, IsReadFromAnnotations) {
  EXPECT_FALSE(ask({})->has_value());
  const auto two =
      ask({{"jogak.io/mig-profile", "1g.10gb"},
           {"jogak.io/gpu-count", "2"},
           {"jogak.io/gpu-holds", R"([{"gpu":0,"migStart":2},{"gpu":1,"migStart":0}])"}});
  ASSERT_TRUE(two);
  EXPECT_EQ(
      **two,
      (MigAsk{.pod = {"ml", "p"}, .profile = "1g.10gb", .count = 2, .places = {{0, 2}, {1, 0}}}));
}

TEST(MigAskOf, PlacesCountOnlyAllTogether) {
  const auto two = ask({{"jogak.io/mig-profile", "1g.10gb"},
                        {"jogak.io/gpu-count", "2"},
                        {"jogak.io/gpu-holds", R"([{"gpu":0,"migStart":2}])"}});
  ASSERT_TRUE(two);
  EXPECT_THAT((*two)->places, IsEmpty());
}

TEST(MigAskOf, ErrorsNameTheAnnotation) {
  EXPECT_THAT(ask({{"jogak.io/mig-profile", "huge"}}).error().what,
              HasSubstr("jogak.io/mig-profile"));
  EXPECT_THAT(ask({{"jogak.io/mig-profile", "1g.10gb"}, {"jogak.io/gpu-count", "0"}}).error().what,
              HasSubstr("jogak.io/gpu-count"));
  EXPECT_THAT(ask({{"jogak.io/mig-profile", "1g.10gb"}, {"jogak.io/gpu-holds", "{"}}).error().what,
              HasSubstr("jogak.io/gpu-holds"));
}

}  // namespace
}  // namespace jogak::agent
