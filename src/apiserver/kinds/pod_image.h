// SPDX-License-Identifier: Apache-2.0
//
// Names of container images, as far as the pull policy depends on them.
#pragma once

#include <string_view>

namespace jogak::api {

// Whether the name means the tag "latest": it says so, or gives neither tag nor digest. A name that
// is none (upper-case letters, empty parts) does not.
bool is_latest_image(std::string_view image);

}  // namespace jogak::api
