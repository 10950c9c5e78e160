// SPDX-License-Identifier: Apache-2.0
//
// The files of share/nvml-sim, as they are: the assembler reads them. CMake says where they lie.
#include "nvml/sim/shipped.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/edit_distance.h"
#include "base/file.h"

#ifndef JOGAK_NVML_SIM_FILES
#define JOGAK_NVML_SIM_FILES "share/nvml-sim"
#endif

// Hidden, so that the shared library refers to its own copy without a detour.
#define JOGAK_SIM_FILE(symbol, file)             \
  __asm__(                                       \
      ".pushsection .rodata\n"                   \
      ".global jogak_nvml_sim_" #symbol          \
      "\n"                                       \
      ".hidden jogak_nvml_sim_" #symbol          \
      "\n"                                       \
      "jogak_nvml_sim_" #symbol                  \
      ":\n"                                      \
      ".incbin \"" JOGAK_NVML_SIM_FILES "/" file \
      "\"\n"                                     \
      ".byte 0\n"                                \
      ".popsection\n");                          \
  extern "C" __attribute__((visibility("hidden"))) const char jogak_nvml_sim_##symbol[]

JOGAK_SIM_FILE(a100_40, "a100-40gb-x8.yaml");
JOGAK_SIM_FILE(a100_80, "a100-80gb-x8.yaml");
JOGAK_SIM_FILE(h100_80, "h100-80gb-x8.yaml");
JOGAK_SIM_FILE(h200, "h200-x8.yaml");
JOGAK_SIM_FILE(b200, "b200-x8.yaml");
JOGAK_SIM_FILE(a30, "a30-x4.yaml");
JOGAK_SIM_FILE(t4, "t4-x4.yaml");
JOGAK_SIM_FILE(v100, "v100-32gb-x8.yaml");
JOGAK_SIM_FILE(l40s, "l40s-x4.yaml");
JOGAK_SIM_FILE(l4, "l4-x4.yaml");
JOGAK_SIM_FILE(a10, "a10-x4.yaml");
JOGAK_SIM_FILE(mixed, "mixed.yaml");

namespace jogak::nvml::sim {

namespace {

struct Shipped {
  std::string_view name;
  const char* text;
};

constexpr std::array<Shipped, 12> kShipped = {{{"a100-40gb-x8", jogak_nvml_sim_a100_40},
                                               {"a100-80gb-x8", jogak_nvml_sim_a100_80},
                                               {"h100-80gb-x8", jogak_nvml_sim_h100_80},
                                               {"h200-x8", jogak_nvml_sim_h200},
                                               {"b200-x8", jogak_nvml_sim_b200},
                                               {"a30-x4", jogak_nvml_sim_a30},
                                               {"t4-x4", jogak_nvml_sim_t4},
                                               {"v100-32gb-x8", jogak_nvml_sim_v100},
                                               {"l40s-x4", jogak_nvml_sim_l40s},
                                               {"l4-x4", jogak_nvml_sim_l4},
                                               {"a10-x4", jogak_nvml_sim_a10},
                                               {"mixed", jogak_nvml_sim_mixed}}};

constexpr std::int64_t kFileMax = 4 << 20;

}  // namespace

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const Shipped& file : kShipped) names.emplace_back(file.name);
  return names;
}

std::string_view shipped_text(std::string_view name) {
  for (const Shipped& file : kShipped) {
    if (file.name == name) return file.text;
  }
  return {};
}

Result<MachineSpec> load_machine(const std::string& name_or_file, std::string_view identity) {
  const std::string_view text = shipped_text(name_or_file);
  if (!text.empty()) return read_machine(name_or_file + ".yaml", text, identity);
  const bool is_file = name_or_file.find('/') != std::string::npos ||
                       name_or_file.ends_with(".yaml") || name_or_file.ends_with(".yml");
  if (!is_file) {
    return invalid("no simulation {}{}; there are {}, or give a file that ends in .yaml",
                   name_or_file, did_you_mean(name_or_file, shipped_names()),
                   fmt::join(shipped_names(), ", "));
  }
  JOGAK_TRY(const std::string content, read_file(name_or_file, kFileMax));
  return read_machine(name_or_file, content, identity);
}

}  // namespace jogak::nvml::sim
