// SPDX-License-Identifier: Apache-2.0
// What enters does so between fork and exec: system calls on texts that were made before.
#include "agent/mps/program.h"

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace jogak::agent {

namespace {

constexpr std::string_view kFolders[] = {"/usr/bin", "/bin", "/usr/local/bin", "/opt/bin",
                                         "/usr/sbin"};

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

std::optional<MpsProgram> find_mps_program(std::string_view search_path,
                                           const std::string& driver_root) {
  while (!search_path.empty()) {
    const std::size_t end = std::min(search_path.find(':'), search_path.size());
    const std::string_view folder = search_path.substr(0, end);
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
    // A relative one would mean another program in another folder.
    if (!folder.starts_with('/')) continue;
    std::string path = fmt::format("{}/{}", folder, kMpsProgram);
    if (is_program(path)) return MpsProgram{.path = std::move(path)};
  }
  if (driver_root.empty() || driver_root == "/") return std::nullopt;
  for (const std::string_view folder : kFolders) {
    std::string path = fmt::format("{}/{}", folder, kMpsProgram);
    if (is_program(driver_root + path)) {
      return MpsProgram{.root = driver_root, .path = std::move(path)};
    }
  }
  return std::nullopt;
}

std::vector<std::string> mps_environment(std::string_view search_path, const std::string& pipe,
                                         const std::string& log) {
  std::vector<std::string> environment = {
      fmt::format("PATH={}", search_path.empty() ? "/usr/bin:/bin" : search_path),
      fmt::format("CUDA_MPS_PIPE_DIRECTORY={}", pipe),
      fmt::format("CUDA_MPS_LOG_DIRECTORY={}", log),
  };
  return environment;
}

std::function<int()> mps_enter(const std::string& root, const std::string& shm) {
  if (root.empty() && shm.empty()) return nullptr;
  return [root, shm, target = root + "/dev/shm"] {
    if (!shm.empty()) {
      // What the node mounts later is still seen; what is mounted here stays here.
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
          ::mount(shm.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
        return errno;
      }
    }
    if (!root.empty() && (::chroot(root.c_str()) != 0 || ::chdir("/") != 0)) return errno;
    return 0;
  };
}

}  // namespace jogak::agent
