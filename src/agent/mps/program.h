// SPDX-License-Identifier: Apache-2.0
//
// Where nvidia-cuda-mps-control is, and how it is run: as we see it, or, where only the driver's
// root holds it, with that root as its own, since its libraries are there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace jogak::agent {

inline constexpr std::string_view kMpsProgram = "nvidia-cuda-mps-control";

struct MpsProgram {
  std::string root = {};  // "": ours
  std::string path = {};  // below the root
  friend bool operator==(const MpsProgram&, const MpsProgram&) = default;
};

// In the folders of `search_path` ("/a:/b"), then below `driver_root` as we see it ("", "/": none).
std::optional<MpsProgram> find_mps_program(std::string_view search_path,
                                           const std::string& driver_root);

// Its whole environment.
std::vector<std::string> mps_environment(std::string_view search_path, const std::string& pipe,
                                         const std::string& log);

// Puts a process into a control group (version 2), which is made where its parent is one.
Result<void> move_to_cgroup(const std::string& folder, pid_t pid);

// For kube::ChildOptions::enter: a mount of `shm` over /dev/shm that nobody else sees (`shm` empty:
// none), then the root of the program. Null where there is nothing to do.
std::function<int()> mps_enter(const std::string& root, const std::string& shm);

}  // namespace jogak::agent
