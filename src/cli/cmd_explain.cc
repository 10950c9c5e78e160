// SPDX-License-Identifier: Apache-2.0
//
// `jogak explain`: reads a cluster, live or as kubectl prints it, and says where one pod would go
// and why, or exactly why it goes nowhere.
#include <ranges>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/edit_distance.h"
#include "cli/answer.h"
#include "cli/cluster_input.h"
#include "cli/commands.h"
#include "cli/explain.h"
#include "core/policy/policy.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "file",
     .letter = 'f',
     .kind = FlagKind::Repeated,
     .metavar = "FILE",
     .help =
         "cluster state, the JSON of `kubectl get`, instead of the live cluster; - for standard "
         "input"},
    {.name = "pod",
     .letter = 'p',
     .metavar = "NS/NAME",
     .help =
         "the pod; without NS/ in the context's namespace or default, or the only one of its name",
     .is_required = true},
    {.name = "policy",
     .metavar = "NAME",
     .help = "who chooses among the nodes that fit: kube, jogak, best-fit, ...",
     .fallback = "kube"},
    kKubeconfigFlag,
    kContextFlag,
    kOutputFlag,
    {.name = "top",
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "how many of the best nodes to show",
     .fallback = "5",
     .min = 1,
     .max = 1'000'000},
    {.name = "all-nodes",
     .kind = FlagKind::Switch,
     .help = "every node by name, instead of groups with examples"},
};

constexpr std::string_view kExamples[] = {
    "jogak explain --pod team-a/train-0",
    "jogak explain -f cluster.json --pod team-a/train-0",
    "kubectl get nodes,pods,namespaces,pdb,pv,pvc,storageclass -A -o json | jogak explain -f - "
    "--pod team-a/train-0",
    "jogak explain -f cluster.json -p team-a/train-0 --all-nodes -o json",
};

constexpr ArgTable kTable = {
    .command = "jogak explain",
    .summary =
        "Says where a pod would go and why, or why it stays pending: per node the filter that "
        "refuses it, the scores, and whom it might preempt. A pod that runs already is looked "
        "at as if it were pending. Exits 0 if the pod would be placed, 1 if it would stay "
        "pending, 2 for bad use or input.",
    .flags = kFlags,
    .examples = kExamples,
};

Result<core::PodId> find_pod(const core::Cluster& cluster, const ClusterInput& input,
                             const std::string& text) {
  const importer::ImportReport& report = input.report;
  const std::size_t slash = text.find('/');
  const std::string ns = slash == std::string::npos ? input.ns : text.substr(0, slash);
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (const auto id = cluster.find_pod(ns, name)) return *id;
  const std::string full_name = ns + "/" + name;
  if (std::ranges::find(report.finished, full_name) != report.finished.end()) {
    return invalid("pod {} has finished; there is nothing to schedule", full_name);
  }
  std::vector<std::string> names;
  std::vector<std::string> elsewhere;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == core::PodState::Gone) continue;
    names.push_back(cluster.pod_full_name(core::PodId{i}));
    if (cluster.pods()[i].name == name) elsewhere.push_back(names.back());
  }
  // A bare name that only one pod has is plain enough.
  if (slash == std::string::npos && elsewhere.size() == 1) {
    const std::size_t end = elsewhere.front().find('/');
    return *cluster.find_pod(elsewhere.front().substr(0, end), name);
  }
  if (!elsewhere.empty()) {
    return fail(Errc::NotFound, "no pod {}; did you mean {}?", full_name,
                fmt::join(elsewhere | std::views::take(3), " or "));
  }
  return fail(Errc::NotFound, "no pod {} among {}{}", full_name, names.size(),
              did_you_mean(full_name, names));
}

Result<int> run_command(const ParsedArgs& args) {
  JOGAK_TRY(const ClusterSource source, cluster_source(args, "file"));
  core::Cluster cluster;
  JOGAK_TRY(const ClusterInput input, read_cluster(source, cluster));
  JOGAK_TRY(const core::PodId pod, find_pod(cluster, input, args.text("pod")));
  auto explanation = explain(cluster, pod, args.text("policy"));
  if (!explanation) return in_context("--policy", std::move(explanation).error());
  const ExplainView view{.all_nodes = args.is_on("all-nodes"),
                         .top = static_cast<std::size_t>(args.number("top"))};
  const std::string form = args.text("output");
  if (form == "table") {
    fmt::print("{}", explain_text(cluster, *explanation, view));
  } else {
    print_doc(explain_doc(cluster, *explanation, view), form);
  }
  return explanation->placed() ? kExitDone : kExitFailed;
}

}  // namespace

int cmd_explain(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
