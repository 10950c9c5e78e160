// SPDX-License-Identifier: Apache-2.0
//
// Every subcommand of jogak, one file each: cmd_<name>.cc defines int cmd_<name>(args). The table
// that names them for users is in command_table.cc.
#pragma once

#include <span>
#include <string_view>

#include "cli/command.h"

namespace jogak::cli {

using Args = std::span<const std::string_view>;

int cmd_agent_inspect(Args words);
int cmd_agent_mig_apply(Args words);
int cmd_agent_mig_plan(Args words);
int cmd_agent_mig_recover(Args words);
int cmd_agent_record(Args words);
int cmd_agent_run(Args words);
int cmd_demo(Args args);
int cmd_explain(Args args);
int cmd_gen_cluster(Args args);
int cmd_gen_workload(Args args);
int cmd_scheduler(Args words);
int cmd_sim_openb(Args args);
int cmd_sim_run(Args args);
int cmd_up(Args words);
int cmd_version(Args args);
int cmd_whatif(Args args);

// The whole table, for main and for tests.
std::span<const Command> command_table();

}  // namespace jogak::cli
