// SPDX-License-Identifier: Apache-2.0
//
// Profile names and layouts as typed. What is accepted prints as the same.
#include <cstdint>
#include <string_view>

#include "agent/mig/config_file.h"
#include "agent/mig/profile_name.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = parse_mig_name(text)) {
    const auto again = parse_mig_name(mig_name_text(*name));
    JOGAK_CHECK(again.has_value() && *again == *name, "{} reads as another", mig_name_text(*name));
  }
  const auto goal = parse_layout(text);
  if (!goal) return 0;
  std::string typed = goal->is_enabled ? "none" : "off";
  for (std::size_t i = 0; i < goal->wanted.size(); ++i) {
    const MigGoal::Count& count = goal->wanted[i];
    typed = (i == 0 ? "" : typed + ",") + count.profile + ":" + std::to_string(count.count);
  }
  const auto again = parse_layout(typed);
  JOGAK_CHECK(again.has_value() && *again == *goal, "{} reads as another", typed);
  return 0;
}
