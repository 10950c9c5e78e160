// SPDX-License-Identifier: Apache-2.0
//
// How long a layout plan takes: 8 GPUs of one model, each cut in a random legal way with some
// instances in use, each to go to random counts that exist. Prints per model the median and the
// worst of many nodes in microseconds; the floor is 1 ms for 8 GPUs.
//
//   build/bench/bench/mig_plan_bench
#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/core.h>

#include "agent/mig/plan.h"
#include "base/check.h"
#include "base/mono_clock.h"
#include "base/rng.h"

namespace jogak::bench {
namespace {

using namespace jogak::agent;

constexpr int kGpus = 8, kNodes = 2000;

nvml::MigProfileFacts profile(std::string name, int id, int slices, int count, int size,
                              std::vector<int> starts, int decoders, int jpeg, int ofa) {
  nvml::MigProfileFacts facts;
  facts.name = std::move(name);
  facts.id = id;
  facts.slices = slices;
  facts.count_max = count;
  facts.decoders = decoders;
  facts.jpeg_engines = jpeg;
  facts.ofa_engines = ofa;
  for (const int start : starts) facts.placements.push_back({start, size});
  return facts;
}

// As a driver tells them of an A100 of 40 GB and of an RTX PRO 6000, which has the most profiles.
std::vector<nvml::MigProfileFacts> seven_slices() {
  return {profile("1g.5gb", 19, 1, 7, 1, {0, 1, 2, 3, 4, 5, 6}, 0, 0, 0),
          profile("2g.10gb", 14, 2, 3, 2, {0, 2, 4}, 1, 0, 0),
          profile("3g.20gb", 9, 3, 2, 4, {0, 4}, 2, 0, 0),
          profile("4g.20gb", 5, 4, 1, 4, {0}, 2, 0, 0),
          profile("7g.40gb", 0, 7, 1, 8, {0}, 5, 1, 1),
          profile("1g.5gb+me", 20, 1, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 1, 1, 1),
          profile("1g.10gb", 15, 1, 4, 2, {0, 2, 4, 6}, 1, 0, 0)};
}

std::vector<nvml::MigProfileFacts> four_slices() {
  std::vector<nvml::MigProfileFacts> profiles;
  for (const char* kind : {"", "+gfx", "-me"}) {
    const int engines = kind[0] == '-' ? 0 : 1;
    const int id = static_cast<int>(profiles.size());
    profiles.push_back(
        profile(std::string("1g.24gb") + kind, id, 1, 4, 3, {0, 3, 6, 9}, engines, engines, 0));
    profiles.push_back(profile(std::string("2g.48gb") + kind, id + 1, 2, 2, 6, {0, 6}, 2 * engines,
                               2 * engines, 0));
  }
  profiles.push_back(profile("1g.24gb+me", 21, 1, 1, 3, {0, 3, 6, 9}, 1, 1, 1));
  profiles.push_back(profile("4g.96gb", 22, 4, 1, 12, {0}, 4, 4, 1));
  return profiles;
}

// A random legal layout: places are tried in random order, and not all are taken.
MigLayout draw_layout(const MigGeometry& geometry, Rng& rng) {
  MigLayout all, layout;
  for (std::size_t p = 0; p < geometry.profiles().size(); ++p) {
    for (const auto& at : geometry.profiles()[p].placements) {
      all.push_back({.at = at, .profile = static_cast<int>(p)});
    }
  }
  rng.shuffle(std::span(all));
  for (const MigPlace& place : all) {
    layout.push_back(place);
    if (geometry.layout_fault(layout) || rng.chance(1, 8)) layout.pop_back();
  }
  return layout;
}

void measure(const char* name, const std::vector<nvml::MigProfileFacts>& profiles) {
  Rng rng(1, name);
  std::vector<std::int64_t> times_ns;
  std::size_t planned = 0;
  for (int node = 0; node < kNodes; ++node) {
    const MigGeometry geometry = MigGeometry::from_facts(profiles).value();
    std::vector<std::vector<MigPresent>> present(kGpus);
    std::vector<MigCounts> wanted;
    for (auto& instances : present) {
      for (const MigPlace& place : draw_layout(geometry, rng)) {
        MigPresent instance;
        instance.gi_id = static_cast<int>(instances.size());
        instance.place = place;
        instance.in_use = rng.chance(1, 8);
        instances.push_back(std::move(instance));
      }
      wanted.push_back(geometry.counts_of(draw_layout(geometry, rng)));
    }
    const std::int64_t start = mono_now_ns();
    for (std::size_t gpu = 0; gpu < present.size(); ++gpu) {
      const MigGeometry own = MigGeometry::from_facts(profiles).value();
      planned += plan_counts(own, present[gpu], wanted[gpu]).has_value() ? 1 : 0;
    }
    times_ns.push_back(mono_now_ns() - start);
  }
  std::ranges::sort(times_ns);
  JOGAK_CHECK(planned > 0);
  fmt::print("{:<12} 8 GPUs: p50 {:6.1f} us, p99 {:6.1f} us, max {:6.1f} us; {} of {} planned\n",
             name, static_cast<double>(times_ns[times_ns.size() / 2]) / 1e3,
             static_cast<double>(times_ns[times_ns.size() * 99 / 100]) / 1e3,
             static_cast<double>(times_ns.back()) / 1e3, planned, kNodes * kGpus);
}

}  // namespace
}  // namespace jogak::bench

int main() {
  jogak::bench::measure("A100", jogak::bench::seven_slices());
  jogak::bench::measure("RTX PRO 6000", jogak::bench::four_slices());
  return 0;
}
