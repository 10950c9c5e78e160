// SPDX-License-Identifier: Apache-2.0
//
// Tables of custom resources: the columns that their definition asks for, found by JSONPath.
#pragma once

#include <vector>

#include "apiserver/registry/resource.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

std::vector<Column> custom_columns(const Resource& resource);
Doc custom_cells(const Resource& resource, const Doc& object, TimeUs now);

}  // namespace jogak::api
