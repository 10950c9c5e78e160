// SPDX-License-Identifier: Apache-2.0
//
// What `kubectl get` shows: the columns of each kind and the cells of an object, as the server
// prints them (pkg/printers/internalversion of Kubernetes).
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/registry/resource.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

// The columns of a resource; Name and Age for kinds without columns of their own, the printer
// columns of a custom resource (`additionalPrinterColumns` of its version).
std::vector<Column> table_columns(const Resource& resource);
// One cell per column: strings and whole numbers.
Doc table_cells(const Resource& resource, const Doc& object, TimeUs now);

// "5d", "3m20s", "<unknown>": the age of what happened at `then`.
std::string human_duration(TimeUs span);

}  // namespace jogak::api
