// SPDX-License-Identifier: Apache-2.0
//
// The table of subcommands, in the order that `jogak --help` shows. A row is compiled in when its
// file exists: CMake defines JOGAK_HAVE_<NAME> for every cmd_<name>.cc it finds.
#include <vector>

#include "cli/commands.h"

namespace jogak::cli {

namespace {

const std::vector<Command>& sim_commands() {
  static const std::vector<Command> table = {
#ifdef JOGAK_HAVE_SIM_RUN
      {.name = "run", .summary = "run a simulation spec and report", .run = cmd_sim_run},
#endif
#ifdef JOGAK_HAVE_SIM_OPENB
      {.name = "openb", .summary = "place the openb trace and report", .run = cmd_sim_openb},
#endif
  };
  return table;
}

const std::vector<Command>& gen_commands() {
  static const std::vector<Command> table = {
#ifdef JOGAK_HAVE_GEN_CLUSTER
      {.name = "cluster", .summary = "write a cluster from a seed", .run = cmd_gen_cluster},
#endif
#ifdef JOGAK_HAVE_GEN_WORKLOAD
      {.name = "workload", .summary = "write a workload from a seed", .run = cmd_gen_workload},
#endif
  };
  return table;
}

std::vector<Command> build_table() {
  std::vector<Command> table;
#ifdef JOGAK_HAVE_DEMO
  table.push_back(
      {.name = "demo", .summary = "a short tour on a made-up cluster", .run = cmd_demo});
#endif
#ifdef JOGAK_HAVE_EXPLAIN
  table.push_back(
      {.name = "explain", .summary = "say why a pod is or is not placed", .run = cmd_explain});
#endif
  if (!sim_commands().empty()) {
    table.push_back({.name = "sim", .summary = "simulate", .children = sim_commands()});
  }
  if (!gen_commands().empty()) {
    table.push_back({.name = "gen", .summary = "generate inputs", .children = gen_commands()});
  }
  table.push_back({.name = "version", .summary = "print the version", .run = cmd_version});
  return table;
}

}  // namespace

std::span<const Command> command_table() {
  static const std::vector<Command> table = build_table();
  return table;
}

}  // namespace jogak::cli
