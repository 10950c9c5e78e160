// SPDX-License-Identifier: Apache-2.0
//
// What a custom resource definition must be, and short ways into one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

constexpr std::string_view kCrdTable = "customresourcedefinitions.apiextensions.k8s.io";
constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// The name of the version marked as storage; "" when there is none.
const std::string& storage_version_of(const Doc& crd);
// Orders versions as clients prefer them: v10, v2, v1, v2beta1, v1alpha1, foo.
bool is_preferred_over(std::string_view a, std::string_view b);

// Everything but metadata of a definition on create, and with `old` on update.
void check_definition(const Doc& crd, const Doc* old, FieldErrors& errors);
// Names, in spec (at "spec.names") and status ("status.acceptedNames").
void check_definition_names(const Doc& names, const Path& at, FieldErrors& errors);

// Formats in the schemas that the server does not know, in order.
std::vector<std::string> unknown_formats(const Doc& crd);

}  // namespace jogak::api
