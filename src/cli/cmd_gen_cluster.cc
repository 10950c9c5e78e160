// SPDX-License-Identifier: Apache-2.0
//
// `jogak gen cluster`: a made-up cluster as a scenario file or as Kubernetes nodes.
#include <fmt/core.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "sim/samples.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "nodes",
     .letter = 'n',
     .metavar = "LIST",
     .help = "groups with commas between them, COUNTxGPUSxMODEL or COUNTxCPU",
     .fallback = sim::kSampleNodes},
    {.name = "seed",
     .letter = 's',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "what the differences between nodes are drawn from",
     .fallback = "1",
     .min = 0},
    {.name = "format",
     .kind = FlagKind::Choice,
     .metavar = "scenario|k8s",
     .help = "a scenario file, or a v1 List of nodes that `jogak explain` reads",
     .fallback = "scenario"},
    kFileFormFlag,
};

constexpr std::string_view kExamples[] = {
    "jogak gen cluster --nodes 64x8xA100-80,4xCPU --seed 7 > cluster.yaml",
    "jogak gen cluster --format k8s -o json > nodes.json",
};

constexpr ArgTable kTable = {
    .command = "jogak gen cluster",
    .summary =
        "Writes a made-up cluster. Equal seeds give equal files. The models are H200-141, "
        "H100-80, A100-80, A100-40, V100-32, L40S, L4, A10 and T4.",
    .flags = kFlags,
    .examples = kExamples,
};

Result<int> run_command(const ParsedArgs& args) {
  auto groups = sim::parse_sample_groups(args.text("nodes"));
  if (!groups) return in_context("--nodes", std::move(groups).error());
  const auto seed = static_cast<std::uint64_t>(args.number("seed"));
  print_doc(args.text("format") == "k8s" ? sim::sample_cluster_k8s(*groups, seed)
                                         : sim::sample_cluster(*groups, seed),
            args.text("output"));
  return kExitDone;
}

}  // namespace

int cmd_gen_cluster(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
