// SPDX-License-Identifier: Apache-2.0
// Every recorded scenario of kube-scheduler 1.36 must come out as recorded: verdicts with reasons,
// messages, scores, victims. One gtest case per class of scenarios. By hand:
//
//   jogak_test_golden --class volumes            only this class, every difference
//   jogak_test_golden --id A-volumes-0012 -v     one scenario, with both results in full
//   jogak_test_golden --summary                  differences by field, to see where to look first
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/golden/scenario.h"

#ifndef JOGAK_SOURCE_DIR
#define JOGAK_SOURCE_DIR "."
#endif

namespace jogak::golden {
namespace {

const std::string kFolder = std::string(JOGAK_SOURCE_DIR) + "/test/golden/kube-scheduler-1.36";

class KubeScheduler : public testing::TestWithParam<std::string> {};

TEST_P(KubeScheduler, ComesOutAsRecorded) {
  std::size_t scenarios = 0;
  std::size_t failed = 0;
  std::string report;
  constexpr std::size_t kShown = 20;
  const auto read = for_each_record(kFolder, GetParam(), [&](std::string_view record) {
    ++scenarios;
    const Outcome outcome = run_record(record);
    if (outcome.differences.empty()) return;
    if (++failed > kShown) return;
    report += fmt::format("{}: {}", outcome.id, outcome.differences.front());
    if (outcome.differences.size() > 1) {
      report += fmt::format(" (and {} more)", outcome.differences.size() - 1);
    }
    report += '\n';
  });
  ASSERT_TRUE(read.has_value()) << read.error().what;
  EXPECT_GT(scenarios, 0U);
  EXPECT_EQ(failed, 0U) << failed << " of " << scenarios << " differ:\n" << report;
}

INSTANTIATE_TEST_SUITE_P(Recorded, KubeScheduler, testing::ValuesIn(scenario_classes(kFolder)),
                         [](const auto& suite) {
                           std::string name = suite.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

struct Options {
  std::string class_name;
  std::string id;
  bool verbose = false;
  bool summary = false;
};

// "nodes.n1.reasons: got ..." is about nodes.*.reasons.
std::string field_of(std::string_view difference) {
  const std::string_view path = difference.substr(0, difference.find(": got"));
  if (path.size() == difference.size()) return std::string(difference.substr(0, 60));
  for (const std::string_view map : {"nodes.", "scores.", "totals.", "preemption.candidates.",
                                     "preemption.rejected.", "preemption.losesNomination."}) {
    if (!path.starts_with(map)) continue;
    const std::size_t dot = path.rfind('.');
    return dot > map.size() ? fmt::format("{}*{}", map, path.substr(dot)) : fmt::format("{}*", map);
  }
  return std::string(path);
}

void print_in_full(const Outcome& outcome) {
  fmt::print("  pod:  {}\n  got:  {}\n  want: {}\n", outcome.pod.dump(1), outcome.got.dump(1),
             outcome.want.dump(1));
}

int run_by_hand(const Options& options) {
  std::size_t scenarios = 0;
  std::size_t failed = 0;
  std::map<std::string, std::size_t> by_field;
  for (const std::string& name : scenario_classes(kFolder)) {
    if (!options.class_name.empty() && name != options.class_name) continue;
    if (!options.id.empty() && options.id.find("-" + name + "-") == std::string::npos) continue;
    std::size_t failed_here = 0;
    std::size_t scenarios_here = 0;
    const auto read = for_each_record(kFolder, name, [&](std::string_view record) {
      if (!options.id.empty() && record.find(options.id) == std::string_view::npos) return;
      ++scenarios_here;
      const Outcome outcome = run_record(record);
      for (const std::string& line : outcome.differences) ++by_field[name + ": " + field_of(line)];
      if (!outcome.differences.empty()) ++failed_here;
      if (options.summary) return;
      if (!outcome.differences.empty()) fmt::print("{}\n", outcome.id);
      for (const std::string& line : outcome.differences) fmt::print("  {}\n", line);
      if (options.verbose) print_in_full(outcome);
    });
    if (!read) fmt::print("{}: {}\n", name, read.error().what);
    fmt::print("{}: {} of {} differ\n", name, failed_here, scenarios_here);
    scenarios += scenarios_here;
    failed += failed_here;
  }
  if (options.summary) {
    for (const auto& [field, count] : by_field) fmt::print("{:6} {}\n", count, field);
  }
  fmt::print("{} of {} scenarios differ\n", failed, scenarios);
  return failed == 0 && scenarios > 0 ? 0 : 1;
}

}  // namespace
}  // namespace jogak::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  jogak::golden::Options options;
  bool by_hand = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    by_hand = true;
    if (word == "--class" && i + 1 < argc) {
      options.class_name = argv[++i];
    } else if (word == "--id" && i + 1 < argc) {
      options.id = argv[++i];
    } else if (word == "-v") {
      options.verbose = true;
    } else if (word == "--summary") {
      options.summary = true;
    } else {
      fmt::print(stderr, "usage: {} [--class NAME] [--id ID] [-v] [--summary]\n", argv[0]);
      return 2;
    }
  }
  return by_hand ? jogak::golden::run_by_hand(options) : RUN_ALL_TESTS();
}
