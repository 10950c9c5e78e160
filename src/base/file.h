// SPDX-License-Identifier: Apache-2.0
//
// Whole files, in and out. Errors name the path: NotFound when there is no such file, Invalid when
// it is not what was asked for (a folder, a broken gzip, too large), Unavailable otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak {

inline constexpr std::int64_t kFileBytesMax = std::int64_t{4} << 30;

// The content, gunzipped when it starts with gzip's magic number (whatever the name says). Pipes
// and devices work too. `bytes_max` limits what is read and what it unpacks to.
Result<std::string> read_file(const std::string& path, std::int64_t bytes_max = kFileBytesMax);

// The content of gzip data, of one or several members.
Result<std::string> gunzip(std::string_view data, std::int64_t bytes_max = kFileBytesMax);

// Puts `content` in place whole or not at all: a temporary file beside it, then rename. A symbolic
// link is followed; what is not a regular file (a pipe, a terminal) is written to directly.
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace jogak
