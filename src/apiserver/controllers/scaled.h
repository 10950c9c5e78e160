// SPDX-License-Identifier: Apache-2.0
// Small pieces of arithmetic and of status writing that many controllers need.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/doc.h"

namespace jogak::controllers {

// An int-or-string: "25%" of `total`, rounded up or down, or the number itself. Absent is 0.
std::int64_t scaled_value(const Doc& value, std::int64_t total, bool rounds_up);

// A count in a status; zero leaves the member out unless it is shown.
void put_count(Doc& status, std::string_view member, std::int64_t value, bool shows_zero = false);

}  // namespace jogak::controllers
