// SPDX-License-Identifier: Apache-2.0
//
// `jogak demo`: a made-up cluster and workload, played under several policies and compared. It
// takes seconds and needs nothing but the program.
#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/file.h"
#include "base/parallel.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "sim/samples.h"
#include "sim/scenario_report.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "seed",
     .letter = 's',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "what the cluster and the pods are drawn from",
     .fallback = "1",
     .min = 0},
    {.name = "nodes",
     .letter = 'n',
     .metavar = "LIST",
     .help = "the cluster, as for `jogak gen cluster`",
     .fallback = sim::kSampleNodes},
    {.name = "load",
     .kind = FlagKind::Int,
     .metavar = "PERCENT",
     .help = "GPU time asked for, of what the cluster has",
     .fallback = "130",
     .min = 1,
     .max = 1000},
    {.name = "report",
     .metavar = "FILE",
     .help = "page with charts to write",
     .fallback = "jogak-demo.html"},
    kOutputFlag,
};

constexpr ArgTable kTable = {
    .command = "jogak demo",
    .summary =
        "Plays two hours of made-up pods on a made-up cluster under several policies and "
        "compares them.",
    .flags = kFlags,
};

constexpr std::string_view kPolicies[] = {"kube", "best-fit", "fgd", "jogak"};
constexpr std::int64_t kSeconds = 7200;

// As from files, so that what the demo shows can be repeated with `jogak gen` and `jogak sim run`.
Result<sim::Scenario> make_scenario(const std::vector<sim::SampleGroup>& groups,
                                    std::int64_t load_percent, std::int64_t seed) {
  const auto number = static_cast<std::uint64_t>(seed);
  const sim::SampleLoad load{.for_seconds = kSeconds, .load_percent = load_percent};
  sim::Scenario scenario;
  JOGAK_TRY_VOID(
      sim::parse_scenario("cluster", sim::sample_cluster(groups, number).yaml(), scenario));
  JOGAK_TRY_VOID(
      sim::parse_scenario("workload", sim::sample_workload(groups, load, number).yaml(), scenario));
  scenario.seed = seed;
  JOGAK_TRY_VOID(sim::check_scenario(scenario));
  return scenario;
}

Result<std::vector<sim::ScenarioResult>> run_policies(const sim::Scenario& scenario,
                                                      const std::vector<std::string>& names) {
  std::vector<std::optional<Result<sim::ScenarioResult>>> slots(names.size());
  Progress progress(names.size(), "policies");
  parallel_for(names.size(), 0, [&](std::size_t i) {
    slots[i] = sim::run_scenario(scenario, {.policy = names[i], .check = false});
    progress.done(names[i]);
  });
  std::vector<sim::ScenarioResult> results;
  for (auto& slot : slots) {
    JOGAK_TRY(sim::ScenarioResult result, *std::move(slot));
    results.push_back(std::move(result));
  }
  return results;
}

std::int64_t urgent_pods(const sim::Scenario& scenario) {
  return std::ranges::count_if(
      scenario.pods, [](const sim::ScenarioPod& pod) { return pod.spec.shape.priority > 0; });
}

Result<int> run_command(const ParsedArgs& args) {
  auto groups = sim::parse_sample_groups(args.text("nodes"));
  if (!groups) return in_context("--nodes", std::move(groups).error());
  JOGAK_TRY(const sim::Scenario scenario,
            make_scenario(*groups, args.number("load"), args.number("seed")));
  const std::string about = fmt::format(
      "{} nodes with {} GPUs ({}); {} pods arrive within two hours, {} of them urgent, and ask for "
      "{} % of the GPU time there is (seed {}).",
      scenario.nodes.size(), sim::sample_gpus(*groups), args.text("nodes"), scenario.pods.size(),
      urgent_pods(scenario), args.number("load"), args.number("seed"));
  const std::string form = args.text("output");
  if (form == "table") fmt::print("{}\n\n", about);
  std::fflush(stdout);

  const std::vector<std::string> names(std::begin(kPolicies), std::end(kPolicies));
  JOGAK_TRY(const auto results, run_policies(scenario, names));
  const std::string file = args.text("report");
  JOGAK_TRY_VOID(write_file(file, sim::comparison_html("Jogak: demo", about, results)));
  if (form != "table") {
    print_doc(sim::comparison_doc(results, true), form);
    return kExitDone;
  }
  fmt::print("{}\n", sim::comparison_text(results, true));
  fmt::print(
      "GPU allocated, stranded GPUs and the hottest node are averages over the two hours in which\n"
      "pods arrive. A GPU is stranded as far as an average GPU pod could not use what is free of "
      "it.\n\nThe curves are in {}\n",
      file);
  return kExitDone;
}

}  // namespace

int cmd_demo(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
