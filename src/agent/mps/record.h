// SPDX-License-Identifier: Apache-2.0
//
// What the agent did to a node for the sake of MPS and has to undo: compute modes as they were, and
// daemons that it started or took over. Kept in a file of lines, since agents come and go and the
// daemons stay:
//
//   daemon nvidia.com/gpu
//   mode GPU-8a0c1f9e-... 0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::agent {

struct MpsRecord {
  std::set<std::string, std::less<>> daemons;     // by resource
  std::map<std::string, int, std::less<>> modes;  // by UUID of the GPU
  bool is_empty() const { return daemons.empty() && modes.empty(); }
  friend bool operator==(const MpsRecord&, const MpsRecord&) = default;
};

std::string mps_record_text(const MpsRecord& record);
// Invalid names the line.
Result<MpsRecord> parse_mps_record(std::string_view text);

// Of a resource that is part of a path: no step upwards, nothing but the characters of names.
bool is_mps_resource(std::string_view name);

}  // namespace jogak::agent
