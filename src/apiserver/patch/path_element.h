// SPDX-License-Identifier: Apache-2.0
//
// One step of a field path, as the keys of FieldsV1 spell it:
//
//   f:NAME       member of an object
//   k:{JSON}     item of a list, by its keys in the order of their names
//   v:JSON       item of a set, by its value
//   i:NUMBER     item of a list, by its place
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"

namespace jogak::patch {

struct KeyField {
  std::string_view name;
  const Doc* value = nullptr;  // a scalar
};

std::string field_element(std::string_view name);
std::string value_element(const Doc& scalar);
std::string key_element(std::vector<KeyField> keys);  // in any order

// Below 0, 0 or above 0: fields before keys before values before places; numbers by their value.
// Both must be canonical: made by the functions above or canonical_element().
int compare_elements(std::string_view a, std::string_view b);

// As people read it: `.spec`, `[name="c"]`, `[="x"]`, `[3]`.
std::string element_text(std::string_view element);

// The canonical spelling of an element that somebody sent; "" for one of unknown kind, which is to
// be passed over; nullopt when it cannot be read.
std::optional<std::string> canonical_element(std::string_view sent);

}  // namespace jogak::patch
