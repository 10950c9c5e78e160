// SPDX-License-Identifier: Apache-2.0
//
// What an answer that says no asks for (problem_of() in api_client.h reads why it does).
#pragma once

#include <optional>
#include <string_view>

#include "base/loop.h"
#include "net/http.h"

namespace jogak::kube {

// When to come again: the header Retry-After, or details.retryAfterSeconds of a Status. At most a
// day; none when neither says so.
std::optional<TimeUs> retry_after_of(const net::Headers& headers, std::string_view body);

}  // namespace jogak::kube
