// SPDX-License-Identifier: Apache-2.0
//
// What config maps and secrets have in common: a limit of bytes, a switch that freezes them, and
// base64.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

constexpr std::size_t kConfigDataMax = 1024 * 1024;

// Errors for the members that changed although `immutable` was set.
void check_immutable(const Doc& object, const Doc& old,
                     std::initializer_list<std::string_view> members, FieldErrors& errors);

std::string base64_encode(std::string_view bytes);
// Standard alphabet with padding, line breaks skipped; nullopt when it is not base64.
std::optional<std::string> base64_decode(std::string_view text);
// Bytes that a valid text stands for.
std::size_t base64_size(std::string_view text);
// URL alphabet without padding, as tokens have it.
std::string base64url_encode(std::string_view bytes);

}  // namespace jogak::api
