// SPDX-License-Identifier: Apache-2.0
//
// What keeping up with 50,000 pods costs before anything is decoded: bytes to objects, metadata,
// the table of what is known. One core, a peer in the same process, realistic pods of about 3 KB.
//
//   build/bench/bench/reflector_bench
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "bench/made_pods.h"
#include "kube/api_client.h"
#include "kube/reflector.h"

namespace jogak::bench {
namespace {

constexpr int kPods = 50'000;

std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// Reads what the answers hold, `times` times; prints the best.
void measure(const char* what, const std::vector<std::string>& answers, bool may_stream) {
  std::size_t bytes = 0, strings = 0;
  for (const std::string& answer : answers) bytes += answer.size();
  double best = 1e9;
  double kept = 0;
  for (int round = 0; round < 5; ++round) {
    SimLoop loop;
    ListPeer peer(loop);
    for (const std::string& answer : answers) peer.lists["/api/v1/pods"].push_back(&answer);
    kube::ApiClient api(peer);
    strings = 0;
    std::size_t told = 0;
    const std::size_t before = heap_bytes();
    const std::clock_t start = std::clock();  // CPU time: others may be at work too
    kube::Reflector reflector(
        api, {.path = "/api/v1/pods", .may_stream = may_stream},
        {.on_change =
             [&](const kube::ObjectChange& change) {
               ++told;
               strings += change.ns.size() + change.name.size() + change.uid.size() +
                          change.version.size();
             },
         .on_synced = {},
         .on_error = [](const Error& error) { fmt::print("{}\n", error.what); }});
    loop.run_ready();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    JOGAK_CHECK(told == kPods && reflector.state().is_synced, "{} told", told);
    kept = static_cast<double>(heap_bytes() - before) / kPods;
  }
  const double text = static_cast<double>(strings) / kPods;
  fmt::print(
      "{:<18}{:>8.1f} MB{:>9.3f} s of CPU{:>8.2f} GB/s{:>8.0f} bytes kept an object, {:.0f} of "
      "them "
      "its strings\n",
      what, static_cast<double>(bytes) / 1e6, best, static_cast<double>(bytes) / 1e9 / best, kept,
      text);
}

void run() {
  Rng rng(1, "pods");
  std::vector<std::string> pages;
  std::string stream;
  for (int i = 0; i < kPods; ++i) {
    if (i % 500 == 0) pages.emplace_back(R"({"kind":"PodList","apiVersion":"v1","items":[)");
    pages.back() += (i % 500 == 0 ? "" : ",") + made_pod(i, rng, false);
    if (i % 500 == 499) {
      pages.back() += fmt::format(R"(],"metadata":{{"resourceVersion":"20000000"{}}}}})",
                                  i + 1 == kPods ? "" : fmt::format(R"(,"continue":"t{}")", i));
    }
    stream += R"({"type":"ADDED","object":)" + made_pod(i, rng, true) + "}\n";
  }
  stream += R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20000000",)"
            R"("annotations":{"k8s.io/initial-events-end":"true"}}}})"
            "\n";
  fmt::print("{} pods of {} bytes\n", kPods, stream.size() / kPods);
  measure("pages of 500", pages, false);
  measure("streaming list", {stream}, true);
}

}  // namespace
}  // namespace jogak::bench

int main() { jogak::bench::run(); }
