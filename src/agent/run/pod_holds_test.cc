// SPDX-License-Identifier: Apache-2.0
// The writer against a scripted API server.
#include "agent/run/pod_holds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::agent {
namespace {

using kube::testing::ScriptedHttp;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PodHoldsPatch, NamesTheNodeSoThatAnotherPodIsRefused) {
  EXPECT_EQ(pod_holds_patch("n1", R"(["GPU-1"])"),
            R"({"metadata":{"annotations":{"jogak.io/gpu-holds":"[\"GPU-1\"]"}},)"
            R"("spec":{"nodeName":"n1"}})");
}

class PodHoldsTest : public ::testing::Test {
 protected:
  PodHoldsTest() : http_(loop_), api_(http_), log_(loop_, sink_), writer_(api_, log_, {"n1"}) {
    http_.serve([this](const ScriptedHttp::ExchangePtr& exchange) {
      exchange->answer({.status = status_, .body = "{}"});
    });
  }
  void settle() { loop_.run_until(loop_.now() + 10 * kMsInUs); }

  SimLoop loop_;
  ScriptedHttp http_;
  kube::ApiClient api_;
  CapturedLog sink_;
  Log log_;
  PodHoldsWriter writer_;
  int status_ = 200;
};

TEST_F(PodHoldsTest, WritesWhatChangedAndNothingElse) {
  writer_.want({{{"a", "p"}, "[1]"}, {{"b", "q"}, "[2]"}});
  settle();
  EXPECT_THAT(http_.lines(), ElementsAre("PATCH /api/v1/namespaces/a/pods/p",
                                         "PATCH /api/v1/namespaces/b/pods/q"));
  http_.forget();
  writer_.want({{{"a", "p"}, "[1]"}, {{"b", "q"}, "[3]"}});
  settle();
  EXPECT_THAT(http_.lines(), ElementsAre("PATCH /api/v1/namespaces/b/pods/q"));
  EXPECT_TRUE(writer_.is_settled());
}

TEST_F(PodHoldsTest, APodOfTheSameNameMayBeAnotherOne) {
  writer_.want({{{"a", "p"}, "[1]"}});
  settle();
  http_.forget();
  writer_.forget_written();
  writer_.want({{{"a", "p"}, "[1]"}});
  settle();
  EXPECT_THAT(http_.lines(), ElementsAre("PATCH /api/v1/namespaces/a/pods/p"));
}

TEST_F(PodHoldsTest, APodThatIsGoneOrElsewhereIsLetBe) {
  for (const int status : {404, 422}) {
    status_ = status;
    writer_.forget_written();
    writer_.want({{{"a", "p"}, "[1]"}});
    settle();
    http_.forget();
    writer_.want({{{"a", "p"}, "[1]"}});
    loop_.run_until(loop_.now() + 300 * kSecondInUs);
    EXPECT_THAT(http_.lines(), IsEmpty()) << status;
  }
}

TEST_F(PodHoldsTest, AnOutageIsWaitedOut) {
  status_ = 503;
  writer_.want({{{"a", "p"}, "[1]"}});
  loop_.run_until(loop_.now() + 30 * kSecondInUs);
  EXPECT_FALSE(writer_.is_settled());
  EXPECT_EQ(sink_.lines.size(), 1U);  // said once
  status_ = 200;
  loop_.run_until(loop_.now() + 120 * kSecondInUs);
  EXPECT_TRUE(writer_.is_settled());
}

}  // namespace
}  // namespace jogak::agent
