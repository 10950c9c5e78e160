// SPDX-License-Identifier: Apache-2.0
//
// `jogak sim run`: plays scenario files, a cluster as it is, or both, on virtual time and reports
// placements, waits and use.
#include <fmt/core.h>

#include "base/file.h"
#include "cli/answer.h"
#include "cli/cluster_input.h"
#include "cli/commands.h"
#include "cli/seed_list.h"
#include "sim/scenario_cluster.h"
#include "sim/scenario_report.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "policy",
     .letter = 'p',
     .metavar = "NAMES",
     .help = "policies with commas between them, instead of the scenario's; several are compared"},
    {.name = "cluster",
     .letter = 'c',
     .kind = FlagKind::Repeated,
     .metavar = "FILE",
     .help =
         "start from this cluster, the JSON of `kubectl get` or of /debug/state; - for standard "
         "input"},
    kKubeconfigFlag,
    kContextFlag,
    {.name = "running-for",
     .kind = FlagKind::Int,
     .metavar = "SECONDS",
     .help = "how much longer the pods run that run in the cluster (default: to the end)",
     .min = 0,
     .max = 1'000'000'000},
    kOutputFlag,
    {.name = "report", .metavar = "FILE", .help = "also write a page with charts, out.html"},
    {.name = "rows",
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "placements to print as text",
     .fallback = "60",
     .min = 0,
     .max = 100'000'000},
    {.name = "check",
     .kind = FlagKind::Choice,
     .metavar = "auto|yes|no",
     .help = "check every decision and state with independent code; auto: where it is cheap",
     .fallback = "auto"},
    {.name = "no-timing",
     .kind = FlagKind::Switch,
     .help = "leave out times, so that equal runs print equal text"},
};

constexpr std::string_view kExamples[] = {
    "jogak sim run examples/mixed-shares.yaml",
    "jogak sim run cluster.yaml workload.yaml --policy kube,best-fit,fgd --report out.html",
    "curl -s localhost:10270/debug/state | jogak sim run --cluster - --running-for 3600",
    "jogak sim run --context prod tomorrow.yaml --policy jogak,kube",
};

constexpr ArgTable kTable = {
    .command = "jogak sim run",
    .operands = "[SCENARIO]...",
    .summary =
        "Plays a scenario on virtual time. Several files are taken together, as a cluster "
        "and a workload; docs/scenario-format.md describes them. With --cluster, --kubeconfig or "
        "--context it starts from a real cluster, which is read once and never written to: what "
        "runs there runs already, what waits there arrives at once, and scenarios add to it.",
    .flags = kFlags,
    .operands_max = 64,
    .examples = kExamples,
};

bool has_cluster(const ParsedArgs& args) {
  return args.is_given("cluster") || args.is_given("kubeconfig") || args.is_given("context");
}

Result<sim::Scenario> read_scenario(const ParsedArgs& args) {
  const std::vector<std::string>& files = args.operands();
  if (files.empty() && !has_cluster(args)) {
    return invalid("give a scenario file, or a cluster: --cluster FILE, --kubeconfig or --context");
  }
  if (args.is_given("running-for") && !has_cluster(args)) {
    return invalid(
        "--running-for is for the pods of a cluster: --cluster FILE, --kubeconfig or --context");
  }
  sim::Scenario scenario;
  // What a real cluster is scheduled with where nobody says otherwise.
  if (has_cluster(args)) scenario.policy = "jogak";
  for (const std::string& file : files) {
    JOGAK_TRY(const std::string text, read_file(file));
    JOGAK_TRY_VOID(sim::parse_scenario(file, text, scenario));
  }
  if (args.is_given("running-for")) {
    scenario.running_ns = args.number("running-for") * sim::kSecondNs;
  }
  if (has_cluster(args)) {
    JOGAK_TRY(const ClusterSource source, cluster_source(args, "cluster"));
    core::Cluster cluster;
    JOGAK_TRY_VOID(read_cluster(source, cluster));
    sim::start_from(cluster, scenario);
  }
  auto checked = sim::check_scenario(scenario);
  if (!checked) {
    return in_context(files.empty() ? "cluster" : files.front(), std::move(checked).error());
  }
  return scenario;
}

Result<int> run_command(const ParsedArgs& args) {
  JOGAK_TRY(const sim::Scenario scenario, read_scenario(args));
  std::vector<std::string> policies = {scenario.policy};
  if (args.is_given("policy")) {
    auto words = parse_words(args.text("policy"));
    if (!words) return in_context("--policy", std::move(words).error());
    policies = *std::move(words);
  }
  const bool check =
      args.text("check") == "yes" || (args.text("check") == "auto" && sim::is_small(scenario));
  std::vector<sim::ScenarioResult> results;
  for (const std::string& policy : policies) {
    JOGAK_TRY(sim::ScenarioResult result,
              sim::run_scenario(scenario, {.policy = policy, .check = check}));
    results.push_back(std::move(result));
  }
  if (args.is_given("report")) {
    const std::string title = scenario.name.empty() ? "Jogak: scenario" : scenario.name;
    const std::int64_t running = results.front().running_at_start;
    const std::string about =
        fmt::format("{} nodes, {} pods{}.", scenario.nodes.size(), scenario.pods.size(),
                    running > 0 ? fmt::format(", {} of them running at the start", running) : "");
    JOGAK_TRY_VOID(write_file(args.text("report"), sim::comparison_html(title, about, results)));
  }
  const bool with_timing = !args.is_on("no-timing");
  const std::string form = args.text("output");
  if (form == "table" && results.size() > 1) {
    fmt::print("{}", sim::comparison_text(results, with_timing));
  } else if (form == "table") {
    fmt::print("{}",
               sim::scenario_text(results.front(), static_cast<std::size_t>(args.number("rows")),
                                  with_timing));
  } else if (results.size() > 1) {
    print_doc(sim::comparison_doc(results, with_timing), form);
  } else {
    print_doc(sim::scenario_doc(results.front(), with_timing), form);
  }
  return kExitDone;
}

}  // namespace

int cmd_sim_run(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
