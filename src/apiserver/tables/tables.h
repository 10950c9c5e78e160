// SPDX-License-Identifier: Apache-2.0
//
// What `kubectl get` shows: the columns of each kind and the cells of an object, as the server
// prints them (pkg/printers/internalversion of Kubernetes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/resource.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

// The columns of a resource; Name and Created At for kinds without columns of their own, the
// additionalPrinterColumns of a custom resource's version.
std::vector<Column> table_columns(const Resource& resource);
// columnDefinitions of a Table.
Doc table_column_definitions(const Resource& resource);
// One cell per column: strings, whole numbers, booleans, null where a custom resource has no value.
Doc table_cells(const Resource& resource, const Doc& object, TimeUs now);
// `conditions` of the row: Completed for a pod that has finished. Null for none: leave them out.
Doc table_row_conditions(const Resource& resource, const Doc& object);

// "5d", "3m20s", "<unknown>": the age of what happened at `then`.
std::string human_duration(TimeUs span);

}  // namespace jogak::api
