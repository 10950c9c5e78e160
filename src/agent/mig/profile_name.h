// SPDX-License-Identifier: Apache-2.0
//
// Names of MIG profiles as users write them: "3g.20gb", "1g.10gb+me", "1c.3g.20gb", "1g.24gb-me".
// Drivers differ in how they round the memory ("7g.79gb" is the 80 GB of another release), so a
// name is matched with what the GPU offers by its parts, never by equality of strings alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

struct MigName {
  int compute_part = 0;    // "1c." in front: compute slices of one part; 0 without it
  int slices = 0;          // compute slices of the GPU instance
  int memory_gb = 0;       // 0: not said ("1g"), which only match_profile understands
  std::string attributes;  // "", "+me", "+gfx", "+me.all", "-me"; several sorted: "+gfx,me"
  friend bool operator==(const MigName&, const MigName&) = default;
};

// Reads a name. The form of resource names ("1g.10gb.me") is read too. Errors: Invalid, with the
// name and the right form.
Result<MigName> parse_mig_name(std::string_view text);

// The full spelling; parse_mig_name reads it back to the same.
std::string mig_name_text(const MigName& name);

// As in resource names and label values: '+' becomes '.': "mig-1g.10gb.me" has it after "mig-".
std::string mig_resource_form(std::string_view profile);

// Index of the profile that the name means on a GPU that offers these. The memory may be off by a
// twentieth, the nearest wins; "1g" alone means the smallest plain profile of one slice. Errors:
// Invalid, with what the GPU offers.
Result<int> match_profile(std::string_view text, std::span<const nvml::MigProfileFacts> profiles);

// The same for names that may be of a part.
struct MigMatch {
  int profile = 0;
  int part_slices = 0;  // compute slices of the part; 0: the whole instance
  friend bool operator==(const MigMatch&, const MigMatch&) = default;
};
Result<MigMatch> match_part(std::string_view text, std::span<const nvml::MigProfileFacts> profiles);

}  // namespace jogak::agent
