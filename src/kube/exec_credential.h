// SPDX-License-Identifier: Apache-2.0
//
// What is said to a credential program and what it answers (kind ExecCredential of
// client.authentication.k8s.io), as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "kube/kubeconfig.h"

namespace jogak::kube {

struct ExecCredential {
  std::string token;
  std::string client_certificate_pem, client_key_pem;  // both or neither
  std::optional<TimeUs> expiry;
};

// The answer on its standard output. Errors do not quote it: it may hold a secret.
Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version);

// The value of KUBERNETES_EXEC_INFO. `ca_pem` is what access.ca_pem or its file holds.
std::string exec_info(const Access& access, bool is_interactive, std::string_view ca_pem);

}  // namespace jogak::kube
