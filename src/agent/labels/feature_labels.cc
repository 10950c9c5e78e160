// SPDX-License-Identifier: Apache-2.0
//
// One labeler per call walks the GPUs that answer and fills one map.
#include "agent/labels/feature_labels.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/model/mig_devices.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

using nvml::GpuFacts;
using nvml::MigInstanceFacts;
using nvml::MigProfileFacts;

constexpr std::string_view kPrefix = "nvidia.com/";
constexpr std::size_t kValueMax = 63;

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// At most 63 characters that begin and end with a letter or digit.
std::string bounded(std::string text) {
  if (text.size() > kValueMax) text.resize(kValueMax);
  while (!text.empty() && !is_alnum(text.back())) text.pop_back();
  const auto first = std::ranges::find_if(text, is_alnum);
  text.erase(text.begin(), first);
  return text;
}

std::string_view family(int major, int minor) {
  switch (major) {
    case 1:
      return "tesla";
    case 2:
      return "fermi";
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return minor < 5 ? "volta" : "turing";
    case 8:
      return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    case 13:
      return "rubin";
    default:
      return "undefined";
  }
}

std::string_view sharing_text(SharingStrategy strategy) {
  switch (strategy) {
    case SharingStrategy::TimeSlicing:
      return "time-slicing";
    case SharingStrategy::Mps:
      return "mps";
    case SharingStrategy::None:
      break;
  }
  return "none";
}

// "1g.10gb+me" as resource names have it.
std::string with_dots(std::string profile) {
  std::ranges::replace(profile, '+', '.');
  return profile;
}

class Labeler {
 public:
  Labeler(const nvml::NodeFacts& node, const LabelOptions& options)
      : node_(node), options_(options) {
    for (const GpuFacts& gpu : node.gpus) {
      if (!gpu.is_lost) gpus_.push_back(&gpu);
    }
  }

  FeatureLabels make() {
    if (options_.timestamp > 0) {
      set("gfd.timestamp", fmt::to_string(options_.timestamp / kSecondInUs));
    }
    const bool is_virtual = std::ranges::any_of(
        gpus_, [](const GpuFacts* gpu) { return gpu->virtualization_mode.value_or(0) == 2; });
    set("vgpu.present", is_virtual ? "true" : "false");
    if (gpus_.empty()) return std::move(result_);
    versions();
    node_wide();
    resources();
    return std::move(result_);
  }

 private:
  void set(std::string_view name, std::string value) {
    result_.labels[fmt::format("{}{}", kPrefix, name)] = std::move(value);
  }
  template <class T>
  void set_number(std::string_view name, T value) {
    set(name, fmt::to_string(value));
  }

  void versions() {
    std::string_view rest = node_.driver_version;
    std::string parts[3];
    for (std::string& part : parts) {
      const std::size_t end = std::min(rest.find('.'), rest.size());
      part = bounded(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    set("cuda.driver.major", parts[0]);
    set("cuda.driver.minor", parts[1]);
    set("cuda.driver.rev", parts[2]);
    set("cuda.driver-version.major", parts[0]);
    set("cuda.driver-version.minor", parts[1]);
    set("cuda.driver-version.revision", parts[2]);
    set("cuda.driver-version.full", bounded(node_.driver_version));
    set_number("cuda.runtime.major", node_.cuda_major);
    set_number("cuda.runtime.minor", node_.cuda_minor);
    set_number("cuda.runtime-version.major", node_.cuda_major);
    set_number("cuda.runtime-version.minor", node_.cuda_minor);
    set("cuda.runtime-version.full", fmt::format("{}.{}", node_.cuda_major, node_.cuda_minor));
  }

  void node_wide() {
    const std::string machine = label_value(options_.machine);
    set("gpu.machine", machine.empty() ? "unknown" : machine);
    const bool is_capable =
        std::ranges::any_of(gpus_, [](const GpuFacts* gpu) { return gpu->mig_capable; });
    const bool is_cut =
        std::ranges::any_of(gpus_, [](const GpuFacts* gpu) { return gpu->mig_enabled; });
    set("mig.capable", is_capable ? "true" : "false");
    if (options_.mig != LabelMigStrategy::None) {
      set("mig.strategy", options_.mig == LabelMigStrategy::Single ? "single" : "mixed");
    }
    set("mps.capable", options_.sharing == SharingStrategy::Mps && !is_cut ? "true" : "false");
    set("gpu.mode", std::string(mode()));
    if (const auto clique = fabric_clique()) set("gpu.clique", *clique);
  }

  // By PCI class: 3D controllers compute, VGA controllers draw.
  std::string_view mode() const {
    std::set<std::string_view> modes;
    for (const GpuFacts* gpu : gpus_) {
      const auto at = options_.pci_class.find(gpu->pci_bus_id);
      const std::uint32_t kind = at == options_.pci_class.end() ? 0 : at->second >> 8;
      modes.insert(kind == 0x0302 ? "compute" : kind == 0x0300 ? "graphics" : "unknown");
    }
    return modes.size() == 1 ? *modes.begin() : "unknown";
  }

  // Only where every GPU on the fabric is in the same clique, and fully joined.
  std::optional<std::string> fabric_clique() const {
    std::optional<std::string> clique;
    for (const GpuFacts* gpu : gpus_) {
      if (!gpu->fabric || gpu->fabric->state == nvml::FabricState::NotSupported) continue;
      const nvml::FabricFacts& fabric = *gpu->fabric;
      if (fabric.state != nvml::FabricState::Completed || fabric.status != 0) return std::nullopt;
      if (fabric.cluster_uuid.empty()) continue;
      const std::string mine = bounded(fmt::format("{}.{}", fabric.cluster_uuid, fabric.clique_id));
      if (clique && *clique != mine) return std::nullopt;
      clique = mine;
    }
    return clique;
  }

  struct Sharing {
    int replicas = 1;
    std::string_view strategy = "none";
    bool has_suffix = false;  // of the product
  };
  Sharing sharing_of(std::string_view resource) const {
    if (options_.sharing == SharingStrategy::None) return {};
    for (const LabelSharedResource& shared : options_.shared) {
      if (shared.name != resource || shared.replicas <= 1) continue;
      return {.replicas = shared.replicas,
              .strategy = sharing_text(options_.sharing),
              .has_suffix = !shared.is_renamed};
    }
    return {};
  }

  // The GPUs of the most numerous model.
  std::vector<const GpuFacts*> main_model() {
    std::map<std::string, std::vector<const GpuFacts*>> models;
    for (const GpuFacts* gpu : gpus_) models[label_value(gpu->name)].push_back(gpu);
    const auto best = std::ranges::max_element(models, {}, [](const auto& model) {
      return model.second.size();  // the first of equals: names are sorted
    });
    if (models.size() > 1) {
      for (const auto& [name, gpus] : models) {
        const std::string key = bounded(fmt::format("gpu.count.{}", name));
        result_.labels["jogak.io/" + key] = fmt::to_string(gpus.size());
      }
      result_.warnings.push_back(
          fmt::format("{} models of gpus in this node: nvidia.com/gpu.* tells of {}", models.size(),
                      best->first));
    }
    return best->second;
  }

  void resources() {
    const std::vector<const GpuFacts*> model = main_model();
    const GpuFacts& gpu = *model.front();
    if (gpu.compute_major > 0) {
      set("gpu.family", std::string(family(gpu.compute_major, gpu.compute_minor)));
      set_number("gpu.compute.major", gpu.compute_major);
      set_number("gpu.compute.minor", gpu.compute_minor);
    }
    const bool is_any_cut =
        std::ranges::any_of(gpus_, [](const GpuFacts* each) { return each->mig_enabled; });
    if (options_.mig == LabelMigStrategy::Single && is_any_cut) {
      single(gpu);
      return;
    }
    whole_gpus(model);
    if (options_.mig == LabelMigStrategy::Mixed) mixed();
  }

  void whole_gpus(const std::vector<const GpuFacts*>& model) {
    const Sharing sharing = sharing_of("nvidia.com/gpu");
    const GpuFacts& gpu = *model.front();
    // A GPU that is cut is of no use as a whole, whatever the strategy.
    const bool is_none_whole =
        std::ranges::all_of(model, [](const GpuFacts* each) { return each->mig_enabled; });
    set("gpu.product",
        bounded(label_value(gpu.name) + (sharing.has_suffix && !is_none_whole ? "-SHARED" : "")));
    set_number("gpu.count", model.size());
    // Boards that share the memory of the machine tell none.
    if (gpu.memory_mib > 0) set_number("gpu.memory", gpu.memory_mib);
    set_number("gpu.replicas", is_none_whole ? 0 : sharing.replicas);
    set("gpu.sharing-strategy", std::string(is_none_whole ? "none" : sharing.strategy));
  }

  void single(const GpuFacts& gpu) {
    if (auto problem = single_problem(node_)) {
      result_.warnings.push_back(*std::move(problem));
      set("gpu.product", bounded(label_value(gpu.name) + "-MIG-INVALID"));
      set("gpu.count", "0");
      set("gpu.replicas", "0");
      set("gpu.memory", "0");
      set("gpu.sharing-strategy", "");
      return;
    }
    std::size_t count = 0;
    for (const GpuFacts* each : gpus_) {
      count += static_cast<std::size_t>(std::ranges::count_if(each->mig_instances, is_usable));
    }
    mig_resource("gpu", gpu, *std::ranges::find_if(gpu.mig_instances, is_usable), count);
  }

  void mixed() {
    struct Found {
      const GpuFacts* gpu = nullptr;
      const MigInstanceFacts* mig = nullptr;
      std::size_t count = 0;
    };
    std::map<std::string, Found> profiles;
    for (const GpuFacts* gpu : gpus_) {
      if (!gpu->mig_enabled) continue;
      if (gpu->mig_instances.empty()) {
        result_.warnings.push_back(
            fmt::format("gpu {} has mig on and no instance: it gives nothing", gpu->index));
      }
      for (const MigInstanceFacts& mig : gpu->mig_instances) {
        if (!is_usable(mig)) {
          result_.warnings.push_back(fmt::format("gpu {}: instance {} ({}) has no resource name",
                                                 gpu->index, mig.gi_id, mig.profile));
          continue;
        }
        Found& found = profiles[with_dots(mig.profile)];
        if (found.count++ == 0) found = {.gpu = gpu, .mig = &mig, .count = 1};
      }
    }
    for (const auto& [profile, found] : profiles) {
      mig_resource("mig-" + profile, *found.gpu, *found.mig, found.count);
    }
  }

  void mig_resource(const std::string& resource, const GpuFacts& gpu, const MigInstanceFacts& mig,
                    std::size_t count) {
    const Sharing sharing = sharing_of(fmt::format("{}{}", kPrefix, resource));
    const auto name = [&](std::string_view part) { return fmt::format("{}.{}", resource, part); };
    set(name("product"),
        bounded(fmt::format("{}-MIG-{}{}", label_value(gpu.name), with_dots(mig.profile),
                            sharing.has_suffix ? "-SHARED" : "")));
    set_number(name("count"), count);
    set_number(name("replicas"), sharing.replicas);
    set(name("sharing-strategy"), std::string(sharing.strategy));
    set_number(name("memory"), mig.memory_mib);
    set_number(name("multiprocessors"), mig.multiprocessors);
    set_number(name("slices.ci"), mig.ci_slices);
    const auto profile = std::ranges::find(gpu.mig_profiles, mig.profile_id, &MigProfileFacts::id);
    if (profile == gpu.mig_profiles.end()) return;
    set_number(name("slices.gi"), profile->slices);
    set_number(name("engines.copy"), profile->copy_engines);
    set_number(name("engines.decoder"), profile->decoders);
    set_number(name("engines.encoder"), profile->encoders);
    set_number(name("engines.jpeg"), profile->jpeg_engines);
    set_number(name("engines.ofa"), profile->ofa_engines);
  }

  const nvml::NodeFacts& node_;
  const LabelOptions& options_;
  std::vector<const GpuFacts*> gpus_;  // those that answer
  FeatureLabels result_;
};

}  // namespace

Result<LabelMigStrategy> parse_mig_strategy(std::string_view text) {
  if (text == "none") return LabelMigStrategy::None;
  if (text == "single") return LabelMigStrategy::Single;
  if (text == "mixed") return LabelMigStrategy::Mixed;
  return invalid("mig strategy \"{}\": use none, single or mixed", text);
}

std::string label_value(std::string_view text) {
  std::string value;
  bool has_gap = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n') {
      has_gap = true;
    } else if (is_alnum(c) || c == '-' || c == '_' || c == '.') {
      if (has_gap && !value.empty()) value += '-';
      has_gap = false;
      value += c;
    }
  }
  return bounded(std::move(value));
}

FeatureLabels feature_labels(const nvml::NodeFacts& node, const LabelOptions& options) {
  return Labeler(node, options).make();
}

std::string features_file_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}={}\n", key, value);
  return text;
}

Result<void> write_features_file(const std::string& path, const Labels& labels) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!labels.empty()) {
    JOGAK_TRY_VOID(write_file(path, features_file_text(labels)));
    // Whoever reads it is another user; the umask says nothing about that.
    using enum fs::perms;
    fs::permissions(path, owner_read | owner_write | group_read | others_read, error);
    if (error) return fail(Errc::Unavailable, "{}: {}", path, error.message());
    return {};
  }
  fs::remove(path, error);
  if (error) return fail(Errc::Unavailable, "{}: {}", path, error.message());
  return {};
}

}  // namespace jogak::agent
