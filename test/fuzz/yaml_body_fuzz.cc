// SPDX-License-Identifier: Apache-2.0
//
// Any text as a YAML body: it is refused in one line or read, and what was read is still the same
// after it was written as JSON, which is YAML too.
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/codec/codec.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = jogak::codec::parse_yaml(text);
  if (!parsed) {
    JOGAK_CHECK(!parsed.error().what.empty());
    return 0;
  }
  if (!parsed->doc.is_object()) return 0;
  JOGAK_CHECK(jogak::schema::settle(parsed->doc).has_value());  // floats of YAML all have a number
  std::string written;
  parsed->doc.append_json(written);
  const auto again = jogak::codec::parse_yaml(written);
  JOGAK_CHECK(again.has_value(), "{}", again.error().what);
  JOGAK_CHECK(again->doc == parsed->doc, "{}", written);
  JOGAK_CHECK(again->duplicates.empty());
  return 0;
}
