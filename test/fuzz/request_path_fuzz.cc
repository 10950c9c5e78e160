// SPDX-License-Identifier: Apache-2.0
//
// Any text as the target of a request: path, escapes, query.
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/rest/request.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto info = parse_target(text);
  if (!info) {
    JOGAK_CHECK(text.find('%') != std::string_view::npos);  // nothing else is refused
    return 0;
  }
  if (info->is_resource) JOGAK_CHECK(!info->version.empty() && !info->plural.empty());
  if (!info->subresource.empty()) JOGAK_CHECK(!info->name.empty());
  if (!info->rest.empty()) JOGAK_CHECK(!info->subresource.empty());
  for (const auto& [key, value] : info->query) {
    JOGAK_CHECK(info->has(key));
    JOGAK_CHECK(!info->values(key).empty());
  }
  if (const auto decoded = decode_percent(text)) JOGAK_CHECK(decoded->size() <= text.size());
  return 0;
}
