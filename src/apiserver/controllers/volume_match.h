// SPDX-License-Identifier: Apache-2.0
// Which volume a claim gets. No writes here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/amount.h"
#include "base/doc.h"

namespace jogak::controllers {

// What binding needs to know of a volume.
struct VolumeView {
  std::string name, storage_class, mode, phase, attributes_class;
  std::vector<std::string> access_modes;
  api::Amount capacity;
  Doc labels;
  std::string claim_ns, claim_name, claim_uid;  // of claimRef; claim_name "" for none
  bool is_deleting = false;
};
VolumeView volume_view(const Doc& volume);
using Volumes = std::map<std::string, VolumeView, std::less<>>;  // by name

// The class by the old annotation or by the spec; "" for none.
std::string storage_class_of(const Doc& object);
// Whether claimRef names the claim (and its uid, where one is given).
bool is_bound_to(const VolumeView& volume, const Doc& claim);
// Whether the volume could serve the claim, as to size, modes and class.
bool can_serve(const VolumeView& volume, const Doc& claim);

// The volume for a claim without one: one that is meant for it, else the smallest that serves, of
// those with the fewest access modes. `waits`: a pod must come first, so only what is meant for it.
const VolumeView* find_volume(const Volumes& volumes, const Doc& claim, bool waits);

}  // namespace jogak::controllers
