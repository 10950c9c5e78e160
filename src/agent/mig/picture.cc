// SPDX-License-Identifier: Apache-2.0
//
// See picture.h.
#include "agent/mig/picture.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

constexpr std::size_t kCellMin = 4;
constexpr std::string_view kOff = "the whole GPU, MIG off";

// "[3g.20gb   ]", exactly so wide.
std::string box(std::string_view text, std::size_t width) {
  return fmt::format("[{:<{}}]", text.substr(0, width - 2), width - 2);
}

// Columns per slice, so that every name fits into its box.
std::size_t cell_width(const std::vector<std::pair<std::string, MigShape>>& shapes) {
  std::size_t width = kCellMin;
  for (const auto& [title, shape] : shapes) {
    for (const MigShapeInstance& instance : shape.instances) {
      const auto size = static_cast<std::size_t>(std::max(instance.at.size, 1));
      width = std::max(width, (instance_name(instance).size() + 2 + size - 1) / size);
    }
  }
  return width;
}

std::string bar(const MigShape& shape, std::size_t slices, std::size_t cell) {
  if (!shape.is_enabled) return box(kOff, std::max(slices * cell, kOff.size() + 2));
  std::string line;
  for (std::size_t slice = 0; slice < slices;) {
    const auto at = std::ranges::find_if(shape.instances, [&](const MigShapeInstance& instance) {
      return instance.at.start == static_cast<int>(slice) && instance.at.size > 0;
    });
    if (at == shape.instances.end()) {
      line += fmt::format("{:^{}}", ".", cell);
      ++slice;
      continue;
    }
    const auto size = static_cast<std::size_t>(at->at.size);
    line += box(instance_name(*at), size * cell);
    slice += size;
  }
  return line;
}

}  // namespace

std::string slice_picture(const std::vector<std::pair<std::string, MigShape>>& shapes, int slices,
                          std::size_t indent) {
  const std::size_t cell = cell_width(shapes);
  std::size_t title_width = std::string_view("slice").size();
  for (const auto& [title, shape] : shapes) title_width = std::max(title_width, title.size());
  const auto line = [&](std::string_view title, std::string rest) {
    rest.erase(rest.find_last_not_of(' ') + 1);
    return fmt::format("{:{}}{:<{}}  {}\n", "", indent, title, title_width, rest);
  };
  std::string numbers;
  for (int slice = 0; slice < slices; ++slice) numbers += fmt::format("{:^{}}", slice, cell);
  std::string text = line("slice", numbers);
  for (const auto& [title, shape] : shapes) {
    text += line(title, bar(shape, static_cast<std::size_t>(slices), cell));
  }
  return text;
}

std::string shape_words(const MigShape& shape) {
  if (!shape.is_enabled) return "MIG off";
  if (shape.instances.empty()) return "no instances";
  std::map<std::string, int, std::greater<>> counts;  // the largest first, mostly
  for (const MigShapeInstance& instance : shape.instances) ++counts[instance_name(instance)];
  std::string words;
  for (const auto& [name, count] : counts) {
    words += fmt::format("{}{} x {}", words.empty() ? "" : ", ", count, name);
  }
  return words;
}

}  // namespace jogak::agent
