// SPDX-License-Identifier: Apache-2.0
// Reading the openb CSV files.
#include "sim/openb_trace.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/edit_distance.h"
#include "base/file.h"
#include "base/units.h"
#include "core/model/spec.h"

namespace jogak::sim {

namespace {

constexpr std::int64_t kCpuMilliMax = 1'000'000'000;
constexpr std::int64_t kMemoryMibMax = std::int64_t{1} << 30;
constexpr std::int64_t kGpusMax = static_cast<std::int64_t>(core::kMaxGpus);
constexpr std::int32_t kWholeMilli = 1000;

// Sorted, without repetitions. An empty name between bars is refused by the caller.
std::vector<std::string> split_models(std::string_view text) {
  std::vector<std::string> models;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    models.emplace_back(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

struct NodeColumns {
  CsvReader::Column name, cpu, memory, gpus, model;
};

Result<OpenbNode> read_node(const CsvReader& csv, const NodeColumns& at) {
  OpenbNode node;
  node.name = csv.field(at.name);
  if (node.name.empty()) return csv.bad(at.name, "a node needs a name");
  JOGAK_TRY(node.cpu_milli, csv.integer(at.cpu, 0, kCpuMilliMax));
  JOGAK_TRY(node.memory_mib, csv.integer(at.memory, 0, kMemoryMibMax));
  JOGAK_TRY(const std::int64_t gpus, csv.integer(at.gpus, 0, kGpusMax));
  node.gpus = static_cast<std::int32_t>(gpus);
  node.model = csv.field(at.model);
  if (gpus > 0 && node.model.empty()) return csv.bad(at.model, "a node with GPUs needs a model");
  return node;
}

struct PodColumns {
  CsvReader::Column name, cpu, memory, gpus, milli;
  std::optional<CsvReader::Column> models;
};

Result<OpenbPod> read_pod(const CsvReader& csv, const PodColumns& at) {
  OpenbPod pod;
  pod.name = csv.field(at.name);
  if (pod.name.empty()) return csv.bad(at.name, "a pod needs a name");
  JOGAK_TRY(pod.cpu_milli, csv.integer(at.cpu, 0, kCpuMilliMax));
  JOGAK_TRY(pod.memory_mib, csv.integer(at.memory, 0, kMemoryMibMax));
  JOGAK_TRY(const std::int64_t gpus, csv.integer(at.gpus, 0, kGpusMax));
  JOGAK_TRY(const std::int64_t milli, csv.integer(at.milli, 0, kWholeMilli));
  if (gpus == 1 && milli == 0) return csv.bad(at.milli, "1 to 1000 for a pod with a GPU, not 0");
  if (gpus > 1 && milli != kWholeMilli) {
    return csv.bad(at.milli, "1000 for a pod with several GPUs; only one GPU can be shared");
  }
  pod.gpus = static_cast<std::int32_t>(gpus);
  pod.gpu_milli = gpus == 0 ? 0 : static_cast<std::int32_t>(milli);
  if (at.models && gpus > 0) {
    pod.models = split_models(csv.field(*at.models));
    if (!pod.models.empty() && pod.models.front().empty()) {
      return csv.bad(*at.models, "models joined by |, without empty names");
    }
  }
  return pod;
}

// Calls take() for every row; it returns an error for a bad one. With skip_bad the error is noted
// and skip() called instead, unless the reader cannot get past it (a quote that never ends).
template <class Take, class Skip>
Result<void> each_row(CsvReader& csv, ReadOptions options, std::vector<std::string>& skipped,
                      const Take& take, const Skip& skip) {
  std::size_t last_bad_line = 0;
  while (true) {
    const Result<bool> has_row = csv.next();
    if (has_row && !*has_row) return {};
    const Result<void> taken = has_row ? take() : std::unexpected(has_row.error());
    if (taken) continue;
    if (!options.skip_bad || (!has_row && csv.line() == last_bad_line)) return taken;
    if (!has_row) last_bad_line = csv.line();
    skipped.push_back(taken.error().what);
    skip();
  }
}

}  // namespace

std::int64_t OpenbNodes::gpu_milli() const {
  std::int64_t sum = 0;
  for (const OpenbNode& node : nodes) sum += std::int64_t{node.gpus} * kWholeMilli;
  return sum;
}

Result<OpenbNodes> parse_openb_nodes(std::string file, std::string_view text, ReadOptions options) {
  JOGAK_TRY(auto csv, CsvReader::open(std::move(file), text));
  NodeColumns at{};
  JOGAK_TRY(at.name, csv.column("sn"));
  JOGAK_TRY(at.cpu, csv.column("cpu_milli"));
  JOGAK_TRY(at.memory, csv.column("memory_mib"));
  JOGAK_TRY(at.gpus, csv.column("gpu"));
  JOGAK_TRY(at.model, csv.column("model"));
  OpenbNodes result;
  std::set<std::string, std::less<>> names;
  const auto take = [&]() -> Result<void> {
    JOGAK_TRY(OpenbNode node, read_node(csv, at));
    if (!names.insert(node.name).second) return csv.bad(at.name, "named before");
    result.nodes.push_back(std::move(node));
    return {};
  };
  JOGAK_TRY_VOID(each_row(csv, options, result.skipped, take, [] {}));
  if (result.nodes.empty()) return csv.bad_row("the node list has no nodes");
  if (result.gpu_milli() == 0) return csv.bad_row("the nodes have no GPUs");
  std::ranges::sort(result.nodes, {}, &OpenbNode::name);
  return result;
}

Result<OpenbPods> parse_openb_pods(std::string file, std::string_view text, ReadOptions options) {
  JOGAK_TRY(auto csv, CsvReader::open(std::move(file), text));
  PodColumns at{};
  JOGAK_TRY(at.name, csv.column("name"));
  JOGAK_TRY(at.cpu, csv.column("cpu_milli"));
  JOGAK_TRY(at.memory, csv.column("memory_mib"));
  JOGAK_TRY(at.gpus, csv.column("num_gpu"));
  JOGAK_TRY(at.milli, csv.column("gpu_milli"));
  at.models = csv.find_column("gpu_spec");
  OpenbPods result;
  std::set<std::string, std::less<>> names;
  const auto take = [&]() -> Result<void> {
    JOGAK_TRY(OpenbPod pod, read_pod(csv, at));
    if (!names.insert(pod.name).second) return csv.bad(at.name, "named before");
    result.pod_of_row.push_back(static_cast<std::int32_t>(result.pods.size()));
    result.pods.push_back(std::move(pod));
    return {};
  };
  const auto skip = [&result] { result.pod_of_row.push_back(OpenbPods::kNoPod); };
  JOGAK_TRY_VOID(each_row(csv, options, result.skipped, take, skip));
  if (result.pods.empty()) return csv.bad_row("the pod list has no pods");
  return result;
}

core::WorkloadMix openb_mix(const OpenbPods& pods) {
  const auto key = [](const OpenbPod& pod) {
    return std::tie(pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models);
  };
  const auto less = [&key](const OpenbPod* a, const OpenbPod* b) { return key(*a) < key(*b); };
  // Classes stay in the order of the file, which settles which of equal ones a policy drops.
  std::map<const OpenbPod*, std::size_t, decltype(less)> places(less);
  core::WorkloadMix mix;
  for (const OpenbPod& pod : pods.pods) {
    const auto [place, is_new] = places.emplace(&pod, mix.size());
    if (is_new) {
      mix.push_back({.cpu = pod.cpu_milli,
                     .memory = pod.memory_mib * kBytesPerMib,
                     .gpu_count = pod.gpus,
                     .gpu_milli = pod.gpu_milli,
                     .models = pod.models,
                     .weight = 0});
    }
    ++mix[place->second].weight;
  }
  return mix;
}

namespace {

constexpr std::string_view kPodPrefix = "openb_pod_list_";
constexpr std::string_view kPodSuffix = ".csv";

std::string in_folder(const std::string& dir, std::string_view name) {
  return dir + (dir.ends_with('/') ? "" : "/") + std::string(name);
}

}  // namespace

std::string openb_node_file(const std::string& dir) {
  return in_folder(dir, "openb_node_list_gpu_node.csv");
}

std::string openb_pod_file(const std::string& dir, std::string_view variant) {
  return in_folder(dir, std::string(kPodPrefix) + std::string(variant) + std::string(kPodSuffix));
}

std::string openb_order_file(const std::string& dir, std::string_view variant) {
  return in_folder(dir, std::string(variant) + ".txt.gz");
}

Result<std::vector<std::string>> list_openb_variants(const std::string& dir) {
  std::error_code error;
  std::vector<std::string> variants;
  auto it = std::filesystem::directory_iterator(dir, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPodPrefix) || !name.ends_with(kPodSuffix)) continue;
    if (name.size() <= kPodPrefix.size() + kPodSuffix.size()) continue;
    variants.push_back(
        name.substr(kPodPrefix.size(), name.size() - kPodPrefix.size() - kPodSuffix.size()));
  }
  if (error) {
    return fail(Errc::NotFound,
                "{}: {}; expected a folder with openb_node_list_gpu_node.csv and "
                "openb_pod_list_VARIANT.csv",
                dir, error.message());
  }
  std::ranges::sort(variants);
  return variants;
}

Result<OpenbPods> load_openb_pods(const std::string& dir, std::string_view variant,
                                  ReadOptions options) {
  JOGAK_TRY(const auto known, list_openb_variants(dir));
  if (std::ranges::find(known, variant) == known.end()) {
    return fail(Errc::NotFound, "unknown variant {}; {} has {}{}", variant, dir,
                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                did_you_mean(variant, known));
  }
  const std::string file = openb_pod_file(dir, variant);
  JOGAK_TRY(const std::string text, read_file(file));
  return parse_openb_pods(file, text, options);
}

Result<OpenbData> load_openb(const OpenbLoadOptions& options) {
  const ReadOptions read{.skip_bad = options.skip_bad};
  const auto note = [](std::vector<std::string>& all, std::vector<std::string>& more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  OpenbData data;
  const std::string node_file = openb_node_file(options.dir);
  JOGAK_TRY(const std::string node_text, read_file(node_file));
  JOGAK_TRY(data.nodes, parse_openb_nodes(node_file, node_text, read));
  note(data.skipped, data.nodes.skipped);
  for (const std::string& name : options.variants) {
    OpenbVariant variant;
    variant.name = name;
    JOGAK_TRY(variant.pods, load_openb_pods(options.dir, name, read));
    note(data.skipped, variant.pods.skipped);
    variant.mix = openb_mix(variant.pods);
    if (options.order_dir.empty()) {
      for (const std::int64_t seed : options.seeds) {
        variant.orders.push_back(draw_openb_order(data.nodes, variant.pods, seed));
      }
    } else {
      const std::string file = openb_order_file(options.order_dir, name);
      JOGAK_TRY(const std::string text, read_file(file));
      JOGAK_TRY(variant.orders,
                parse_openb_orders(file, text, data.nodes, variant.pods, options.seeds));
    }
    data.variants.push_back(std::move(variant));
  }
  return data;
}

}  // namespace jogak::sim
