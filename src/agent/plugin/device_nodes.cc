// SPDX-License-Identifier: Apache-2.0
//
// A node is made beside its name and renamed: whoever opens the name finds the old one or the new
// one, whole, with its owner and mode.
#include "agent/plugin/device_nodes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTableBytesMax = 1 << 20;
constexpr int kMajorMax = 4095, kMinorMax = (1 << 20) - 1;  // what the kernel's numbers hold
constexpr int kControlMinor = 255, kModesetMinor = 254;
constexpr std::string_view kCapPrefix = "/dev/nvidia-caps/nvidia-cap";
constexpr std::string_view kTemporaryPrefix = ".jogak-";

std::string below(const std::string& root, std::string_view path) {
  std::string result = root;
  while (result.ends_with('/')) result.pop_back();
  return result.append(path);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

template <class Fn>
void for_each_line(std::string_view text, Fn fn) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    fn(trimmed(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// "Key: 7" lines with whole numbers.
std::map<std::string, int, std::less<>> parse_settings(std::string_view text) {
  std::map<std::string, int, std::less<>> settings;
  for_each_line(text, [&settings](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto value = parse_int(trimmed(line.substr(colon + 1)), 0, INT32_MAX);
    if (value) settings.emplace(trimmed(line.substr(0, colon)), static_cast<int>(*value));
  });
  return settings;
}

std::optional<int> within(const std::map<std::string, int, std::less<>>& settings,
                          std::string_view name, int max) {
  const auto at = settings.find(name);
  if (at == settings.end() || at->second > max) return std::nullopt;
  return at->second;
}

std::vector<std::string> folder_names(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  while (!error && it != fs::directory_iterator()) {
    std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
    it.increment(error);
  }
  std::ranges::sort(names);
  return names;
}

std::string text_of(const std::string& path) {
  return read_file(path, kTableBytesMax).value_or(std::string());
}

// "gpu0/gi7/access", "gpu0/gi7/ci0/access"
std::string cap_key(int minor, int gi, int ci) {
  return ci < 0 ? fmt::format("gpu{}/gi{}/access", minor, gi)
                : fmt::format("gpu{}/gi{}/ci{}/access", minor, gi, ci);
}

// Of the GPUs that answered: the keys of all their instances.
std::set<std::string, std::less<>> instance_keys(const nvml::NodeFacts& facts) {
  std::set<std::string, std::less<>> keys;
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (!gpu.minor) continue;
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
      keys.insert(cap_key(*gpu.minor, instance.gi_id, -1));
      if (instance.ci_id >= 0) keys.insert(cap_key(*gpu.minor, instance.gi_id, instance.ci_id));
    }
  }
  return keys;
}

}  // namespace

// ---- the kernel's tables ---------------------------------------------------------------------

DeviceMajors parse_proc_devices(std::string_view text) {
  DeviceMajors majors;
  bool is_character = false;
  for_each_line(text, [&](std::string_view line) {
    if (line.ends_with(':')) {
      is_character = line == "Character devices:";
      return;
    }
    const std::size_t blank = line.find(' ');
    if (!is_character || blank == std::string_view::npos) return;
    const auto major = parse_int(line.substr(0, blank), 1, kMajorMax);
    const std::string_view name = trimmed(line.substr(blank));
    if (major && !name.empty()) majors.emplace(name, static_cast<int>(*major));
  });
  return majors;
}

DeviceFileRule parse_device_params(std::string_view text) {
  const auto settings = parse_settings(text);
  DeviceFileRule rule;
  rule.may_make = within(settings, "ModifyDeviceFiles", INT32_MAX).value_or(1) != 0;
  rule.uid = within(settings, "DeviceFileUID", INT32_MAX).value_or(rule.uid);
  rule.gid = within(settings, "DeviceFileGID", INT32_MAX).value_or(rule.gid);
  rule.mode = within(settings, "DeviceFileMode", 0777).value_or(rule.mode);
  return rule;
}

std::optional<CapabilityFile> parse_capability(std::string_view text) {
  const auto settings = parse_settings(text);
  const auto minor = within(settings, "DeviceFileMinor", kMinorMax);
  if (!minor) return std::nullopt;
  CapabilityFile file;
  file.minor = *minor;
  file.mode = within(settings, "DeviceFileMode", 0777).value_or(file.mode);
  file.may_make = within(settings, "DeviceFileModify", INT32_MAX).value_or(1) != 0;
  return file;
}

Capabilities read_capabilities(const std::string& system_root) {
  Capabilities files;
  const std::string top = below(system_root, "/proc/driver/nvidia/capabilities");
  for (const std::string& gpu : folder_names(top, "gpu")) {
    const std::string mig = fmt::format("{}/{}/mig", top, gpu);
    for (const std::string& gi : folder_names(mig, "gi")) {
      const auto add = [&](const std::string& inner) {
        const auto file = parse_capability(text_of(fmt::format("{}/{}/access", mig, inner)));
        if (file) files.emplace(fmt::format("{}/{}/access", gpu, inner), *file);
      };
      add(gi);
      for (const std::string& ci : folder_names(fmt::format("{}/{}", mig, gi), "ci")) {
        add(fmt::format("{}/{}", gi, ci));
      }
    }
  }
  return files;
}

KernelTables read_kernel_tables(const std::string& system_root) {
  KernelTables tables;
  tables.majors = parse_proc_devices(text_of(below(system_root, "/proc/devices")));
  tables.rule = parse_device_params(text_of(below(system_root, "/proc/driver/nvidia/params")));
  tables.capabilities = read_capabilities(system_root);
  std::error_code error;
  // Older drivers have one name for all nodes of their major: it does not say which are served.
  tables.has_modeset = tables.majors.contains("nvidia-modeset") ||
                       fs::exists(below(system_root, "/sys/module/nvidia_modeset"), error);
  return tables;
}

// ---- what should be there --------------------------------------------------------------------

DeviceNodes wanted_device_nodes(const KernelTables& tables, const nvml::NodeFacts& facts,
                                const PluginConfig& config, const HostFiles& host) {
  DeviceNodes nodes;
  const auto major_of = [&tables](std::string_view name) {
    const auto at = tables.majors.find(name);
    return at == tables.majors.end() ? 0 : at->second;
  };
  const auto add = [&](std::string path, int major, int minor) {
    if (major == 0) return;
    const DeviceFileRule& rule = tables.rule;
    nodes.emplace(std::move(path), DeviceNode{.major = major,
                                              .minor = minor,
                                              .uid = rule.uid,
                                              .gid = rule.gid,
                                              .mode = rule.mode,
                                              .may_make = rule.may_make});
  };
  int major = 0;
  for (const std::string_view name : {"nvidia", "nvidia-frontend", "nvidiactl"}) {
    if (major == 0) major = major_of(name);
  }
  if (major == 0) return nodes;
  add("/dev/nvidiactl", major, kControlMinor);
  if (tables.has_modeset) add("/dev/nvidia-modeset", major, kModesetMinor);
  add("/dev/nvidia-uvm", major_of("nvidia-uvm"), 0);
  add("/dev/nvidia-uvm-tools", major_of("nvidia-uvm"), 1);
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (gpu.minor && *gpu.minor >= 0) {
      add(fmt::format("/dev/nvidia{}", *gpu.minor), major, *gpu.minor);
    }
  }
  for (const int channel : config.imex_channels) {
    add(imex_node(channel), major_of("nvidia-caps-imex-channels"), channel);
  }
  const int caps_major = major_of("nvidia-caps");
  for (const std::string& key : instance_keys(facts)) {
    const auto minor = host.mig_caps.find(key);
    if (minor == host.mig_caps.end() || caps_major == 0) continue;
    DeviceNode node = {.major = caps_major, .minor = minor->second, .mode = CapabilityFile().mode};
    if (const auto at = tables.capabilities.find(key); at != tables.capabilities.end()) {
      node.mode = at->second.mode;
      node.may_make = at->second.may_make;
    }
    nodes.emplace(fmt::format("{}{}", kCapPrefix, node.minor), node);
  }
  return nodes;
}

std::vector<std::string> stale_device_nodes(const KernelTables& tables,
                                            const nvml::NodeFacts& facts, const HostFiles& host) {
  std::vector<std::string> stale;
  const auto there = instance_keys(facts);
  for (const auto& [key, minor] : host.mig_caps) {
    if (there.contains(key) || tables.capabilities.contains(key)) continue;
    std::string path = fmt::format("{}{}", kCapPrefix, minor);
    if (!host.device_nodes.contains(path)) continue;
    const bool has_answered = std::ranges::any_of(facts.gpus, [&key](const nvml::GpuFacts& gpu) {
      return gpu.minor && !gpu.is_lost && !gpu.uuid.empty() && gpu.mig_capable &&
             key.starts_with(fmt::format("gpu{}/", *gpu.minor));
    });
    if (has_answered) stale.push_back(std::move(path));
  }
  return stale;
}

// ---- making it so ----------------------------------------------------------------------------

NodeTools real_node_tools() {
  const auto error_of = [](const std::string& path, std::string_view what) {
    return fail(Errc::Unavailable, "{}: {}: {}", path, what, std::strerror(errno));
  };
  return {.look = [](const std::string& path) -> std::optional<NodeTools::Seen> {
            struct stat info = {};
            if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
            return NodeTools::Seen{.is_device = S_ISCHR(info.st_mode),
                                   .major = static_cast<int>(::major(info.st_rdev)),
                                   .minor = static_cast<int>(::minor(info.st_rdev))};
          },
          .make = [error_of](const std::string& path, const DeviceNode& node) -> Result<void> {
            const auto number =
                ::makedev(static_cast<unsigned>(node.major), static_cast<unsigned>(node.minor));
            if (::mknod(path.c_str(), S_IFCHR | static_cast<mode_t>(node.mode), number) != 0) {
              return error_of(path, "cannot be made");
            }
            // The umask has no say in it.
            if (::chmod(path.c_str(), static_cast<mode_t>(node.mode)) != 0 ||
                ::lchown(path.c_str(), static_cast<uid_t>(node.uid),
                         static_cast<gid_t>(node.gid)) != 0) {
              const auto error = error_of(path, "cannot be given its owner and mode");
              ::unlink(path.c_str());
              return error;
            }
            return {};
          }};
}

namespace {

class NodePutter {
 public:
  NodePutter(const std::string& root, const NodeTools& tools,
             const std::function<void(std::string_view step)>& on_step)
      : root_(root), tools_(tools), on_step_(on_step) {}

  void put(const std::string& path, const DeviceNode& node) {
    const std::string real = below(root_, path);
    const auto seen = tools_.look(real);
    if (seen && !seen->is_device) {
      return problem(fmt::format("{} is no device and is let be; remove it", path));
    }
    if (seen && seen->major == node.major && seen->minor == node.minor) return link(path, node);
    if (!node.may_make) {
      return problem(
          fmt::format("{} is {}, and the driver forbids to make it: make it, or set "
                      "the driver's NVreg_ModifyDeviceFiles=1",
                      path, seen ? "of another driver" : "not there"));
    }
    const std::size_t slash = real.rfind('/');
    const std::string temporary =
        fmt::format("{}/{}{}", real.substr(0, slash), kTemporaryPrefix, real.substr(slash + 1));
    std::error_code error;
    fs::create_directories(real.substr(0, slash), error);  // else the making fails and says why
    ::unlink(temporary.c_str());                           // of somebody who was killed
    step("make", path);
    if (const auto made = tools_.make(temporary, node); !made) {
      return problem(fmt::format("{} cannot be made: {}", path, made.error().what));
    }
    step("rename", path);
    if (::rename(temporary.c_str(), real.c_str()) != 0) {
      problem(fmt::format("{} cannot be put in place: {}", path, std::strerror(errno)));
      ::unlink(temporary.c_str());
      return;
    }
    changes_.made.push_back(path);
    link(path, node);
  }

  void remove(const std::string& path) {
    const std::string real = below(root_, path);
    const auto seen = tools_.look(real);
    if (!seen || !seen->is_device) return;
    step("remove", path);
    if (::unlink(real.c_str()) != 0 && errno != ENOENT) {
      return problem(
          fmt::format("{} is stale and cannot be removed: {}", path, std::strerror(errno)));
    }
    changes_.removed.push_back(path);
    const std::string name = link_name(seen->major, seen->minor);
    std::error_code error;
    if (fs::read_symlink(name, error) == link_target(path)) fs::remove(name, error);
  }

  NodeChanges take() { return std::move(changes_); }

 private:
  void step(std::string_view verb, const std::string& path) const {
    if (on_step_) on_step_(fmt::format("{} {}", verb, path));
  }
  void problem(std::string line) { changes_.problems.push_back(std::move(line)); }

  std::string link_name(int major, int minor) const {
    return below(root_, fmt::format("/dev/char/{}:{}", major, minor));
  }
  static std::string link_target(const std::string& path) {
    return "../" + path.substr(std::string_view("/dev/").size());
  }

  // A systemd that is told to reload looks devices up by /dev/char/M:N; what it does not find there
  // it takes from containers. It is of help, so that what fails is not complained of.
  void link(const std::string& path, const DeviceNode& node) const {
    std::error_code error;
    if (!fs::is_directory(below(root_, "/dev/char"), error)) return;
    const std::string name = link_name(node.major, node.minor);
    const std::string target = link_target(path);
    if (fs::read_symlink(name, error) == target) return;
    const std::string temporary = name + ".jogak";
    fs::remove(temporary, error);
    fs::create_symlink(target, temporary, error);
    if (!error) fs::rename(temporary, name, error);
  }

  const std::string& root_;
  const NodeTools& tools_;
  const std::function<void(std::string_view step)>& on_step_;
  NodeChanges changes_;
};

}  // namespace

NodeChanges put_device_nodes(const std::string& device_root, const DeviceNodes& wanted,
                             const std::vector<std::string>& stale, const NodeTools& tools,
                             const std::function<void(std::string_view step)>& on_step) {
  NodePutter putter(device_root, tools, on_step);
  for (const auto& [path, node] : wanted) putter.put(path, node);
  for (const std::string& path : stale) {
    if (!wanted.contains(path)) putter.remove(path);
  }
  return putter.take();
}

}  // namespace jogak::agent
