// SPDX-License-Identifier: Apache-2.0
//
// `jogak gen workload`: made-up pods for a cluster as a scenario file.
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
     .help = "the cluster to fill, as for `jogak gen cluster`",
     .fallback = sim::kSampleNodes},
    {.name = "for",
     .kind = FlagKind::Int,
     .metavar = "SECONDS",
     .help = "time within which the pods arrive",
     .fallback = "3600",
     .min = 1,
     .max = 100'000'000},
    {.name = "load",
     .kind = FlagKind::Int,
     .metavar = "PERCENT",
     .help = "GPU time asked for, of what the cluster has in that time",
     .fallback = "110",
     .min = 0,
     .max = 1000},
    {.name = "pods",
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "pods at most",
     .fallback = "100000",
     .min = 0,
     .max = 1'000'000},
    {.name = "seed",
     .letter = 's',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "what the pods are drawn from",
     .fallback = "1",
     .min = 0},
    kFileFormFlag,
};

constexpr std::string_view kExamples[] = {
    "jogak gen workload --nodes 64x8xA100-80 --load 120 --for 7200 > workload.yaml",
    "jogak sim run cluster.yaml workload.yaml --policy best-fit,fgd",
};

constexpr ArgTable kTable = {
    .command = "jogak gen workload",
    .summary =
        "Writes made-up pods: shares, whole GPUs, CPU pods; a tenth urgent, some that name "
        "a model. Equal seeds give equal files.",
    .flags = kFlags,
    .examples = kExamples,
};

Result<int> run_command(const ParsedArgs& args) {
  auto groups = sim::parse_sample_groups(args.text("nodes"));
  if (!groups) return in_context("--nodes", std::move(groups).error());
  const sim::SampleLoad load{.for_seconds = args.number("for"),
                             .load_percent = args.number("load"),
                             .pods_max = args.number("pods")};
  print_doc(sim::sample_workload(*groups, load, static_cast<std::uint64_t>(args.number("seed"))),
            args.text("output"));
  return kExitDone;
}

}  // namespace

int cmd_gen_workload(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
