// SPDX-License-Identifier: Apache-2.0
//
// Hysteresis in time: a condition has to hold for a while before it counts, and has to be gone for
// a while before it does not.
//
//           holds for raise_after            gone for clear_after
//   quiet ------------------------> raised ----------------------> quiet
//
// A reading that is missing changes nothing: a sensor that cannot be read is neither hot nor cold.
#pragma once

#include "base/loop.h"

namespace jogak::agent {

struct LevelRule {
  TimeUs raise_after = 0;
  TimeUs clear_after = 0;
};

class Level {
 public:
  // True when is_raised() changed. Time may stand still, and a step back counts as standing still.
  bool update(bool condition, TimeUs now, const LevelRule& rule) {
    if (condition == is_raised_) {
      pending_since_ = -1;
      return false;
    }
    if (pending_since_ < 0) pending_since_ = now;
    if (now - pending_since_ < (condition ? rule.raise_after : rule.clear_after)) return false;
    is_raised_ = condition;
    since_ = now;
    pending_since_ = -1;
    return true;
  }
  void reset(TimeUs now) {
    if (is_raised_) since_ = now;
    is_raised_ = false;
    pending_since_ = -1;
  }
  bool is_raised() const { return is_raised_; }
  TimeUs since() const { return since_; }  // of the last change

 private:
  bool is_raised_ = false;
  TimeUs since_ = 0;
  TimeUs pending_since_ = -1;  // the opposite condition holds since then
};

}  // namespace jogak::agent
