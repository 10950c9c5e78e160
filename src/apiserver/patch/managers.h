// SPDX-License-Identifier: Apache-2.0
//
// The entries of metadata.managedFields: who owns which fields, through which door, since when. An
// entry stays the object that the wire has: {manager, operation, apiVersion, time, fieldsType,
// fieldsV1, subresource}. Two entries are one manager when name, operation, subresource and, unless
// they apply, apiVersion are the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/patch/field_set.h"
#include "apiserver/patch/managed_fields.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::patch {

using Managers = Doc::Items;

inline constexpr std::string_view kApply = "Apply";
inline constexpr std::string_view kUpdate = "Update";

// What somebody sent, brought to canonical form. nullopt when an entry cannot be read.
std::optional<Managers> read_managers(const Doc& sent);
// [] and [{}], by which clients ask to forget all managers.
bool is_reset(const Doc& sent);

Doc make_manager(std::string_view name, std::string_view operation, std::string_view api_version,
                 std::string_view subresource);
bool is_same_manager(const Doc& a, const Doc& b);
// The entry of the same manager, or nullptr.
Doc* find_manager(Managers& managers, const Doc& like);
bool is_applier(const Doc& manager);
inline const FieldSet& fields_of(const Doc& manager) { return manager["fieldsV1"]; }
void set_time(Doc& manager, TimeUs now);

// Takes fields from every manager.
void take_fields(Managers& managers, const FieldSet& fields);
void drop_empty(Managers& managers);
// At most ten managers that update; older ones become "ancient-changes".
void cap_updaters(Managers& managers);
// Into metadata.managedFields, in the server's order. Without managers the member goes.
void write_managers(Managers managers, Doc& object);

// `"name"`, `"name" with subresource "scale" using v1`: for messages about conflicts.
std::string manager_text(const Doc& manager);

// The fields that a write through this door cannot change are not tracked for it.
FieldSet without_reset_fields(FieldSet set, const Writer& writer, const ObjectType& type);

}  // namespace jogak::patch
