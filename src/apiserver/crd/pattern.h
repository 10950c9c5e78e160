// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions of schemas and rules: the syntax of Go's regexp, which is RE2's. Compiled
// ones are kept, since the same few are asked for with every object.
#pragma once

#include <string>
#include <string_view>

namespace jogak::api {

// Whether the pattern matches somewhere in the text. False for a pattern that is not one.
bool pattern_matches(const std::string& pattern, std::string_view text);
// What is wrong with it; "" for a right pattern.
std::string pattern_error(const std::string& pattern);

}  // namespace jogak::api
