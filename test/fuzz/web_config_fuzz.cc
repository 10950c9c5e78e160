// SPDX-License-Identifier: Apache-2.0
//
// Any text as a web configuration file: an error of one line that names the file, or a
// configuration that can be acted on.
#include <cstdint>
#include <string_view>

#include "agent/exporter/web_config.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = jogak::agent::parse_web_config("/etc/input", text);
  if (!config) {
    JOGAK_CHECK(config.error().what.starts_with("/etc/input"), "{}", config.error().what);
    JOGAK_CHECK(config.error().what.find('\n') == std::string::npos);
    return 0;
  }
  const bool has_certificate = !config->cert_file.empty() || !config->cert_text.empty();
  const bool has_key = !config->key_file.empty() || !config->key_text.empty();
  JOGAK_CHECK(config->has_tls == has_certificate && config->has_tls == has_key);
  for (const auto& [name, hash] : config->users) {
    JOGAK_CHECK(name.find(':') == std::string::npos && hash.starts_with("$2"));
  }
  for (const auto& [name, value] : config->headers) {
    JOGAK_CHECK(!name.empty() && value.find('\n') == std::string::npos);
  }
  return 0;
}
