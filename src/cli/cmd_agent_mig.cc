// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent mig plan|apply|recover`: MIG layouts of this machine's GPUs, shown and carried out.
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "agent/mig/journal.h"
#include "cli/agent_mig.h"
#include "cli/agent_mig_pods.h"
#include "cli/agent_mig_report.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/nvml_cure.h"
#include "nvml/nvml_source.h"

namespace jogak::cli {

namespace {

constexpr Flag kLayout = {
    .name = "layout",
    .metavar = "LAYOUT",
    .help =
        "instances of each GPU: 3g.20gb:2,1g.5gb or 7x1g.5gb or 1g:7; parts of one: 1c.3g.20gb:3; "
        "none; off; or a standard one: all-balanced, all-1g.5gb"};
constexpr Flag kGpu = {
    .name = "gpu", .metavar = "all|N,...", .help = "which GPUs, by index", .fallback = "all"};
constexpr Flag kFile = {.name = "file",
                        .letter = 'f',
                        .metavar = "FILE",
                        .help = "named configurations in the format of mig-parted (version v1)"};
constexpr Flag kConfig = {.name = "config",
                          .metavar = "NAME",
                          .help = "the configuration to take, of --file or a standard one"};
constexpr Flag kJournal = {.name = "journal",
                           .metavar = "FILE",
                           .help = "where each step is written before it is taken",
                           .fallback = "/var/lib/jogak/mig-journal.json"};

constexpr Flag kNvml = {.name = "nvml",
                        .metavar = "auto|PATH|sim:NAME|sim:FILE",
                        .help = "the driver's library, or a simulated machine",
                        .fallback = "auto"};

constexpr Flag kPodResources = {
    .name = "pod-resources",
    .metavar = "SOCKET|none",
    .help = "where the kubelet says which pods hold what; not asked about a simulated machine",
    .fallback = kPodResourcesSocket};

constexpr Flag kPlanFlags[] = {kLayout, kGpu, kFile, kConfig, kPodResources, kNvml, kOutputFlag};
constexpr Flag kApplyFlags[] = {kLayout,  kGpu,          kFile, kConfig,
                                kJournal, kPodResources, kNvml, kOutputFlag};
constexpr Flag kRecoverFlags[] = {kJournal, kPodResources, kNvml, kOutputFlag};

constexpr std::string_view kPlanExamples[] = {
    "jogak agent mig plan --layout 7x1g.5gb --gpu 0 --nvml sim:a100-40gb-x8",
    "jogak agent mig plan -f mig-parted.yaml --config all-balanced",
};
constexpr std::string_view kApplyExamples[] = {
    "jogak agent mig apply --layout 3g.20gb:2 --gpu 0,1",
    "jogak agent mig apply -f mig-parted.yaml --config all-1g.5gb",
};

constexpr ArgTable kPlanTable = {
    .command = "jogak agent mig plan",
    .summary =
        "Says which instances would be destroyed and created, and draws the slices before and "
        "after. Touches nothing. The change is as small as it can be and never goes through an "
        "instance in use; where that leaves no way it says what is in the way, and exits 1.",
    .flags = kPlanFlags,
    .examples = kPlanExamples,
};
constexpr ArgTable kApplyTable = {
    .command = "jogak agent mig apply",
    .summary =
        "Carries out what plan shows. If any GPU refuses, none is touched. A step that fails is "
        "undone; a crash in the middle is finished by the next apply, by recover, or by the agent "
        "at its start. Says done only when the driver shows the layout. Where jogak agent run "
        "manages the node, set the label nvidia.com/mig.config instead: it also keeps new pods "
        "away meanwhile.",
    .flags = kApplyFlags,
    .examples = kApplyExamples,
};
constexpr ArgTable kRecoverTable = {
    .command = "jogak agent mig recover",
    .summary = "Finishes a change of MIG layouts that was cut short, or puts back what was there.",
    .flags = kRecoverFlags,
};

Result<int> run_verb(const ParsedArgs& args, MigRequest::Verb verb) {
  using Verb = MigRequest::Verb;
  MigRequest request{.verb = verb};
  if (verb != Verb::Recover) {
    request.layout = args.text("layout");
    request.config = args.text("config");
    request.file = args.text("file");
    request.gpus = args.text("gpu");
  }
  auto opened = nvml::NvmlSource::open(args.text("nvml"));
  if (!opened) {
    return std::unexpected(with_simulations(std::move(opened).error(), args.text("nvml")));
  }
  const auto source = *std::move(opened);
  agent::MigHolders holders;
  const std::string socket = args.text("pod-resources");
  const bool is_simulated = args.text("nvml").starts_with("sim:");
  if (socket != "none" && (!is_simulated || args.is_given("pod-resources"))) {
    JOGAK_TRY(const nvml::NodeFacts node, source->facts());
    JOGAK_TRY(holders, holders_from_kubelet(socket, node));
  }
  const std::string journal = verb == Verb::Plan ? "" : args.text("journal");
  std::error_code ignored;  // whatever is wrong with the folder, the first write says it
  const auto folder = std::filesystem::path(journal).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  agent::MigJournalFile store(journal);
  JOGAK_TRY(const auto reports, run_mig(request, *source, store, holders));
  JOGAK_TRY(const nvml::NodeFacts node, source->facts());
  const MigTense tense = verb == Verb::Plan ? MigTense::Would : MigTense::Did;
  if (args.text("output") == "table") {
    fmt::print("{}", mig_report_text(node, reports, tense));
  } else {
    print_doc(mig_report_doc(node, reports, tense), args.text("output"));
  }
  const agent::MigState state = agent::overall(reports);
  const bool is_good = state <= agent::MigState::Done ||
                       (verb == Verb::Plan && state == agent::MigState::NeedsReset);
  return is_good ? kExitDone : kExitFailed;
}

}  // namespace

int cmd_agent_mig_plan(Args words) {
  return answer(kPlanTable, words,
                [](const ParsedArgs& args) { return run_verb(args, MigRequest::Verb::Plan); });
}

int cmd_agent_mig_apply(Args words) {
  return answer(kApplyTable, words,
                [](const ParsedArgs& args) { return run_verb(args, MigRequest::Verb::Apply); });
}

int cmd_agent_mig_recover(Args words) {
  return answer(kRecoverTable, words,
                [](const ParsedArgs& args) { return run_verb(args, MigRequest::Verb::Recover); });
}

}  // namespace jogak::cli
