// SPDX-License-Identifier: Apache-2.0
//
// Load for a Kubernetes API, and a stopwatch on its scheduler. It knows a cluster by its kubeconfig
// alone; bench/scheduler_bench.py runs it against several schedulers on one control plane.
//
//   cluster_load_bench KUBECONFIG nodes COUNT GPUS        make nodes "load-N"
//   cluster_load_bench KUBECONFIG pods COUNT SCHEDULER    make pods, as fast as it goes
//   cluster_load_bench KUBECONFIG drip COUNT SCHEDULER RATE   RATE a second, each timed until bound
//   cluster_load_bench KUBECONFIG bind                    bind every waiting pod: the bare loop
//   cluster_load_bench KUBECONFIG watch COUNT             time from the first to the last bound pod
//   cluster_load_bench KUBECONFIG clear                   delete pods and nodes
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/file.h"
#include "kube/api_client.h"
#include "kube/connection.h"
#include "kube/kubeconfig.h"
#include "kube/reflector.h"
#include "net/epoll_loop.h"

namespace jogak::bench {
namespace {

constexpr int kAtOnce = 64;
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

struct Load {
  net::EpollLoop loop;
  std::unique_ptr<kube::Connection> connection;
  std::unique_ptr<kube::ApiClient> api;
  int failures = 0;

  bool open(const std::string& kubeconfig) {
    const auto access =
        kube::find_access({.kubeconfig = kubeconfig}, kube::Environment::of_process());
    if (!access.has_value()) return complain(access.error());
    auto made = kube::connect(loop, *access, {.user_agent = "cluster-load"});
    if (!made.has_value()) return complain(made.error());
    connection = *std::move(made);
    api = std::make_unique<kube::ApiClient>(*connection);
    return true;
  }

  static bool complain(const Error& error) {
    fmt::print(stderr, "cluster_load_bench: {}\n", error.what);
    return false;
  }

  // Sends make(i) for all i below `count`, kAtOnce at a time; seconds it took.
  double send_all(int count, const std::function<kube::ApiRequest(int)>& make) {
    int next = 0, open_calls = 0;
    const TimeUs start = loop.now();
    std::function<void()> pump = [&] {
      while (next < count && open_calls < kAtOnce) {
        ++open_calls;
        api->call(make(next++), [&](const Result<kube::ApiAnswer>& answer) {
          --open_calls;
          if (!answer.has_value() || answer->status >= 300) note_failure(answer);
          if (next == count && open_calls == 0) return loop.stop();
          pump();
        });
      }
    };
    if (count == 0) return 0;
    pump();
    loop.run();
    return static_cast<double>(loop.now() - start) / kSecondInUs;
  }

  void note_failure(const Result<kube::ApiAnswer>& answer) {
    if (failures++ > 0) return;
    fmt::print(stderr, "cluster_load_bench: first failure: {}\n",
               answer.has_value() ? answer->body.substr(0, 300) : answer.error().what);
  }
};

kube::ApiRequest node_request(int index, int gpus) {
  const std::string amounts =
      fmt::format(R"({{"cpu":"96","memory":"1024Gi","pods":"110","nvidia.com/gpu":"{}"}})", gpus);
  return {.method = "POST",
          .target = "/api/v1/nodes",
          .body = fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"load-{0}",)"
                              R"("labels":{{"kubernetes.io/hostname":"load-{0}"}}}},)"
                              R"("status":{{"capacity":{1},"allocatable":{1},)"
                              R"("conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                              index, amounts)};
}

kube::ApiRequest pod_request(int index, std::string_view scheduler) {
  return {.method = "POST",
          .target = std::string(kPods),
          .body = fmt::format(
              R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"load-{}",)"
              R"("labels":{{"app":"load"}}}},"spec":{{"schedulerName":"{}",)"
              R"("terminationGracePeriodSeconds":0,"automountServiceAccountToken":false,)"
              // a node without a kubelet is tainted as not ready
              R"("tolerations":[{{"operator":"Exists"}}],)"
              R"("containers":[{{"name":"c","image":"registry.example/train:1","resources":)"
              R"({{"requests":{{"cpu":"4","memory":"16Gi"}},)"
              R"("limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
              index, scheduler)};
}

void report(const char* what, int count, double seconds) {
  fmt::print("{} {} in {:.2f} s: {:.0f}/s\n", count, what, seconds, count / seconds);
}

int make_nodes(Load& load, int count, int gpus) {
  report("nodes made", count,
         load.send_all(count, [gpus](int i) { return node_request(i, gpus); }));
  return load.failures == 0 ? 0 : 1;
}

int make_pods(Load& load, int count, const std::string& scheduler) {
  report("pods made", count,
         load.send_all(count, [&](int i) { return pod_request(i, scheduler); }));
  return load.failures == 0 ? 0 : 1;
}

int bind_all(Load& load) {
  std::vector<std::string> names;
  int nodes = 0;
  for (const bool is_pods : {true, false}) {
    load.api->call_ok({.target = is_pods ? std::string(kPods) : "/api/v1/nodes",
                       .time_limit = 120 * kSecondInUs,
                       .body_bytes_max = std::size_t{1} << 30},
                      [&, is_pods](const Result<std::string>& body) {
                        std::string_view rest = body.has_value() ? *body : std::string_view();
                        constexpr std::string_view kName = R"("name":"load-)";
                        std::size_t at = 0;
                        while ((at = rest.find(kName)) != std::string_view::npos) {
                          rest.remove_prefix(at + kName.size());
                          const std::string_view number = rest.substr(0, rest.find('"'));
                          if (is_pods) {
                            names.emplace_back(number);
                          } else {
                            ++nodes;
                          }
                        }
                        load.loop.stop();
                      });
    load.loop.run();
  }
  const double seconds = load.send_all(static_cast<int>(names.size()), [&](int i) {
    return kube::ApiRequest{
        .method = "POST",
        .target = fmt::format("{}/load-{}/binding", kPods, names[static_cast<std::size_t>(i)]),
        .body =
            fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"load-{}"}},)"
                        R"("target":{{"apiVersion":"v1","kind":"Node","name":"load-{}"}}}})",
                        names[static_cast<std::size_t>(i)], i % std::max(nodes, 1))};
  });
  report("pods bound by the bare loop", static_cast<int>(names.size()), seconds);
  return load.failures == 0 ? 0 : 1;
}

// Calls `on_bound` once for each pod that is seen with a node.
std::unique_ptr<kube::Reflector> watch_bound(Load& load,
                                             std::function<void(const std::string&)> on_bound) {
  auto seen = std::make_shared<std::map<std::string, bool>>();
  return std::make_unique<kube::Reflector>(
      *load.api, kube::ReflectorOptions{.path = std::string(kPods)},
      kube::Reflector::Events{
          .on_change =
              [seen, on_bound = std::move(on_bound)](const kube::ObjectChange& change) {
                if (change.json.find(R"("nodeName":")") == std::string_view::npos) return;
                std::string name(change.name);
                if (!seen->try_emplace(name, true).second) return;
                on_bound(name);
              },
          .on_synced = nullptr,
          .on_error = [](const Error& error) { Load::complain(error); }});
}

int watch(Load& load, int count) {
  TimeUs first = 0;
  int bound = 0;
  const auto reflector = watch_bound(load, [&](const std::string&) {
    if (first == 0) first = load.loop.now();
    if (++bound == count) load.loop.stop();
  });
  load.loop.after(600 * kSecondInUs, [&] { load.loop.stop(); });
  load.loop.run();
  report("pods bound", bound, static_cast<double>(load.loop.now() - first) / kSecondInUs);
  return bound == count ? 0 : 1;
}

int drip(Load& load, int count, const std::string& scheduler, int rate) {
  std::map<std::string, TimeUs> sent, made;
  std::vector<TimeUs> since_sent, since_made;
  std::map<std::string, TimeUs> bound;
  const auto reflector = watch_bound(load, [&](const std::string& name) {
    bound[name] = load.loop.now();
    if (static_cast<int>(bound.size()) == count) load.loop.stop();
  });
  int next = 0;
  std::function<void()> tick = [&] {
    const std::string name = fmt::format("load-{}", next);
    sent[name] = load.loop.now();
    load.api->call(pod_request(next++, scheduler),
                   [&, name](const Result<kube::ApiAnswer>& answer) {
                     made[name] = load.loop.now();
                     if (!answer.has_value() || answer->status >= 300) load.note_failure(answer);
                   });
  };
  load.loop.after(kSecondInUs, [&] {
    const TimeUs start = load.loop.now();
    for (int i = 0; i < count; ++i) load.loop.at(start + i * kSecondInUs / rate, tick);
  });
  load.loop.after((60 + count / rate) * kSecondInUs, [&] { load.loop.stop(); });
  load.loop.run();
  for (const auto& [name, when] : bound) {
    since_sent.push_back(when - sent[name]);
    since_made.push_back(std::max<TimeUs>(0, when - made[name]));
  }
  std::ranges::sort(since_sent);
  std::ranges::sort(since_made);
  const auto at = [](const std::vector<TimeUs>& all, std::size_t percent) {
    return all.empty() ? 0.0 : static_cast<double>(all[(all.size() - 1) * percent / 100]) / kMsInUs;
  };
  fmt::print(
      "{} of {} pods bound at {}/s; from the request: p50 {:.2f} ms, p99 {:.2f} ms; from "
      "the answer to it: p50 {:.2f} ms, p99 {:.2f} ms\n",
      bound.size(), count, rate, at(since_sent, 50), at(since_sent, 99), at(since_made, 50),
      at(since_made, 99));
  return static_cast<int>(bound.size()) == count ? 0 : 1;
}

int clear(Load& load) {
  const std::vector<std::string> targets = {std::string(kPods) + "?gracePeriodSeconds=0",
                                            "/api/v1/nodes"};
  load.send_all(2, [&](int i) {
    return kube::ApiRequest{.method = "DELETE",
                            .target = targets[static_cast<std::size_t>(i)],
                            .time_limit = 120 * kSecondInUs};
  });
  return load.failures == 0 ? 0 : 1;
}

int usage() {
  fmt::print(
      "cluster_load_bench measures a cluster; see the head of bench/cluster_load_bench.cc\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 2) return usage();
  Load load;
  if (!load.open(words[0])) return 1;
  const auto number = [&words](std::size_t i) {
    return i < words.size() ? std::atoi(words[i].c_str()) : 0;
  };
  const std::string scheduler = words.size() > 3 ? words[3] : "jogak";
  if (words[1] == "nodes") return make_nodes(load, number(2), number(3));
  if (words[1] == "pods") return make_pods(load, number(2), scheduler);
  if (words[1] == "drip") return drip(load, number(2), scheduler, std::max(1, number(4)));
  if (words[1] == "bind") return bind_all(load);
  if (words[1] == "watch") return watch(load, number(2));
  if (words[1] == "clear") return clear(load);
  return usage();
}

}  // namespace
}  // namespace jogak::bench

int main(int count, char** words) {
  return jogak::bench::run(std::vector<std::string>(words + 1, words + count));
}
