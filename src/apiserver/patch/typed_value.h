// SPDX-License-Identifier: Apache-2.0
//
// Values with their types: what an applied intent must look like, which fields it names, how it is
// laid over a live object, and how fields are taken out again.
#pragma once

#include <cstdint>
#include <string>

#include "apiserver/patch/field_set.h"
#include "apiserver/patch/type_view.h"
#include "base/doc.h"

namespace jogak::patch {

// What does not fit the type, in the server's words: unknown members, wrong types, list items
// without their keys or, unless that is allowed, with the same keys. "" when all is well.
enum class Repeats : std::uint8_t { Refused, Allowed };
std::string type_problem(const Doc& value, const TypeView& type,
                         Repeats repeats = Repeats::Refused);

// The fields that an intent names: leaves, list items, members of maps, and what is given empty.
FieldSet named_fields(const Doc& value, const TypeView& type);

// The live value with the intent's values in place of its own. List items come in the live order,
// unless the intent wants its own items in another; new ones stand where the intent has them. The
// intent has no problem; of live items with the same keys all but the intent's go.
Doc merge_values(const Doc& live, const Doc& intent, const TypeView& type);

// The value without the fields of the set.
Doc remove_fields(const Doc& value, const FieldSet& set, const TypeView& type);

// The set after its type has changed: what has become one indivisible value since is owned as one.
FieldSet fit_to_type(const FieldSet& set, const TypeView& type);

// The set and all members of structs that its paths lead through.
FieldSet with_named_members(const FieldSet& set, const TypeView& type);

}  // namespace jogak::patch
