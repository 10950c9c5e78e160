// SPDX-License-Identifier: Apache-2.0
//
// What proves who we are, kept fresh: a token or a pair of certificate and key from the kubeconfig,
// from files that change (read again now and then), or from a credential program (run again when
// its answer has expired or the server refused it). Secrets are in no error text.
//
//   get() --known--> at once
//         --program--> waits; one run for all who wait --fails--> back-off, the error for all
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "kube/child_process.h"
#include "kube/kubeconfig.h"
#include "net/http.h"

namespace jogak::kube {

struct Credential {
  std::uint64_t number = 0;   // another one whenever anything below is another
  std::string authorization;  // the header's value, "" for none
  // Likewise of the certificate alone.
  std::uint64_t certificate_number = 0;
  std::string client_certificate_pem, client_key_pem;
};

// Starts a program; the handle's end kills it. `done` is called once, later, on the loop.
using RunProgram = std::function<std::shared_ptr<void>(
    ChildOptions options, std::function<void(Result<ChildOutcome>)> done)>;
RunProgram program_runner(net::EpollLoop& loop);

struct CredentialsOptions {
  RunProgram run;
  std::vector<std::string> environment = {};  // of credential programs, "NAME=value"
  bool has_terminal = false;                  // on standard input
  TimeUs program_limit = 60 * kSecondInUs;
};

class Credentials {
 public:
  // Invalid, naming the field and the file: what cannot be read and never could. The loop outlives
  // the object.
  static Result<std::unique_ptr<Credentials>> make(Loop& loop, const Access& access,
                                                   CredentialsOptions options);
  ~Credentials();

  // The credential to use now: within the call where it is known, else once the program has ended.
  // Not called any more once this object is gone. An error is Unavailable: it may be tried again.
  using Ready = std::function<void(Result<std::shared_ptr<const Credential>>)>;
  void get(Ready ready);

  // How a request sent with this credential fared: a 401, or any other answer. A refused credential
  // is looked for anew before the next request.
  void refused(const Credential& credential);
  void accepted(const Credential& credential);

  // "bearer token of /var/run/.../token, expired at 2026-02-02T02:09:39Z": for messages.
  std::string describe(const Credential& credential) const;

 private:
  struct Impl;
  explicit Credentials(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// Impersonate-User and its like; none where nobody is impersonated.
net::Headers impersonation_headers(const Access& access);

}  // namespace jogak::kube
