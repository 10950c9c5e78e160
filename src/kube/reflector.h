// SPDX-License-Identifier: Apache-2.0
//
// Keeps up with one collection of the API: lists it, then follows its changes over one watch, for
// as long as it lives. A gap (410, a relist) is turned into the changes that must have happened, so
// that whoever listens sees every object appear once and go once. Rules: client-go's reflector.
//
//   listing (streamed, or in pages) --> watching --end of watch--> watching from the last version
//      ^                                   |
//      +--------- gone, too old -----------+        errors: back-off 0.8 s doubling to 30 s, jitter
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "kube/api_client.h"
#include "kube/object_change.h"

namespace jogak::kube {

struct ReflectorOptions {
  std::string path;                 // "/api/v1/pods"
  std::string field_selector = {};  // "status.phase!=Succeeded,status.phase!=Failed"
  std::string label_selector = {};
  int page_size = 500;
  bool may_stream = true;  // try a streaming list (WatchList) first
  std::uint64_t seed = 1;  // of jitter
};

struct ReflectorState {
  bool is_synced = false;    // the first list is complete
  std::string last_error;    // of the last failure, "" once things go on
  TimeUs failing_since = 0;  // 0: not failing
  std::uint64_t lists = 0, watches = 0, events = 0, gaps = 0;
  std::string version;  // last seen
};

class Reflector {
 public:
  struct Events {
    std::function<void(const ObjectChange&)> on_change;
    std::function<void()> on_synced;             // once, after the first list
    std::function<void(const Error&)> on_error;  // each failure; it goes on by itself
  };
  // Begins at once. `api` outlives it. No event before the call returns, none after destruction
  // (which may happen inside an event).
  Reflector(ApiClient& api, ReflectorOptions options, Events events);
  ~Reflector();

  const ReflectorState& state() const;
  // Objects known.
  std::size_t size() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace jogak::kube
