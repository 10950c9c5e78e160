// SPDX-License-Identifier: Apache-2.0
//
// What types and their members are for, in a few words of our own: the text of `kubectl explain`.
// Not every member has words; the most asked for have.
#pragma once

#include <string_view>

namespace jogak::api {

// "" where there are none.
std::string_view type_words(std::string_view type);
std::string_view member_words(std::string_view type, std::string_view member);

}  // namespace jogak::api
