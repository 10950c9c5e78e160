// SPDX-License-Identifier: Apache-2.0
//
// Who owns which field: metadata.managedFields, kept on every write, and server-side apply on top
// of it (structured merge and diff).
#pragma once

#include <string>
#include <string_view>

#include "apiserver/object/api_error.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::patch {

// The type of an object: a built-in struct, or the structural schema of a custom resource
// (openAPIV3Schema of that version).
struct ObjectType {
  const schema::Struct* builtin = nullptr;
  const Doc* custom = nullptr;
};

// Who writes, and through what.
struct Writer {
  std::string manager;
  std::string api_version;  // "apps/v1"
  std::string subresource;  // "" for the main resource
  bool has_status = false;  // the kind has a status subresource: the main resource ignores status
  TimeUs now = 0;
};

// Brings object.metadata.managedFields up to date after a create (`old` null) or an update that was
// not an apply: what changed against `old` now belongs to the writer. `object` arrives with the
// managedFields that the client sent: absent or empty ([] or [{}]) has the meaning the API gives
// it.
void track_update(const Doc& old, Doc& object, const Writer& writer, const ObjectType& type);

// To be called on what an update is about to store: where nothing but the times in managedFields
// differs from the old object, the old times stay, so that the write is seen to change nothing.
void keep_times_if_same(const Doc& old, Doc& object);

// Server-side apply. `live` is null when the object does not exist. Returns the merged object with
// its managedFields. 409 with a FieldManagerConflict per field unless forced.
api::ApiResult<Doc> apply(const Doc& live, Doc intent, const Writer& writer, bool is_forced,
                          const ObjectType& type);

}  // namespace jogak::patch
