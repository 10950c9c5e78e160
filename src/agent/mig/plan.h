// SPDX-License-Identifier: Apache-2.0
//
// From the instances a GPU has to those it should have: which to destroy, which to create and where
// exactly. As few as can be, and never one that is in use: among all legal layouts with the wanted
// counts that hold every instance in use, the one that keeps most of what is there; among those,
// the one that leaves the most freedom for what may come. Pure; one GPU at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "agent/mig/geometry.h"

namespace jogak::agent {

// A GPU instance as it is now.
struct MigPresent {
  int gi_id = -1;
  MigPlace place;        // profile -1: none that the driver lists now
  bool is_whole = true;  // its compute instances are those of place.profile
  bool in_use = false;   // by a process or a pod: not to be touched
  std::string user;      // whose, for messages: "pod ml/train-0", "pid 4711 (python)"; "" unknown
  std::string profile;   // name, also of a profile that is not listed
  int profile_id = -1;
  std::vector<int> ci_profile_ids;  // of its compute instances, to make it again as it was
  std::vector<int> part_slices;     // largest first; empty: one that covers it all, or none
  std::vector<std::string> uuids;   // of its MIG devices
  friend bool operator==(const MigPresent&, const MigPresent&) = default;
};

struct MigPlan {
  std::vector<MigPresent> destroy;  // first, in this order
  std::vector<MigPlace> create;     // then these, largest first
  std::vector<MigPresent> keep;
  MigLayout after;  // what is there at the end: keep and create
  bool empty() const { return destroy.empty() && create.empty(); }
};

struct MigRefusal {
  enum class Why : std::uint8_t {
    Never,  // no such layout exists on this GPU
    InUse,  // it does, and instances in use stand in its way
  };
  Why why = Why::Never;
  std::string reason;         // one line
  std::vector<int> blockers;  // gi_ids; with InUse: free these and the plan exists
  friend bool operator==(const MigRefusal&, const MigRefusal&) = default;
};

using MigPlanned = std::expected<MigPlan, MigRefusal>;

// `counts` has one entry per profile. CHECKs: that it does, and that none is negative.
MigPlanned plan_counts(const MigGeometry& geometry, std::span<const MigPresent> present,
                       const MigCounts& counts);

// The same for exact places.
MigPlanned plan_layout(const MigGeometry& geometry, std::span<const MigPresent> present,
                       MigLayout layout);

// "instance 3 (1g.5gb at slice 0)"
std::string present_text(const MigGeometry& geometry, const MigPresent& present);

// Whether exactly these instances are there, each with the right parts.
bool shows_layout(std::span<const MigPresent> present, const MigLayout& layout);

}  // namespace jogak::agent
