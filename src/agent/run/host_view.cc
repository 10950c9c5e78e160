// SPDX-License-Identifier: Apache-2.0
//
// The machine as Linux shows it.
#include "agent/run/host_view.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "agent/model/process_owners.h"
#include "agent/plugin/device_nodes.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

constexpr std::int64_t kSmallFileMax = 4096;

std::string first_line(const std::string& path) {
  const auto text = read_file(path, kSmallFileMax);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

// "00000000:07:00.0" as sysfs names it: "0000:07:00.0".
std::string sysfs_name(std::string_view bus_id) {
  std::string name(bus_id.size() > 12 ? bus_id.substr(bus_id.size() - 12) : bus_id);
  for (char& c : name) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

std::map<std::string, std::uint32_t> read_pci_classes(const nvml::NodeFacts& facts) {
  std::map<std::string, std::uint32_t> classes;
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    const std::string text =
        first_line("/sys/bus/pci/devices/" + sysfs_name(gpu.pci_bus_id) + "/class");
    std::uint32_t value = 0;
    if (text.starts_with("0x") && text.size() <= 10) {
      for (const char c : std::string_view(text).substr(2)) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) break;
        value = value * 16 + static_cast<std::uint32_t>(is_digit ? c - '0' : c - 'a' + 10);
      }
    }
    if (value != 0) classes[gpu.pci_bus_id] = value;
  }
  return classes;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// Below `root`, which may end with a slash.
bool has_dev(const std::string& root) { return is_folder(root + "/dev"); }

// Where we see the device nodes. Below the driver's root if it has any: the /dev of a container is
// filled when it is made, and nodes that come later (of MIG devices) are never in it.
std::string device_root(const PluginConfig& config) {
  if (!config.dev_root.empty() && config.dev_root != config.driver_root) {
    return has_dev(config.dev_root) ? config.dev_root : "/";
  }
  for (const std::string& root : {config.driver_root_in_container, config.driver_root}) {
    if (has_dev(root)) return root;
  }
  return "/";
}

HostRoots host_roots(const PluginConfig& config, const std::string& system_root) {
  const std::string& inside = config.driver_root_in_container;
  HostRoots roots;
  roots.devices = device_root(config);
  roots.system = system_root;
  // The host's programs are below its root, if that is what is mounted.
  if (config.driver_root == "/" && is_folder(inside)) roots.host = inside;
  roots.hook_path = config.cdi_hook_path;
  return roots;
}

HostFiles find_files(HostRoots roots, const nvml::NodeFacts& facts, const PluginConfig& config) {
  const std::string& inside = config.driver_root_in_container;
  if (is_folder(inside)) {
    roots.driver = inside;
    HostFiles files = find_host_files(roots, facts.driver_version);
    if (!files.libraries.empty() || inside == config.driver_root) return files;
  }
  roots.driver = config.driver_root;
  return find_host_files(roots, facts.driver_version);
}

// The same, after the device nodes were made as they should be.
HostFiles find_files_and_nodes(const nvml::NodeFacts& facts, const PluginConfig& config,
                               const std::string& system_root, bool makes_nodes) {
  const HostRoots roots = host_roots(config, system_root);
  HostFiles files = find_files(roots, facts, config);
  const KernelTables tables = read_kernel_tables(system_root);
  files.numbers = wanted_device_nodes(tables, facts, config, files);
  if (!makes_nodes || files.numbers.empty()) return files;
  static const NodeTools tools = real_node_tools();
  NodeChanges changes = put_device_nodes(roots.devices, files.numbers,
                                         stale_device_nodes(tables, facts, files), tools);
  files.problems = std::move(changes.problems);
  if (!tables.majors.contains("nvidia-uvm")) {
    files.problems.emplace_back(
        "the module nvidia_uvm is not loaded, and CUDA does not start in containers without it: "
        "modprobe nvidia_uvm");
  }
  files.device_nodes.insert(changes.made.begin(), changes.made.end());
  for (const std::string& path : changes.removed) files.device_nodes.erase(path);
  return files;
}

}  // namespace

HostView real_host(const AgentOptions& options) {
  HostView host;
  host.machine = first_line(options.plugin.gfd.machine_type_file);
  // Nobody but root makes a device.
  host.files = [system_root = options.system_root, makes_nodes = options.makes_device_nodes &&
                                                                 options.device_plugin &&
                                                                 ::geteuid() == 0](
                   const nvml::NodeFacts& facts, const PluginConfig& config) {
    return find_files_and_nodes(facts, config, system_root, makes_nodes);
  };
  host.pci_classes = read_pci_classes;
  host.owners = [finder = std::make_shared<ProcessOwnerFinder>()](
                    const std::vector<std::int64_t>& pids) { return finder->find(pids); };
  host.put_cdi = [folder = options.cdi_folder](const std::vector<CdiFile>& files) {
    return CdiFolder(folder).put(files);
  };
  host.has_cdi = [folder = options.cdi_folder] { return CdiFolder(folder).has_files(); };
  host.put_labels = write_features_file;
  if (!options.mig_journal.empty()) {
    host.mig_journal = std::make_shared<MigJournalFile>(options.mig_journal);
  }
  return host;
}

}  // namespace jogak::agent
