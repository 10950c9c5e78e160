// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent inspect` and `jogak agent record`: what the GPUs of this machine are and do, for
// people, for programs, and as a simulation file. Rows of the group are in command_table.cc.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/agent_inspect.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/nvml_cure.h"
#include "nvml/nvml_source.h"
#include "nvml/record.h"

namespace jogak::cli {

namespace {

constexpr Flag kNvmlFlag = {.name = "nvml",
                            .metavar = "auto|LIBRARY|sim:NAME|sim:FILE",
                            .help = "the driver's library, another one, or a simulation",
                            .fallback = "auto"};
constexpr Flag kRootFlag = {.name = "driver-root",
                            .kind = FlagKind::Repeated,
                            .metavar = "DIR",
                            .help = "look for the driver's library below this folder first"};

constexpr Flag kInspectFlags[] = {kOutputFlag, kNvmlFlag, kRootFlag};
constexpr std::string_view kInspectExamples[] = {
    "jogak agent inspect",
    "jogak agent inspect -o json",
    "jogak agent inspect --nvml sim:a100-40gb-x8",
};
constexpr ArgTable kInspectTable = {
    .command = "jogak agent inspect",
    .summary =
        "Shows the GPUs of this machine: driver, MIG instances, topology, health, processes. "
        "A value that cannot be read is empty and, with -o json, named with its reason.",
    .flags = kInspectFlags,
    .examples = kInspectExamples,
};

constexpr Flag kRecordFlags[] = {kNvmlFlag, kRootFlag};
constexpr std::string_view kRecordExamples[] = {
    "jogak agent record machine.yaml",
    "jogak agent inspect --nvml sim:machine.yaml",
};
constexpr ArgTable kRecordTable = {
    .command = "jogak agent record",
    .operands = "FILE",
    .summary =
        "Writes what the GPUs of this machine are and show now as a simulation file, for "
        "--nvml sim:FILE and for libjogak-nvml-sim.so. UUIDs, serials and names of "
        "processes are in it.",
    .flags = kRecordFlags,
    .operands_min = 1,
    .operands_max = 1,
    .examples = kRecordExamples,
};

Result<NodeView> view_of(const ParsedArgs& args) {
  const std::string nvml = args.text("nvml");
  auto source = nvml::NvmlSource::open(nvml, args.list("driver-root"));
  if (!source) return std::unexpected(with_simulations(std::move(source).error(), nvml));
  auto view = read_node(**source, {.processes = true, .pcie_throughput = true, .gpm = true});
  if (!view) return std::unexpected(with_simulations(std::move(view).error(), nvml));
  return view;
}

Result<int> inspect(const ParsedArgs& args) {
  JOGAK_TRY(const NodeView view, view_of(args));
  const std::string form = args.text("output");
  if (form == "table") {
    fmt::print("{}", node_text(view));
  } else {
    print_doc(node_doc(view), form);
  }
  return kExitDone;
}

Result<int> record(const ParsedArgs& args) {
  JOGAK_TRY(const NodeView view, view_of(args));
  const std::string text = nvml::sim::write_machine(nvml::record_machine(view.node, view.samples),
                                                    "Recorded by jogak agent record.");
  const std::string& file = args.operands().front();
  JOGAK_TRY_VOID(write_file(file, text));
  fmt::print("{}: {} GPU{}\n", file, view.node.gpus.size(), view.node.gpus.size() == 1 ? "" : "s");
  return kExitDone;
}

}  // namespace

int cmd_agent_inspect(Args words) { return answer(kInspectTable, words, inspect); }
int cmd_agent_record(Args words) { return answer(kRecordTable, words, record); }

}  // namespace jogak::cli
