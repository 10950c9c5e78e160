// SPDX-License-Identifier: Apache-2.0
//
// Lists as typed on a command line: "42-51,60" and "default,cpu050".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jogak::cli {

// Words between commas; an error names an empty one or one given twice.
Result<std::vector<std::string>> parse_words(std::string_view text);

// Seeds and ranges of seeds between commas, 0 to 2^32, ten thousand at most.
Result<std::vector<std::int64_t>> parse_seeds(std::string_view text);

}  // namespace jogak::cli
