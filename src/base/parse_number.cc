// SPDX-License-Identifier: Apache-2.0
//
// std::from_chars with words for what went wrong.
#include "base/parse_number.h"

#include <charconv>
#include <system_error>

namespace jogak {

Result<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && at == end) {
    return invalid("\"{}\" does not fit in 64 bits", text);
  }
  if (error != std::errc() || at != end) return invalid("\"{}\" is not a whole number", text);
  return value;
}

Result<std::int64_t> parse_int(std::string_view text, std::int64_t min, std::int64_t max) {
  JOGAK_TRY(const std::int64_t value, parse_int(text));
  if (value < min || value > max) return invalid("{} is not between {} and {}", value, min, max);
  return value;
}

}  // namespace jogak
