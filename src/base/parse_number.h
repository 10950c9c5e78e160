// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers from text, exactly: the whole text is the number, or it is an error that names it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace jogak {

// Decimal digits with an optional '-'; no spaces, no '+', no other base.
Result<std::int64_t> parse_int(std::string_view text);

// The same, and within [min, max].
Result<std::int64_t> parse_int(std::string_view text, std::int64_t min, std::int64_t max);

}  // namespace jogak
