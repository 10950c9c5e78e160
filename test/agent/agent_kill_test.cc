// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` is killed (SIGKILL) at each step that others can see of it: the kubelet's
// calls, the CDI files it writes, its requests to the API server. The next one starts from what was
// left: no device is held by two pods, CDI files are whole and none is stale, the node has the
// agent's labels and everybody else's.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/server/server.h"
#include "base/check.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "net/http_server.h"
#include "net/testing/loop_thread.h"
#include "playground/access.h"
#include "test/agent/agent_process.h"
#include "test/agent/folder_events.h"
#include "test/kubelet/child.h"
#include "test/kubelet/held_devices.h"
#include "test/kubelet/kubelet.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using jogak::testing::Child;
using jogak::testing::FolderEvents;
using kubelet::HeldDevices;
using kubelet::Kubelet;
using kubelet::NodeCounts;
using kubelet::StartedContainer;
using ::testing::IsEmpty;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kMachine = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: agent-kill-test
gpus:
- {model: A100-SXM4-40GB, count: 8}
)";

// An API server, and what it does with each request: `on_step` hears of it before it is looked at
// and before its answer leaves, "PATCH nodes/n1: asked", on the server's thread; true means that
// the other end is gone.
class ApiServer {
 public:
  using OnStep = std::function<bool(const std::string& step)>;

  explicit ApiServer(const std::string& kubeconfig) {
    thread_.call([&] {
      api::ServerOptions options;
      api::User user;
      user.name = "agent";
      user.groups = {"system:masters"};
      options.tokens = {{kToken, user}};
      auto server = api::Server::make(thread_.loop(), std::move(options));
      JOGAK_CHECK(server.has_value());
      server_ = *std::move(server);
      api_ = server_->api("test");
      const auto identity = net::make_self_signed({"127.0.0.1"});
      JOGAK_CHECK(identity.has_value());
      net::HttpServerOptions listen;
      listen.tls = *net::TlsContext::make(*identity);
      listen.before_write = [this] { return server_->flush().has_value(); };
      auto http = net::HttpServer::listen(
          thread_.loop(), std::move(listen),
          [this](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
            handle(std::move(request), std::move(writer));
          });
      JOGAK_CHECK(http.has_value());
      http_ = *std::move(http);
      JOGAK_CHECK(playground::write_kubeconfig(
          kubeconfig, {.url = http_->url(), .token = kToken, .ca_pem = identity->certificate_pem}));
    });
  }
  ~ApiServer() {
    thread_.call([&] {
      http_.reset();
      api_.reset();
      server_.reset();
    });
  }
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  void watch(OnStep on_step) {
    thread_.call([&] { on_step_ = std::move(on_step); });
  }
  void put(const std::string& resource, const std::string& ns, Doc object) {
    thread_.call([&] {
      const std::string name = object.get("metadata", "name").as_string();
      (void)api_->remove(resource, ns, name, Doc().set("gracePeriodSeconds", 0));
      const auto made = api_->create(resource, ns, std::move(object));
      JOGAK_CHECK(made.has_value(), "{}", made.error().message);
    });
  }
  Doc get(const std::string& resource, const std::string& ns, const std::string& name) {
    return thread_.call([&] { return api_->get(resource, ns, name).value_or(Doc()); });
  }

 private:
  static constexpr auto kToken = "0123456789abcdef0123456789abcdef";

  // Passes an answer on, if anybody is left to take it.
  class Watched final : public net::ResponseWriter {
   public:
    Watched(std::shared_ptr<net::ResponseWriter> to, std::function<bool()> before)
        : to_(std::move(to)), before_(std::move(before)) {}
    void respond(int status, net::Headers headers, std::string body) override {
      if (before_()) return to_->abort();
      to_->respond(status, std::move(headers), std::move(body));
    }
    void begin(int status, net::Headers headers) override { to_->begin(status, headers); }
    void write(std::string_view bytes) override { to_->write(bytes); }
    void write_shared(std::shared_ptr<const std::string> bytes) override {
      to_->write_shared(std::move(bytes));
    }
    void end() override { to_->end(); }
    bool is_open() const override { return to_->is_open(); }
    std::size_t pending() const override { return to_->pending(); }
    void on_close(std::function<void()> callback) override { to_->on_close(std::move(callback)); }
    void on_drain(std::function<void()> callback) override { to_->on_drain(std::move(callback)); }
    void abort() override { to_->abort(); }

   private:
    std::shared_ptr<net::ResponseWriter> to_;
    std::function<bool()> before_;
  };

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
    constexpr std::string_view kBefore = "/api/v1/";
    std::string_view path = request.target;
    path = path.substr(0, path.find('?'));
    if (path.starts_with(kBefore)) path.remove_prefix(kBefore.size());
    const std::string name = request.method + " " + std::string(path);
    if (on_step_ && on_step_(name + ": asked")) return writer->abort();
    server_->handle(std::move(request), std::make_shared<Watched>(std::move(writer), [this, name] {
                      return on_step_ && on_step_(name + ": done");
                    }));
  }

  net::LoopThread thread_;
  OnStep on_step_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<net::HttpServer> http_;
};

std::map<std::string, std::string> texts(const Doc& object) {
  std::map<std::string, std::string> result;
  for (const Doc::Member& member : object.members()) {
    if (member.key.ends_with("timestamp")) continue;  // of the agent's start
    result[member.key] = member.value.as_string();
  }
  return result;
}

class AgentKill : public ::testing::Test {
 protected:
  AgentKill() : kubelet_(folder_.path(), 3) {
    EXPECT_TRUE(write_file(folder_.path("machine.yaml"), kMachine));
    words_ = {jogak_binary(),
              "agent",
              "run",
              "--nvml",
              "sim:" + folder_.path("machine.yaml"),
              "--kubelet-dir",
              folder_.path(),
              "--mig-journal",
              folder_.path("journal.json"),
              "--exporter-address",
              "off",
              "--node-name",
              "n1"};
  }

  std::unique_ptr<Child> start(const std::vector<std::string>& more) {
    std::vector<std::string> words = words_;
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Child>(words, std::vector<std::string>(), folder_.path("log"));
  }
  std::string log() const { return read_file(folder_.path("log")).value_or(""); }
  bool wait_for(NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(kGpu) == counts; });
  }
  int sockets() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path("device-plugins"))) {
      if (entry.path().filename().string().starts_with("jogak-")) ++count;
    }
    return count;
  }

  TempFolder folder_;
  Kubelet kubelet_;
  std::vector<std::string> words_;
};

TEST_F(AgentKill, at_each_call_between_it_and_the_kubelet) {
  std::string target;  // written while no agent runs
  std::atomic<Child*> child = nullptr;
  kubelet_.on_step = [&](std::string_view step, const std::string& /*resource*/) {
    if (Child* const victim = child.load(); victim != nullptr && step == target) victim->kill();
  };
  kubelet_.start();
  HeldDevices held;
  std::set<std::string> pods;
  const auto run_pod = [&](const std::string& name, int count) {
    const auto run =
        kubelet_.run({.name = name, .containers = {{.name = "c", .devices = {{kGpu, count}}}}});
    if (!run) return false;
    held.add(name, run->at("c"));
    pods.insert(name);
    return true;
  };
  for (const char* const step :
       {"register", "options", "options-given", "list", "prefer", "preferred", "allocate",
        "allocated", "pre-start", "pre-started"}) {
    SCOPED_TRACE(std::string("killed at ") + step);
    target = step;
    const auto agent = start({"--kubeconfig", "off"});
    child = agent.get();
    kubelet_.wait(
        [&] { return !agent->is_running() || kubelet_.counts(kGpu) == NodeCounts{8, 8}; });
    for (int i = 0; i < 3 && agent->is_running(); ++i) {
      run_pod(std::string(step) + "-" + std::to_string(i), 1 + i);
      while (pods.size() > 2) {
        held.remove(*pods.begin());
        kubelet_.remove("default", *pods.begin());
        pods.erase(pods.begin());
      }
    }
    EXPECT_EQ(agent->wait(), 128 + SIGKILL) << log();
    child = nullptr;
    ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
    EXPECT_FALSE(run_pod("nobody serves", 1));
  }
  const auto agent = start({"--kubeconfig", "off"});
  ASSERT_TRUE(wait_for({8, 8})) << log();
  EXPECT_TRUE(run_pod("last", 1));
  EXPECT_EQ(sockets(), 1) << "sockets of dead agents are left";
  EXPECT_THAT(kubelet_.complaints(), IsEmpty());
}

TEST_F(AgentKill, while_it_writes_cdi_files) {
  kubelet_.start();
  const std::string cdi = folder_.path("cdi");
  const std::vector<std::string> flags = {"--kubeconfig",           "off",    "--cdi-dir", cdi,
                                          "--device-list-strategy", "cdi-cri"};
  const auto files = [&] {
    std::map<std::string, std::string> result;
    for (const auto& entry : fs::directory_iterator(cdi)) {
      result[entry.path().filename().string()] = read_file(entry.path().string()).value_or("");
    }
    return result;
  };
  fs::create_directories(cdi);
  ASSERT_TRUE(write_file(cdi + "/other.json", "{}"));
  std::map<std::string, std::string> whole;
  {
    const auto agent = start(flags);
    ASSERT_TRUE(wait_for({8, 8})) << log();
    whole = files();
    ASSERT_EQ(whole.size(), 2U);
  }
  bool was_killed = true;
  int kills = 0;
  for (int kill_after = 1; was_killed; ++kill_after) {
    SCOPED_TRACE("killed after " + std::to_string(kill_after) + " changes of files");
    ASSERT_LT(kill_after, 50);
    ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
    // Whole before, or torn by somebody, or not there; and files of an agent that knew other GPUs.
    for (const auto& [name, text] : whole) {
      if (name == "other.json") continue;
      fs::remove(cdi + "/" + name);
      if (kill_after % 3 == 0) continue;
      const std::string old = kill_after % 3 == 1 ? text : text.substr(0, 99);
      ASSERT_TRUE(write_file(cdi + "/" + name, old));
    }
    ASSERT_TRUE(write_file(cdi + "/k8s.device-plugin.nvidia.com-old.json", "{}"));
    ASSERT_TRUE(write_file(cdi + "/k8s.device-plugin.nvidia.com-older.yaml", "{}"));
    {
      FolderEvents events(cdi);
      const auto agent = start(flags);
      for (int seen = 0; seen < kill_after && agent->is_running();) {
        seen += events.wait();
        // Offered: the files are done.
        if (kubelet_.counts(kGpu) == NodeCounts{8, 8}) break;
      }
      was_killed = kubelet_.counts(kGpu).allocatable == 0;
      agent->kill();
      EXPECT_EQ(agent->wait(), 128 + SIGKILL) << log();
    }
    kills += was_killed ? 1 : 0;
    for (const auto& [name, text] : files()) {
      const auto at = whole.find(name);
      if (at != whole.end() && text != at->second) {
        EXPECT_EQ(text, at->second.substr(0, 99)) << name << " is torn by the agent";
      }
    }
    // Nothing is offered before its file is whole.
    if (!was_killed) {
      EXPECT_EQ(files(), whole);
    }
  }
  EXPECT_GE(kills, 2);
  ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
  const auto agent = start(flags);
  ASSERT_TRUE(wait_for({8, 8})) << log();
  EXPECT_EQ(files(), whole);
}

// The node as an earlier agent and others left it: a label that is not true any more, and one that
// is none of the agent's business.
Doc node() {
  Doc object = Doc().set("apiVersion", "v1").set("kind", "Node");
  object.at("metadata").set("name", "n1");
  object.at("metadata", "labels")
      .set("nvidia.com/gpu.family", "kepler")
      .set("nvidia.com/gpu.stale", "true")
      .set("example.com/rack", "r7");
  object.at("metadata", "annotations")
      .set("jogak.io/agent-labels", "nvidia.com/gpu.family,nvidia.com/gpu.stale")
      .set("example.com/note", "mine");
  return object;
}

Doc pod() {
  Doc object = Doc().set("apiVersion", "v1").set("kind", "Pod");
  object.at("metadata").set("name", "a").set("namespace", "default");
  object.at("spec").set("nodeName", "n1");
  object.at("spec").at("containers").push(Doc().set("name", "c").set("image", "example/p"));
  return object;
}

TEST_F(AgentKill, at_each_request_to_the_api_server) {
  kubelet_.start();
  const std::string kubeconfig = folder_.path("kubeconfig");
  ApiServer server(kubeconfig);
  const auto labels = [&] {
    return texts(server.get("nodes", "", "n1").get("metadata", "labels"));
  };
  const auto conditions = [&] {
    int ours = 0;
    const Doc seen = server.get("nodes", "", "n1");
    for (const Doc& one : seen.get("status", "conditions").items()) {
      if (one["type"].as_string().starts_with("Gpu")) ++ours;
    }
    return ours;
  };
  const auto holds = [&] {
    return server.get("pods", "default", "a")
        .get("metadata", "annotations", "jogak.io/gpu-holds")
        .as_string();
  };
  const auto is_told = [&](const std::map<std::string, std::string>& wanted) {
    return labels() == wanted && conditions() == 4;
  };
  const auto ask = [&] {
    return kubelet_.run({.name = "a", .containers = {{.name = "c", .devices = {{kGpu, 2}}}}});
  };

  // What it says when nobody disturbs it.
  server.put("nodes", "", node());
  server.put("pods", "default", pod());
  std::map<std::string, std::string> wanted;
  std::string held;
  {
    const auto agent = start({"--kubeconfig", kubeconfig});
    ASSERT_TRUE(wait_for({8, 8})) << log();
    ASSERT_TRUE(ask());
    ASSERT_TRUE(kubelet_.wait([&] { return conditions() == 4 && !holds().empty(); }))
        << conditions() << " conditions, holds " << holds() << "\n"
        << log();
    wanted = labels();
    held = holds();
    kubelet_.remove("default", "a");
  }
  EXPECT_EQ(wanted["nvidia.com/gpu.count"], "8");
  EXPECT_EQ(wanted["nvidia.com/gpu.family"], "ampere");
  EXPECT_EQ(wanted["example.com/rack"], "r7");
  EXPECT_FALSE(wanted.contains("nvidia.com/gpu.stale"));

  std::set<std::string> killed_at;
  bool was_killed = true;
  for (int kill_at = 1; was_killed; ++kill_at) {
    ASSERT_LT(kill_at, 50);
    ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
    server.put("nodes", "", node());
    server.put("pods", "default", pod());
    std::string where;
    {
      const auto agent = start({"--kubeconfig", kubeconfig});
      int seen = 0;
      server.watch([&](const std::string& step) {
        if (++seen < kill_at) return false;
        if (seen == kill_at) where = step;
        agent->kill();
        return true;
      });
      ASSERT_TRUE(kubelet_.wait([&] {
        return !agent->is_running() || kubelet_.counts(kGpu) == NodeCounts{8, 8};
      })) << log();
      (void)ask();
      ASSERT_TRUE(kubelet_.wait([&] {
        return !agent->is_running() || (is_told(wanted) && holds() == held);
      })) << log();
      agent->kill();
      EXPECT_EQ(agent->wait(), 128 + SIGKILL) << log();
      server.watch(nullptr);
      was_killed = !where.empty();
      kubelet_.remove("default", "a");
    }
    SCOPED_TRACE("killed at " + where);
    if (was_killed) killed_at.insert(where);
    EXPECT_EQ(labels()["example.com/rack"], "r7");
    ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
    const auto agent = start({"--kubeconfig", kubeconfig});
    ASSERT_TRUE(wait_for({8, 8})) << log();
    ASSERT_TRUE(ask());
    EXPECT_TRUE(kubelet_.wait([&] { return is_told(wanted) && holds() == held; }))
        << ::testing::PrintToString(labels()) << log();
    EXPECT_EQ(server.get("nodes", "", "n1")
                  .get("metadata", "annotations", "example.com/note")
                  .as_string(),
              "mine");
    kubelet_.remove("default", "a");
  }
  EXPECT_THAT(
      killed_at,
      ::testing::IsSupersetOf(
          {"GET nodes/n1: asked", "GET nodes/n1: done", "PATCH nodes/n1: asked",
           "PATCH nodes/n1: done", "PATCH nodes/n1/status: asked", "PATCH nodes/n1/status: done",
           "PATCH namespaces/default/pods/a: asked", "PATCH namespaces/default/pods/a: done"}));
}

}  // namespace
}  // namespace jogak::agent
