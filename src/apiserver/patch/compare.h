// SPDX-License-Identifier: Apache-2.0
//
// Which fields differ between two versions of an object, told in field paths. What is equal is
// passed over unseen, so the cost follows the change. apiVersion, kind and the metadata that the
// server looks after never show up.
#pragma once

#include <cstdint>

#include "apiserver/patch/field_set.h"
#include "apiserver/patch/type_view.h"
#include "base/doc.h"

namespace jogak::patch {

struct Comparison {
  FieldSet changed = Doc::object();  // added or modified
  FieldSet removed = Doc::object();

  bool is_same() const { return changed.empty() && removed.empty(); }
};

// What of built-in structs is there: what the Doc holds, or, as Go sees them, also the members that
// Go always writes where the Doc leaves them out.
enum class Reading : std::uint8_t { AsGo, AsWritten };

// `old` may be null: nothing was there (of a built-in kind: its zero value).
Comparison compare(const Doc& old, const Doc& object, const TypeView& type,
                   Reading reading = Reading::AsGo);

// Whether two values are the same to a reader of the API.
bool same_value(const Doc& a, const Doc& b, const TypeView& type);

}  // namespace jogak::patch
