// SPDX-License-Identifier: Apache-2.0
//
// The web configuration file of Prometheus' exporters (exporter-toolkit): TLS and passwords for a
// port that serves metrics.
//
//   tls_server_config:
//     cert_file: tls.crt            # beside this file, or an absolute path
//     key_file: tls.key
//     client_auth_type: RequireAndVerifyClientCert
//     client_ca_file: ca.crt
//   basic_auth_users:
//     prometheus: $2y$10$...        # bcrypt
//   http_server_config:
//     headers: {Strict-Transport-Security: max-age=31536000}
//
// Pure: text in, values out. An empty file means plain HTTP without passwords.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace jogak::agent {

struct WebConfig {
  bool has_tls = false;
  // Each either a path (absolute, or below the file's folder: resolved) or the PEM text itself.
  std::string cert_file, cert_text;
  std::string key_file, key_text;
  std::string client_ca_file, client_ca_text;
  bool requires_client_cert = false;
  bool only_tls13 = false;
  std::map<std::string, std::string, std::less<>> users;  // name -> bcrypt hash
  std::vector<std::pair<std::string, std::string>> headers;
};

// Errors: Invalid, "FILE:LINE: field: what".
Result<WebConfig> parse_web_config(const std::string& file, std::string_view text);

}  // namespace jogak::agent
