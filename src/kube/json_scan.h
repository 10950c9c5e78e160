// SPDX-License-Identifier: Apache-2.0
// Cuts JSON text into pieces without reading them: the documents of a stream, the fields of an
// object, the items of an array. A List of 50,000 pods is then decoded one small object at a time,
// in little memory, and `kind` may follow `items`. Only brackets and strings are understood here;
// what is inside a piece is for the decoder to judge.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace jogak::kube {

// Reads one JSON value after another from a text; all views point into it.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // True when nothing but white space is left.
  bool at_end();
  std::size_t offset() const { return at_; }

  // The next value as text. Errors: Invalid, when the text ends inside the value ("ends inside an
  // object that began on line 3: is it complete?") or no value begins here.
  Result<std::string_view> next_value();

  // The next value must be an object (array): calls fn(key, value) (fn(item)) for each field (item)
  // and stops at the first error. The key is the text between the quotes, escapes unread.
  template <class Fn>
  Result<void> each_field(Fn fn);
  template <class Fn>
  Result<void> each_item(Fn fn);

  // Line of a position, from 1, for messages.
  static std::size_t line_of(std::string_view text, std::size_t offset);

 private:
  void skip_space();
  bool take(char c);
  Result<void> expect(char c, std::string_view what);
  Result<std::string_view> string();
  std::unexpected<Error> ends_inside(std::string_view what, std::size_t from) const;
  Result<std::string_view> bracketed(char open);

  std::string_view text_;
  std::size_t at_ = 0;
};

template <class Fn>
Result<void> JsonScanner::each_field(Fn fn) {
  JOGAK_TRY_VOID(expect('{', "an object"));
  if (take('}')) return {};
  do {
    JOGAK_TRY(const std::string_view key, string());
    JOGAK_TRY_VOID(expect(':', "a colon after the name of a field"));
    JOGAK_TRY(const std::string_view value, next_value());
    JOGAK_TRY_VOID(fn(key, value));
  } while (take(','));
  return expect('}', "a comma or the end of the object");
}

template <class Fn>
Result<void> JsonScanner::each_item(Fn fn) {
  JOGAK_TRY_VOID(expect('[', "a list"));
  if (take(']')) return {};
  do {
    JOGAK_TRY(const std::string_view item, next_value());
    JOGAK_TRY_VOID(fn(item));
  } while (take(','));
  return expect(']', "a comma or the end of the list");
}

}  // namespace jogak::kube
