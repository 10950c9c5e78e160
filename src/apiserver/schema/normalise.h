// SPDX-License-Identifier: Apache-2.0
//
// A JSON value as the Go server would hold and write it: unknown members dropped, wrong types
// refused, quantities canonical, members in the order of the type, empty ones left out or written
// as the type says. After decode() every handler may rely on the types: a member is absent or
// right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/schema/schema.h"
#include "base/doc.h"
#include "base/result.h"

namespace jogak::schema {

// What a strict reader complains about, in the server's words: `unknown field "spec.foo"`.
struct Complaints {
  std::vector<std::string> unknown;
  // What the parser found twice (codec::Parsed::duplicates), where it is given: decode() moves
  // those that the real server would see into `unknown`, each at its place in the document.
  std::vector<std::string> duplicates = {};
};

// Reads `value` as a struct of that type: null members go, unknown ones go with a complaint, types
// are checked, values brought to canonical form (quantities, times). An Error (Errc::Invalid) names
// the path and both types: "json: cannot unmarshal string into Go struct field PodSpec.spec.x of
// type int32". Empty lists, maps and strings of omitempty members go. Members that Go always writes
// (no omitempty) are NOT added here; encode() adds them.
Result<Doc> decode(Doc value, const Struct& type, Complaints& complaints);

// The value as Go's encoding/json writes it: order of the type, zero values of members without
// omitempty filled in ("status": {}, "containers": null, 0, ""), empty ones of omitempty members
// left out. Takes what decode() gave and code has changed since; idempotent.
Doc encode(Doc value, const Struct& type);

// A value of no known type (custom resources, YAML) as Go holds and writes it: keys sorted, whole
// numbers that fit stay, all others become float64 (1.0 is 1). The error: a number beyond float64.
Result<void> settle(Doc& value);

// Go's zero value of a field as written, e.g. null, 0, "", {} or a struct of zero members.
Doc zero(const Type& type);

}  // namespace jogak::schema
