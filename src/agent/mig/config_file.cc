// SPDX-License-Identifier: Apache-2.0
//
// See config_file.h.
#include "agent/mig/config_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "agent/mig/geometry.h"
#include "agent/mig/manager.h"
#include "agent/mig/profile_name.h"
#include "base/edit_distance.h"
#include "base/json_writer.h"
#include "base/parse_number.h"
#include "yaml/yaml_fields.h"

namespace jogak::agent {

namespace {

constexpr std::int64_t kGpusMax = 1024;
constexpr std::int64_t kCountMax = 64;

// "0x20B010DE", in either case.
std::optional<std::uint32_t> parse_device_id(std::string_view text) {
  if (text.size() != 10 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) {
    return std::nullopt;
  }
  std::uint32_t id = 0;
  for (const char c : text.substr(2)) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
    id = id << 4 | digit;
  }
  return id;
}

// One text or a list of them.
std::vector<std::string> text_or_texts(YamlFields& fields, std::string_view name) {
  const auto node = fields.take(name);
  if (!node) return {};
  if (node->IsScalar()) return {node->Scalar()};
  return fields.texts(name);
}

void read_device_filter(YamlFields& fields, MigConfigEntry& entry) {
  for (const std::string& text : text_or_texts(fields, "device-filter")) {
    const auto id = parse_device_id(text);
    if (!id) {
      fields.bad("device-filter", "expected PCI device ids, as in 0x20B010DE");
      return;
    }
    entry.device_filter.push_back(*id);
  }
}

void read_devices(YamlFields& fields, MigConfigEntry& entry) {
  const auto node = fields.take("devices");
  if (!node) return fields.bad("devices", "is required: all, or a list of GPU indices");
  if (node->IsScalar() && node->Scalar() == "all") return;
  if (!node->IsSequence()) return fields.bad("devices", "expected all, or a list of GPU indices");
  entry.is_all = false;
  for (const std::int64_t index : fields.integers("devices", 0, kGpusMax)) {
    entry.devices.push_back(static_cast<int>(index));
  }
}

void read_mig_devices(YamlFields& fields, MigConfigEntry& entry) {
  const bool is_given = fields.has("mig-devices");
  for (const auto& [profile, text] : fields.pairs("mig-devices")) {
    const auto name = parse_mig_name(profile);
    const auto count = parse_int(text, 0, kCountMax);
    if (!name || !count) {
      return fields.bad("mig-devices", !name ? name.error().what
                                             : fmt::format("{}: {}", profile, count.error().what));
    }
    entry.wanted.push_back({.profile = profile, .count = static_cast<int>(*count)});
  }
  if (entry.is_enabled && !is_given) {
    fields.bad("mig-devices", "is required with mig-enabled: true; {} for no instances");
  }
  if (!entry.is_enabled && !entry.wanted.empty()) {
    fields.bad("mig-devices", "must be empty with mig-enabled: false");
  }
}

MigConfigEntry read_entry(YamlFields& fields) {
  MigConfigEntry entry;
  read_device_filter(fields, entry);
  read_devices(fields, entry);
  if (!fields.has("mig-enabled")) fields.bad("mig-enabled", "is required: true or false");
  entry.is_enabled = fields.flag("mig-enabled", false);
  read_mig_devices(fields, entry);
  fields.finish();
  return entry;
}

MigConfigs read_configs(YamlFields& fields) {
  MigConfigs configs;
  const auto node = fields.take("mig-configs");
  auto lists = fields.map("mig-configs");
  if (!node || !lists || !node->IsMap() || node->size() == 0) {
    fields.bad("mig-configs", "is required: a map of names to lists of entries");
    return configs;
  }
  for (const auto& item : *node) {
    if (!item.first.IsScalar()) return configs;  // told by the map itself
    MigConfig config{.name = item.first.Scalar(), .entries = {}};
    for (YamlFields& entry : lists->maps(config.name)) config.entries.push_back(read_entry(entry));
    if (config.entries.empty()) lists->bad(config.name, "needs at least one entry");
    configs.push_back(std::move(config));
  }
  lists->finish();
  return configs;
}

Doc entry_doc(const MigConfigEntry& entry) {
  Doc doc;
  if (!entry.device_filter.empty()) {
    Doc ids = Doc::array();
    for (const std::uint32_t id : entry.device_filter) ids.push(fmt::format("0x{:08X}", id));
    doc.set("device-filter", std::move(ids));
  }
  Doc devices = Doc::array();
  for (const int index : entry.devices) devices.push(index);
  doc.set("devices", entry.is_all ? Doc("all") : std::move(devices));
  doc.set("mig-enabled", entry.is_enabled);
  Doc wanted = Doc::object();
  for (const MigGoal::Count& count : entry.wanted) wanted.set(count.profile, count.count);
  if (entry.is_enabled) doc.set("mig-devices", std::move(wanted));
  return doc;
}

bool names_gpu(const MigConfigEntry& entry, const nvml::GpuFacts& gpu) {
  if (!entry.device_filter.empty() &&
      std::ranges::find(entry.device_filter, gpu.pci_device_id) == entry.device_filter.end()) {
    return false;
  }
  return entry.is_all || std::ranges::find(entry.devices, gpu.index) != entry.devices.end();
}

bool has_attributes(const nvml::MigProfileFacts& profile) {
  return profile.name.find_first_of("+-") != std::string::npos;
}

// The plain profile of so many slices with the least memory, or none.
const nvml::MigProfileFacts* plain(const nvml::GpuFacts& gpu, int slices) {
  const nvml::MigProfileFacts* best = nullptr;
  for (const nvml::MigProfileFacts& profile : gpu.mig_profiles) {
    if (profile.slices != slices || has_attributes(profile)) continue;
    if (best == nullptr || profile.memory_mib < best->memory_mib) best = &profile;
  }
  return best;
}

// Something of every size: 2 x 1g, 2g and, where the GPU has seven slices, 3g.
std::vector<MigGoal::Count> balanced(const nvml::GpuFacts& gpu) {
  std::vector<MigGoal::Count> wanted;
  const std::vector<std::pair<int, int>> sizes =
      plain(gpu, 7) != nullptr ? std::vector<std::pair<int, int>>{{1, 2}, {2, 1}, {3, 1}}
                               : std::vector<std::pair<int, int>>{{1, 2}, {2, 1}};
  for (const auto& [slices, count] : sizes) {
    const nvml::MigProfileFacts* profile = plain(gpu, slices);
    if (profile == nullptr) return {};
    wanted.push_back({.profile = profile->name, .count = count});
  }
  return wanted;
}

// One GPU of each model that can be cut.
std::vector<const nvml::GpuFacts*> models_of(const nvml::NodeFacts& node) {
  std::vector<const nvml::GpuFacts*> models;
  for (const nvml::GpuFacts& gpu : node.gpus) {
    const bool is_known = std::ranges::any_of(
        models, [&](const auto* model) { return model->pci_device_id == gpu.pci_device_id; });
    if (gpu.mig_capable && !gpu.mig_profiles.empty() && !is_known) models.push_back(&gpu);
  }
  return models;
}

MigConfigEntry standard_entry(const nvml::GpuFacts& model, bool with_filter,
                              std::vector<MigGoal::Count> wanted) {
  MigConfigEntry entry;
  if (with_filter) entry.device_filter = {model.pci_device_id};
  entry.is_enabled = true;
  entry.wanted = std::move(wanted);
  return entry;
}

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "3g.20gb:2", "3g.20gb=2", "2x3g.20gb", "3g.20gb".
Result<MigGoal::Count> parse_part(std::string_view part) {
  const std::size_t mark = part.find_first_of(":=");
  const std::size_t times = part.find('x');
  std::string_view profile = part;
  std::string_view count = "1";
  if (mark != std::string_view::npos) {
    profile = trim(part.substr(0, mark));
    count = trim(part.substr(mark + 1));
  } else if (times != std::string_view::npos && parse_int(trim(part.substr(0, times)))) {
    count = trim(part.substr(0, times));
    profile = trim(part.substr(times + 1));
  }
  const auto number = parse_int(count, 0, kCountMax);
  if (!number) return in_context(profile, number.error());
  const bool is_bare = profile.size() > 1 && profile.ends_with('g') &&
                       parse_int(profile.substr(0, profile.size() - 1), 1, kCountMax);
  if (!is_bare) JOGAK_TRY_VOID(parse_mig_name(profile));
  return MigGoal::Count{.profile = std::string(profile), .count = static_cast<int>(*number)};
}

}  // namespace

Result<MigConfigs> read_mig_configs(const std::string& file, std::string_view text) {
  if (!is_utf8(text)) return invalid("{}: is not UTF-8", file);
  MigConfigs configs;
  JOGAK_TRY_VOID(
      read_yaml_map(file, text, "a map with version and mig-configs", [&](YamlFields& fields) {
        const std::string version = fields.required_text("version");
        if (version != "v1") fields.bad("version", "expected v1");
        configs = read_configs(fields);
        fields.finish();
      }));
  return configs;
}

Doc mig_configs_doc(const MigConfigs& configs) {
  Doc lists = Doc::object();
  for (const MigConfig& config : configs) {
    Doc entries = Doc::array();
    for (const MigConfigEntry& entry : config.entries) entries.push(entry_doc(entry));
    lists.set(config.name, std::move(entries));
  }
  return Doc().set("version", "v1").set("mig-configs", std::move(lists));
}

Result<MigConfig> find_config(const MigConfigs& configs, std::string_view name) {
  const auto at = std::ranges::find(configs, name, &MigConfig::name);
  if (at != configs.end()) return *at;
  std::vector<std::string> names;
  for (const MigConfig& config : configs) names.push_back(config.name);
  std::string cure = did_you_mean(name, names);
  if (cure.empty()) cure = fmt::format("; there are {}", fmt::join(names, ", "));
  return fail(Errc::NotFound, "there is no MIG config {}{}", name, cure);
}

Result<std::vector<MigGoal>> config_goals(const MigConfig& config, const nvml::NodeFacts& node) {
  std::vector<MigGoal> goals;
  for (const nvml::GpuFacts& gpu : node.gpus) {
    const MigConfigEntry* last = nullptr;
    for (const MigConfigEntry& entry : config.entries) {
      if (!names_gpu(entry, gpu)) continue;
      const bool may_skip = entry.is_all || !entry.is_enabled;
      // Lost before it could be named: the others need not wait for it.
      if (gpu.uuid.empty() && may_skip) continue;
      if (gpu.uuid.empty()) return invalid("{}: gpu {} is lost", config.name, gpu.index);
      if (!gpu.mig_capable && may_skip) continue;
      if (!gpu.mig_capable) {
        return invalid("{}: gpu {} ({}) cannot be cut with MIG", config.name, gpu.index, gpu.name);
      }
      last = &entry;
    }
    if (last == nullptr) continue;
    goals.push_back({.uuid = gpu.uuid, .is_enabled = last->is_enabled, .wanted = last->wanted});
    if (auto geometry = MigGeometry::from_facts(gpu.mig_profiles)) {
      const auto counts = goal_counts(*geometry, goals.back());
      if (!counts) return invalid("{}: gpu {}: {}", config.name, gpu.index, counts.error().what);
    }
  }
  if (goals.empty()) return invalid("{}: no GPU of this node is meant by it", config.name);
  return goals;
}

MigConfigs standard_configs(const nvml::NodeFacts& node) {
  MigConfigEntry off;
  MigConfigEntry on;
  on.is_enabled = true;
  MigConfigs configs = {{.name = "all-disabled", .entries = {off}},
                        {.name = "all-enabled", .entries = {on}}};
  const auto models = models_of(node);
  const bool with_filter = models.size() > 1;
  MigConfig all_balanced{.name = "all-balanced", .entries = {}};
  std::set<std::string> names;
  for (const nvml::GpuFacts* model : models) {
    for (const auto& profile : model->mig_profiles) names.insert(profile.name);
    auto wanted = balanced(*model);
    if (wanted.empty()) continue;
    all_balanced.entries.push_back(standard_entry(*model, with_filter, std::move(wanted)));
  }
  for (const std::string& name : names) {
    MigConfig config{.name = "all-" + mig_resource_form(name), .entries = {}};
    for (const nvml::GpuFacts* model : models) {
      const auto at = std::ranges::find(model->mig_profiles, name, &nvml::MigProfileFacts::name);
      if (at == model->mig_profiles.end()) continue;
      config.entries.push_back(
          standard_entry(*model, with_filter, {{.profile = name, .count = at->count_max}}));
    }
    configs.push_back(std::move(config));
  }
  if (!all_balanced.entries.empty()) configs.push_back(std::move(all_balanced));
  return configs;
}

Result<MigGoal> parse_layout(std::string_view text) {
  MigGoal goal;
  text = trim(text);
  if (text == "off") goal.is_enabled = false;
  if (text == "off" || text == "none") return goal;
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    JOGAK_TRY(MigGoal::Count count, parse_part(trim(rest.substr(0, comma))));
    goal.wanted.push_back(std::move(count));
    if (comma == rest.size()) return goal;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace jogak::agent
