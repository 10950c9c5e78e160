// SPDX-License-Identifier: Apache-2.0
//
// What cannot be done here is refused rather than left out: a file that asks for more safety than
// it gets is worse than none.
#include "agent/exporter/web_config.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/parse_number.h"
#include "yaml/yaml_fields.h"

namespace jogak::agent {

namespace {

// One more doubles the time of a check: beyond this a check takes seconds.
constexpr int kCostMax = 15;
constexpr std::size_t kBcryptBytes = 60;

std::string beside(const std::string& file, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  return (std::filesystem::path(file).parent_path() / path).string();
}

// Why it is no bcrypt hash that can be checked; "" it is one.
std::string hash_fault(std::string_view hash) {
  const bool is_known =
      hash.starts_with("$2a$") || hash.starts_with("$2b$") || hash.starts_with("$2y$");
  if (!is_known || hash.size() != kBcryptBytes || hash[6] != '$') {
    return "expected a bcrypt hash, as `htpasswd -nB NAME` makes it";
  }
  const auto cost = parse_int(hash.substr(4, 2), 4, 31);
  if (!cost) return "expected a bcrypt hash with a cost from 4 to 31";
  if (*cost > kCostMax) {
    return fmt::format("a cost of {} takes too long to check; use at most {}", *cost, kCostMax);
  }
  return "";
}

// A file or the text itself, not both.
void read_source(YamlFields& fields, const std::string& config, std::string_view file_field,
                 std::string_view text_field, std::string& file, std::string& text) {
  file = beside(config, fields.text(file_field, ""));
  text = fields.text(text_field, "");
  if (!file.empty() && !text.empty()) {
    fields.bad(file_field, fmt::format("give either {} or {}", file_field, text_field));
  }
}

void read_client_auth(YamlFields& fields, WebConfig& config) {
  const std::string kind = fields.text("client_auth_type", "");
  const bool has_authority = !config.client_ca_file.empty() || !config.client_ca_text.empty();
  if (kind == "RequireAndVerifyClientCert") {
    config.requires_client_cert = true;
    if (!has_authority) fields.bad("client_ca_file", "is required to verify clients");
  } else if (!kind.empty() && kind != "NoClientCert") {
    fields.bad(
        "client_auth_type",
        "use NoClientCert or RequireAndVerifyClientCert; there is nothing between them here");
  } else if (has_authority) {
    fields.bad("client_auth_type", "is required with client_ca_file: RequireAndVerifyClientCert");
  }
}

void read_versions(YamlFields& fields, WebConfig& config) {
  const std::string least = fields.text("min_version", "TLS12");
  if (least != "TLS12" && least != "TLS13") {
    fields.bad("min_version", "use TLS12 or TLS13; older ones are not spoken");
  }
  config.only_tls13 = least == "TLS13";
  if (fields.text("max_version", "TLS13") != "TLS13") {
    fields.bad("max_version", "use TLS13, or leave it out");
  }
}

void read_tls(YamlFields& fields, const std::string& file, WebConfig& config) {
  config.has_tls = true;
  read_source(fields, file, "cert_file", "cert", config.cert_file, config.cert_text);
  read_source(fields, file, "key_file", "key", config.key_file, config.key_text);
  read_source(fields, file, "client_ca_file", "client_ca", config.client_ca_file,
              config.client_ca_text);
  if (config.cert_file.empty() && config.cert_text.empty()) {
    fields.bad("cert_file", "is required");
  }
  if (config.key_file.empty() && config.key_text.empty()) fields.bad("key_file", "is required");
  read_client_auth(fields, config);
  read_versions(fields, config);
  for (const std::string_view name :
       {"cipher_suites", "curve_preferences", "client_allowed_sans"}) {
    if (fields.has(name)) fields.bad(name, "cannot be chosen here; leave it out");
  }
  fields.flag("prefer_server_cipher_suites", true);  // the other way round is not spoken of either
  fields.finish();
}

void read_http(YamlFields& fields, WebConfig& config) {
  fields.flag("http2", false);  // HTTP/1.1 is spoken, which every client understands
  config.headers = fields.pairs("headers");
  for (const auto& [name, value] : config.headers) {
    const auto is_bad = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (name.empty() || std::ranges::any_of(name, is_bad) || std::ranges::any_of(value, is_bad) ||
        name.find_first_of(" :") != std::string::npos) {
      fields.bad("headers", "a name has blanks or colons, or a value has line ends");
    }
  }
  fields.finish();
}

void read_users(YamlFields& fields, WebConfig& config) {
  for (const auto& [name, hash] : fields.pairs("basic_auth_users")) {
    const std::string fault = name.find(':') == std::string::npos
                                  ? hash_fault(hash)
                                  : "a name with a colon can never log in";
    if (!fault.empty()) {
      return fields.bad("basic_auth_users", fmt::format("{}: {}", name, fault));
    }
    config.users.emplace(name, hash);
  }
}

}  // namespace

Result<WebConfig> parse_web_config(const std::string& file, std::string_view text) {
  WebConfig config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  JOGAK_TRY_VOID(read_yaml_map(file, text, "a map with tls_server_config and basic_auth_users",
                               [&](YamlFields& fields) {
                                 if (auto tls = fields.map("tls_server_config"))
                                   read_tls(*tls, file, config);
                                 if (auto http = fields.map("http_server_config"))
                                   read_http(*http, config);
                                 read_users(fields, config);
                                 if (fields.has("rate_limit"))
                                   fields.bad("rate_limit", "is not known here; leave it out");
                                 fields.finish();
                               }));
  return config;
}

}  // namespace jogak::agent
