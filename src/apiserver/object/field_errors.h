// SPDX-License-Identifier: Apache-2.0
//
// What validation finds: one entry a problem, each with its field path, in the words of the
// Kubernetes API (k8s.io/apimachinery validation/field). Order is kept, as clients see it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/doc.h"

namespace jogak::api {

// "spec.containers[0].resources.limits[nvidia.com/gpu]", built step by step.
class Path {
 public:
  Path() = default;
  explicit Path(std::string_view root) : text_(root) {}

  Path child(std::string_view name) const {
    return Path(text_.empty() ? std::string(name) : text_ + "." + std::string(name));
  }
  template <class... Names>
  Path child(std::string_view name, const Names&... rest) const {
    return child(name).child(rest...);
  }
  Path index(std::size_t i) const { return Path(text_ + "[" + std::to_string(i) + "]"); }
  Path key(std::string_view name) const { return Path(text_ + "[" + std::string(name) + "]"); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class FieldErrorType : std::uint8_t {
  NotFound,
  Required,
  Duplicate,
  Invalid,
  NotSupported,
  Forbidden,
  TooLong,
  TooMany,
  TypeInvalid,
  Internal
};

// "FieldValueRequired": the reason of the cause.
std::string_view reason_of(FieldErrorType type);

// A string in quotes with escapes, as Go's %q shows it.
std::string quoted(std::string_view text);

struct FieldError {
  FieldErrorType type = FieldErrorType::Invalid;
  std::string field;
  std::string message;        // without the field: `Invalid value: "x": must be ...`
  bool is_of_policy = false;  // the server may be told to let it pass
};

class FieldErrors {
 public:
  void required(const Path& at, std::string_view detail = "");
  // The value is shown as JSON would (strings in quotes, objects compact).
  void invalid(const Path& at, const Doc& value, std::string_view detail);
  void duplicate(const Path& at, const Doc& value);
  void not_found(const Path& at, const Doc& value);
  void not_supported(const Path& at, const Doc& value,
                     const std::vector<std::string_view>& supported);
  void forbidden(const Path& at, std::string_view detail);
  // "disallowed by cluster policy".
  void forbidden_by_policy(const Path& at);
  // Takes out what only a policy forbids.
  void lift_policy();
  void too_long(const Path& at, std::size_t limit);
  void too_many(const Path& at, std::size_t actual, std::size_t limit);
  void type_invalid(const Path& at, const Doc& value, std::string_view detail);
  void internal(const Path& at, std::string_view detail);
  void add(FieldError error) { list_.push_back(std::move(error)); }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  // `[a: Required value, b: ...]`, or the one entry without brackets; equal entries once.
  std::string text() const;
  const std::vector<FieldError>& list() const { return list_; }

 private:
  std::vector<FieldError> list_;
};

}  // namespace jogak::api
