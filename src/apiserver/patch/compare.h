// SPDX-License-Identifier: Apache-2.0
//
// Which fields differ between two versions of an object, told in field paths. What is equal is
// passed over unseen, so the cost follows the change. Built-in structs are read as Go sees them: a
// member that Go always writes counts as there even when the Doc leaves it out. apiVersion, kind
// and the metadata that the server looks after never show up.
#pragma once

#include "apiserver/patch/field_set.h"
#include "apiserver/patch/type_view.h"
#include "base/doc.h"

namespace jogak::patch {

struct Comparison {
  FieldSet changed = Doc::object();  // added or modified
  FieldSet removed = Doc::object();

  bool is_same() const { return changed.empty() && removed.empty(); }
};

// `old` may be null: nothing was there (of a built-in kind: its zero value).
Comparison compare(const Doc& old, const Doc& object, const TypeView& type);

// Whether two values are the same to a reader of the API.
bool same_value(const Doc& a, const Doc& b, const TypeView& type);

}  // namespace jogak::patch
