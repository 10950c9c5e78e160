// SPDX-License-Identifier: Apache-2.0
//
// What a running scheduler says over HTTP. Two handlers: one for everybody who can reach the
// address (metrics and health, without a name of any pod), and one for loopback alone, which also
// shows the configuration and the state. It reads what the parts know already; nothing is collected
// for an answer.
//
//   /                 what there is          /configz       the effective configuration
//   /metrics          Prometheus             /debug/state   the cluster as it is known here
//   /livez, /healthz  does it answer?        /debug/drift   the last comparison with the server
//   /readyz           may it be relied on?   ?verbose lists the checks
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "net/http.h"

namespace jogak::ops {

// One line of /readyz?verbose.
struct Check {
  std::string name;         // "informer-pods"
  bool is_ok = true;        // one that is not makes the whole not ready
  std::string detail = {};  // "42 objects"; of a failed one: why
};

struct EndpointParts {
  const Registry& registry;
  std::string program;  // "jogak scheduler 0.4.0", for the index
  std::function<std::vector<Check>()> ready;
  std::function<std::string()> config;         // JSON
  std::function<Result<std::string>()> state;  // JSON, what `jogak explain -f` reads
  std::function<std::string()> drift;          // text
};

// For everybody. What `parts` refers to outlives the handlers.
net::HttpHandler public_handler(EndpointParts parts);
// For loopback: the same and more.
net::HttpHandler debug_handler(EndpointParts parts);

// "[+]informer-pods ok: 42 objects\n", one a line, and "readyz check passed\n" or "failed".
std::string checks_text(const std::vector<Check>& checks);

}  // namespace jogak::ops
