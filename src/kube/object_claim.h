// SPDX-License-Identifier: Apache-2.0
//
// Who has claimed a PersistentVolume, and at which version of it: what a claim must be made
// against.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::kube {

struct VolumeClaimed {
  std::string version;
  std::string claim_ns, claim_name, claim_uid;  // spec.claimRef; empty: nobody
};

// Invalid: not JSON of a PersistentVolume.
Result<VolumeClaimed> volume_claimed(std::string_view json);

}  // namespace jogak::kube
