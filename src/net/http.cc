// SPDX-License-Identifier: Apache-2.0
//
// What http.h declares that is more than a shape.
#include "net/http.h"

#include "net/http_text.h"

namespace jogak::net {

std::string_view header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (is_same_name(key, name)) return value;
  }
  return {};
}

}  // namespace jogak::net
