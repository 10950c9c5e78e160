// SPDX-License-Identifier: Apache-2.0
//
// Brings the members of an object into the order of their type while they are walked. Most objects
// have that order already; then nothing moves.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "apiserver/schema/schema.h"
#include "base/check.h"
#include "base/doc.h"

namespace jogak::schema {

// Whether Go counts the value as empty for omitempty: null, false, 0, "", [], {}.
inline bool is_zero(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null:
      return true;
    case Doc::Kind::Bool:
      return !value.as_bool();
    case Doc::Kind::Int:
      return value.as_int() == 0;
    case Doc::Kind::Number:
      return false;
    case Doc::Kind::String:
      return value.as_string().empty();
    case Doc::Kind::Array:
    case Doc::Kind::Object:
      return value.empty();
  }
  return false;
}

class FieldOrder {
 public:
  explicit FieldOrder(const Struct& type) : type_(type) {}

  // As Struct::find(), but looks first behind the last one found.
  const Field* find(std::string_view name) {
    const Field* field = next_ < type_.fields.size() && type_.fields[next_].name == name
                             ? &type_.fields[next_]
                             : type_.find(name);
    if (field != nullptr) next_ = position(*field) + 1;
    return field;
  }

  // The member of that field stands at `place`; places count up from 0.
  void keep(const Field& field, std::size_t place) {
    JOGAK_DCHECK(place < order_.size());
    const std::size_t at = position(field);
    if (place > 0 && at <= order_[place - 1]) is_sorted_ = false;
    order_[place] = static_cast<std::uint8_t>(at);
    count_ = place + 1;
  }

  bool is_sorted() const { return is_sorted_; }
  std::size_t count() const { return count_; }

  // The members that were kept, sorted by field. `missing(field)` may add a member (by appending to
  // the list it is given) for each field that has none.
  template <class Missing>
  void rebuild(Doc::Members& members, Missing missing) const {
    std::array<std::uint8_t, 256> places{};  // place + 1, by field
    for (std::size_t i = 0; i < count_; ++i) places[order_[i]] = static_cast<std::uint8_t>(i + 1);
    Doc::Members sorted;
    sorted.reserve(type_.fields.size() < 8 ? type_.fields.size() : count_ + 4);
    for (std::size_t i = 0; i < type_.fields.size(); ++i) {
      if (places[i] != 0) {
        sorted.push_back(std::move(members[places[i] - 1U]));
      } else {
        missing(type_.fields[i], sorted);
      }
    }
    members = std::move(sorted);
  }

  void sort(Doc::Members& members) const {
    if (!is_sorted_) rebuild(members, [](const Field&, Doc::Members&) {});
  }

 private:
  std::size_t position(const Field& field) const {
    return static_cast<std::size_t>(&field - type_.fields.data());
  }

  const Struct& type_;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  bool is_sorted_ = true;
  std::array<std::uint8_t, 256> order_;  // left as it is: only the first count_ are read
};

}  // namespace jogak::schema
