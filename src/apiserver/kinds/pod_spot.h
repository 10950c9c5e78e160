// SPDX-License-Identifier: Apache-2.0
//
// A field path that costs nothing until it is shown: each step points at the one before it, and
// text is made only for an error. A pod has a hundred places that could be wrong and hardly ever
// one that is. A Spot lives no longer than its parent: name only one step at a time
// (`const Spot ports = at.child("ports");`), chain steps only inside one expression.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/object/field_errors.h"
#include "apiserver/object/names.h"

namespace jogak::api {

class Spot {
 public:
  explicit Spot(const Path& root) : name_(root.text()) {}

  // The name may have dots: child("securityContext.sysctls").
  Spot child(std::string_view name) const { return {this, Kind::Child, name, 0}; }
  Spot index(std::size_t i) const { return {this, Kind::Index, {}, i}; }
  Spot key(std::string_view name) const { return {this, Kind::Key, name, 0}; }

  std::string text() const {
    std::string out;
    append(out);
    return out;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): wherever an error is added, a Path is wanted
  operator Path() const { return Path(text()); }

 private:
  enum class Kind : std::uint8_t { Child, Index, Key };

  Spot(const Spot* parent, Kind kind, std::string_view name, std::size_t index)
      : parent_(parent), name_(name), index_(index), kind_(kind) {}

  void append(std::string& out) const {
    if (parent_ != nullptr) {
      parent_->append(out);
    }
    if (kind_ == Kind::Index) {
      out.append("[").append(std::to_string(index_)).append("]");
    } else if (kind_ == Kind::Key) {
      out.append("[").append(name_).append("]");
    } else {
      out.append(out.empty() ? "" : ".").append(name_);
    }
  }

  const Spot* parent_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  Kind kind_ = Kind::Child;
};

inline void add_problems(FieldErrors& errors, const Spot& at, const Doc& value,
                         const Problems& problems) {
  if (!problems.empty()) {
    add_problems(errors, Path(at), value, problems);
  }
}

}  // namespace jogak::api
