// SPDX-License-Identifier: Apache-2.0
//
// `jogak explain` and `jogak whatif` as users run them: against a playground behind a socket, with
// the kubeconfig that it wrote, and against files.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "cli/commands.h"
#include "net/testing/loop_thread.h"
#include "playground/up.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Said {
  int code = 0;
  std::string out, err;
};

Said run(int (*command)(cli::Args), const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = command(views);
  std::fflush(nullptr);
  return {.code = code,
          .out = ::testing::internal::GetCapturedStdout(),
          .err = ::testing::internal::GetCapturedStderr()};
}

// n1: 8 cpu, 4 GPUs   n2: 8 cpu; nobody schedules, so that nothing moves.
class LiveCommands : public ::testing::Test {
 protected:
  LiveCommands() : thread_(std::make_unique<net::LoopThread>()) {
    UpOptions options;
    options.kubeconfig = folder_.path("kubeconfig");
    options.playground.has_scheduler = false;
    options.objects = {simulated_node("n1", 8, 4), simulated_node("n2", 8, 0),
                       priority_class("high", 1000), simple_pod("waits", 2, 2),
                       simple_pod("large", 16, 0)};
    up_ = thread_->call([&] {
      auto started = Up::start(thread_->loop(), std::move(options));
      JOGAK_CHECK(started.has_value(), "{}", started.error().what);
      return *std::move(started);
    });
    while (has_taints()) {  // each look is a turn of the loop; new nodes are not ready at once
    }
  }
  ~LiveCommands() override {
    thread_->call([this] { return up_.reset(), true; });
  }

  // With the kubeconfig.
  Said live(int (*command)(cli::Args), std::vector<std::string> words) {
    words.insert(words.end(), {"--kubeconfig", folder_.path("kubeconfig")});
    return run(command, words);
  }
  std::string file(const std::string& name, std::string_view text) {
    JOGAK_CHECK(write_file(folder_.path(name), text).has_value());
    return folder_.path(name);
  }
  std::vector<Doc> list(std::string_view resource) {
    return thread_->call([&] { return up_->playground().api().list(resource); });
  }
  bool has_taints() {
    return std::ranges::any_of(list("nodes"),
                               [](const Doc& node) { return !node.get("spec", "taints").empty(); });
  }

  TempFolder folder_;
  std::unique_ptr<net::LoopThread> thread_;
  std::unique_ptr<Up> up_;
};

TEST_F(LiveCommands, ExplainSaysWhereAPodWouldGo) {
  const Said said = live(cli::cmd_explain, {"--pod", "default/waits"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, StartsWith("pod      default/waits\nverdict  would be placed on n1 "));
  // The namespace may be left out: it is the context's.
  EXPECT_EQ(live(cli::cmd_explain, {"--pod", "waits"}).out, said.out);
  EXPECT_EQ(live(cli::cmd_explain, {"--pod", "large"}).code, 1);
}

TEST_F(LiveCommands, WhatifSaysWhatWouldStartAndWait) {
  const Said said = live(cli::cmd_whatif, {});
  EXPECT_EQ(said.code, 1) << said.err;
  EXPECT_THAT(said.out, HasSubstr("would start: 1 pod:\n"
                                  "  POD            PRIORITY  NODE  DEVICES  NOTE\n"
                                  "  default/waits         0  n1    2 GPUs\n"));
  EXPECT_THAT(said.out, HasSubstr("would wait: 1 pod:\n  default/large\n"));
}

TEST_F(LiveCommands, WhatifTakesManifestsOfClassesThatTheClusterHas) {
  const std::string manifests = file("job.yaml", R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      priorityClassName: high
      containers:
      - {name: main, image: x, resources: {limits: {cpu: 1, nvidia.com/gpu: 2}}}
)");
  const Said said = live(cli::cmd_whatif, {"-f", manifests, "-n", "team"});
  EXPECT_EQ(said.code, 1) << said.err;
  EXPECT_THAT(said.out, HasSubstr("  team/train-0      1000  n1    2 GPUs\n"
                                  "  team/train-1      1000  n1    2 GPUs\n"));
  EXPECT_THAT(said.out, HasSubstr("would wait: 2 pods:\n"));
}

TEST_F(LiveCommands, NodesComeAsCopiesOrMadeUp) {
  const Said copy = live(cli::cmd_whatif, {"--add-nodes", "2xn1", "-o", "yaml"});
  EXPECT_THAT(copy.out, HasSubstr("addedNodes:\n- n1-new-1\n- n1-new-2\n")) << copy.err;
  const Said made = live(cli::cmd_whatif, {"--add-nodes", "n2,1x8xH100,1xCPU", "-o", "yaml"});
  EXPECT_THAT(made.out, HasSubstr("addedNodes:\n- n2-new-1\n- new-h100-80-000\n- new-cpu-000\n"))
      << made.err;
  EXPECT_EQ(live(cli::cmd_whatif, {"--add-nodes", "1xCPU", "--remove-node", "n2"}).code, 0);
}

TEST_F(LiveCommands, WhatAsksForNodesThatAreNotThereIsRefused) {
  EXPECT_EQ(live(cli::cmd_whatif, {"--add-nodes", "2xn3"}).err,
            "jogak whatif: --add-nodes: 2xn3: no node n3 to copy; did you mean n1?\n");
  EXPECT_EQ(live(cli::cmd_whatif, {"--add-nodes", "0xn1"}).err,
            "jogak whatif: --add-nodes: 0 copies of n1; want 1 to 20000\n");
  EXPECT_THAT(live(cli::cmd_whatif, {"--add-nodes", "2x8xZ9000"}).err,
              StartsWith("jogak whatif: --add-nodes: no node 8xZ9000 to copy, and no made-up nodes "
                         "either: 2x8xZ9000: unknown model Z9000; the models are "));
  const Said said = live(cli::cmd_whatif, {"--drain", "n4"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.err, "jogak whatif: --drain: no node n4 among 2; did you mean n1?\n");
}

TEST_F(LiveCommands, NothingIsEverWritten) {
  const std::vector<Doc> pods = list("pods");
  const std::vector<Doc> events = list("events");
  live(cli::cmd_whatif, {"--remove-node", "n1", "--add-nodes", "3xn2", "--policy", "kube"});
  live(cli::cmd_explain, {"--pod", "waits"});
  EXPECT_EQ(list("pods"), pods);
  EXPECT_EQ(list("events"), events);
  EXPECT_EQ(list("nodes").size(), 2U);
}

TEST_F(LiveCommands, ATokenThatIsNotAcceptedIsOneLineWithACure) {
  auto text = read_file(folder_.path("kubeconfig"));
  ASSERT_TRUE(text.has_value());
  const std::size_t at = text->find("token: ");
  ASSERT_NE(at, std::string::npos);
  text->replace(at, text->find('\n', at) - at, "token: other");
  const Said said = run(cli::cmd_whatif, {"--kubeconfig", file("other", *text)});
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr("does not accept the bearer token"));
  EXPECT_EQ(said.err.find('\n'), said.err.size() - 1);
}

TEST(FileCommands, WhatifReadsFilesInsteadOfALiveCluster) {
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("cluster.json"), R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4","pods":"10"}}},
    {"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
      {"resources":{"requests":{"cpu":"2"}}}]}}]})")
                  .has_value());
  const Said said = run(cli::cmd_whatif, {"--cluster", folder.path("cluster.json")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("default/p         0  n1"));
  const Said both = run(cli::cmd_whatif, {"-c", folder.path("cluster.json"), "--context", "x"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, StartsWith("jogak whatif: --cluster and --context: "));
  EXPECT_EQ(run(cli::cmd_whatif, {"-c", "-", "-f", "-"}).err,
            "jogak whatif: standard input can be read only once\n");
  EXPECT_EQ(run(cli::cmd_whatif, {"-c", folder.path("none.json")}).code, 2);
}

}  // namespace
}  // namespace jogak::playground::testing
