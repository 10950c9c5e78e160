// SPDX-License-Identifier: Apache-2.0
//
// Any text as the driver's tables in /proc: numbers are ones that a node can have, and modes are
// permissions and nothing else.
#include <cstdint>
#include <string_view>

#include "agent/plugin/device_nodes.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& [name, major] : jogak::agent::parse_proc_devices(text)) {
    JOGAK_CHECK(!name.empty() && major > 0 && major <= 4095);
    JOGAK_CHECK(name.find('\n') == std::string::npos);
  }
  const auto rule = jogak::agent::parse_device_params(text);
  JOGAK_CHECK(rule.uid >= 0 && rule.gid >= 0 && (rule.mode & ~0777) == 0);
  if (const auto file = jogak::agent::parse_capability(text)) {
    JOGAK_CHECK(file->minor >= 0 && file->minor < 1 << 20 && (file->mode & ~0777) == 0);
  }
  for (const auto& [key, minor] : jogak::agent::parse_mig_minors(text)) {
    JOGAK_CHECK(key.starts_with("gpu") && minor >= 0);
  }
  return 0;
}
