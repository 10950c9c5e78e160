// SPDX-License-Identifier: Apache-2.0
//
// What a YAML 1.1 scalar means to go-yaml v2, which the real server reads YAML with.
#pragma once

#include <string>
#include <string_view>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::codec {

// `tag` as yaml-cpp gives it: "?" bare, "!" in quotes or a block, else the full tag.
Result<Doc> resolve_scalar(std::string_view tag, std::string_view text);

}  // namespace jogak::codec
