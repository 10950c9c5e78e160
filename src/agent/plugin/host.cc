// SPDX-License-Identifier: Apache-2.0
// Walks a short list of known folders. No link is followed out of the roots: names are matched as
// they stand in the folder.
#include "agent/plugin/host.h"

#include <dirent.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "agent/plugin/device_nodes.h"
#include "base/file.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryFolders[] = {
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib64/vdpau",
    "/usr/lib/x86_64-linux-gnu/vdpau",
    "/usr/lib/aarch64-linux-gnu/vdpau",
};
constexpr std::string_view kPrograms[] = {
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-imex",
    "nvidia-imex-ctl",
};
constexpr std::string_view kSockets[] = {
    "/run/nvidia-persistenced/socket",
    "/run/nvidia-fabricmanager/socket",
};
constexpr std::string_view kData[] = {
    "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "/usr/share/vulkan/icd.d/nvidia_icd.json",
    "/etc/vulkan/icd.d/nvidia_icd.json",
    "/usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
    "/etc/vulkan/implicit_layer.d/nvidia_layers.json",
    "/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
    "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
    "/usr/share/nvidia/nvoptix.bin",
};
constexpr std::string_view kDeviceFolders[] = {"/dev", "/dev/nvidia-caps",
                                               "/dev/nvidia-caps-imex-channels", "/dev/infiniband"};

// root "/" and path "/dev" give "/dev".
std::string below(const std::string& root, std::string_view path) {
  std::string result = root;
  while (result.ends_with('/')) result.pop_back();
  return result.append(path);
}

// Sorted. Of names that begin and end so; library folders have thousands of others, and this is
// done each minute.
std::vector<std::string> names_in(const std::string& folder, std::string_view prefix = "",
                                  std::string_view suffix = "") {
  std::vector<std::string> result;
  DIR* const stream = ::opendir(folder.c_str());
  if (stream == nullptr) return result;
  while (const struct dirent* const entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || !name.starts_with(prefix) || !name.ends_with(suffix)) {
      continue;
    }
    result.emplace_back(name);
  }
  ::closedir(stream);
  std::ranges::sort(result);
  return result;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_device_name(std::string_view name) {
  return name.starts_with("nvidia") || name.starts_with("gdrdrv") || name.starts_with("channel") ||
         name.starts_with("uverbs") || name == "rdma_cm";
}

void find_devices(const HostRoots& roots, HostFiles& files) {
  for (const std::string_view folder : kDeviceFolders) {
    for (const std::string& name : names_in(below(roots.devices, folder))) {
      std::error_code error;
      const std::string path = fmt::format("{}/{}", folder, name);
      if (is_device_name(name) && !fs::is_directory(below(roots.devices, path), error)) {
        files.device_nodes.insert(path);
      }
    }
  }
}

void find_drm(const HostRoots& roots, HostFiles& files) {
  const std::string folder = below(roots.system, "/sys/bus/pci/devices");
  for (const std::string& bus_id : names_in(folder)) {
    for (const std::string& name : names_in(fmt::format("{}/{}/drm", folder, bus_id))) {
      const std::string node = "/dev/dri/" + name;
      if (is_there(below(roots.devices, node))) files.drm_nodes[bus_id].push_back(node);
    }
  }
}

void find_driver(const HostRoots& roots, std::string_view version, HostFiles& files) {
  const std::string suffix = fmt::format(".so.{}", version);
  std::set<std::string> seen;  // folders that are links to one another show a file once
  for (const std::string_view folder : kLibraryFolders) {
    const std::string real = below(roots.driver, folder);
    std::error_code error;
    const fs::path canonical = fs::canonical(real, error);
    if (error || !seen.insert(canonical.string()).second) continue;
    if (version.empty()) continue;
    for (const std::string& name : names_in(real, "lib", suffix)) {
      files.libraries.push_back(fmt::format("{}/{}", folder, name));
    }
  }
  for (const std::string_view name : kPrograms) {
    for (const std::string_view folder : {"/usr/bin", "/usr/sbin", "/bin"}) {
      const std::string path = fmt::format("{}/{}", folder, name);
      if (is_there(below(roots.driver, path))) {
        files.programs.push_back(path);
        break;
      }
    }
  }
  for (const std::string_view path : kData) {
    if (is_there(below(roots.driver, path))) files.data.emplace_back(path);
  }
  for (const std::string_view lib : {"/lib/firmware/nvidia", "/usr/lib/firmware/nvidia"}) {
    const std::string folder = fmt::format("{}/{}", lib, version);
    bool has_any = false;
    for (const std::string& name : names_in(below(roots.driver, folder))) {
      if (version.empty() || !name.starts_with("gsp") || !name.ends_with(".bin")) continue;
      files.data.push_back(fmt::format("{}/{}", folder, name));
      has_any = true;
    }
    if (has_any) break;
  }
  for (const std::string_view path : kSockets) {
    if (is_there(below(roots.driver, path))) files.sockets.emplace_back(path);
  }
}

}  // namespace

int HostFiles::mig_cap(int minor, int gi_id, int ci_id) const {
  const std::string key = ci_id < 0 ? fmt::format("gpu{}/gi{}/access", minor, gi_id)
                                    : fmt::format("gpu{}/gi{}/ci{}/access", minor, gi_id, ci_id);
  const auto it = mig_caps.find(key);
  return it == mig_caps.end() ? -1 : it->second;
}

bool HostFiles::has_node(std::string_view path) const {
  return device_nodes.contains(path) || numbers.contains(path);
}

std::vector<std::string> HostFiles::extra_nodes(std::string_view kind) const {
  std::vector<std::string> result;
  for (const std::string& path : device_nodes) {
    const bool is_of_kind = (kind == "gds" && path.starts_with("/dev/nvidia-fs")) ||
                            (kind == "mofed" && (path.starts_with("/dev/infiniband/uverbs") ||
                                                 path == "/dev/infiniband/rdma_cm")) ||
                            (kind == "gdrcopy" && path.starts_with("/dev/gdrdrv"));
    if (is_of_kind) result.push_back(path);
  }
  return result;
}

std::string imex_node(int channel) {
  return fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
}

std::map<std::string, int, std::less<>> parse_mig_minors(std::string_view text) {
  std::map<std::string, int, std::less<>> result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos || !line.starts_with("gpu")) continue;
    const auto minor = parse_int(line.substr(blank + 1), 0, 1 << 20);
    if (minor)
      result.insert_or_assign(std::string(line.substr(0, blank)), static_cast<int>(*minor));
  }
  return result;
}

HostFiles find_host_files(const HostRoots& roots, std::string_view driver_version) {
  HostFiles files;
  find_devices(roots, files);
  find_drm(roots, files);
  if (const auto minors =
          read_file(below(roots.system, "/proc/driver/nvidia-caps/mig-minors"), 1 << 20)) {
    files.mig_caps = parse_mig_minors(*minors);
  } else {
    // Kernels without the one table have a file per instance.
    for (const auto& [key, file] : read_capabilities(roots.system)) {
      files.mig_caps.emplace(key, file.minor);
    }
  }
  find_driver(roots, driver_version, files);
  files.has_hook = !roots.hook_path.empty() && is_there(below(roots.host, roots.hook_path));
  return files;
}

}  // namespace jogak::agent
