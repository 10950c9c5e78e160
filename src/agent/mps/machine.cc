// SPDX-License-Identifier: Apache-2.0
// Each state knows one way on when its step went well and one when it did not.
#include "agent/mps/machine.h"

#include <algorithm>
#include <utility>

namespace jogak::agent {

MpsMachine::MpsMachine(MpsDaemon daemon, MpsTimes times, bool owns)
    : daemon_(std::move(daemon)),
      times_(times),
      owns_(owns),
      problem_("nobody has asked the MPS control daemon yet") {}

MpsStep MpsMachine::to(State state, MpsStep step) {
  state_ = state;
  return step;
}

MpsStep MpsMachine::ask(State state) {
  return to(state, {.kind = MpsStep::Kind::Ask, .command = std::string(kMpsProbe)});
}

MpsStep MpsMachine::begin() { return ask(State::Asking); }

bool MpsMachine::is_exclusive() const {
  return std::ranges::all_of(daemon_.gpus, [](const MpsGpu& gpu) {
    return gpu.compute_mode.value_or(kComputeModeExclusive) == kComputeModeExclusive;
  });
}

bool MpsMachine::want(MpsDaemon daemon) {
  const bool has_other_limits = mps_setup(daemon) != mps_setup(daemon_);
  daemon_ = std::move(daemon);
  if (!owns_ || (!has_other_limits && is_exclusive())) return false;
  needs_setup_ = true;
  return state_ == State::Watching;
}

void MpsMachine::on_gone() {
  is_gone_ = true;
  is_ready_ = false;
  problem_ = "the MPS control daemon has ended";
}

MpsStep MpsMachine::on_done(const Result<std::string>& outcome, TimeUs now) {
  const bool is_gone = std::exchange(is_gone_, false);
  const bool was_up =
      state_ == State::Watching || state_ == State::Checking || state_ == State::Doubting;
  if (is_gone && was_up) return ask(State::Asking);
  switch (state_) {
    case State::Asking:
      return on_asked(outcome, now);
    case State::Resting:
    case State::Modes:
      if (state_ == State::Resting) return to(State::Modes, {.kind = MpsStep::Kind::Modes});
      if (needs_start_) return to(State::Starting, {.kind = MpsStep::Kind::Start});
      told_ = 0;
      return tell_next(now);
    case State::Starting:
      if (!outcome) return fail_with(outcome.error().what);
      ++starts_;
      needs_start_ = false;
      told_ = 0;
      return tell_next(now);
    case State::Telling:
      if (!outcome) return fail_with(outcome.error().what);
      ++told_;
      return tell_next(now);
    case State::Watching:
      if (std::exchange(needs_setup_, false)) {
        setup_ = mps_setup(daemon_);
        return to(State::Modes, {.kind = MpsStep::Kind::Modes});
      }
      return ask(State::Checking);
    case State::Checking:
      return on_checked(outcome, now);
    case State::Doubting:
      return ask(State::Checking);
    case State::Ending:
    case State::Pausing:
      return ask(State::Asking);
  }
  return ask(State::Asking);
}

MpsStep MpsMachine::on_asked(const Result<std::string>& outcome, TimeUs now) {
  was_asked_ = true;
  if (outcome) {
    silent_since_ = 0;
    if (!owns_) return be_ready(now);
    needs_start_ = false;
    needs_setup_ = false;
    setup_ = mps_setup(daemon_);
    return to(State::Modes, {.kind = MpsStep::Kind::Modes});
  }
  is_ready_ = false;
  problem_ = outcome.error().what;
  const MpsStep pause = {.kind = MpsStep::Kind::Wait, .wait = times_.ask_every};
  if (!owns_) return to(State::Pausing, pause);
  if (outcome.error().code != Errc::Timeout) {
    silent_since_ = 0;
    if (!start_problem_.empty()) problem_ = start_problem_;
    return rest();
  }
  // A second one cannot start beside it, and its clients may live on with the server.
  if (silent_since_ == 0) silent_since_ = now;
  if (now - silent_since_ < times_.silent_max) return to(State::Pausing, pause);
  silent_since_ = 0;
  return to(State::Ending, {.kind = MpsStep::Kind::End});
}

// The first start is at once; after a failure it takes longer each time.
MpsStep MpsMachine::rest() {
  needs_start_ = true;
  needs_setup_ = false;
  setup_ = mps_setup(daemon_);
  const TimeUs wait = rest_;
  rest_ = std::clamp(rest_ * 2, times_.rest_min, times_.rest_max);
  if (wait == 0) return to(State::Modes, {.kind = MpsStep::Kind::Modes});
  return to(State::Resting, {.kind = MpsStep::Kind::Wait, .wait = wait});
}

MpsStep MpsMachine::tell_next(TimeUs now) {
  if (told_ == setup_.size()) return be_ready(now);
  return to(State::Telling, {.kind = MpsStep::Kind::Tell, .command = setup_[told_]});
}

MpsStep MpsMachine::be_ready(TimeUs now) {
  if (!is_ready_) ready_since_ = now;
  is_ready_ = true;
  problem_.clear();
  start_problem_.clear();
  return to(State::Watching, {.kind = MpsStep::Kind::Wait, .wait = times_.ask_every});
}

MpsStep MpsMachine::fail_with(std::string problem) {
  is_ready_ = false;
  problem_ = start_problem_ = std::move(problem);
  return to(State::Pausing, {.kind = MpsStep::Kind::Wait, .wait = times_.doubt});
}

MpsStep MpsMachine::on_checked(const Result<std::string>& outcome, TimeUs now) {
  if (outcome) {
    was_doubted_ = false;
    if (now - ready_since_ >= times_.steady) rest_ = 0;
    // Somebody else may have started it anew, without limits.
    const auto percent = mps_percent(*outcome);
    needs_setup_ = needs_setup_ || (owns_ && percent && *percent != daemon_.thread_percent);
    return to(State::Watching,
              {.kind = MpsStep::Kind::Wait, .wait = needs_setup_ ? 0 : times_.ask_every});
  }
  if (!std::exchange(was_doubted_, true)) {
    return to(State::Doubting, {.kind = MpsStep::Kind::Wait, .wait = times_.doubt});
  }
  was_doubted_ = false;
  return on_asked(outcome, now);
}

}  // namespace jogak::agent
