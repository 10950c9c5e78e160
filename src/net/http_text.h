// SPDX-License-Identifier: Apache-2.0
//
// The small words of HTTP/1.1: names that compare without case, reason phrases, dates, lists of
// tokens in a header.
#pragma once

#include <string>
#include <string_view>

#include "base/loop.h"

namespace jogak::net {

// ASCII, without case.
bool is_same_name(std::string_view a, std::string_view b);

// Whether the comma-separated list holds that token, without case: "keep-alive, Upgrade".
bool has_token(std::string_view list, std::string_view token);

// "Not Found"; "Status" for codes without a phrase.
std::string_view reason_phrase(int status);

// "Mon, 02 Feb 2026 02:09:39 GMT".
std::string http_date(TimeUs time);

}  // namespace jogak::net
