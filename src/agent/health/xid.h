// SPDX-License-Identifier: Apache-2.0
//
// XIDs, the error numbers of NVIDIA's driver, by what has to be done about them. Source: NVIDIA's
// public "Xid Catalog" (docs.nvidia.com/deploy/xid-errors, the column of immediate actions), for
// Ampere and newer; the few codes that only older GPUs raise follow the older listing there.
#pragma once

#include <cstdint>
#include <string_view>

namespace jogak::agent {

enum class XidClass : std::uint8_t {
  Application,    // the program is to be restarted; the GPU is well
  Contained,      // an application was hit by a memory error; reset the GPU when convenient
  ResetGpu,       // the GPU does not work rightly until it is reset
  Nvlink,         // a link is down; a reset, then cables and modules
  RestartNode,    // the GPU is out of reach until the machine is restarted
  Hardware,       // somebody has to look at the board: power, replacement
  Informational,  // a fact for the record
  Unknown,        // not in the catalogue, or listed there as unused
};
std::string_view xid_class_text(XidClass kind);  // "application", "reset gpu", ...

struct XidInfo {
  std::uint64_t code = 0;
  XidClass kind = XidClass::Unknown;
  std::string_view text;  // what happened, in a few words, without the number
};

// Of any code; one that nobody knows is Unknown, "unknown error".
XidInfo xid_info(std::uint64_t code);

// Whether a GPU that raised it should get new pods before it was looked after.
bool xid_stops_use(XidClass kind);

}  // namespace jogak::agent
