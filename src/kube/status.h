// SPDX-License-Identifier: Apache-2.0
//
// What a Status object says beyond its words (problem_of() in api_client.h reads those).
#pragma once

#include <optional>
#include <string_view>

#include "base/loop.h"

namespace jogak::kube {

// details.retryAfterSeconds of a Status; none when the text is no Status or has no such field.
std::optional<TimeUs> status_retry_after(std::string_view json);

}  // namespace jogak::kube
