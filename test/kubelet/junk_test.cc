// SPDX-License-Identifier: Apache-2.0
//
// Clients on the plugin's socket that talk nonsense, stop in the middle, flood it or do not listen;
// more of them than the process has descriptors for. The kubelet is served all the while, and when
// they are gone nothing of them is left.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <api/device_plugin.grpc.pb.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/rng.h"
#include "base/testing/temp_folder.h"
#include "test/kubelet/agent_thread.h"
#include "test/kubelet/child.h"
#include "test/kubelet/kubelet.h"

namespace jogak::kubelet {
namespace {

namespace fs = std::filesystem;
using agent::testing::a100_node;
using agent::testing::gpu_uuid;
using ::testing::IsEmpty;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A frame of HTTP/2: length, type, flags, stream, payload.
std::string frame(std::uint32_t length, int type, int flags, std::uint32_t stream,
                  std::string_view payload = {}) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(length >> shift & 0xFF));
  bytes.push_back(static_cast<char>(type));
  bytes.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(stream >> shift & 0xFF));
  return bytes.append(payload);
}

std::string settings() { return frame(0, 4, 0, 0); }

// Connections of clients, open until the end of its life.
class Clients {
 public:
  explicit Clients(std::string socket) : socket_(std::move(socket)) {}
  ~Clients() {
    for (const int fd : open_) ::close(fd);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // What the other end does not take (it may have hung up) is not sent. False: nobody listens, or
  // the queue of those who wait is full.
  bool dial(std::string_view bytes) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(fd);
      return false;
    }
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    open_.push_back(fd);
    return true;
  }
  void hang_up() {
    if (open_.empty()) return;
    ::close(open_.back());
    open_.pop_back();
  }
  std::size_t size() const { return open_.size(); }

 private:
  std::string socket_;
  std::vector<int> open_;
};

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

grpc::ChannelArguments own_connection() {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1);
  return args;
}

class JunkTest : public ::testing::Test {
 protected:
  JunkTest() : kubelet_(folder_.path(), 1) { kubelet_.start(); }
  void TearDown() override { EXPECT_THAT(kubelet_.complaints(), IsEmpty()); }

  bool wait_for(NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(kGpu) == counts; });
  }
  bool run(const std::string& name, int count) {
    const auto result =
        kubelet_.run({.name = name, .containers = {{.name = "c", .devices = {{kGpu, count}}}}});
    EXPECT_TRUE(result) << result.error().what;
    return result.has_value();
  }
  // The plugin's socket, whoever serves it.
  std::string socket() const {
    for (const auto& entry : fs::directory_iterator(folder_.path("device-plugins"))) {
      if (entry.path().filename().string().starts_with("jogak-")) return entry.path().string();
    }
    return "";
  }

  TempFolder folder_;
  Kubelet kubelet_;
};

TEST_F(JunkTest, nonsense_silence_and_broken_frames) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for({2, 2}));
  const int before = open_descriptors();
  {
    const std::string hello = std::string(kPreface) + settings();
    const std::vector<std::string> kinds = {
        "",                                                     // says nothing
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",                    // another protocol
        std::string(kPreface.substr(0, 9)),                     // stops in the preface
        std::string(kPreface),                                  // and after it
        hello,                                                  // a half-open connection
        hello + frame(0xFFFFFF, 0, 0, 1, "x"),                  // the largest frame there is
        hello + frame(4, 8, 0, 0, std::string("\0\0\0\0", 4)),  // a window of nothing
        hello + frame(5, 9, 4, 1, "\x88\x88\x88\x88\x88"),      // headers out of order
        hello + frame(3, 1, 0, 1, "\x88\x88\x88"),              // headers that do not end
        hello + frame(6, 6, 0, 0, "short!"),                    // a ping of a wrong size
        hello + frame(4, 3, 0, 7, std::string("\0\0\0\0", 4)),  // a reset of no stream
        std::string(1 << 16, '\xFF'),
    };
    Clients clients(socket());
    Rng random(3, "junk");
    for (int i = 0; i < 240; ++i) {
      std::string bytes = kinds[static_cast<std::size_t>(i) % kinds.size()];
      if (i % 5 == 0) {
        for (int n = 0; n < 200; ++n) bytes.push_back(static_cast<char>(random.below(256)));
      }
      EXPECT_TRUE(clients.dial(bytes));
      if (i % 4 == 0) clients.hang_up();
      if (i % 60 == 30) {
        EXPECT_TRUE(run("pod-" + std::to_string(i), 1));
        kubelet_.remove("default", "pod-" + std::to_string(i));
      }
    }
    EXPECT_TRUE(run("a", 2));
    agent.change([](NodeState& state) { state.facts.gpus[0].is_lost = true; });
    EXPECT_TRUE(wait_for({2, 1}));
  }
  EXPECT_TRUE(kubelet_.wait([&] { return open_descriptors() <= before; }))
      << "descriptors of clients that are gone stay open";
}

TEST_F(JunkTest, floods_of_settings_pings_and_resets) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for({2, 2}));
  std::string flood = std::string(kPreface) + settings();
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    flood += settings();
    flood += frame(8, 6, 0, 0, "12345678");
    flood += frame(1, 1, 4, 2 * i + 1, "\x82");                        // a stream that is begun
    flood += frame(4, 3, 0, 2 * i + 1, std::string("\0\0\0\x08", 4));  // and given up
  }
  Clients clients(socket());
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(clients.dial(flood));
    EXPECT_TRUE(run("pod-" + std::to_string(i), 1));
    kubelet_.remove("default", "pod-" + std::to_string(i));
  }
  agent.change([](NodeState& state) { state.unhealthy[gpu_uuid(1)] = "xid 79"; });
  EXPECT_TRUE(wait_for({2, 1}));
}

TEST_F(JunkTest, watchers_that_do_not_read_hold_nobody_up) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(8)});
  ASSERT_TRUE(wait_for({8, 8}));
  struct Watcher {
    std::unique_ptr<::v1beta1::DevicePlugin::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<::v1beta1::ListAndWatchResponse>> stream;
  };
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 16; ++i) {
    auto watcher = std::make_unique<Watcher>();
    watcher->stub = ::v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + socket(), grpc::InsecureChannelCredentials(), own_connection()));
    watcher->stream = watcher->stub->ListAndWatch(&watcher->context, {});
    watchers.push_back(std::move(watcher));
  }
  // Far more than a stream's window holds.
  for (int i = 0; i < 2000; ++i) {
    agent.change([&](NodeState& state) {
      state.unhealthy.clear();
      state.unhealthy[gpu_uuid(i % 8)] = "xid 79";
    });
  }
  EXPECT_TRUE(kubelet_.wait([&] {
    const auto healthy = kubelet_.healthy(kGpu);
    return healthy.size() == 7 && !healthy.contains(gpu_uuid(1999 % 8));
  }));
  EXPECT_TRUE(run("a", 7));
  for (const auto& watcher : watchers) watcher->context.TryCancel();
}

// The child of kill_test.cc, which dies nowhere here, with few descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few = {.rlim_cur = count, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

TEST_F(JunkTest, more_half_open_clients_than_descriptors) {
  std::unique_ptr<jogak::testing::Child> child;
  {
    const FewDescriptors few(200);
    child = std::make_unique<jogak::testing::Child>(
        jogak::testing::Child::this_test("AgentProcess.child_of_the_tests_below"),
        std::vector<std::string>{"JOGAK_TEST_KUBELET_SOCKET=" + kubelet_.socket(),
                                 "JOGAK_TEST_CDI_FOLDER=" + folder_.path("cdi"),
                                 "JOGAK_TEST_KILL_AT=0"},
        folder_.path("log"));
  }
  ASSERT_TRUE(wait_for({8, 8}));
  {
    Clients clients(socket());
    for (int i = 0; i < 600; ++i) clients.dial(std::string(kPreface) + settings());
    EXPECT_GT(clients.size(), 300U);
    // The kubelet's own connection is there already, and is served.
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(run("pod-" + std::to_string(i), 1));
    EXPECT_TRUE(kubelet_.restart_container("default", "pod-0", "c"));
    EXPECT_TRUE(child->is_running());
  }
  // They are gone, but the library's server has given up to accept: the next time that the kubelet
  // cannot reach it, it is another one.
  kubelet_.lose(kGpu);
  ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.counts(kGpu).allocatable == 0; }));
  ASSERT_TRUE(wait_for({8, 8}));
  EXPECT_TRUE(run("after", 1));
  kubelet_.stop();
  kubelet_.start();
  ASSERT_TRUE(wait_for({8, 8}));
  EXPECT_TRUE(run("last", 2));
  EXPECT_TRUE(child->is_running());
}

}  // namespace
}  // namespace jogak::kubelet
