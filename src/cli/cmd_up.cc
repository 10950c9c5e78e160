// SPDX-License-Identifier: Apache-2.0
//
// `jogak up`: a Kubernetes API with simulated GPU nodes on this machine, for kubectl to play with.
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/core.h>

#include "agent/run/spare_memory.h"
#include "base/file.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/up_demo.h"
#include "cli/up_screen.h"
#include "playground/fleet.h"
#include "playground/up.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "nodes",
     .letter = 'n',
     .metavar = "LIST",
     .help =
         "made-up nodes instead of the default ones: COUNTxGPUSxMODEL or COUNTxCPU, with commas"},
    {.name = "topology", .metavar = "racks=N", .help = "spread --nodes over so many racks"},
    {.name = "cluster",
     .letter = 'c',
     .metavar = "FILE",
     .help =
         "start with these objects: `kubectl get ... -o json`, manifests, or `jogak gen cluster`"},
    {.name = "data", .metavar = "DIR", .help = "keep the objects in this folder across restarts"},
    {.name = "kubeconfig",
     .metavar = "FILE",
     .help = "where to write how kubectl gets in",
     .fallback = "jogak.kubeconfig"},
    {.name = "address",
     .metavar = "IP",
     .help = "address to listen on; anything but loopback lets others in",
     .fallback = "127.0.0.1"},
    {.name = "port",
     .letter = 'p',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "port, 0 for any that is free",
     .fallback = "0",
     .min = 0,
     .max = 65'535},
    {.name = "token",
     .metavar = "TEXT",
     .help = "bearer token of the administrator, instead of a random one"},
    {.name = "http",
     .kind = FlagKind::Switch,
     .help = "plain HTTP without TLS; kubectl does not send its token then"},
    {.name = "policy",
     .metavar = "NAME",
     .help = "who chooses among the nodes that fit: jogak, kube, best-fit, ...",
     .fallback = "jogak"},
    {.name = "no-scheduler",
     .kind = FlagKind::Switch,
     .help = "leave the pods to another scheduler"},
    {.name = "no-kubelets", .kind = FlagKind::Switch, .help = "nodes and pods do nothing"},
    {.name = "no-controllers",
     .kind = FlagKind::Switch,
     .help = "the API server alone: deployments make no pods"},
    {.name = "seed",
     .letter = 's',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "what names and made-up nodes are drawn from",
     .fallback = "1",
     .min = 0},
    {.name = "demo",
     .kind = FlagKind::Switch,
     .help = "play the examples, say what happens, and stop"},
};

constexpr std::string_view kExamples[] = {
    "jogak up",
    "jogak up --demo",
    "jogak up --nodes 500x8xH100 --topology racks=20",
    "kubectl get nodes,pods -A -o json > cluster.json; jogak up --cluster cluster.json",
    "jogak up --data ./state --port 6443",
    "kubectl label node mig-0 nvidia.com/mig.config=all-2g.20gb --overwrite",
    "kubectl annotate node train-0-0 jogak.io/gpu-fault=0=xid:79",
    "kubectl get --raw /api/v1/nodes/train-0-0:9400/proxy/metrics",
};

constexpr ArgTable kTable = {
    .command = "jogak up",
    .summary =
        "Starts a playground on this machine: a Kubernetes API server, controllers, simulated GPU "
        "nodes (the node agent on simulated NVML) and the Jogak scheduler, in one process. It "
        "writes a kubeconfig and runs until "
        "Ctrl-C. It is for trying out and testing; in production the API server is your own.",
    .flags = kFlags,
    .examples = kExamples,
};

constexpr TimeUs kSettleLook = 5 * kMsInUs;
constexpr TimeUs kSettleMax = 10 * kSecondInUs;
constexpr std::array kTidyAfter = {2 * kSecondInUs, 120 * kSecondInUs};  // from the first screen

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

Result<std::vector<Doc>> start_objects(const ParsedArgs& args) {
  const auto seed = static_cast<std::uint64_t>(args.number("seed"));
  if (args.is_given("cluster") && args.is_given("nodes")) {
    return invalid("--cluster and --nodes: give one of them");
  }
  if (args.is_given("topology") && !args.is_given("nodes")) {
    return invalid("--topology: says how --nodes are spread; give --nodes too");
  }
  if (args.is_given("nodes")) {
    return playground::fleet_of(args.text("nodes"), args.text("topology"), seed);
  }
  if (args.is_given("cluster")) {
    JOGAK_TRY(const std::string text, read_file(args.text("cluster")));
    return playground::objects_of_file(text, args.text("cluster"));
  }
  return playground::default_fleet();
}

Result<playground::UpOptions> options_of(const ParsedArgs& args) {
  playground::UpOptions options;
  options.address = args.text("address");
  options.port = static_cast<std::uint16_t>(args.number("port"));
  options.has_tls = !args.is_on("http");
  options.kubeconfig = args.text("kubeconfig");
  options.token = args.text("token");
  options.playground.server.data_dir = args.text("data");
  options.playground.server.seed = static_cast<std::uint64_t>(args.number("seed"));
  options.playground.scheduler.set_policy(args.text("policy"));
  options.playground.scheduler.seed = static_cast<std::uint64_t>(args.number("seed"));
  options.playground.has_scheduler = !args.is_on("no-scheduler");
  options.playground.has_kubelets = !args.is_on("no-kubelets");
  options.playground.has_controllers = !args.is_on("no-controllers");
  JOGAK_TRY(options.objects, start_objects(args));
  return options;
}

// SIGINT and SIGTERM as an event of the loop.
class StopSignals {
 public:
  StopSignals(net::EpollLoop& loop, std::function<void()> on_signal) : loop_(loop) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    loop_.add_fd(fd_, EPOLLIN, [this, on_signal = std::move(on_signal)](std::uint32_t) {
      signalfd_siginfo info{};
      if (::read(fd_, &info, sizeof info) > 0) on_signal();
    });
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    loop_.remove_fd(fd_);
    ::close(fd_);
  }

 private:
  net::EpollLoop& loop_;
  int fd_ = -1;
};

Result<int> run_command(const ParsedArgs& args) {
  const TimeUs begin = net::EpollLoop().now();
  JOGAK_TRY(playground::UpOptions options, options_of(args));
  if (!is_loopback(options.address)) {
    fmt::print(stderr, "jogak up: {} is not loopback: whoever has the token gets in from there\n",
               options.address);
  }
  net::EpollLoop loop;
  JOGAK_TRY(const auto up, playground::Up::start(loop, std::move(options)));
  bool is_stopping = false;
  const auto stop = [&] {
    if (is_stopping) return loop.stop();  // asked twice: at once
    is_stopping = true;
    up->stop([&loop] { loop.stop(); });
  };
  const StopSignals signals(loop, stop);
  const char* kubectl = std::getenv("JOGAK_KUBECTL");  // set by `make run`, which may fetch one
  std::optional<UpDemo> demo;
  // The screen tells what the nodes' agents found, so it waits for them, but not for ever.
  std::function<void()> show = [&] {
    const TimeUs taken = loop.now() - begin;
    if (!up->playground().is_settled() && taken < kSettleMax) {
      loop.after(kSettleLook, show);
      return;
    }
    fmt::print("{}", up_screen(*up, args.text("kubeconfig"),
                               kubectl == nullptr ? "kubectl" : kubectl, taken));
    std::fflush(stdout);
    // The start leaves much behind that nobody looks at again, and so does its history, later.
    for (const TimeUs pause : kTidyAfter) loop.after(pause, agent::give_back_memory);
    if (args.is_on("demo")) demo.emplace(loop, up->playground(), stop);
  };
  loop.post(show);
  loop.run();
  return demo.has_value() && !demo->succeeded() ? kExitFailed : kExitDone;
}

}  // namespace

int cmd_up(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
