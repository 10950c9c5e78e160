// SPDX-License-Identifier: Apache-2.0
// One word says what a line is; a line of another kind is an error, since it would be lost.
#include "agent/mps/record.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse_number.h"

namespace jogak::agent {

namespace {

constexpr std::size_t kNameMax = 253;
constexpr int kModeMax = 3;

// "word rest": takes the word.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '/';
}

bool is_uuid(std::string_view text) {
  return !text.empty() && text.size() <= kNameMax && text.find('/') == std::string_view::npos &&
         std::ranges::all_of(text, is_name_character);
}

Result<void> read_line(std::string_view line, MpsRecord& record) {
  const std::string_view kind = take_word(line);
  if (kind == "daemon") {
    if (!is_mps_resource(line)) return invalid("\"{}\" is not the name of a resource", line);
    record.daemons.emplace(line);
    return {};
  }
  if (kind == "mode") {
    const std::string_view uuid = take_word(line);
    if (!is_uuid(uuid)) return invalid("\"{}\" is not the uuid of a gpu", uuid);
    JOGAK_TRY(const std::int64_t mode, parse_int(line, 0, kModeMax));
    record.modes.emplace(uuid, static_cast<int>(mode));
    return {};
  }
  return invalid("\"{}\" is neither daemon nor mode", kind);
}

}  // namespace

bool is_mps_resource(std::string_view name) {
  const bool has_parts = !name.empty() && name.size() <= kNameMax && name.front() != '/' &&
                         name.back() != '/' && name.find("//") == std::string_view::npos;
  return has_parts && std::ranges::all_of(name, is_name_character) && !name.starts_with('.') &&
         name.find("/.") == std::string_view::npos;
}

std::string mps_record_text(const MpsRecord& record) {
  std::string text;
  for (const std::string& daemon : record.daemons) text += fmt::format("daemon {}\n", daemon);
  for (const auto& [uuid, mode] : record.modes) text += fmt::format("mode {} {}\n", uuid, mode);
  return text;
}

Result<MpsRecord> parse_mps_record(std::string_view text) {
  MpsRecord record;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (auto read = read_line(line, record); !read) {
      return in_context(fmt::format("line {}", number), std::move(read).error());
    }
  }
  return record;
}

}  // namespace jogak::agent
