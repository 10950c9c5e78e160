// SPDX-License-Identifier: Apache-2.0
// What enters does so between fork and exec: system calls on texts that were made before.
#include "agent/mps/program.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
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

Result<void> move_to_cgroup(const std::string& folder, pid_t pid) {
  const std::string above = folder.substr(0, folder.rfind('/'));
  const bool is_there = ::access(folder.c_str(), F_OK) == 0;
  if (!is_there && ::access((above + "/cgroup.procs").c_str(), F_OK) != 0) {
    return fail(Errc::NotFound, "{} is not a control group of version 2", above);
  }
  if (!is_there && ::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail(Errc::Unavailable, "{} cannot be made: {}", folder,
                std::generic_category().message(errno));
  }
  const std::string file = folder + "/cgroup.procs";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string text = std::to_string(pid);
  const bool is_written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (is_written) return {};
  return fail(Errc::Unavailable, "process {} cannot be put into {}: {}", pid, folder,
              std::generic_category().message(error));
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
