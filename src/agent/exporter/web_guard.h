// SPDX-License-Identifier: Apache-2.0
//
// Keeps a port by a web configuration file (web_config.h): TLS for its connections, passwords for
// its requests. The files are looked at as connections and requests come, once a second at most; a
// change takes force without a restart, and one that is wrong leaves what was.
//
// Checking a password takes a tenth of a second on purpose, so a thread of its own does it; one
// that was right is remembered.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "net/http.h"
#include "net/tls.h"

namespace jogak::agent {

class WebGuard {
 public:
  // Told once for each new problem with a changed file, and "" when the files are right again.
  using OnProblem = std::function<void(const std::string& problem)>;

  // The loop outlives it. Errors: the file, or one that it names, cannot be read or used.
  static Result<std::unique_ptr<WebGuard>> open(Loop& loop, std::string file, OnProblem on_problem,
                                                TimeUs look_every = kSecondInUs);
  // Handlers and contexts that it gave may still be called; they let nobody in then.
  ~WebGuard();
  WebGuard(const WebGuard&) = delete;
  WebGuard& operator=(const WebGuard&) = delete;

  // For HttpServerOptions::tls, whether the file wants TLS or not: where it does not, connections
  // are plain.
  std::shared_ptr<net::TlsContext> tls();
  // `inner` behind the password, with the headers of the file.
  net::HttpHandler guard(net::HttpHandler inner);
  bool has_tls() const;

 private:
  struct State;
  explicit WebGuard(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace jogak::agent
