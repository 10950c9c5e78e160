// SPDX-License-Identifier: Apache-2.0
//
// Faults that stand as long as somebody says so: one line, from an annotation or a small file,
// names everything that is wrong now. What is new in it happens; what is gone from it is healed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

// "0=xid:79,1=lost,all=thermal:95", "" nothing. Before the equals sign the index of a GPU, or all;
// after it one of
//   xid:CODE  lost  ecc[:COUNT]  thermal[:DEGREES]  powerBrake  rowRemap[:CODE]
//   recoveryAction:CODE  nvlinkErrors[:COUNT]  nvlinkDown:LINK
// with the meaning of the fault of that name in docs/nvml-sim.md; errors of memory are those that
// cannot be corrected. Blanks between items do not matter, nor do line ends. Errors: Invalid, with
// the item and the cure.
Result<std::vector<FaultSpec>> parse_standing_faults(std::string_view text, int gpus);

// The XIDs after which a driver asks for a reset of the GPU.
bool xid_asks_for_reset(std::int64_t code);

// A file that holds such a line, looked at now and then. One that is not there says nothing.
class FaultsFile {
 public:
  explicit FaultsFile(std::string path) : path_(std::move(path)) {}
  // The text, when it is another one than the last time. `now` from any clock that does not go
  // back.
  std::optional<std::string> changed(TimeUs now);
  const std::string& path() const { return path_; }

 private:
  std::string path_, text_;
  std::optional<TimeUs> next_look_;
};

}  // namespace jogak::nvml::sim
