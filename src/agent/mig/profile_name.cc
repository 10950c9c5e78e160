// SPDX-License-Identifier: Apache-2.0
//
// Hand-written reader of profile names; see profile_name.h.
#include "agent/mig/profile_name.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/edit_distance.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

constexpr int kSlicesMax = 64;
constexpr int kMemoryGbMax = 100'000;
constexpr std::size_t kNameBytesMax = 64;

// What messages show of a text from outside.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kNameBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return text.size() > kNameBytesMax ? result + "..." : result;
}

// Takes "<number><unit>" from the front of `rest`, or nothing at all.
std::optional<int> take_number(std::string_view& rest, std::string_view unit, int max) {
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto number = parse_int(rest.substr(0, digits), 1, max);
  if (!number || rest[0] == '0' || !rest.substr(digits).starts_with(unit)) return std::nullopt;
  rest.remove_prefix(digits + unit.size());
  return static_cast<int>(*number);
}

bool is_attribute(std::string_view word) {
  const auto is_word_char = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
  };
  return !word.empty() && word.front() != '.' && word.back() != '.' &&
         std::ranges::all_of(word, is_word_char);
}

// "+me", ".me" (resource form), "-me": one sign, then words with commas between them.
std::optional<std::string> read_attributes(std::string_view rest) {
  if (rest.empty()) return std::string();
  const char sign = rest.front() == '.' ? '+' : rest.front();
  if (sign != '+' && sign != '-') return std::nullopt;
  rest.remove_prefix(1);
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    words.push_back(rest.substr(0, comma));
    if (!is_attribute(words.back())) return std::nullopt;
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  std::ranges::sort(words);
  if (std::ranges::adjacent_find(words) != words.end()) return std::nullopt;
  return sign + fmt::format("{}", fmt::join(words, ","));
}

std::unexpected<Error> not_a_name(std::string_view text) {
  return invalid("{} is no MIG profile; write it as in 3g.20gb or 1g.10gb+me", shown(text));
}

std::string offered(std::span<const nvml::MigProfileFacts> profiles) {
  std::vector<std::string_view> names;
  for (const nvml::MigProfileFacts& profile : profiles) names.push_back(profile.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<MigName> parse_mig_name(std::string_view text) {
  MigName name;
  std::string_view rest = text;
  if (const auto part = take_number(rest, "c.", kSlicesMax)) name.compute_part = *part;
  const auto slices = take_number(rest, "g", kSlicesMax);
  if (!slices || !rest.starts_with('.')) return not_a_name(text);
  name.slices = *slices;
  rest.remove_prefix(1);
  const auto memory = take_number(rest, "gb", kMemoryGbMax);
  auto attributes = read_attributes(rest);
  if (!memory || !attributes) return not_a_name(text);
  name.memory_gb = *memory;
  name.attributes = *std::move(attributes);
  if (name.compute_part > name.slices) {
    return invalid("{}: {} of {} compute slices cannot be", shown(text), name.compute_part,
                   name.slices);
  }
  if (name.compute_part == name.slices) name.compute_part = 0;  // the whole, as without it
  return name;
}

std::string mig_name_text(const MigName& name) {
  const std::string part = name.compute_part > 0 ? fmt::format("{}c.", name.compute_part) : "";
  return fmt::format("{}{}g.{}gb{}", part, name.slices, name.memory_gb, name.attributes);
}

std::string mig_resource_form(std::string_view profile) {
  std::string result(profile);
  std::ranges::replace(result, '+', '.');
  return result;
}

Result<int> match_profile(std::string_view text, std::span<const nvml::MigProfileFacts> profiles) {
  JOGAK_TRY(const MigMatch match, match_part(text, profiles));
  if (match.part_slices == 0) return match.profile;
  return invalid("{}: a part of an instance cannot be asked for here; ask for {}", shown(text),
                 profiles[static_cast<std::size_t>(match.profile)].name);
}

Result<MigMatch> match_part(std::string_view text,
                            std::span<const nvml::MigProfileFacts> profiles) {
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].name == text) return MigMatch{.profile = static_cast<int>(i)};
  }
  std::string_view rest = text;
  const auto bare = take_number(rest, "g", kSlicesMax);
  const bool is_bare = bare && rest.empty();
  MigName wanted;
  if (is_bare) {
    wanted.slices = *bare;
  } else {
    JOGAK_TRY(wanted, parse_mig_name(text));
  }
  std::optional<int> best;
  int best_distance = 0;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto has = parse_mig_name(profiles[i].name);
    if (!has || has->slices != wanted.slices || has->attributes != wanted.attributes) continue;
    const int distance = is_bare ? has->memory_gb : std::abs(has->memory_gb - wanted.memory_gb);
    const bool is_near = is_bare || distance * 20 <= std::max(has->memory_gb, wanted.memory_gb);
    if (!is_near || (best && best_distance <= distance)) continue;
    best = static_cast<int>(i);
    best_distance = distance;
  }
  if (best) return MigMatch{.profile = *best, .part_slices = wanted.compute_part};
  if (profiles.empty()) return invalid("{}: the GPU offers no MIG profiles", shown(text));
  return invalid("{}: the GPU offers {}", shown(text), offered(profiles));
}

}  // namespace jogak::agent
