// SPDX-License-Identifier: Apache-2.0
// Schedulers wrong on purpose: each makes an honest decision and then one kind of mistake.
#pragma once

#include <span>
#include <string_view>

#include "test/negative/trial.h"

namespace jogak::negative {

struct Fault {
  std::string_view name;
  std::string_view rule;  // what the checker must call it
  // True if it found an occasion and spoilt the decision.
  bool (*spoil)(Trial&, core::Decision&);
};

std::span<const Fault> faults();

}  // namespace jogak::negative
