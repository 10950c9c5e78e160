// SPDX-License-Identifier: Apache-2.0
//
// Reading of the line and of the file.
#include "nvml/sim/standing.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/parse_number.h"

namespace jogak::nvml::sim {

namespace {

constexpr std::size_t kItemsMax = 256;
constexpr std::int64_t kFileBytesMost = 64 * 1024;
constexpr TimeUs kLookEvery = 100 * kMsInUs;
constexpr std::string_view kBlanks = " \t\r\n";

// What stands after the colon.
enum class Argument : std::uint8_t { None, Optional, Needed };
struct Word {
  std::string_view name;
  FaultKind kind;
  Argument argument;
  bool is_count = false;  // the number counts; else it is the code
  std::int64_t code = 0;  // without a number, or beside a count
  std::int64_t max = 100'000;
};

constexpr std::array<Word, 9> kWords = {
    {{.name = "xid", .kind = FaultKind::Xid, .argument = Argument::Needed},
     {.name = "lost", .kind = FaultKind::Lost, .argument = Argument::None},
     {.name = "ecc",
      .kind = FaultKind::Ecc,
      .argument = Argument::Optional,
      .is_count = true,
      .code = 1},
     {.name = "thermal", .kind = FaultKind::Thermal, .argument = Argument::Optional, .max = 200},
     {.name = "powerBrake", .kind = FaultKind::PowerBrake, .argument = Argument::None},
     {.name = "rowRemap",
      .kind = FaultKind::RowRemap,
      .argument = Argument::Optional,
      .code = 3,
      .max = 7},
     {.name = "recoveryAction",
      .kind = FaultKind::RecoveryAction,
      .argument = Argument::Needed,
      .max = 5},
     {.name = "nvlinkErrors",
      .kind = FaultKind::NvlinkErrors,
      .argument = Argument::Optional,
      .is_count = true},
     {.name = "nvlinkDown",
      .kind = FaultKind::NvlinkDown,
      .argument = Argument::Needed,
      .max = 63}}};

std::string words() {
  std::string list;
  for (const Word& word : kWords) list.append(list.empty() ? "" : ", ").append(word.name);
  return list;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Result<FaultSpec> parse_item(std::string_view item, int gpus) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    return invalid("fault \"{}\": expected GPU=KIND, like 0=xid:79 or all=lost", item);
  }
  FaultSpec fault;
  const std::string_view gpu = trimmed(item.substr(0, equals));
  if (gpu != "all") {
    const auto index = parse_int(gpu, 0, gpus - 1);
    if (!index) {
      return invalid("fault \"{}\": there is no GPU \"{}\"; give 0 to {}, or all", item, gpu,
                     gpus - 1);
    }
    fault.gpu = static_cast<int>(*index);
  }
  const std::string_view what = trimmed(item.substr(equals + 1));
  const std::size_t colon = std::min(what.find(':'), what.size());
  const auto* const word = std::ranges::find(kWords, what.substr(0, colon), &Word::name);
  if (word == kWords.end()) {
    return invalid("fault \"{}\": no kind \"{}\"; there are {}", item, what.substr(0, colon),
                   words());
  }
  fault.kind = word->kind;
  fault.code = word->code;
  const bool has_number = colon < what.size();
  if (has_number && word->argument == Argument::None) {
    return invalid("fault \"{}\": {} takes no number", item, word->name);
  }
  if (!has_number && word->argument == Argument::Needed) {
    return invalid("fault \"{}\": {} needs a number, like {}:1", item, word->name, word->name);
  }
  if (has_number) {
    const auto number = parse_int(what.substr(colon + 1), 0, word->max);
    if (!number) {
      return invalid("fault \"{}\": {} takes a number from 0 to {}", item, word->name, word->max);
    }
    (word->is_count ? fault.count : fault.code) = *number;
  }
  return fault;
}

}  // namespace

Result<std::vector<FaultSpec>> parse_standing_faults(std::string_view text, int gpus) {
  std::vector<FaultSpec> faults;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",\n"), text.size());
    const std::string_view item = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    JOGAK_TRY(const FaultSpec fault, parse_item(item, gpus));
    if (std::ranges::find(faults, fault) != faults.end()) continue;
    if (faults.size() == kItemsMax) return invalid("more than {} faults at once", kItemsMax);
    faults.push_back(fault);
  }
  return faults;
}

bool xid_asks_for_reset(std::int64_t code) {
  static constexpr std::array kCodes = {46,  48,  61,  62,  64,  74,  79,  95,  110,
                                        119, 120, 136, 140, 143, 144, 145, 146, 147,
                                        148, 149, 150, 155, 156, 158, 167, 169};
  return std::ranges::binary_search(kCodes, code);
}

std::optional<std::string> FaultsFile::changed(TimeUs now) {
  if (next_look_ && now < *next_look_) return std::nullopt;
  next_look_ = now + kLookEvery;
  auto text = read_file(path_, kFileBytesMost);
  if (!text && text.error().code != Errc::NotFound) return std::nullopt;
  std::string present = text ? *std::move(text) : std::string();
  if (present == text_) return std::nullopt;
  text_ = present;
  return present;
}

}  // namespace jogak::nvml::sim
