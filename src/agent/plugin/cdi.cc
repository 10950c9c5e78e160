// SPDX-License-Identifier: Apache-2.0
// Makes the specs from what is there, and puts files in place by rename.
#include "agent/plugin/cdi.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/doc.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

namespace fs = std::filesystem;

// Names that start with a digit ("0") need 0.5.0; nothing here needs more, and older runtimes know
// it.
constexpr std::string_view kCdiVersion = "0.5.0";
constexpr std::string_view kControlNodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                              "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"};
constexpr std::string_view kTemporarySuffix = ".writing";  // runtimes read .json and .yaml alone

std::string joined(std::string root, std::string_view path) {
  while (root.ends_with('/')) root.pop_back();
  return root.append(path);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class SpecMaker {
 public:
  SpecMaker(const nvml::NodeFacts& facts, const PluginConfig& config, const HostFiles& host)
      : facts_(facts), config_(config), host_(host) {}

  Doc gpus() {
    Doc devices = Doc::array();
    for (const nvml::GpuFacts& gpu : facts_.gpus) {
      if (gpu.uuid.empty() || gpu.is_lost) continue;
      add_device(devices, gpu, nullptr);
      for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
        if (!instance.uuid.empty() && instance.ci_id >= 0) add_device(devices, gpu, &instance);
      }
    }
    if (devices.empty()) return {};
    Doc spec = header("gpu");
    spec.set("devices", std::move(devices));
    spec.set("containerEdits", common());
    return spec;
  }

  // A class whose devices are nodes and nothing else; null where no node is there.
  Doc nodes_only(std::string_view kind, const std::vector<std::pair<std::string, Doc>>& devices) {
    Doc list = Doc::array();
    for (const auto& [name, nodes] : devices) {
      if (nodes.empty()) continue;
      list.push(Doc::object()
                    .set("name", name)
                    .set("containerEdits", Doc::object().set("deviceNodes", nodes)));
    }
    if (list.empty()) return {};
    Doc spec = header(kind);
    spec.set("devices", std::move(list));
    return spec;
  }

  Doc extra_nodes(std::string_view kind) const {
    Doc nodes = Doc::array();
    for (const std::string& path : host_.extra_nodes(kind)) nodes.push(node(path));
    return nodes;
  }

  // Only nodes that are there or can be made: another fails every container that names the device.
  void add_node(Doc& nodes, const std::string& path) const {
    if (host_.has_node(path)) nodes.push(node(path));
  }

 private:
  static Doc header(std::string_view kind) {
    return Doc::object()
        .set("cdiVersion", kCdiVersion)
        .set("kind", fmt::format("{}/{}", kCdiVendor, kind));
  }

  Doc node(const std::string& path) const {
    Doc node = Doc::object().set("path", path);
    const std::string host_path = joined(config_.host_dev_root(), path);
    if (host_path != path) node.set("hostPath", host_path);
    // With its numbers a runtime makes the node itself; without, it copies them from the host's.
    if (const auto at = host_.numbers.find(path); at != host_.numbers.end()) {
      node.set("type", "c").set("major", at->second.major).set("minor", at->second.minor);
    }
    return node;
  }

  void add_device(Doc& devices, const nvml::GpuFacts& gpu,
                  const nvml::MigInstanceFacts* instance) const {
    Doc nodes = Doc::array();
    if (gpu.minor) {
      add_node(nodes, fmt::format("/dev/nvidia{}", *gpu.minor));
      if (instance != nullptr) {
        for (const int ci : {-1, instance->ci_id}) {
          add_node(nodes, fmt::format("/dev/nvidia-caps/nvidia-cap{}",
                                      host_.mig_cap(*gpu.minor, instance->gi_id, ci)));
        }
      } else {
        add_drm(nodes, gpu);
      }
    }
    const std::string index = instance == nullptr
                                  ? std::to_string(gpu.index)
                                  : fmt::format("{}:{}", gpu.index, instance->index);
    const std::string& uuid = instance == nullptr ? gpu.uuid : instance->uuid;
    // Which devices a container got: NVIDIA_VISIBLE_DEVICES has to say "void".
    std::string variable = "JOGAK_GPU_" + index;
    std::ranges::replace(variable, ':', '_');
    const Doc edits = [&] {
      Doc made = Doc::object().set("env", Doc::array().push(fmt::format("{}={}", variable, uuid)));
      if (!nodes.empty()) made.set("deviceNodes", nodes);
      return made;
    }();
    for (const std::string& name : {uuid, index}) {
      if (!is_cdi_device_name(name)) continue;
      devices.push(Doc::object().set("name", name).set("containerEdits", edits));
    }
  }

  void add_drm(Doc& nodes, const nvml::GpuFacts& gpu) const {
    // NVML writes a domain of 8 digits, the kernel one of 4, in lower case.
    std::string bus_id = gpu.pci_bus_id.size() > 12 ? gpu.pci_bus_id.substr(4) : gpu.pci_bus_id;
    std::ranges::transform(bus_id, bus_id.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (const auto it = host_.drm_nodes.find(bus_id); it != host_.drm_nodes.end()) {
      for (const std::string& path : it->second) nodes.push(node(path));
    }
  }

  static Doc mount(const std::string& from, std::string_view to, bool is_socket) {
    Doc options = Doc::array();
    for (const std::string_view option : {"ro", "nosuid", "nodev", "rbind", "rprivate", "noexec"}) {
      if (option != (is_socket ? "ro" : "noexec")) options.push(option);
    }
    return Doc::object()
        .set("hostPath", from)
        .set("containerPath", to)
        .set("options", std::move(options));
  }

  Doc common() const {
    Doc edits = Doc::object();
    edits.set("env", Doc::array().push("NVIDIA_VISIBLE_DEVICES=void"));
    Doc nodes = Doc::array();
    for (const std::string_view path : kControlNodes) add_node(nodes, std::string(path));
    if (!nodes.empty()) edits.set("deviceNodes", std::move(nodes));
    Doc mounts = Doc::array();
    const bool has_hook = uses_hook("update-ldcache");
    for (const std::string& path : host_.libraries) {
      const std::string from = joined(config_.driver_root, path);
      mounts.push(mount(from, path, false));
      // Without the hook nobody makes the links that programs ask for: mount the name itself.
      if (!has_hook) mounts.push(mount(from, soname(path), false));
    }
    for (const auto* const list : {&host_.programs, &host_.data}) {
      for (const std::string& path : *list) {
        mounts.push(mount(joined(config_.driver_root, path), path, false));
      }
    }
    for (const std::string& path : host_.sockets) {
      mounts.push(mount(joined(config_.driver_root, path), path, true));
    }
    if (!mounts.empty()) edits.set("mounts", std::move(mounts));
    if (Doc made = hooks(); !made.empty()) edits.set("hooks", std::move(made));
    return edits;
  }

  // "/usr/lib64/libcuda.so.550.90.07" -> "/usr/lib64/libcuda.so.1"
  static std::string soname(const std::string& path) {
    return path.substr(0, path.rfind(".so.")) + ".so.1";
  }

  bool uses_hook(std::string_view name) const {
    return host_.has_hook && std::ranges::none_of(config_.cdi_disabled_hooks, [&](const auto& off) {
             return off == name || off == "all";
           });
  }

  Doc hooks() const {
    Doc result = Doc::array();
    if (host_.libraries.empty()) return result;
    const bool is_ctk = !config_.cdi_hook_path.ends_with("nvidia-cdi-hook");
    const auto add = [&](std::string_view name, const std::vector<std::string>& args) {
      if (!uses_hook(name)) return;
      Doc words = Doc::array();
      words.push(config_.cdi_hook_path.substr(config_.cdi_hook_path.rfind('/') + 1));
      if (is_ctk) words.push("hook");
      words.push(name);
      for (const std::string& word : args) words.push(word);
      result.push(Doc::object()
                      .set("hookName", "createContainer")
                      .set("path", config_.cdi_hook_path)
                      .set("args", std::move(words)));
    };
    std::vector<std::string> links;
    std::set<std::string> folders;
    for (const std::string& path : host_.libraries) {
      const std::string folder = path.substr(0, path.rfind('/'));
      folders.insert(folder);
      if (path.find("/libcuda.so.") != std::string::npos) {
        links.insert(links.end(), {"--link", fmt::format("libcuda.so.1::{}/libcuda.so", folder)});
      }
    }
    if (!links.empty()) add("create-symlinks", links);
    add("enable-cuda-compat", {"--host-driver-version=" + facts_.driver_version});
    std::vector<std::string> ld;
    for (const std::string& folder : folders) ld.insert(ld.end(), {"--folder", folder});
    add("update-ldcache", ld);
    return result;
  }

  const nvml::NodeFacts& facts_;
  const PluginConfig& config_;
  const HostFiles& host_;
};

// "FILE: what: why" of the system's last error.
std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail(Errc::Unavailable, "{}: {}: {}", path, what, std::strerror(errno));
}

}  // namespace

bool is_cdi_device_name(std::string_view name) {
  const auto is_end = [](char c) { return is_letter(c) || is_digit(c); };
  return !name.empty() && is_end(name.front()) && is_end(name.back()) &&
         std::ranges::all_of(name, [&](char c) {
           return is_end(c) || c == '_' || c == '-' || c == '.' || c == ':';
         });
}

std::vector<CdiFile> make_cdi_files(const nvml::NodeFacts& facts, const PluginConfig& config,
                                    const HostFiles& host) {
  SpecMaker maker(facts, config, host);
  std::vector<CdiFile> files;
  const auto add = [&files](std::string_view kind, const Doc& spec) {
    if (!spec.is_null()) {
      files.push_back({.name = fmt::format("{}-{}.json", kCdiVendor, kind), .json = spec.json()});
    }
  };
  add("gpu", maker.gpus());
  for (const std::string_view kind : config.extra_kinds()) {
    add(kind, maker.nodes_only(kind, {{"all", maker.extra_nodes(kind)}}));
  }
  std::vector<std::pair<std::string, Doc>> channels;
  for (const int channel : config.imex_channels) {
    Doc nodes = Doc::array();
    maker.add_node(nodes, imex_node(channel));
    channels.emplace_back(std::to_string(channel), std::move(nodes));
  }
  add("imex-channel", maker.nodes_only("imex-channel", channels));
  return files;
}

void CdiFolder::step(std::string_view verb, std::string_view name) const {
  if (on_step_) on_step_(fmt::format("{} {}", verb, name));
}

Result<void> CdiFolder::write(const CdiFile& file) const {
  const std::string path = path_ + "/" + file.name;
  const std::string temporary = path + std::string(kTemporarySuffix);
  step("write", file.name);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(temporary, "cannot be written");
  // The umask says nothing about what runtimes may read.
  bool is_ok = ::fchmod(fd, 0644) == 0;
  std::string_view rest = file.json;
  while (is_ok && !rest.empty()) {
    const ssize_t wrote = ::write(fd, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    is_ok = wrote > 0;
    if (is_ok) rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  is_ok = is_ok && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (!is_ok) {
    ::unlink(temporary.c_str());
    errno = error;
    return system_error(temporary, "cannot be written");
  }
  step("rename", file.name);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return system_error(path, "cannot be put in place");
  }
  return {};
}

std::vector<std::string> CdiFolder::our_files() const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(path_, error);
  while (!error && it != fs::directory_iterator()) {
    std::string name = it->path().filename().string();
    const bool is_ours =
        name.starts_with(std::string(kCdiVendor) + "-") &&
        (name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(kTemporarySuffix));
    if (is_ours) names.push_back(std::move(name));
    it.increment(error);
  }
  std::ranges::sort(names);
  return names;
}

bool CdiFolder::has_files() const { return !our_files().empty(); }

Result<void> CdiFolder::put(const std::vector<CdiFile>& files) const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) return fail(Errc::Unavailable, "{}: cannot be made: {}", path_, error.message());

  bool is_changed = false;
  for (const CdiFile& file : files) {
    const auto before = read_file(path_ + "/" + file.name);
    if (before && *before == file.json) continue;
    JOGAK_TRY_VOID(write(file));
    is_changed = true;
  }
  // After the writing, so that no device is missing in between.
  for (const std::string& name : our_files()) {
    if (std::ranges::find(files, name, &CdiFile::name) != files.end()) continue;
    step("remove", name);
    if (::unlink((path_ + "/" + name).c_str()) != 0 && errno != ENOENT) {
      return system_error(path_ + "/" + name, "is stale and cannot be removed");
    }
    is_changed = true;
  }
  if (is_changed) {
    // The names themselves, over a power loss.
    const int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
      ::fsync(fd);
      ::close(fd);
    }
  }
  return {};
}

}  // namespace jogak::agent
