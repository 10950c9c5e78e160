// SPDX-License-Identifier: Apache-2.0
//
// The table of subcommands, in the order that `jogak --help` shows.
#include <array>

#include "cli/commands.h"

namespace jogak::cli {

namespace {

constexpr std::array kSimCommands = {
    Command{
        .name = "run", .summary = "play a scenario on virtual time and report", .run = cmd_sim_run},
    Command{.name = "openb",
            .summary = "place the openb trace pod by pod and report what fits",
            .run = cmd_sim_openb},
};

constexpr std::array kAgentMigCommands = {
    Command{.name = "plan", .summary = "say what a layout would take", .run = cmd_agent_mig_plan},
    Command{.name = "apply", .summary = "cut the GPUs so", .run = cmd_agent_mig_apply},
    Command{
        .name = "recover", .summary = "finish what was cut short", .run = cmd_agent_mig_recover},
};

constexpr std::array kAgentCommands = {
    Command{.name = "run", .summary = "run the node agent", .run = cmd_agent_run},
    Command{.name = "inspect",
            .summary = "show the GPUs, their MIG instances, links and health",
            .run = cmd_agent_inspect},
    Command{.name = "record",
            .summary = "write this machine as a simulation file",
            .run = cmd_agent_record},
    Command{.name = "mig", .summary = "layouts of MIG instances", .children = kAgentMigCommands},
};

constexpr std::array kGenCommands = {
    Command{.name = "cluster", .summary = "write a cluster from a seed", .run = cmd_gen_cluster},
    Command{.name = "workload", .summary = "write a workload from a seed", .run = cmd_gen_workload},
};

constexpr std::array kCommands = {
    Command{.name = "up", .summary = "a cluster to play with on this machine", .run = cmd_up},
    Command{.name = "demo", .summary = "a short tour on a made-up cluster", .run = cmd_demo},
    Command{.name = "scheduler",
            .summary = "schedule the pods of a real cluster",
            .run = cmd_scheduler},
    Command{.name = "explain", .summary = "say why a pod is or is not placed", .run = cmd_explain},
    Command{.name = "whatif", .summary = "say what a change would do", .run = cmd_whatif},
    Command{.name = "sim", .summary = "simulate", .children = kSimCommands},
    Command{.name = "gen", .summary = "generate inputs", .children = kGenCommands},
    Command{.name = "agent", .summary = "the GPUs of this machine", .children = kAgentCommands},
    Command{.name = "version", .summary = "print the version", .run = cmd_version},
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

}  // namespace jogak::cli
