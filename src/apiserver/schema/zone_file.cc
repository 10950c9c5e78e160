// SPDX-License-Identifier: Apache-2.0
//
// The folders are those where Go's time package looks.
#include "apiserver/schema/zone_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace jogak::schema {

namespace {

constexpr std::array<std::string_view, 3> kFolders = {
    "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ"};
constexpr std::string_view kMagic = "TZif";
constexpr std::size_t kPartMax = 14;
constexpr std::int64_t kZoneBytesMax = 1 << 20;

bool is_part_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == '+';
}

bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= kPartMax && part != "." && part != ".." &&
         !part.starts_with('-') && std::ranges::all_of(part, is_part_char);
}

bool is_folder(std::string_view path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

bool is_zone_form(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    if (!is_part(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::optional<std::string> read_zone_file(std::string_view name) {
  if (!is_zone_form(name)) return std::nullopt;
  for (const std::string_view folder : kFolders) {
    const std::string path = std::string(folder) + "/" + std::string(name);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) continue;
    auto content = read_file(path, kZoneBytesMax);
    if (content.has_value() && content->starts_with(kMagic)) return *std::move(content);
  }
  return std::nullopt;
}

bool has_zone_files() { return std::ranges::any_of(kFolders, is_folder); }

}  // namespace jogak::schema
