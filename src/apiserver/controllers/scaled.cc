// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers throughout, rounded where the real controllers round.
#include "apiserver/controllers/scaled.h"

#include <charconv>
#include <string>

namespace jogak::controllers {

std::int64_t scaled_value(const Doc& value, std::int64_t total, bool rounds_up) {
  if (!value.is_string()) return value.as_int();
  const std::string& text = value.as_string();
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::int64_t hundredfold = percent * total;
  return rounds_up ? (hundredfold + 99) / 100 : hundredfold / 100;
}

void put_count(Doc& status, std::string_view member, std::int64_t value, bool shows_zero) {
  if (value == 0 && !shows_zero) {
    status.erase(member);
  } else {
    status.set(member, value);
  }
}

}  // namespace jogak::controllers
