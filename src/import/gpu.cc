// SPDX-License-Identifier: Apache-2.0
// Reads and checks the annotations; every complaint names the annotation and shows a right value.
#include "import/gpu.h"

#include <algorithm>
#include <limits>

#include "base/parse_number.h"
#include "core/model/mig.h"
#include "kube/gpu_annotations.h"

namespace jogak::importer {

namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

constexpr std::string_view kGpus = "jogak.io/gpus";
constexpr std::string_view kMilli = "jogak.io/gpu-milli";
constexpr std::string_view kMemory = "jogak.io/gpu-memory-mib";
constexpr std::string_view kCount = "jogak.io/gpu-count";
constexpr std::string_view kProfile = "jogak.io/mig-profile";
constexpr std::string_view kModels = "jogak.io/gpu-models";
constexpr std::string_view kHolds = "jogak.io/gpu-holds";

const std::string* find(const kube::StringMap& map, std::string_view key) {
  const auto it = std::ranges::lower_bound(
      map, key, {}, [](const auto& entry) { return std::string_view(entry.first); });
  return it != map.end() && it->first == key ? &it->second : nullptr;
}

template <class... Args>
std::unexpected<Error> wrong(std::string_view annotation, fmt::format_string<Args...> text,
                             Args&&... args) {
  return invalid("metadata.annotations[\"{}\"]: {}", annotation,
                 fmt::format(text, std::forward<Args>(args)...));
}

Result<std::int32_t> number(std::string_view annotation, const std::string& text, std::int64_t max,
                            std::string_view example) {
  const auto value = parse_int(text, 1, max);
  if (!value) {
    return wrong(annotation, "\"{}\" is not a whole number between 1 and {}; use e.g. \"{}\"", text,
                 max, example);
  }
  return static_cast<std::int32_t>(*value);
}

core::GpuHealth to_health(kube::GpuDevice::Health health) {
  switch (health) {
    case kube::GpuDevice::Health::Healthy:
      return core::GpuHealth::Healthy;
    case kube::GpuDevice::Health::Unhealthy:
      return core::GpuHealth::Unhealthy;
    case kube::GpuDevice::Health::Unknown:
      return core::GpuHealth::Unknown;
  }
  std::unreachable();
}

core::GpuSpec to_gpu(kube::GpuDevice&& device, std::int32_t memory_mib) {
  core::GpuSpec result;
  result.uuid = std::move(device.uuid);
  result.memory_mib = device.memory_mib > 0 ? device.memory_mib : memory_mib;
  result.numa_node = device.numa;
  for (const std::int32_t link : device.nvlink) {
    result.nvlink_mask |= std::uint32_t{1} << static_cast<unsigned>(link);
  }
  result.health = to_health(device.health);
  result.mig_enabled = device.mig_enabled;
  result.mig_dynamic = device.mig_dynamic;
  for (kube::MigInstance& instance : device.mig_instances) {
    result.mig_instances.push_back({std::move(instance.profile), instance.start});
  }
  return result;
}

// Where the table of MIG geometries knows the model, instances must be ones it can have.
Result<void> check_mig(const core::NodeSpec& node) {
  const auto index = core::find_mig_model(node.gpu_model);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const core::GpuSpec& gpu = node.gpus[i];
    if (!gpu.mig_enabled) continue;
    if (!index) {
      return wrong(kGpus,
                   "[{}].mig: no MIG geometry is known for the model \"{}\"; set the label "
                   "nvidia.com/gpu.product, e.g. \"NVIDIA-A100-SXM4-80GB\"",
                   i, node.gpu_model);
    }
    const core::MigModel& model = core::mig_models()[*index];
    std::uint16_t used = 0;
    for (const core::MigInstanceSpec& instance : gpu.mig_instances) {
      const std::int32_t at = core::find_mig_profile(model, instance.profile);
      if (at < 0) {
        return wrong(kGpus, "[{}].mig.instances: \"{}\" is not a profile of {}; one is \"{}\"", i,
                     instance.profile, model.key, model.profiles.front().name);
      }
      const core::MigProfile& profile = model.profiles[static_cast<std::size_t>(at)];
      const unsigned starts = core::mig_free_starts(profile, used);
      if ((starts >> static_cast<unsigned>(instance.start) & 1U) == 0) {
        return wrong(kGpus, "[{}].mig.instances: {} cannot start at slice {} there", i,
                     profile.name, instance.start);
      }
      used = static_cast<std::uint16_t>(used | core::mig_mask(instance.start, profile.size));
    }
  }
  return {};
}

Result<std::vector<std::string>> models(const std::string& text) {
  std::vector<std::string> result;
  std::string_view rest = text;
  for (;;) {
    const std::size_t comma = rest.find(',');
    std::string_view name = rest.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name.empty()) {
      return wrong(kModels, "\"{}\" has an empty name; use e.g. \"NVIDIA-A100-SXM4-80GB\"", text);
    }
    result.emplace_back(name);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::ranges::sort(result);
  result.erase(std::ranges::unique(result).begin(), result.end());
  return result;
}

bool is_known_profile(std::string_view name) {
  return std::ranges::any_of(core::mig_models(), [name](const core::MigModel& model) {
    return core::find_mig_profile(model, name) >= 0;
  });
}

std::int64_t amount_of(const core::ResourceList& list, std::string_view name) {
  for (const auto& [resource, amount] : list) {
    if (resource == name) return amount;
  }
  return 0;
}

// The annotation that states the request, and how the three exclude each other.
Result<core::GpuRequest> annotated_request(const kube::StringMap& annotations) {
  core::GpuRequest result;
  std::string_view by;
  for (const auto& [annotation, kind] :
       {std::pair{kMilli, core::GpuAsk::ShareMilli}, std::pair{kMemory, core::GpuAsk::ShareMib},
        std::pair{kProfile, core::GpuAsk::Mig}}) {
    const std::string* const value = find(annotations, annotation);
    if (value == nullptr) continue;
    if (!by.empty()) return wrong(annotation, "cannot be used together with {}", by);
    by = annotation;
    result.kind = kind;
    result.count = 1;
    if (kind == core::GpuAsk::Mig) {
      if (!is_known_profile(*value)) {
        return wrong(annotation, "\"{}\" is not a MIG profile; use e.g. \"1g.10gb\"", *value);
      }
      result.mig_profile = *value;
    } else if (kind == core::GpuAsk::ShareMilli) {
      if (*value == "1000") {
        return wrong(annotation, "1000 is a whole device; ask for it with the resource {}: 1",
                     kGpuResource);
      }
      JOGAK_TRY(result.amount, number(annotation, *value, 999, "500"));
    } else {
      JOGAK_TRY(result.amount, number(annotation, *value, kInt32Max, "4096"));
    }
  }
  if (const std::string* const count = find(annotations, kCount)) {
    if (by.empty()) {
      return wrong(kCount,
                   "goes with {}, {} or {}; whole devices are asked for with the resource {}",
                   kMilli, kMemory, kProfile, kGpuResource);
    }
    JOGAK_TRY(result.count, number(kCount, *count, kube::kGpusPerNodeMax, "1"));
  }
  return result;
}

Result<core::GpuHold> to_hold(const kube::GpuHolding& from, const core::GpuRequest& request) {
  struct Form {
    core::GpuAsk ask;
    kube::GpuHolding::Kind kind;
    std::string_view example;
  };
  static constexpr Form kForms[] = {
      {core::GpuAsk::Whole, kube::GpuHolding::Kind::Whole, "{\"gpu\": 0}"},
      {core::GpuAsk::ShareMilli, kube::GpuHolding::Kind::Milli, "{\"gpu\": 0, \"milli\": 500}"},
      {core::GpuAsk::ShareMib, kube::GpuHolding::Kind::Mib, "{\"gpu\": 0, \"mib\": 4096}"},
      {core::GpuAsk::Mig, kube::GpuHolding::Kind::Mig, "{\"gpu\": 0, \"migStart\": 2}"},
  };
  for (const Form& form : kForms) {
    if (form.ask != request.kind) continue;
    if (form.kind != from.kind) {
      return wrong(kHolds, "does not fit what the pod asks for; use e.g. [{}]", form.example);
    }
    if (from.kind == kube::GpuHolding::Kind::Mig) {
      return core::GpuHold{.gpu = from.gpu, .amount = 0, .mig_start = from.amount};
    }
    if (from.amount != request.amount) {
      return wrong(kHolds, "holds {} of gpu {}, but the pod asks for {} per device", from.amount,
                   from.gpu, request.amount);
    }
    return core::GpuHold{.gpu = from.gpu, .amount = from.amount, .mig_start = -1};
  }
  return wrong(kHolds, "the pod asks for no GPU");
}

}  // namespace

Result<void> add_devices(const kube::ObjectMeta& meta, core::NodeSpec& node) {
  if (const std::string* const product = find(meta.labels, "nvidia.com/gpu.product")) {
    node.gpu_model = *product;
  }
  const std::string* const text = find(meta.annotations, kGpus);
  if (text == nullptr) return {};
  std::int32_t memory_mib = 0;
  if (const std::string* const memory = find(meta.labels, "nvidia.com/gpu.memory")) {
    const auto value = parse_int(*memory, 1, kInt32Max);
    if (!value) {
      return invalid(
          "metadata.labels[\"nvidia.com/gpu.memory\"]: \"{}\" is not a number of MiB; "
          "use e.g. \"81559\"",
          *memory);
    }
    memory_mib = static_cast<std::int32_t>(*value);
  }
  auto devices = kube::parse_gpu_devices(*text);
  if (!devices) return wrong(kGpus, "{}", devices.error().what);
  for (kube::GpuDevice& device : *devices) {
    node.gpus.push_back(to_gpu(std::move(device), memory_mib));
  }
  return check_mig(node);
}

Result<core::GpuRequest> gpu_request(const kube::ObjectMeta& meta,
                                     const core::ResourceList& requests) {
  JOGAK_TRY(core::GpuRequest result, annotated_request(meta.annotations));
  const std::int64_t whole = amount_of(requests, kGpuResource);
  if (whole > 0 && result.kind != core::GpuAsk::None) {
    return invalid(
        "metadata.annotations: a share of a GPU and the resource {} exclude each other; "
        "remove one",
        kGpuResource);
  }
  if (whole > 0) {
    result.kind = core::GpuAsk::Whole;
    // No node has more devices; the count by resource refuses larger requests.
    result.count = static_cast<std::int32_t>(
        std::min<std::int64_t>(whole, static_cast<std::int64_t>(kube::kGpusPerNodeMax)));
  }
  if (const std::string* const text = find(meta.annotations, kModels)) {
    if (result.kind == core::GpuAsk::None) {
      return wrong(kModels, "names GPU models, but the pod asks for no GPU");
    }
    JOGAK_TRY(result.models, models(*text));
  }
  return result;
}

Result<std::optional<std::vector<core::GpuHold>>> gpu_holds(const kube::ObjectMeta& meta,
                                                            const core::GpuRequest& request) {
  const std::string* const text = find(meta.annotations, kHolds);
  if (text == nullptr) return std::nullopt;
  const auto holdings = kube::parse_gpu_holdings(*text);
  if (!holdings) return wrong(kHolds, "{}", holdings.error().what);
  const auto count = static_cast<std::size_t>(request.count);
  if (holdings->size() > count) {
    return wrong(kHolds, "names {} devices, but the pod asks for {}", holdings->size(),
                 request.count);
  }
  std::vector<core::GpuHold> result;
  for (const kube::GpuHolding& holding : *holdings) {
    JOGAK_TRY(const core::GpuHold hold, to_hold(holding, request));
    for (const core::GpuHold& other : result) {
      if (other.gpu == hold.gpu && other.mig_start == hold.mig_start) {
        return wrong(kHolds, "names gpu {} twice", hold.gpu);
      }
    }
    result.push_back(hold);
  }
  std::ranges::sort(result, {},
                    [](const core::GpuHold& hold) { return std::pair(hold.gpu, hold.mig_start); });
  // The kubelet keeps what an init container had for the pod, but lists it no more once that has
  // ended: with an init container of 3 and an app of 1 two are in use and nobody says which.
  if (result.size() < count) return std::nullopt;
  return result;
}

}  // namespace jogak::importer
