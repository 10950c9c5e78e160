// SPDX-License-Identifier: Apache-2.0
//
// Any text through the quantity parser: no crash, and the four ways to read it agree.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/checked.h"
#include "base/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jogak::Rounding;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto up = jogak::parse_quantity(text, Rounding::Up);
  const auto down = jogak::parse_quantity(text, Rounding::Down);
  const auto milli = jogak::parse_quantity_milli(text, Rounding::Up);

  // Up is away from zero by at most one, and may alone leave the range.
  if (up) {
    JOGAK_CHECK(down.has_value());
    const std::int64_t step = *up - *down;
    JOGAK_CHECK(step == 0 || step == (*up > 0 ? 1 : -1), "{}: {} and {}", text, *up, *down);
  }
  // Rounded up twice is rounded up once.
  if (milli) {
    JOGAK_CHECK(up.has_value());
    const std::int64_t from_milli =
        *milli >= 0 ? jogak::ceil_div(*milli, 1000) : jogak::floor_div(*milli, 1000);
    JOGAK_CHECK(*up == from_milli, "{}: {} and {}m", text, *up, *milli);
  }
  // A sign in front only turns the sign round.
  if (up && *up > 0 && !text.starts_with('+')) {
    const auto negative = jogak::parse_quantity("-" + std::string(text));
    JOGAK_CHECK(!negative || *negative == -*up, "{}", text);
  }
  return 0;
}
