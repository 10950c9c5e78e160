// SPDX-License-Identifier: Apache-2.0
//
// What a server and a network may do to a client, legally: how often, drawn once a run. A kind of
// fault is on or off for the whole run, so that rare kinds come in dense combinations.
#pragma once

#include <cstdint>
#include <string>

#include "base/loop.h"
#include "base/rng.h"

namespace jogak::livesim {

// Rates are in thousandths of requests (of watches, for those); 0: never.
struct FaultRates {
  // any request
  int delay = 0;         // late to the server, late back: answers of others overtake it
  TimeUs delay_max = 0;  // each way
  int refuse = 0;        // no connection: surely not handled
  int lose = 0;          // never handled; the client hears nothing, or of a reset
  int lose_answer = 0;   // handled; the client hears nothing, or of a reset
  int cut_answer = 0;    // handled; a part of the answer comes
  int throttle = 0;      // 429, with or without Retry-After
  int unavailable = 0;   // 503, with or without Retry-After
  int server_error = 0;  // 500 ServerTimeout: handled or not
  int gateway = 0;       // 504: handled or not
  // lists
  int slow_list = 0;        // up to 20 s
  int expire_continue = 0;  // 410 for a continue token
  // watches
  int watch_cut = 0;              // after any number of bytes
  int watch_close = 0;            // ends at once, in order
  int watch_silent = 0;           // half open: nothing comes any more
  int watch_gone = 0;             // 410 at the start: as a status, or as an event
  int watch_gone_later = 0;       // ERROR event with 410 in the stream
  int watch_batch = 0;            // events stop and come together later
  int watch_replay = 0;           // begins some changes too early
  int watch_quiet = 0;            // sends no bookmarks
  bool has_watch_list = true;     // streams lists
  bool is_token_expired = false;  // 401 to everything; never drawn

  std::string text() const;  // "delay=120/2.5s refuse=10 ...": what is on
};

FaultRates draw_faults(Rng& rng);

}  // namespace jogak::livesim
