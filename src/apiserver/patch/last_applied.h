// SPDX-License-Identifier: Apache-2.0
//
// The annotation in which `kubectl apply` without --server-side keeps what it applied last. When
// kubectl goes over to server-side apply, fields that are still as it left them are its own, and
// the annotation follows the intent, so that it may go back.
#pragma once

#include <optional>

#include "apiserver/patch/field_set.h"
#include "apiserver/patch/managed_fields.h"
#include "base/doc.h"

namespace jogak::patch {

// The name under which kubectl applies on the server.
inline constexpr std::string_view kKubectl = "kubectl";

// The fields that the annotation names and the live object still has with those values. nullopt
// without a usable annotation of that version.
std::optional<FieldSet> last_applied_fields(const Doc& live, std::string_view api_version,
                                            const ObjectType& type);

// Writes the intent into the annotation if the object has one.
void update_last_applied(Doc& object, const Doc& intent);

}  // namespace jogak::patch
