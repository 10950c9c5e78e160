// SPDX-License-Identifier: Apache-2.0
//
// The exporter's pages before programs that nobody here wrote: `promtool check metrics`, and a real
// Prometheus that scrapes them over a socket and keeps every sample. Skipped where the machine has
// neither (Debian package prometheus).
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "agent/exporter/exporter.h"
#include "agent/model/node_model.h"
#include "agent/model/testing/made_node.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "net/epoll_loop.h"
#include "net/http_server.h"
#include "net/testing/blocking_client.h"

namespace jogak::agent {
namespace {

using ::testing::HasSubstr;
using testing::made_facts;
using testing::made_holdings;
using testing::made_sample;

bool has_program(const std::string& name) {
  return std::system(fmt::format("command -v {} > /dev/null 2>&1", name).c_str()) == 0;
}

// A program that runs beside the test, and ends with it.
class Program {
 public:
  Program(std::vector<std::string> words, const std::string& log) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~Program() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  pid_t pid_ = -1;
};

std::size_t sample_lines(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0 && text[0] != '#') ++count;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return count;
}

class PrometheusTest : public ::testing::Test {
 protected:
  PrometheusTest() {
    registry.counter("jogak_agent_samples_total", "Samples of the node.").add(3);
    options.render.hostname = "node-1";
  }
  // A node with everything: a cut GPU, a shared one, one with faults, one that is gone.
  void publish() {
    nvml::NodeFacts facts = made_facts({.gpus = 4, .instances = 0});
    facts.gpus[0] = made_facts({.gpus = 1, .instances = 7}).gpus[0];
    const TimeUs now = loop.now();
    model.on_facts(facts, now);
    std::vector<Holding> holdings = made_holdings(facts);
    for (Holding& holding : holdings) {
      if (holding.device_id == facts.gpus[1].uuid) holding.device_id += "::0";
    }
    holdings.push_back({.resource = "nvidia.com/gpu",
                        .device_id = facts.gpus[1].uuid + "::1",
                        .holder = {"team-b", "other", "a \"quoted\"\nname", ""}});
    model.on_holdings(holdings, now);
    for (const nvml::GpuFacts& gpu : facts.gpus) model.on_sample(made_sample(gpu, now));
    for (const std::uint64_t code : {31, 79}) {
      model.on_event(
          {.uuid = facts.gpus[2].uuid, .kind = nvml::GpuEventKind::Xid, .code = code, .time = now});
    }
    facts.gpus.pop_back();
    model.on_facts(facts, now);
    exporter = std::make_unique<Exporter>(options, &registry, [this] { return loop.now(); });
    exporter->publish(*model.snapshot(now));
  }

  net::EpollLoop loop;
  TempFolder folder;
  Registry registry;
  NodeModel model;
  ExporterOptions options;
  std::unique_ptr<Exporter> exporter;
};

// promtool reads the text as the server does; what it says of taste can only be about names and
// types that dcgm-exporter has given, which are not ours to change.
TEST_F(PrometheusTest, PromtoolReadsEveryPage) {
  if (!has_program("promtool")) GTEST_SKIP() << "no promtool: install Debian's prometheus";
  for (const Naming naming : {Naming::Classic, Naming::Modern}) {
    for (const MigParent parent : {MigParent::Once, MigParent::Repeat}) {
      options.render.counters = default_counters(naming);
      options.render.naming = naming;
      options.render.mig_parent = parent;
      options.render.virtual_gpus = parent == MigParent::Repeat;
      publish();
      const std::string page = folder.path("page");
      ASSERT_TRUE(write_file(page, *exporter->page(ExpositionFormat::Text)));
      const std::string words = folder.path("words");
      const int status =
          std::system(fmt::format("promtool check metrics < {} > {} 2>&1", page, words).c_str());
      const std::string text = read_file(words).value_or("");
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3) << text;
      for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        EXPECT_TRUE(rest.substr(0, end).starts_with("DCGM_FI_")) << rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
  }
}

TEST_F(PrometheusTest, PrometheusKeepsEverySample) {
  if (!has_program("prometheus")) GTEST_SKIP() << "no prometheus: install Debian's package";
  publish();
  auto server = net::HttpServer::listen(loop, {}, exporter->handler());
  ASSERT_TRUE(server) << server.error().what;
  std::uint16_t port = 0;
  {
    // A port that was free a moment ago.
    auto probe = net::HttpServer::listen(loop, {}, exporter->handler());
    ASSERT_TRUE(probe);
    port = (*probe)->port();
  }
  ASSERT_TRUE(write_file(folder.path("prometheus.yml"),
                         fmt::format("global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n"
                                     "scrape_configs:\n"
                                     "- job_name: agent\n"
                                     "  honor_labels: true\n"
                                     "  static_configs: [{{targets: ['127.0.0.1:{}']}}]\n",
                                     (*server)->port())));
  const Program prometheus({"prometheus", "--config.file=" + folder.path("prometheus.yml"),
                            "--storage.tsdb.path=" + folder.path("data"),
                            fmt::format("--web.listen-address=127.0.0.1:{}", port)},
                           folder.path("log"));
  // The value of a query with one answer; -1: none yet.
  const auto ask = [&](std::string_view query) -> double {
    auto client = net::BlockingClient::connect(port);
    if (!client) return -1;
    const auto answer = client->request("GET", "/api/v1/query?query=" + std::string(query));
    if (!answer || answer->status != 200) return -1;
    const nlohmann::json result = nlohmann::json::parse(answer->body)["data"]["result"];
    return result.empty() ? -1 : std::stod(result[0]["value"][1].get<std::string>());
  };
  const TimeUs deadline = loop.now() + 60 * kSecondInUs;
  while (ask("up{job=\"agent\"}") != 1 && loop.now() < deadline) loop.turn(200 * kMsInUs);
  EXPECT_EQ(ask("up{job=\"agent\"}"), 1) << read_file(folder.path("log")).value_or("");
  // What the server read is what was written, and no two of them were the same series.
  const auto written = static_cast<double>(sample_lines(*exporter->page(ExpositionFormat::Text)));
  EXPECT_EQ(ask("scrape_samples_scraped{job=\"agent\"}"), written);
  EXPECT_EQ(ask("count({__name__=~\"DCGM_.%2B|jogak_.%2B\"})"), written);
  EXPECT_EQ(ask("count(DCGM_FI_DEV_GPU_TEMP)"), 3);
  EXPECT_EQ(ask("count(DCGM_FI_DEV_FB_USED{GPU_I_PROFILE=\"1g.10gb\"})"), 7);
  EXPECT_EQ(ask("sum(jogak_gpu_up)"), 3);
  EXPECT_EQ(ask("count(jogak_gpu_up)"), 4);
  EXPECT_EQ(ask("DCGM_FI_DEV_XID_ERRORS{gpu=\"2\"}"), 79);
  EXPECT_EQ(ask("count(jogak_gpu_pod_memory_used_bytes{pod=\"other\"})"), 1);
}

}  // namespace
}  // namespace jogak::agent
