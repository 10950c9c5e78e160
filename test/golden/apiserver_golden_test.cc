// SPDX-License-Identifier: Apache-2.0
//
// Every recorded session of kube-apiserver 1.36 is replayed, by replay.py beside the recordings,
// against a fresh server on loopback. Sessions wait for real time (timeouts, controllers), so they
// run side by side, the longest first; each is a test case that waits for its own.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/controllers/controllers.h"
#include "apiserver/server/server.h"
#include "base/doc.h"
#include "base/file.h"
#include "net/http_server.h"
#include "net/testing/loop_thread.h"
#include "playground/playground.h"

namespace jogak::golden {
namespace {

namespace fs = std::filesystem;

const std::string kOwnFolder = std::string(JOGAK_SOURCE_DIR) + "/test/golden/kube-apiserver-1.36";
constexpr std::size_t kSideBySide = 6;
constexpr std::string_view kCompactPath = "/compact";

// A newer collection beside this repository goes before the copy in it.
std::string sessions_folder() {
  std::vector<std::string> roots;
  if (const char* root = std::getenv("JOGAK_GOLDEN")) roots.emplace_back(root);
  roots.push_back(std::string(JOGAK_SOURCE_DIR) + "/../shared/golden");
  for (const std::string& root : roots) {
    const std::string folder = root + "/kube-apiserver-1.36/sessions";
    if (fs::is_directory(folder)) return folder;
  }
  return kOwnFolder + "/sessions";
}

// Everything is compared, down to field owners and the words of messages, but in these: the README
// lets a server differ in both. Most of the words are a Go program's own (its types, its parsers).
struct Leniency {
  std::string_view session;
  bool managed_fields = true, text = true;
  // The real server has two histories, the store's and its cache's; after a compaction of the first
  // a watch lives on from the second.
  bool watches = true;
};
constexpr auto kLenient = std::to_array<Leniency>({
    {.session = "access-reviews", .managed_fields = false},
    {.session = "auth", .managed_fields = false, .text = false},
    {.session = "configmaps", .text = false},
    {.session = "crd-objects", .text = false},
    {.session = "ctl-deployment", .text = false},
    {.session = "daemonsets", .text = false},
    {.session = "deployments", .text = false},
    {.session = "dra", .text = false},
    {.session = "errors-decoding", .text = false},
    {.session = "expired", .text = false, .watches = false},
    {.session = "field-selectors", .text = false},
    {.session = "field-validation", .text = false},
    {.session = "list-paging", .text = false},
    {.session = "media-types", .text = false},
    {.session = "nodes", .text = false},
    {.session = "patch-json", .text = false},
    {.session = "patch-strategic", .text = false},
    {.session = "pdbs", .text = false},
    {.session = "podgroups", .text = false},
    {.session = "pods-binding", .text = false},
    {.session = "pods-delete", .text = false},
    {.session = "pods-names", .managed_fields = false},
    {.session = "pods-update", .text = false},
    {.session = "replicasets", .text = false},
    {.session = "secrets", .text = false},
    {.session = "ssa-basic", .text = false},
    {.session = "ssa-lists", .text = false},
    {.session = "storage", .text = false},
});

// By length of waiting, so that the whole takes no longer than the longest.
constexpr std::array<std::string_view, 4> kLongest = {"ctl-cronjob", "ctl-podgc", "ctl-namespace",
                                                      "ctl-hpa"};

std::vector<std::string> session_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(sessions_folder())) {
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string profile_of(const std::string& path) {
  const auto text = read_file(path);
  if (!text.has_value()) return "";
  const auto header = codec::parse_json(std::string_view(*text).substr(0, text->find('\n')));
  return header.has_value() ? header->doc["profile"].as_string() : "";
}

playground::PlaygroundOptions options_for(std::string_view profile) {
  playground::PlaygroundOptions options;
  options.has_scheduler = false;
  options.has_kubelets = false;
  options.has_controllers = profile == "controllers";
  options.server.kinds.has_pod_groups = profile == "alpha";
  options.server.tokens["TOKEN"] = {
      .name = "admin", .uid = "admin", .groups = {"system:masters", "system:authenticated"}};
  options.server.tokens["user"] = {
      .name = "alice", .uid = "alice", .groups = {"devs", "system:authenticated"}};
  options.controllers.node_monitor_period = kSecondInUs;
  options.controllers.node_grace = 600 * kSecondInUs;
  options.controllers.hpa_period = 2 * kSecondInUs;
  options.controllers.pod_gc_period = 20 * kSecondInUs;
  return options;
}

// A server as the sessions want it, on a thread and a port of its own.
class LiveServer {
 public:
  explicit LiveServer(std::string_view profile) {
    thread_.call([&] { start(profile); });
  }
  ~LiveServer() {
    thread_.call([this] {
      http_.reset();
      playground_.reset();
    });
  }

  const std::string& error() const { return error_; }
  const std::string& url() const { return url_; }

 private:
  void start(std::string_view profile) {
    auto playground = playground::Playground::make(thread_.loop(), options_for(profile));
    if (!playground.has_value()) {
      error_ = playground.error().what;
      return;
    }
    playground_ = *std::move(playground);
    net::HttpServerOptions options;
    options.limits.body_bytes = 3 * 1024 * 1024;
    auto http = net::HttpServer::listen(
        thread_.loop(), std::move(options),
        [this](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
          handle(std::move(request), std::move(writer));
        });
    if (!http.has_value()) {
      error_ = http.error().what;
      return;
    }
    http_ = *std::move(http);
    url_ = http_->url();
  }

  // What was done to the real server's store by hand is a path of its own here.
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
    api::Server& server = playground_->server();
    if (request.target != kCompactPath) return server.handle(std::move(request), std::move(writer));
    server.store().compact(server.store().revision());
    writer->respond(200, {}, "");
  }

  net::LoopThread thread_;
  std::unique_ptr<playground::Playground> playground_;
  std::unique_ptr<net::HttpServer> http_;
  std::string error_, url_;
};

struct Outcome {
  bool is_equal = false;
  std::string report;
};

std::string replay_command(const std::string& name, const std::string& url) {
  const auto* found = std::ranges::find(kLenient, std::string_view(name), &Leniency::session);
  const Leniency leniency = found == kLenient.end() ? Leniency{} : *found;
  std::string flags = fmt::format("--external {}", kCompactPath);
  if (leniency.managed_fields) flags += " --managed-fields";
  if (leniency.text) flags += " --text";
  if (!leniency.watches) flags += " --skip-watches";
  if (const char* more = std::getenv("JOGAK_REPLAY_FLAGS")) flags += fmt::format(" {}", more);
  return fmt::format("python3 '{}/replay.py' {} {} TOKEN '{}/{}.jsonl' 2>&1", kOwnFolder, flags,
                     url, sessions_folder(), name);
}

Outcome replay(const std::string& name) {
  const LiveServer server(profile_of(fmt::format("{}/{}.jsonl", sessions_folder(), name)));
  if (!server.error().empty()) return {.report = server.error()};
  std::FILE* pipe = ::popen(replay_command(name, server.url()).c_str(), "re");
  if (pipe == nullptr) return {.report = "python3 does not start"};
  Outcome outcome;
  std::array<char, 4096> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    outcome.report.append(block.data(), n);
  }
  outcome.is_equal = ::pclose(pipe) == 0;
  return outcome;
}

// Runs what the filter of this run selects.
class Runs {
 public:
  static Runs& instance() {
    static Runs runs;
    return runs;
  }

  Outcome outcome_of(const std::string& name) { return outcomes_.at(name).get_future().get(); }

 private:
  Runs() {
    for (const std::string& name : selected()) outcomes_[name];
    const auto is_long = [](const std::string& name) {
      return std::ranges::find(kLongest, name) == kLongest.end();
    };
    for (const auto& [name, outcome] : outcomes_) waiting_.push_back(name);
    std::ranges::stable_sort(waiting_, {}, is_long);
    for (std::size_t i = 0; i < std::min(kSideBySide, waiting_.size()); ++i) {
      threads_.emplace_back([this] { work(); });
    }
  }
  ~Runs() {
    for (std::thread& thread : threads_) thread.join();
  }

  static std::vector<std::string> selected() {
    std::vector<std::string> names;
    const testing::UnitTest& test = *testing::UnitTest::GetInstance();
    for (int i = 0; i < test.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *test.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        const testing::TestInfo& info = *suite.GetTestInfo(j);
        if (!info.should_run() || info.value_param() == nullptr) continue;
        std::string name = info.value_param();
        std::erase(name, '"');
        names.push_back(name);
      }
    }
    return names;
  }

  void work() {
    for (;;) {
      std::string name;
      {
        const std::lock_guard lock(mutex_);
        if (next_ == waiting_.size()) return;
        name = waiting_[next_++];
      }
      outcomes_.at(name).set_value(replay(name));
    }
  }

  std::map<std::string, std::promise<Outcome>> outcomes_;
  std::vector<std::string> waiting_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::vector<std::thread> threads_;
};

class ApiServer : public testing::TestWithParam<std::string> {};

TEST_P(ApiServer, AnswersAsRecorded) {
  const Outcome outcome = Runs::instance().outcome_of(GetParam());
  EXPECT_TRUE(outcome.is_equal) << outcome.report;
  EXPECT_EQ(outcome.report.find("stops at"), std::string::npos) << outcome.report;
}

INSTANTIATE_TEST_SUITE_P(Recorded, ApiServer, testing::ValuesIn(session_names()),
                         [](const auto& suite) {
                           std::string name = suite.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace jogak::golden
