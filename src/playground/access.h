// SPDX-License-Identifier: Apache-2.0
//
// How clients get in: the bearer token, the certificate, the kubeconfig.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::playground {

// 256 bits from the system's random source, as 64 hexadecimal digits.
Result<std::string> random_token();

struct Access {
  std::string url;  // "https://127.0.0.1:6443"
  std::string token;
  std::string ca_pem;  // "" for plain HTTP
};

// The text of a kubeconfig with one context, "jogak".
std::string kubeconfig_text(const Access& access);
// Writes it for the user alone (mode 0600), whole or not at all.
Result<void> write_kubeconfig(const std::string& path, const Access& access);

}  // namespace jogak::playground
