// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes JSON with single quotes.
#include "apiserver/patch/testing/json.h"

#include <algorithm>

#include "apiserver/codec/codec.h"
#include "base/check.h"

namespace jogak::patch {

Doc json(std::string_view text) {
  std::string quoted(text);
  std::ranges::replace(quoted, '\'', '"');
  auto parsed = codec::parse_json(quoted);
  JOGAK_CHECK(parsed.has_value(), "not JSON: {}", quoted);
  return std::move(parsed->doc);
}

std::string text(const Doc& doc) {
  std::string compact;
  doc.append_json(compact);
  std::ranges::replace(compact, '"', '\'');
  return compact;
}

}  // namespace jogak::patch
