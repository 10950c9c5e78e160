// SPDX-License-Identifier: Apache-2.0
//
// Bodies of events.k8s.io/v1, for whoever tells people what became of a pod or a node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/loop.h"

namespace jogak::kube {

// An object of v1; without `ns` in no namespace.
struct EventObject {
  std::string_view kind, ns, name, uid;
};

// The server takes words of 128 bytes at most; a longer `note` than 1,024 bytes is cut as
// kube-scheduler cuts it. `related` is left out without a uid.
struct EventBody {
  std::string_view ns, name, reporter, instance, action, reason, type, note;
  EventObject regarding, related;
};

std::string event_json(const EventBody& event, TimeUs time);
// Merge patch that says how often an event came.
std::string event_series_json(int count, TimeUs last);

// At most `max` bytes, the last of them `rest` where something is left out; not inside a character.
std::string cut_text(std::string_view text, std::size_t max, std::string_view rest = "");

}  // namespace jogak::kube
