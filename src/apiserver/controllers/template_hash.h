// SPDX-License-Identifier: Apache-2.0
// Short names of templates and revisions, in the alphabet of generated names.
#pragma once

#include <cstdint>
#include <string>

#include "base/doc.h"

namespace jogak::controllers {

// Of what the value says, whatever the order of its members; `collisions` makes another name for
// the same value.
std::string template_hash(const Doc& value, std::int64_t collisions);

}  // namespace jogak::controllers
