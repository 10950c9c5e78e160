// SPDX-License-Identifier: Apache-2.0
//
// What is to be done next for one MPS control daemon, and whether its GPUs may be offered. Pure:
// how the last step went comes in, the next step goes out; one is under way at a time.
//
//   Asking -- answers ----------------> Modes -> Telling -> Watching: ready
//     ^  `--- nobody there --> Resting -> Modes -> Starting -> Telling    | asked now and then
//     |  `--- there, but silent: wait; end it after a while               |
//     `-------------------------- it ended, or answers no more ----------'
//
// A daemon that answers is taken over whoever started it, so an agent that was restarted leaves the
// clients of the one before alone. Where the daemon is somebody else's, it is only asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/mps/plan.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::agent {

struct MpsTimes {
  TimeUs ask_every = 5 * kSecondInUs;
  TimeUs doubt = kSecondInUs;            // until it is asked again that did not answer once
  TimeUs silent_max = 30 * kSecondInUs;  // then a daemon that is there and silent is ended
  TimeUs rest_min = kSecondInUs;         // between two starts; doubles
  TimeUs rest_max = 60 * kSecondInUs;
  TimeUs steady = 60 * kSecondInUs;  // ready for so long: a failure is a first one
};

struct MpsStep {
  enum class Kind : std::uint8_t {
    Ask,    // say `command`; the answer is wanted
    Tell,   // say `command`
    Modes,  // GPUs into exclusive mode; always goes well, the rest is for the log
    Start,  // folders, then the program
    End,    // kill what is there and does not answer
    Wait,   // so long
  };
  Kind kind = Kind::Wait;
  std::string command = {};
  TimeUs wait = 0;
};

class MpsMachine {
 public:
  // Not `owns`: somebody else starts the daemon and sets its limits.
  MpsMachine(MpsDaemon daemon, MpsTimes times, bool owns);

  // The first step.
  MpsStep begin();
  // The step that was given last is done; the answer, if it was a question. Timeout: it is there
  // and does not answer; any other error: it is not there, or did not do it.
  MpsStep on_done(const Result<std::string>& outcome, TimeUs now);
  // The daemon's process is gone. A wait is to be cut short: then on_done() follows at once.
  void on_gone();
  // Other limits, or GPUs that left the exclusive mode. True: a wait is to be cut short.
  bool want(MpsDaemon daemon);

  const MpsDaemon& daemon() const { return daemon_; }
  bool was_asked() const { return was_asked_; }  // whether one is there is known
  bool is_ready() const { return is_ready_; }
  // Why it is not ready; one line.
  const std::string& problem() const { return problem_; }
  std::uint64_t starts() const { return starts_; }

 private:
  enum class State : std::uint8_t {
    Asking,
    Resting,
    Modes,
    Starting,
    Telling,
    Watching,
    Checking,
    Doubting,
    Ending,
    Pausing
  };

  MpsStep to(State state, MpsStep step);
  MpsStep ask(State state);
  MpsStep on_asked(const Result<std::string>& outcome, TimeUs now);
  MpsStep on_checked(const Result<std::string>& outcome, TimeUs now);
  MpsStep rest();
  MpsStep tell_next(TimeUs now);
  MpsStep be_ready(TimeUs now);
  MpsStep fail_with(std::string problem);
  bool is_exclusive() const;

  MpsDaemon daemon_;
  MpsTimes times_;
  bool owns_;
  State state_ = State::Asking;
  bool was_asked_ = false, is_ready_ = false, is_gone_ = false;
  bool needs_start_ = false, needs_setup_ = false, was_doubted_ = false;
  std::string problem_;
  std::string start_problem_;  // of the last start; says more than that nobody answers since
  std::vector<std::string> setup_;
  std::size_t told_ = 0;
  TimeUs ready_since_ = 0, silent_since_ = 0;
  TimeUs rest_ = 0;
  std::uint64_t starts_ = 0;
};

}  // namespace jogak::agent
