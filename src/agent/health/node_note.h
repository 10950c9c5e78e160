// SPDX-License-Identifier: Apache-2.0
//
// Something that happened on this node and that people should be told of: what becomes an Event of
// the Node (agent/labels/node_events.h).
#pragma once

#include <string>

namespace jogak::agent {

struct NodeNote {
  bool is_warning = false;
  std::string reason = {};  // CamelCase, at most 128 bytes: "GpuXid"
  std::string about = {};   // of one reason, what tells one thing from another: "GPU-... 79"
  std::string text = {};    // one line; cut at 1,024 bytes
  friend bool operator==(const NodeNote&, const NodeNote&) = default;
};

}  // namespace jogak::agent
