// SPDX-License-Identifier: Apache-2.0
//
// Names of time zones, looked up in the machine's own database.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "apiserver/kinds/batch.h"
#include "base/file.h"

namespace jogak::api {

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

// "Area/City": what may be looked up as a file name.
bool is_zone_form(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    if (!is_part(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace

bool is_time_zone(std::string_view name) {
  if (!is_zone_form(name)) return false;
  if (name == "UTC") return true;
  bool has_database = false;
  for (const std::string_view folder : kFolders) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) continue;
    has_database = true;
    const std::string path = std::string(folder) + "/" + std::string(name);
    if (!std::filesystem::is_regular_file(path, error)) continue;
    const auto content = read_file(path, kZoneBytesMax);
    if (content.has_value() && content->starts_with(kMagic)) return true;
  }
  return !has_database;
}

}  // namespace jogak::api
