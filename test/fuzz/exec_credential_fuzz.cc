// SPDX-License-Identifier: Apache-2.0
//
// Answers of credential programs: any bytes are refused in words or give a credential that is
// whole.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/exec_credential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::kube;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto credential = parse_exec_credential(text, "client.authentication.k8s.io/v1");
  if (!credential) {
    JOGAK_CHECK(!credential.error().what.empty());
    return 0;
  }
  JOGAK_CHECK(credential->client_certificate_pem.empty() == credential->client_key_pem.empty());
  JOGAK_CHECK(!credential->token.empty() || !credential->client_key_pem.empty());
  return 0;
}
