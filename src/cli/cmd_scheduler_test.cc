// SPDX-License-Identifier: Apache-2.0
//
// The scheduler as `jogak scheduler` runs it, against the playground's server, under virtual time:
// two replicas, a clean stop, a replica that dies, and what an operator sees meanwhile.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "base/file.h"
#include "base/sim_loop.h"
#include "base/testing/temp_folder.h"
#include "cli/commands.h"
#include "core/engine/scheduler.h"
#include "core/policy/policy.h"
#include "import/import.h"
#include "ops/scheduler_app.h"
#include "playground/fleet.h"
#include "playground/local_client.h"
#include "playground/playground.h"

namespace jogak::cli {
namespace {

using ops::SchedulerApp;
using ::testing::Contains;
using ::testing::HasSubstr;

// The way to the server, which can be cut.
class Cable : public net::HttpClient {
 public:
  explicit Cable(net::HttpClient& inner) : inner_(inner) {}
  Loop& loop() override { return inner_.loop(); }
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->on_end = events.on_end;
    if (is_cut) {
      loop().post([exchange] { exchange->break_off(); });
      return exchange;
    }
    open_.push_back(exchange);
    exchange->inner = inner_.send(std::move(request), std::move(events));
    return exchange;
  }
  void cut() {
    is_cut = true;
    for (const auto& weak : open_) {
      if (const auto exchange = weak.lock()) exchange->break_off();
    }
    open_.clear();
  }

  bool is_cut = false;

 private:
  struct Exchange {
    void break_off() {
      inner.reset();
      const auto told = std::exchange(on_end, nullptr);
      if (told) told(fail(Errc::Unavailable, "the cable is cut"));
    }
    std::function<void(Result<void>)> on_end;
    std::shared_ptr<void> inner;
  };
  net::HttpClient& inner_;
  std::vector<std::weak_ptr<Exchange>> open_;
};

// A replica with its own way to the server, and what it said.
struct Replica {
  Replica(SimLoop& loop, playground::Playground& cluster, std::string name, bool has_lease)
      : client(loop, cluster.server(), "secret"), cable(client), log(loop, captured) {
    ops::SchedulerAppOptions options;
    options.config.leader_election.is_on = has_lease;
    options.version = "1";
    options.host = "host";
    options.identity = std::move(name);
    options.server = "local";
    app.emplace(cable, log, std::move(options), [this](SchedulerApp::End how, const auto& text) {
      end = how;
      why = text;
    });
  }
  std::string ready() const {
    return app->ready_checks().empty() ? "" : ops::checks_text(app->ready_checks());
  }
  std::string metrics() { return app->endpoint_parts().registry.expose(ExpositionFormat::Text); }

  playground::LocalClient client;
  Cable cable;
  CapturedLog captured;
  Log log;
  std::optional<SchedulerApp> app;
  std::optional<SchedulerApp::End> end;
  std::string why;
};

class SchedulerCommand : public ::testing::Test {
 protected:
  SchedulerCommand() {
    playground::PlaygroundOptions options;
    options.has_scheduler = false;
    options.server.tokens["secret"] = api::User{};
    auto made = playground::Playground::make(loop_, std::move(options));
    EXPECT_TRUE(made.has_value());
    cluster_ = *std::move(made);
    load(R"({apiVersion: v1, kind: Node, metadata: {name: n1, labels: {jogak.io/simulated: "true"}},
             status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"},
                      capacity: {cpu: "4", memory: 8Gi, pods: "10"}}})");
    loop_.run_for(5 * kSecondInUs);
  }

  void load(std::string_view text) {
    const auto objects = playground::read_manifests(text, "test");
    ASSERT_TRUE(objects.has_value()) << objects.error().what;
    const auto loaded = cluster_->load(*objects);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().what;
  }
  void load_pod(std::string_view name, std::string_view cpu, std::string_view scheduler = "jogak") {
    load(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: default}}, "
                    "spec: {{schedulerName: {}, containers: [{{name: c, image: i, "
                    "command: [sleep, infinity], resources: {{requests: {{cpu: {}}}}}}}]}}}}",
                    name, scheduler, cpu));
  }
  std::string node_of(std::string_view pod) {
    const auto found = cluster_->api().get("pods", "default", pod);
    return found ? found->get("spec", "nodeName").as_string() : "gone";
  }
  void run(int seconds) { loop_.run_for(seconds * kSecondInUs); }

  SimLoop loop_;
  std::unique_ptr<playground::Playground> cluster_;
};

TEST_F(SchedulerCommand, StartsBindsAndStops) {
  Replica replica(loop_, *cluster_, "a", true);
  EXPECT_THAT(replica.ready(), HasSubstr("[-]api-server failed"));
  run(3);
  EXPECT_THAT(replica.ready(), HasSubstr("[+]leader-election ok: this replica leads\n"));
  EXPECT_THAT(replica.ready(), HasSubstr("readyz check passed\n"));
  EXPECT_THAT(replica.captured.lines, Contains("info: leading  lease=jogak-scheduler"));
  load_pod("p", "1");
  load_pod("big", "64");
  load_pod("foreign", "1", "other");
  run(2);
  EXPECT_EQ(node_of("p"), "n1");
  EXPECT_EQ(node_of("big"), "");
  EXPECT_EQ(node_of("foreign"), "");
  const std::string metrics = replica.metrics();
  EXPECT_THAT(metrics, HasSubstr("scheduler_schedule_attempts_total{result=\"scheduled\","
                                 "profile=\"jogak\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\","
                                 "profile=\"jogak\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("leader_election_master_status{name=\"jogak-scheduler\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("jogak_informer_objects{resource=\"nodes\"} 1\n"));

  replica.app->stop();
  run(2);
  EXPECT_EQ(replica.end, SchedulerApp::End::Stopped);
  EXPECT_THAT(replica.captured.lines, Contains("info: the lease is given up"));
  EXPECT_THAT(replica.ready(), HasSubstr("[-]shutdown failed\n"));
  load_pod("late", "1");
  run(30);
  EXPECT_EQ(node_of("late"), "") << "who has stopped decides no more";
}

TEST_F(SchedulerCommand, AStandbyTakesOverAtOnceAfterACleanStop) {
  Replica first(loop_, *cluster_, "a", true);
  run(3);
  Replica second(loop_, *cluster_, "b", true);
  run(3);
  EXPECT_FALSE(second.app->is_leading());
  EXPECT_THAT(second.ready(), HasSubstr("leader-election ok: standing by; a leads\n"));
  EXPECT_THAT(second.ready(), HasSubstr("readyz check passed"));
  load_pod("p", "1");
  run(1);
  EXPECT_EQ(node_of("p"), "n1");
  first.app->stop();
  run(4);
  EXPECT_TRUE(second.app->is_leading());
  load_pod("q", "1");
  run(1);
  EXPECT_EQ(node_of("q"), "n1");
}

TEST_F(SchedulerCommand, AStandbyTakesOverWithinTheLeaseAfterACrash) {
  auto first = std::make_unique<Replica>(loop_, *cluster_, "a", true);
  run(3);
  Replica second(loop_, *cluster_, "b", true);
  run(3);
  first.reset();  // no goodbye
  load_pod("p", "1");
  run(10);
  EXPECT_EQ(node_of("p"), "") << "the lease still holds";
  run(10);
  EXPECT_TRUE(second.app->is_leading());
  EXPECT_EQ(node_of("p"), "n1");
}

TEST_F(SchedulerCommand, WhoseLeaseIsTakenEndsAtOnce) {
  Replica replica(loop_, *cluster_, "a", true);
  run(3);
  ASSERT_TRUE(replica.app->is_leading());
  auto lease = cluster_->api().get("leases.coordination.k8s.io", "kube-system", "jogak-scheduler");
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  lease->at("spec").set("holderIdentity", "somebody");
  ASSERT_TRUE(cluster_->api().update("leases.coordination.k8s.io", *lease).has_value());
  run(12);
  EXPECT_EQ(replica.end, SchedulerApp::End::LeaseLost);
  EXPECT_FALSE(replica.app->is_leading());
  load_pod("p", "1");
  run(5);
  EXPECT_EQ(node_of("p"), "");
}

TEST_F(SchedulerCommand, AnOutageIsToldOnceAndItsEndToo) {
  Replica replica(loop_, *cluster_, "a", false);
  run(2);
  const std::size_t before = replica.captured.lines.size();
  replica.cable.cut();
  run(30);
  EXPECT_THAT(replica.ready(), HasSubstr("[+]informer-pods ok: 0 objects; failing for "));
  EXPECT_THAT(replica.ready(), HasSubstr("readyz check passed"));
  std::vector<std::string> said(
      replica.captured.lines.begin() + static_cast<std::ptrdiff_t>(before),
      replica.captured.lines.end());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("warn: cannot follow the API server  resource="));
  run(40);
  EXPECT_THAT(replica.ready(), HasSubstr("[-]informer-pods failed: "));
  EXPECT_THAT(replica.ready(), HasSubstr("the cable is cut"));
  replica.cable.is_cut = false;
  run(40);
  EXPECT_THAT(replica.captured.lines.back(), HasSubstr("info: the API server is followed again"));
  EXPECT_THAT(replica.ready(), HasSubstr("readyz check passed"));
  load_pod("p", "1");
  run(1);
  EXPECT_EQ(node_of("p"), "n1");
}

TEST_F(SchedulerCommand, WrongCredentialsEndTheStart) {
  playground::LocalClient client(loop_, cluster_->server(), "wrong");
  CapturedLog captured;
  Log log(loop_, captured);
  std::string why;
  ops::SchedulerAppOptions options;
  options.server = "local";
  SchedulerApp app(client, log, options, [&](SchedulerApp::End end, const std::string& text) {
    EXPECT_EQ(end, SchedulerApp::End::Failed);
    why = text;
  });
  run(2);
  EXPECT_THAT(why, HasSubstr("local does not accept the credentials (401"));
}

TEST_F(SchedulerCommand, ComparesWithTheServer) {
  Replica replica(loop_, *cluster_, "a", false);
  replica.app->compare();
  EXPECT_THAT(replica.captured.lines,
              Contains("warn: nothing to compare yet  why=\"not everything has been seen\""));
  run(2);
  load_pod("p", "1");
  run(2);
  replica.app->compare();
  run(7);
  EXPECT_THAT(replica.captured.lines,
              Contains("info: memory is as the server says  nodes=1 pods=1 changing=0"));
  EXPECT_THAT(replica.metrics(), HasSubstr("jogak_cache_drift_checks_total{result=\"clean\"} 1\n"));
  EXPECT_THAT(replica.app->endpoint_parts().drift(), HasSubstr("0 differences"));
}

// The waiting pods in the order of their names, each with the node it would get.
std::string decisions(core::Cluster& cluster) {
  const auto policy = std::move(core::make_policy("jogak", 1)).value();
  core::Scheduler scheduler(cluster, *policy);
  std::map<std::string, core::PodId> waiting;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    const core::PodId id{i};
    if (cluster.pod(id).state == core::PodState::Pending) {
      waiting.emplace(cluster.pod_full_name(id), id);
    }
  }
  std::string text;
  for (const auto& [name, id] : waiting) {
    const core::Decision decision = scheduler.decide(id);
    text += name + " " +
            (decision.node.valid() ? std::string(cluster.text(cluster.node(decision.node).name))
                                   : "nowhere") +
            "\n";
  }
  return text;
}

TEST_F(SchedulerCommand, ItsStateIsASimulation) {
  load(R"({apiVersion: v1, kind: Node, metadata: {name: n2, labels: {zone: b}},
           spec: {taints: [{key: t, effect: NoSchedule}]},
           status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10", nvidia.com/gpu: "4"}}})");
  load(
      R"({apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default},
           spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}})");
  Replica replica(loop_, *cluster_, "a", false);
  run(2);
  for (int i = 0; i < 6; ++i) load_pod(fmt::format("p{}", i), "1");
  // Its init container asks for less than scores assume of the silent one.
  load(R"({apiVersion: v1, kind: Pod, metadata: {name: init, namespace: default},
           spec: {schedulerName: jogak,
                  initContainers: [{name: i, image: i, resources: {requests: {cpu: 50m}}}],
                  containers: [{name: c, image: i, command: [sleep, infinity]}]}})");
  load(R"({apiVersion: v1, kind: Pod, metadata: {name: level, namespace: default},
           spec: {schedulerName: jogak, resources: {requests: {cpu: 10, memory: 1Gi}},
                  containers: [{name: c, image: i}]}})");
  run(3);
  const auto text = replica.app->endpoint_parts().state();
  ASSERT_TRUE(text.has_value()) << text.error().what;
  EXPECT_THAT(*text, HasSubstr(R"("schedulerName":"jogak")"));
  core::Cluster copy;
  const auto report = importer::import_list(*text, "dump", copy);
  ASSERT_TRUE(report.has_value()) << report.error().what;
  EXPECT_EQ(report->others, replica.app->driver()->cluster().objects().namespaces.size() + 2)
      << "namespaces, the budget, the service kubernetes";
  EXPECT_EQ(copy.digest(), replica.app->driver()->cluster().digest());
  core::Cluster again;
  ASSERT_TRUE(importer::import_list(*text, "dump", again).has_value());
  EXPECT_EQ(decisions(copy), decisions(again));
  EXPECT_THAT(decisions(copy), HasSubstr("default/level nowhere\n"));
}

// Answers of a command, as a document.
Doc answer_of(int (*command)(Args), std::vector<std::string_view> words) {
  words.insert(words.end(), {"-o", "json"});
  ::testing::internal::CaptureStdout();
  command(words);
  const auto parsed = codec::parse_json(::testing::internal::GetCapturedStdout());
  EXPECT_TRUE(parsed.has_value()) << parsed.error().what;
  return parsed ? parsed->doc : Doc();
}

TEST_F(SchedulerCommand, ItsStatePlaysAsWhatifSays) {
  for (int i = 2; i < 5; ++i) {
    load(
        fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: n{}, "
                    "labels: {{jogak.io/simulated: 'true'}}}}, "
                    "status: {{allocatable: {{cpu: '{}', memory: 8Gi, pods: '10'}}}}}}",
                    i, i));
  }
  Replica replica(loop_, *cluster_, "a", false);
  run(5);
  for (int i = 0; i < 5; ++i) load_pod(fmt::format("runs-{}", i), "1");
  run(3);
  // Who should place these never came.
  for (int i = 0; i < 8; ++i) load_pod(fmt::format("waits-{}", i), i % 2 ? "1" : "2", "other");
  load_pod("huge", "64");
  run(3);
  const auto text = replica.app->endpoint_parts().state();
  ASSERT_TRUE(text.has_value()) << text.error().what;
  const TempFolder folder;
  const std::string dump = folder.path("now.json");
  ASSERT_TRUE(write_file(dump, *text).has_value());
  for (const std::string_view policy : {"jogak", "kube", "best-fit"}) {
    const Doc said = answer_of(cmd_whatif, {"--cluster", dump, "--policy", policy, "--all"});
    std::map<std::string, std::string> expected, got;
    for (const std::string_view list : {"starts", "waits"}) {
      for (const Doc& pod : said.get(list).items()) {
        expected[pod.get("pod").as_string()] = pod.get("node").as_string();
      }
    }
    const std::vector<std::string_view> words = {"--cluster", dump, "--policy", policy,
                                                 "--no-timing"};
    const Doc played = answer_of(cmd_sim_run, words);
    std::size_t running = 0;
    for (const Doc& pod : played.get("pods").items()) {
      const std::string& node = pod.get("node").as_string();
      if (pod.get("was_running").as_bool()) {
        EXPECT_EQ(node, node_of(pod.get("pod").as_string().substr(8)));
        ++running;
      } else {
        got[pod.get("pod").as_string()] = node;
      }
    }
    EXPECT_EQ(running, 5U);
    EXPECT_EQ(got.size(), 9U);
    EXPECT_EQ(got, expected) << policy;
    EXPECT_EQ(answer_of(cmd_sim_run, words), played) << "the digest too";
  }
}

TEST(SchedulerFlags, BadOnesAreNamed) {
  const auto run = [](std::vector<std::string_view> words) {
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    const int code = cmd_scheduler(words);
    ::testing::internal::GetCapturedStdout();
    return fmt::format("{}: {}", code, ::testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(run({"--print-config"}), "0: ");
  EXPECT_EQ(run({"--metrics-address", "10269", "--print-config"}),
            "2: jogak scheduler: --metrics-address: expected IP:PORT, got 10269\n");
  EXPECT_THAT(run({"--policy", "joga", "--print-config"}), HasSubstr("did you mean jogak?"));
  EXPECT_THAT(run({"--log-level", "loud", "--print-config"}), HasSubstr("--log-level: "));
  EXPECT_THAT(run({"--scheduler-name", "a", "--scheduler-name", "a", "--print-config"}),
              HasSubstr("taken by another profile"));
  EXPECT_THAT(run({"--config", "no-such-file"}), HasSubstr("2: jogak scheduler: "));
}

TEST(SchedulerFlags, WinOverTheDefaults) {
  ::testing::internal::CaptureStdout();
  const std::vector<std::string_view> words = {"--print-config",
                                               "--scheduler-name",
                                               "default-scheduler",
                                               "--policy",
                                               "kube",
                                               "--leader-elect",
                                               "false",
                                               "--metrics-address",
                                               "[::1]:1234",
                                               "--debug-port",
                                               "off",
                                               "--log-level",
                                               "debug",
                                               "--kubeconfig",
                                               "k",
                                               "--context",
                                               "c"};
  EXPECT_EQ(cmd_scheduler(words), 0);
  const auto config = live::read_config("out", ::testing::internal::GetCapturedStdout());
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(config->profiles, (std::vector<live::ProfileConfig>{{"default-scheduler", "kube"}}));
  EXPECT_FALSE(config->leader_election.is_on);
  EXPECT_EQ(config->server.bind_address, "::1");
  EXPECT_EQ(config->server.port, 1234);
  EXPECT_FALSE(config->server.has_debug);
  EXPECT_EQ(config->logging.level, LogLevel::Debug);
  EXPECT_EQ(config->client.kubeconfig, "k");
  EXPECT_EQ(config->client.context, "c");
}

}  // namespace
}  // namespace jogak::cli
