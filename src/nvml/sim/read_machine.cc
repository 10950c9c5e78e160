// SPDX-License-Identifier: Apache-2.0
//
// A simulation file into a machine: the fields of machine_fields.h taken from YAML, models and
// counts expanded, and what the file leaves open (addresses, UUIDs, NUMA nodes) filled in so that
// every run of one file is the same machine.
#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <type_traits>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/digest.h"
#include "base/edit_distance.h"
#include "base/parse_number.h"
#include "nvml/sim/identity.h"
#include "nvml/sim/machine_fields.h"
#include "nvml/sim/models.h"
#include "nvml/sim/names.h"
#include "yaml/yaml_fields.h"

namespace jogak::nvml::sim {

namespace {

constexpr std::size_t kListMax = 4096;
constexpr TimeUs kSpanMax = 366LL * 24 * 3600 * kSecondInUs;

class Reader {
 public:
  explicit Reader(YamlFields& fields) : fields_(&fields) {}

  void text(std::string_view name, std::string& value) {
    value = fields_->text(name, value);
    if (value.size() > 128) fields_->bad(name, "has more than 128 characters");
  }
  template <class Int>
  void integer(std::string_view name, Int& value, std::int64_t min, std::int64_t max) {
    if (fields_->has(name))
      value = static_cast<Int>(fields_->integer(name, 0, min, max));
    else
      fields_->take(name);
  }
  void flag(std::string_view name, bool& value) { value = fields_->flag(name, value); }
  void span(std::string_view name, TimeUs& value, TimeUs min) {
    value = fields_->span(name, value, min, kSpanMax);
  }
  void hex(std::string_view name, std::uint32_t& value) {
    const std::string text = fields_->text(name, "");
    if (!fields_->has(name)) return;
    const char* const begin = text.data() + (text.starts_with("0x") ? 2 : 0);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, value, 16);
    if (begin == end || rest != end || error != std::errc{}) {
      fields_->bad(name, "expected a hexadecimal number of 32 bits, like 0x20B010DE");
    }
  }
  template <class E>
  void choice(std::string_view name, E& value, std::span<const std::string_view> words) {
    if (!fields_->has(name)) {
      fields_->take(name);
      return;
    }
    const std::string word = fields_->text(name, "");
    const auto at = std::ranges::find(words, word);
    if (at == words.end()) {
      fields_->bad(name, fmt::format("expected one of {}", fmt::join(words, ", ")));
      return;
    }
    value = static_cast<E>(at - words.begin());
  }
  void texts(std::string_view name, std::vector<std::string>& values) {
    if (fields_->has(name))
      values = fields_->texts(name);
    else
      fields_->take(name);
  }
  void integers(std::string_view name, std::vector<int>& values, int min, int max) {
    if (!fields_->has(name)) {
      fields_->take(name);
      return;
    }
    values.clear();
    for (const std::int64_t value : fields_->integers(name, min, max)) {
      values.push_back(static_cast<int>(value));
    }
    if (values.size() > 64) fields_->bad(name, "has more than 64 items");
  }
  void numbers(std::string_view name, std::map<std::string, std::int64_t, std::less<>>& values) {
    if (!fields_->has(name)) {
      fields_->take(name);
      return;
    }
    values.clear();
    for (const auto& [key, text] : fields_->pairs(name)) {
      const auto number = parse_int(text, -kCountMax, kCountMax);
      if (!number) fields_->bad(name, fmt::format("{}: {}", key, number.error().what));
      if (!is_reading(key)) {
        fields_->bad(name, fmt::format("no reading {}{}", key, did_you_mean(key, reading_names())));
      }
      if (number) values[key] = *number;
    }
  }
  template <class T>
  void object(std::string_view name, T& value) {
    auto inner = fields_->map(name);
    if (!inner) return;
    Reader reader(*inner);
    visit(reader, value);
    inner->finish();
  }
  template <class T>
  void list(std::string_view name, std::vector<T>& values) {
    if (!fields_->has(name)) {
      fields_->take(name);
      return;
    }
    values.clear();
    std::vector<YamlFields> items = fields_->maps(name);
    if (items.size() > kListMax) {
      fields_->bad(name, fmt::format("has more than {} items", kListMax));
      return;
    }
    for (YamlFields& item : items) {
      Reader reader(item);
      visit(reader, values.emplace_back());
      item.finish();
    }
  }

 private:
  YamlFields* fields_;
};

const MigProfileSpec* profile_named(const GpuSpec& gpu, std::string_view name) {
  const auto at = std::ranges::find(gpu.mig_profiles, name, &MigProfileSpec::name);
  return at == gpu.mig_profiles.end() ? nullptr : &*at;
}

void check_mig(YamlFields& fields, const GpuSpec& gpu) {
  if (gpu.mig_support == MigSupport::None && (gpu.mig_enabled || !gpu.mig_instances.empty())) {
    fields.bad("migEnabled", "this model has no MIG");
  }
  if (!gpu.mig_enabled && !gpu.mig_instances.empty()) {
    fields.bad("migInstances", "needs migEnabled: true");
  }
  for (const MigProfileSpec& profile : gpu.mig_profiles) {
    if (profile.name.empty() || profile.placements.empty()) {
      fields.bad("migProfiles", "each needs a name and placements");
    }
  }
  for (const MigInstanceSpec& instance : gpu.mig_instances) {
    if (profile_named(gpu, instance.profile) == nullptr) {
      std::vector<std::string> names;
      for (const MigProfileSpec& profile : gpu.mig_profiles) names.push_back(profile.name);
      fields.bad("migInstances", fmt::format("no profile {}; this GPU has {}", instance.profile,
                                             fmt::join(names, ", ")));
    }
  }
  for (const ProcessSpec& process : gpu.processes) {
    if (process.pid == 0) fields.bad("processes", "each needs a pid");
    if (process.instance >= static_cast<int>(gpu.mig_instances.size())) {
      fields.bad("processes",
                 fmt::format("pid {}: there is no instance {}", process.pid, process.instance));
    }
  }
}

void check_gpu(YamlFields& fields, const GpuSpec& gpu) {
  if (gpu.name.empty()) fields.bad("name", "is required where no model is given");
  if (gpu.memory_mib <= 0) fields.bad("memoryMib", "is required where no model is given");
  if (gpu.reserved_mib > gpu.memory_mib) fields.bad("reservedMib", "is more than memoryMib");
  if (!gpu.bus_id.empty() && !parse_bus_id(gpu.bus_id)) {
    fields.bad("busId", "expected DDDDDDDD:BB:DD.F in hexadecimal");
  }
  if (!gpu.uuid.empty() && !gpu.uuid.starts_with("GPU-")) fields.bad("uuid", "begins with GPU-");
  if (!gpu.cpus.empty() && !parse_cpu_list(gpu.cpus)) {
    fields.bad("cpus", "expected a list like 0-23,48-71, below 4096");
  }
  for (const std::string& name : gpu.unsupported) {
    if (!name.starts_with("nvml")) fields.bad("unsupported", "names of functions begin with nvml");
  }
  check_mig(fields, gpu);
}

void read_gpus(YamlFields& item, MachineSpec& machine) {
  GpuSpec gpu;
  std::string model;
  Reader reader(item);
  reader.text("model", model);
  if (!model.empty()) {
    const auto known = find_model(model);
    if (!known && !item.has("name")) {
      item.bad("model",
               fmt::format("no model {}; there are {}", model, fmt::join(model_names(), ", ")));
      return;
    }
    gpu = known.value_or(GpuSpec{});
    gpu.model = model;
  }
  const std::int64_t count = item.integer("count", 1, 1, kGpusMax);
  visit_identity(reader, gpu);
  visit_place(reader, gpu);
  visit_board(reader, gpu);
  visit_state(reader, gpu);
  if (!item.has("migPending")) gpu.mig_pending = gpu.mig_enabled;
  if (count > 1) {
    for (const std::string_view name : {"uuid", "serial", "busId", "minor", "moduleId"}) {
      if (item.has(name)) item.bad(name, "is of one GPU: not with a count");
    }
  }
  check_gpu(item, gpu);
  item.finish();
  if (item.failed()) return;
  if (machine.gpus.size() + static_cast<std::size_t>(count) > kGpusMax) {
    item.bad("count", fmt::format("a machine has at most {} GPUs", kGpusMax));
    return;
  }
  const Wave load = gpu.load;
  for (std::int64_t i = 0; i < count; ++i) {
    // Equal GPUs do not breathe in step.
    gpu.load.phase = load.phase + load.period * i / count;
    machine.gpus.push_back(gpu);
  }
}

void check_faults(YamlFields& fields, const MachineSpec& machine) {
  for (const FaultSpec& fault : machine.faults) {
    const bool needs_call = fault.kind == FaultKind::SlowCall || fault.kind == FaultKind::FailCall;
    if (needs_call && !fault.call.starts_with("nvml")) {
      fields.bad("faults", "slowCall and failCall need a call, the name of a function of NVML");
    }
    if (fault.gpu >= static_cast<int>(machine.gpus.size())) {
      fields.bad("faults", fmt::format("there is no GPU {}", fault.gpu));
    }
    if (fault.kind == FaultKind::DriverReload && fault.lasting == 0) {
      fields.bad("faults", "driverReload needs for: how long the driver is away");
    }
  }
}

void check_unique(YamlFields& fields, const MachineSpec& machine) {
  std::set<std::string> uuids, buses;
  std::set<int> minors;
  for (const GpuSpec& gpu : machine.gpus) {
    if (!uuids.insert(gpu.uuid).second) fields.bad("gpus", "two have the uuid " + gpu.uuid);
    if (!buses.insert(gpu.bus_id).second) fields.bad("gpus", "two have the busId " + gpu.bus_id);
    if (!minors.insert(gpu.minor).second) {
      fields.bad("gpus", fmt::format("two have the minor {}", gpu.minor));
    }
    for (const PeerSpec& peer : gpu.peers) {
      if (peer.gpu >= static_cast<int>(machine.gpus.size())) {
        fields.bad("gpus", fmt::format("peers: there is no GPU {}", peer.gpu));
      } else if (gpu.nvlink.to_switch && peer.nvlinks > 0) {
        fields.bad("gpus", fmt::format("peers: nvlinks to GPU {}: all links of a {} lead to "
                                       "switches; leave nvlinks out, or say nvlink: "
                                       "{{toSwitch: false}}",
                                       peer.gpu, gpu.name));
      }
    }
  }
}

void read_host(YamlFields& fields, std::string_view identity, Host& host) {
  host.identity = fields.text("identity", host.identity);
  if (!identity.empty()) host.identity = identity;
  if (auto inner = fields.map("host")) {
    host.numa_nodes = static_cast<int>(inner->integer("numaNodes", host.numa_nodes, 1, 64));
    host.cpus = static_cast<int>(inner->integer("cpus", host.cpus, 1, 4096));
    inner->finish();
  }
}

void read_fields(YamlFields& fields, std::string_view identity, MachineSpec& machine) {
  if (fields.required_text("apiVersion") != "jogak.io/v1") {
    fields.bad("apiVersion", "expected jogak.io/v1");
  }
  if (fields.required_text("kind") != "NvmlSimulation") {
    fields.bad("kind", "expected NvmlSimulation");
  }
  Host host;
  read_host(fields, identity, host);
  machine.state_file = fields.text("stateFile", "");
  set_usual_driver(machine);
  if (auto driver = fields.map("driver")) {
    Reader reader(*driver);
    visit_driver(reader, machine);
    driver->finish();
  }
  fill_versions(machine);
  for (YamlFields& item : fields.maps("gpus")) {
    read_gpus(item, machine);
    if (fields.failed()) return;
  }
  const int count = static_cast<int>(machine.gpus.size());
  for (int i = 0; i < count; ++i) {
    fill_identity(machine.gpus[static_cast<std::size_t>(i)], i, count, host);
  }
  Reader reader(fields);
  reader.list("faults", machine.faults);
  std::ranges::stable_sort(machine.faults, {}, &FaultSpec::at);
  check_unique(fields, machine);
  check_faults(fields, machine);
  fields.finish();
}

}  // namespace

Result<MachineSpec> read_machine(const std::string& file, std::string_view text,
                                 std::string_view identity) {
  MachineSpec machine;
  JOGAK_TRY_VOID(
      read_yaml_map(file, text, "a map with apiVersion, kind and gpus",
                    [&](YamlFields& fields) { read_fields(fields, identity, machine); }));
  return machine;
}

}  // namespace jogak::nvml::sim
