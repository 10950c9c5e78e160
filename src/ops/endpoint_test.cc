// SPDX-License-Identifier: Apache-2.0
//
// Every page as its reader gets it, and who may not.
#include "ops/endpoint.h"

#include <gtest/gtest.h>

namespace jogak::ops {
namespace {

class Written : public net::ResponseWriter {
 public:
  void respond(int code, net::Headers head, std::string text) override {
    status = code;
    headers = std::move(head);
    body = std::move(text);
  }
  void begin(int code, net::Headers head) override { respond(code, std::move(head), ""); }
  void write(std::string_view bytes) override { body += bytes; }
  void write_shared(std::shared_ptr<const std::string> bytes) override { body += *bytes; }
  void end() override {}
  bool is_open() const override { return true; }
  std::size_t pending() const override { return 0; }
  void on_close(std::function<void()> /*callback*/) override {}
  void on_drain(std::function<void()> /*callback*/) override {}
  void abort() override {}

  int status = 0;
  net::Headers headers;
  std::string body;
};

class EndpointTest : public ::testing::Test {
 protected:
  Written ask(std::string target, bool is_debug = false, std::string method = "GET",
              net::Headers headers = {}) {
    const EndpointParts parts{
        .registry = registry_,
        .program = "jogak scheduler 1",
        .ready = [this] { return checks_; },
        .config = [] { return std::string(R"({"kind":"SchedulerConfiguration"})"); },
        .state = [this] { return state_; },
        .drift = [] { return std::string("none yet\n"); }};
    const auto writer = std::make_shared<Written>();
    const net::HttpHandler handler = is_debug ? debug_handler(parts) : public_handler(parts);
    handler({.method = std::move(method),
             .target = std::move(target),
             .headers = std::move(headers),
             .body = {}},
            writer);
    return *writer;
  }

  Registry registry_;
  std::vector<Check> checks_ = {{.name = "informer-pods", .is_ok = true, .detail = "2 objects"}};
  Result<std::string> state_ = std::string("{}");
};

TEST_F(EndpointTest, Metrics) {
  registry_.counter("x_total", "X.").add(2);
  const Written text = ask("/metrics");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(net::header(text.headers, "content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(text.body, "# HELP x_total X.\n# TYPE x_total counter\nx_total 2\n");
  const Written open =
      ask("/metrics", false, "GET", {{"Accept", "application/openmetrics-text;version=1.0.0"}});
  EXPECT_TRUE(open.body.ends_with("# EOF\n"));
  EXPECT_EQ(net::header(open.headers, "content-type"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

TEST_F(EndpointTest, LiveAndReady) {
  EXPECT_EQ(ask("/livez").body, "ok");
  EXPECT_EQ(ask("/healthz?verbose").body, "ok");
  EXPECT_EQ(ask("/readyz").body, "ok");
  EXPECT_EQ(ask("/readyz?verbose").body, "[+]informer-pods ok: 2 objects\nreadyz check passed\n");
  EXPECT_EQ(ask("/readyz?a=b&verbose=1").body, ask("/readyz?verbose").body);
}

TEST_F(EndpointTest, NotReadySaysWhyUnasked) {
  checks_.push_back({.name = "informer-nodes", .is_ok = false, .detail = "no answer"});
  const Written answer = ask("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body,
            "[+]informer-pods ok: 2 objects\n[-]informer-nodes failed: no answer\n"
            "readyz check failed\n");
}

TEST_F(EndpointTest, WhatNamesPodsIsForLoopbackAlone) {
  for (const char* path : {"/configz", "/debug/state", "/debug/drift"}) {
    EXPECT_EQ(ask(path).status, 403) << path;
    EXPECT_EQ(ask(path, true).status, 200) << path;
  }
  EXPECT_EQ(ask("/configz", true).body, R"({"kind":"SchedulerConfiguration"})");
  EXPECT_EQ(ask("/debug/drift", true).body, "none yet\n");
  EXPECT_EQ(ask("/metrics", true).status, 200);
}

TEST_F(EndpointTest, AStateThatCannotBeWritten) {
  state_ = invalid("pod team/a: odd");
  const Written answer = ask("/debug/state", true);
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "pod team/a: odd\n");
}

TEST_F(EndpointTest, TheIndexListsWhatThereIs) {
  EXPECT_EQ(ask("/").body.find("/debug/state"), std::string::npos);
  EXPECT_NE(ask("/").body.find("/metrics"), std::string::npos);
  EXPECT_NE(ask("/", true).body.find("/debug/state"), std::string::npos);
}

TEST_F(EndpointTest, OtherRequests) {
  EXPECT_EQ(ask("/metrics", false, "POST").status, 405);
  EXPECT_EQ(ask("/metrics", false, "HEAD").status, 200);
  EXPECT_EQ(ask("/metricsx").status, 404);
  EXPECT_EQ(ask("").status, 404);
}

}  // namespace
}  // namespace jogak::ops
