// SPDX-License-Identifier: Apache-2.0
//
// The objects that a server has before its first client.
#pragma once

#include <vector>

#include "apiserver/kinds/kinds.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

// In the order in which to create them: namespaces first. Kind and apiVersion are set.
std::vector<Doc> initial_objects(const KindOptions& options, TimeUs now);

}  // namespace jogak::api
