// SPDX-License-Identifier: Apache-2.0
// Base64 in the alphabet for URLs, without padding: continue tokens and parts of a JWT.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jogak::api {

std::string base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace jogak::api
