// SPDX-License-Identifier: Apache-2.0
// The MIG tables and the few questions asked of them. Names and counts are NVIDIA's; the placements
// of B200, GB200, B300 and GB300 were not seen on hardware and are taken to be those of the other
// chips with seven compute slices, whose profile ids and counts they share.
#include "core/model/mig.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace jogak::core {
namespace {

constexpr std::int32_t kMaxSlices = 16;

constexpr std::uint16_t starts_at(std::initializer_list<int> starts) {
  unsigned mask = 0;
  for (const int start : starts) mask |= 1U << start;
  return static_cast<std::uint16_t>(mask);
}

// The rows below: name, size, compute slices, starts, count, decoders, optical flow engines.

// Chips with seven compute slices: eight memory slices, the last compute slice owns two of them.
// `name` in the order 1g, 1g+me, 1g with double memory, 2g, 3g, 4g, 7g.
constexpr std::array<MigProfile, 7> seven_slices(std::array<std::string_view, 7> name) {
  constexpr std::uint16_t kAny = starts_at({0, 1, 2, 3, 4, 5, 6});
  // Decoders bind nowhere on these chips (they come with the slices), so only the one optical flow
  // engine is counted.
  return {{
      {name[0], 1, 1, kAny, 7, 0, 0},
      {name[1], 1, 1, kAny, 1, 0, 1},
      {name[2], 2, 1, starts_at({0, 2, 4, 6}), 4, 0, 0},
      {name[3], 2, 2, starts_at({0, 2, 4}), 3, 0, 0},
      {name[4], 4, 3, starts_at({0, 4}), 2, 0, 0},
      {name[5], 4, 4, starts_at({0}), 1, 0, 0},
      {name[6], 8, 7, starts_at({0}), 1, 0, 1},
  }};
}

constexpr auto kA100x40 =
    seven_slices({"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
// Also H100 80 GB: the same names.
constexpr auto k80Gb =
    seven_slices({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
constexpr auto kH100x94 =
    seven_slices({"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"});
constexpr auto kH100x96 =
    seven_slices({"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"});
constexpr auto kH200x141 =
    seven_slices({"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"});
constexpr auto kGh200x144 =
    seven_slices({"1g.18gb", "1g.18gb+me", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb"});
constexpr auto kB200 =
    seven_slices({"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"});
constexpr auto kGb200 =
    seven_slices({"1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"});
constexpr auto kB300 = seven_slices(
    {"1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"});
constexpr auto kGb300 = seven_slices(
    {"1g.35gb", "1g.35gb+me", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb"});

constexpr std::array<MigProfile, 5> kA30 = {{
    {"1g.6gb", 1, 1, starts_at({0, 1, 2, 3}), 4, 0, 0},
    {"1g.6gb+me", 1, 1, starts_at({0, 1, 2, 3}), 1, 1, 1},
    {"2g.12gb", 2, 2, starts_at({0, 2}), 2, 2, 0},
    {"2g.12gb+me", 2, 2, starts_at({0, 2}), 1, 2, 1},
    {"4g.24gb", 4, 4, starts_at({0}), 1, 4, 1},
}};

// Placement grid of twelve. "+me.all" takes every media engine, so beside it only "-me" fits.
constexpr std::uint16_t kQuarters = starts_at({0, 3, 6, 9});
constexpr std::uint16_t kHalves = starts_at({0, 6});
constexpr std::array<MigProfile, 11> kRtxPro6000 = {{
    {"1g.24gb", 3, 1, kQuarters, 4, 1, 0},
    {"1g.24gb+me", 3, 1, kQuarters, 1, 1, 1},
    {"1g.24gb+gfx", 3, 1, kQuarters, 4, 1, 0},
    {"1g.24gb+me.all", 3, 1, kQuarters, 1, 4, 1},
    {"1g.24gb-me", 3, 1, kQuarters, 4, 0, 0},
    {"2g.48gb", 6, 2, kHalves, 2, 2, 0},
    {"2g.48gb+gfx", 6, 2, kHalves, 2, 2, 0},
    {"2g.48gb+me.all", 6, 2, kHalves, 1, 4, 1},
    {"2g.48gb-me", 6, 2, kHalves, 2, 0, 0},
    {"4g.96gb", 12, 4, starts_at({0}), 1, 4, 1},
    {"4g.96gb+gfx", 12, 4, starts_at({0}), 1, 4, 1},
}};

// Order is part of the format: Gpu::mig_model indexes it.
constexpr std::array<MigModel, 14> kModels = {{
    {.key = "A100-SXM4-40GB", .slices = 8, .profiles = kA100x40, .nvdec = 5, .ofa = 1},
    {.key = "A100-SXM4-80GB", .slices = 8, .profiles = k80Gb, .nvdec = 5, .ofa = 1},
    {.key = "A30", .slices = 4, .profiles = kA30, .nvdec = 4, .ofa = 1},
    {.key = "H100-80GB", .slices = 8, .profiles = k80Gb, .nvdec = 7, .ofa = 1},
    {.key = "H100-NVL", .slices = 8, .profiles = kH100x94, .nvdec = 7, .ofa = 1},
    {.key = "H100-96GB", .slices = 8, .profiles = kH100x96, .nvdec = 7, .ofa = 1},
    {.key = "H200", .slices = 8, .profiles = kH200x141, .nvdec = 7, .ofa = 1},
    {.key = "GH200-480GB", .slices = 8, .profiles = kH100x96, .nvdec = 7, .ofa = 1},
    {.key = "GH200-144G", .slices = 8, .profiles = kGh200x144, .nvdec = 7, .ofa = 1},
    {.key = "B200", .slices = 8, .profiles = kB200, .nvdec = 7, .ofa = 1},
    {.key = "GB200", .slices = 8, .profiles = kGb200, .nvdec = 7, .ofa = 1},
    {.key = "B300", .slices = 8, .profiles = kB300, .nvdec = 7, .ofa = 1},
    {.key = "GB300", .slices = 8, .profiles = kGb300, .nvdec = 7, .ofa = 1},
    {.key = "RTX-PRO-6000", .slices = 12, .profiles = kRtxPro6000, .nvdec = 4, .ofa = 1},
}};

// Other product texts for the same boards; an empty model text says "known, and not in the table".
struct Alias {
  std::string_view text;
  std::string_view model;
};
constexpr std::array<Alias, 24> kAliases = {{
    {"A100-PCIE-40GB", "A100-SXM4-40GB"},
    {"A100-40GB", "A100-SXM4-40GB"},
    {"A800-SXM4-40GB", "A100-SXM4-40GB"},
    {"A800-40GB", "A100-SXM4-40GB"},
    {"A100-80GB", "A100-SXM4-80GB"},
    {"A100-PCIE-80GB", "A100-SXM4-80GB"},
    {"A800-SXM4-80GB", "A100-SXM4-80GB"},
    {"A800-80GB", "A100-SXM4-80GB"},
    {"H100", "H100-80GB"},
    {"H800", "H100-80GB"},
    {"H100-94GB", "H100-NVL"},
    {"H800-NVL", "H100-NVL"},
    {"H100-SXM5-96GB", "H100-96GB"},
    {"H20", "H100-96GB"},
    {"H20-3e", "H200"},
    {"H20-141GB", "H200"},
    {"H100-64GB", ""},
    {"H100-SXM5-64GB", ""},
    {"H100-SXM5-80GB", "H100-80GB"},
    {"H100-SXM5-94GB", "H100-NVL"},
    {"GH200", "GH200-480GB"},
    {"GH200-96GB", "GH200-480GB"},
    {"GH200-120GB", "GH200-480GB"},
    {"GH200-144GB", "GH200-144G"},
}};

// Labels write spaces as dashes and spell PCIe in several ways: compare letters without case and
// take everything else as a dash.
constexpr char fold(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  return word ? c : '-';
}

// True if `text` holds `key` as whole words: "RTX-A3000" does not hold "A30".
bool holds_words(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at + key.size() <= text.size(); ++at) {
    const std::size_t end = at + key.size();
    if (at > 0 && fold(text[at - 1]) != '-') continue;
    if (end < text.size() && fold(text[end]) != '-') continue;
    if (std::ranges::equal(text.substr(at, key.size()), key, {}, fold, fold)) return true;
  }
  return false;
}

std::optional<std::uint8_t> model_of_key(std::string_view key) {
  for (std::size_t i = 0; i < kModels.size(); ++i) {
    if (kModels[i].key == key) return static_cast<std::uint8_t>(i);
  }
  return std::nullopt;
}

// Compute slices of all placements that are still possible with these memory slices in use.
std::int32_t placements_left(const MigModel& model, std::uint16_t used_mask) {
  std::int32_t left = 0;
  for (const MigProfile& profile : model.profiles) {
    left += std::popcount(mig_free_starts(profile, used_mask)) * profile.compute;
  }
  return left;
}

}  // namespace

std::span<const MigModel> mig_models() { return kModels; }

std::optional<std::uint8_t> find_mig_model(std::string_view gpu_model) {
  std::string_view longest;
  std::string_view model;
  const auto consider = [&](std::string_view text, std::string_view key) {
    if (text.size() <= longest.size() || !holds_words(gpu_model, text)) return;
    longest = text;
    model = key;
  };
  for (const MigModel& m : kModels) consider(m.key, m.key);
  for (const Alias& alias : kAliases) consider(alias.text, alias.model);
  return model_of_key(model);
}

std::int32_t find_mig_profile(const MigModel& model, std::string_view name) {
  // A resource name cannot hold '+' and has '.' instead: "1g.10gb.me" for "1g.10gb+me".
  const auto same = [](char wanted, char have) {
    return wanted == have || (wanted == '.' && have == '+');
  };
  for (std::size_t i = 0; i < model.profiles.size(); ++i) {
    if (std::ranges::equal(name, model.profiles[i].name, same)) return static_cast<std::int32_t>(i);
  }
  return -1;
}

bool mig_counts_fit(const MigModel& model, std::span<const std::int32_t> counts) {
  std::int32_t nvdec = 0;
  std::int32_t ofa = 0;
  for (std::size_t i = 0; i < counts.size() && i < model.profiles.size(); ++i) {
    const MigProfile& profile = model.profiles[i];
    if (counts[i] > profile.max_count) return false;
    nvdec += counts[i] * profile.nvdec;
    ofa += counts[i] * profile.ofa;
  }
  return nvdec <= model.nvdec && ofa <= model.ofa;
}

std::uint16_t mig_free_starts(const MigProfile& profile, std::uint16_t used_mask) {
  unsigned free = 0;
  for (std::int32_t start = 0; start < kMaxSlices; ++start) {
    if ((profile.starts >> start & 1U) == 0) continue;
    if ((used_mask & mig_mask(start, profile.size)) == 0) free |= 1U << start;
  }
  return static_cast<std::uint16_t>(free);
}

std::optional<std::int32_t> best_mig_start(const MigModel& model, const MigProfile& profile,
                                           std::uint16_t used_mask) {
  std::optional<std::int32_t> best;
  std::int32_t best_left = -1;
  const std::uint16_t free = mig_free_starts(profile, used_mask);
  for (std::int32_t start = 0; start < kMaxSlices; ++start) {
    if ((free >> start & 1U) == 0) continue;
    const auto after = static_cast<std::uint16_t>(used_mask | mig_mask(start, profile.size));
    const std::int32_t left = placements_left(model, after);
    if (left > best_left) {
      best = start;
      best_left = left;
    }
  }
  return best;
}

}  // namespace jogak::core
