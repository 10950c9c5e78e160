// SPDX-License-Identifier: Apache-2.0
//
// `jogak whatif`: what a change to a cluster would do to its pods, before anybody makes it.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/file.h"
#include "cli/answer.h"
#include "cli/cluster_input.h"
#include "cli/commands.h"
#include "cli/new_nodes.h"
#include "cli/new_objects.h"
#include "cli/whatif_report.h"
#include "playground/fleet.h"
#include "sim/whatif.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "remove-node",
     .kind = FlagKind::Repeated,
     .metavar = "NAME",
     .help = "this node goes away, and its pods must go elsewhere"},
    {.name = "drain",
     .kind = FlagKind::Repeated,
     .metavar = "NAME",
     .help = "this node is cordoned and emptied; pods of DaemonSets stay"},
    {.name = "add-nodes",
     .kind = FlagKind::Repeated,
     .metavar = "COUNTxNODE",
     .help = "so many copies of a node, or made-up nodes: 2x8xH100, 4xCPU"},
    {.name = "pods",
     .letter = 'f',
     .kind = FlagKind::Repeated,
     .metavar = "FILE",
     .help = "manifests of pods, Deployments, Jobs, ... that are not there yet; - for standard "
             "input"},
    {.name = "policy",
     .metavar = "NAME",
     .help = "who chooses among the nodes that fit: jogak, kube, best-fit, ...",
     .fallback = "jogak"},
    {.name = "namespace",
     .letter = 'n',
     .metavar = "NAME",
     .help = "of manifests that name none, instead of the context's"},
    {.name = "cluster",
     .letter = 'c',
     .kind = FlagKind::Repeated,
     .metavar = "FILE",
     .help = "cluster state, the JSON of `kubectl get`, instead of a live cluster"},
    kKubeconfigFlag,
    kContextFlag,
    kOutputFlag,
    {.name = "all",
     .kind = FlagKind::Switch,
     .help = "every pod, instead of the first 20 of each kind"},
};

constexpr std::string_view kExamples[] = {
    "jogak whatif --remove-node train-0-1",
    "jogak whatif --add-nodes 2xtrain-0-0 --policy kube",
    "jogak whatif -f job.yaml --add-nodes 1x8xH100",
    "kubectl get nodes,pods,priorityclasses,pdb -A -o json | jogak whatif --cluster - -f job.yaml",
};

constexpr ArgTable kTable = {
    .command = "jogak whatif",
    .summary =
        "Says what a change would do: which pods would start and where, which would move, be "
        "preempted or wait, and why. The cluster is read once and never written to; decisions are "
        "the scheduler's own. Without a change it answers for the pods that wait now. Exits 0 if "
        "all of them would run, 1 if some would wait, 2 for bad use or input.",
    .flags = kFlags,
    .examples = kExamples,
};

Result<NewObjects> read_manifest_files(const ParsedArgs& args, const ClusterInput& input,
                                       const core::Cluster& cluster) {
  const NewObjectOptions options{
      .ns = args.is_given("namespace") ? args.text("namespace") : input.ns,
      .default_storage_class = input.default_storage_class,
      .has_pod = [&cluster](std::string_view ns, std::string_view name) {
        return cluster.find_pod(ns, name).has_value();
      }};
  NewObjects objects;
  for (const std::string& file : args.list("pods")) {
    const std::string name = file == "-" ? "stdin" : file;
    JOGAK_TRY(const std::string text, read_file(file == "-" ? "/dev/stdin" : file));
    JOGAK_TRY(std::vector<Doc> documents, playground::read_manifests(text, name));
    if (documents.empty()) return invalid("{}: holds no objects", name);
    JOGAK_TRY_VOID(add_new_objects(std::move(documents), name, options, objects));
  }
  return objects;
}

std::vector<std::string> without_repeats(std::vector<std::string> names) {
  std::vector<std::string> result;
  for (std::string& name : names) {
    if (std::ranges::find(result, name) == result.end()) result.push_back(std::move(name));
  }
  return result;
}

Result<int> run_command(const ParsedArgs& args) {
  JOGAK_TRY(const ClusterSource source, cluster_source(args, "cluster"));
  const bool reads_stdin_twice =
      std::ranges::count(source.files, "-") + std::ranges::count(args.list("pods"), "-") > 1;
  if (reads_stdin_twice) return invalid("standard input can be read only once");
  core::Cluster cluster;
  JOGAK_TRY(const ClusterInput input, read_cluster(source, cluster));
  JOGAK_TRY(const NewObjects objects, read_manifest_files(args, input, cluster));

  sim::WhatifChanges changes{.remove_nodes = without_repeats(args.list("remove-node")),
                             .drain_nodes = without_repeats(args.list("drain")),
                             .policy = args.text("policy")};
  JOGAK_TRY_VOID(add_new_nodes(cluster, args.list("add-nodes"), changes));
  JOGAK_TRY(changes.new_pods, create_objects(objects, input.priority_classes, cluster));
  JOGAK_TRY(const sim::WhatifReport report, sim::whatif(cluster, changes));

  const WhatifView view{
      .rows_max = args.is_on("all") ? std::numeric_limits<std::size_t>::max() : std::size_t{20},
      .left_out = objects.left_out};
  const std::string form = args.text("output");
  if (form == "table") {
    fmt::print("{}", whatif_text(report, view));
  } else {
    print_doc(whatif_doc(report, view), form);
  }
  return report.count_waiting() == 0 ? kExitDone : kExitFailed;
}

}  // namespace

int cmd_whatif(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
