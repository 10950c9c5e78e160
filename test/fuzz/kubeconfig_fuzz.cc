// SPDX-License-Identifier: Apache-2.0
//
// kubeconfig files: any bytes are refused in words or give an access that keeps the rules.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::kube;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_kubeconfig(text, "f");
  if (!config) {
    JOGAK_CHECK(config.error().what.starts_with("f: "));
    return 0;
  }
  for (const auto& [name, context] : config->contexts) {
    const auto access = access_of(*config, name);
    if (!access) continue;
    JOGAK_CHECK(!access->server.empty() && !access->namespace_name.empty());
    JOGAK_CHECK(access->is_https() || (access->token.empty() && !access->exec.has_value()));
    JOGAK_CHECK(access->client_certificate_pem.empty() || !access->client_key_pem.empty() ||
                !access->client_key_file.empty());
  }
  return 0;
}
