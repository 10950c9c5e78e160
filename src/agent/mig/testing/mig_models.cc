// SPDX-License-Identifier: Apache-2.0
//
// See mig_models.h. One table of a chip family's shape, and what a model adds: names, memory, SMs
// and engines.
#include "agent/mig/testing/mig_models.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/check.h"

namespace jogak::agent::testing {

namespace {

struct Row {
  std::string_view name;
  std::int64_t memory_mib;
  int multiprocessors, copy, decoders, encoders, jpeg, ofa;
};

struct Shape {
  int id, query_index, slices, count_max, size;
  std::initializer_list<int> starts;
};

std::vector<nvml::MigProfileFacts> profiles(std::initializer_list<Shape> shapes,
                                            std::initializer_list<Row> rows) {
  JOGAK_CHECK(shapes.size() == rows.size());
  std::vector<nvml::MigProfileFacts> result;
  const Row* row = rows.begin();
  for (const Shape& shape : shapes) {
    nvml::MigProfileFacts profile{.id = shape.id,
                                  .query_index = shape.query_index,
                                  .name = std::string(row->name),
                                  .slices = shape.slices,
                                  .memory_mib = row->memory_mib,
                                  .count_max = shape.count_max,
                                  .multiprocessors = row->multiprocessors,
                                  .copy_engines = row->copy,
                                  .decoders = row->decoders,
                                  .encoders = row->encoders,
                                  .jpeg_engines = row->jpeg,
                                  .ofa_engines = row->ofa,
                                  .placements = {}};
    for (const int start : shape.starts) profile.placements.push_back({start, shape.size});
    result.push_back(std::move(profile));
    ++row;
  }
  return result;
}

// 1g, 2g, 3g, 4g, 7g, 1g+me, 1g with double memory: the order of NVML's query indices.
std::vector<nvml::MigProfileFacts> seven_slices(std::initializer_list<Row> rows) {
  return profiles({{19, 0, 1, 7, 1, {0, 1, 2, 3, 4, 5, 6}},
                   {14, 1, 2, 3, 2, {0, 2, 4}},
                   {9, 2, 3, 2, 4, {0, 4}},
                   {5, 3, 4, 1, 4, {0}},
                   {0, 4, 7, 1, 8, {0}},
                   {20, 7, 1, 1, 1, {0, 1, 2, 3, 4, 5, 6}},
                   {15, 9, 1, 4, 2, {0, 2, 4, 6}}},
                  rows);
}

std::vector<nvml::MigProfileFacts> a100(const std::array<std::string_view, 7>& names,
                                        const std::array<std::int64_t, 4>& mib) {
  return seven_slices({{names[0], mib[0], 14, 1, 0, 0, 0, 0},
                       {names[1], mib[1], 28, 2, 1, 0, 0, 0},
                       {names[2], mib[2], 42, 3, 2, 0, 0, 0},
                       {names[3], mib[2], 56, 4, 2, 0, 0, 0},
                       {names[4], mib[3], 98, 7, 5, 0, 1, 1},
                       {names[5], mib[0], 14, 1, 1, 0, 1, 1},
                       {names[6], mib[1], 14, 1, 1, 0, 0, 0}});
}

// Hopper and Blackwell: a decoder and a JPEG engine to every slice, one optical flow engine.
std::vector<nvml::MigProfileFacts> hopper(const std::array<std::string_view, 7>& names,
                                          const std::array<std::int64_t, 4>& mib) {
  return seven_slices({{names[0], mib[0], 16, 1, 1, 0, 1, 0},
                       {names[1], mib[1], 32, 2, 2, 0, 2, 0},
                       {names[2], mib[2], 60, 3, 3, 0, 3, 0},
                       {names[3], mib[2], 64, 4, 4, 0, 4, 0},
                       {names[4], mib[3], 132, 8, 7, 0, 7, 1},
                       {names[5], mib[0], 16, 1, 1, 0, 1, 1},
                       {names[6], mib[1], 26, 1, 1, 0, 1, 0}});
}

std::vector<nvml::MigProfileFacts> a30() {
  return profiles({{14, 0, 1, 4, 1, {0, 1, 2, 3}},
                   {5, 1, 2, 2, 2, {0, 2}},
                   {0, 3, 4, 1, 4, {0}},
                   {21, 7, 1, 1, 1, {0, 1, 2, 3}},
                   {6, 8, 2, 1, 2, {0, 2}}},
                  {{"1g.6gb", 5952, 14, 1, 0, 0, 0, 0},
                   {"2g.12gb", 11968, 28, 2, 2, 0, 0, 0},
                   {"4g.24gb", 24000, 56, 4, 4, 0, 1, 1},
                   {"1g.6gb+me", 5952, 14, 1, 1, 0, 1, 1},
                   {"2g.12gb+me", 11968, 28, 2, 2, 0, 1, 1}});
}

std::vector<nvml::MigProfileFacts> rtx_pro() {
  return profiles({{14, 0, 1, 4, 3, {0, 3, 6, 9}},
                   {5, 1, 2, 2, 6, {0, 6}},
                   {0, 3, 4, 1, 12, {0}},
                   {21, 7, 1, 1, 3, {0, 3, 6, 9}},
                   {47, 10, 1, 4, 3, {0, 3, 6, 9}},
                   {35, 11, 2, 2, 6, {0, 6}},
                   {32, 12, 4, 1, 12, {0}},
                   {67, 13, 1, 4, 3, {0, 3, 6, 9}},
                   {66, 14, 2, 2, 6, {0, 6}},
                   {65, 15, 1, 1, 3, {0, 3, 6, 9}},
                   {64, 16, 2, 1, 6, {0, 6}}},
                  {{"1g.24gb", 24192, 46, 1, 1, 1, 1, 0},
                   {"2g.48gb", 48512, 94, 2, 2, 2, 2, 0},
                   {"4g.96gb", 97280, 188, 4, 4, 4, 4, 1},
                   {"1g.24gb+me", 24192, 46, 1, 1, 1, 1, 1},
                   {"1g.24gb+gfx", 24192, 46, 1, 1, 1, 1, 0},
                   {"2g.48gb+gfx", 48512, 94, 2, 2, 2, 2, 0},
                   {"4g.96gb+gfx", 97280, 188, 4, 4, 4, 4, 1},
                   {"1g.24gb-me", 24192, 46, 1, 0, 0, 0, 0},
                   {"2g.48gb-me", 48512, 94, 2, 0, 0, 0, 0},
                   {"1g.24gb+me.all", 24192, 46, 1, 4, 4, 4, 1},
                   {"2g.48gb+me.all", 48512, 94, 2, 4, 4, 4, 1}});
}

std::vector<MigModel> all_models() {
  return {
      {"A100-40", "NVIDIA A100-SXM4-40GB", 0x20B010DE, 40960, true,
       a100({"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g.5gb+me", "1g.10gb"},
            {4864, 9856, 19968, 40192})},
      {"A100-80", "NVIDIA A100-SXM4-80GB", 0x20B210DE, 81920, true,
       a100({"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.10gb+me", "1g.20gb"},
            {9728, 19968, 40192, 80384})},
      {"A30", "NVIDIA A30", 0x20B710DE, 24576, true, a30()},
      {"H100-80", "NVIDIA H100 80GB HBM3", 0x233010DE, 81559, false,
       hopper({"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.10gb+me", "1g.20gb"},
              {9984, 20096, 40448, 81152})},
      {"H100-96", "NVIDIA H20", 0x232910DE, 97871, false,
       hopper({"1g.12gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb", "1g.12gb+me", "1g.24gb"},
              {11776, 23936, 47872, 97280})},
      {"H200", "NVIDIA H200", 0x233510DE, 143771, false,
       hopper({"1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb", "1g.18gb+me", "1g.35gb"},
              {16384, 33024, 71168, 143360})},
      {"B200", "NVIDIA B200", 0x290110DE, 183359, false,
       hopper({"1g.23gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb", "1g.23gb+me", "1g.45gb"},
              {22528, 45312, 90112, 182272})},
      {"RTX-PRO-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 0x2BB510DE, 97887, false,
       rtx_pro()},
  };
}

}  // namespace

std::span<const MigModel> mig_models() {
  static const std::vector<MigModel> models = all_models();
  return models;
}

const MigModel& mig_model(std::string_view key) {
  const auto models = mig_models();
  const auto at = std::ranges::find(models, key, &MigModel::key);
  JOGAK_CHECK(at != models.end(), "no model {}", key);
  return *at;
}

}  // namespace jogak::agent::testing
