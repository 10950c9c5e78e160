// SPDX-License-Identifier: Apache-2.0
//
// Cuts bracketed JSON values out of bytes that arrive in any pieces, each byte looked at once and
// 64 at a time. As in json_scan.h only brackets and strings are understood: what is inside a value
// is for its decoder to judge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::kube {

// Finds the end of one bracketed value.
class BracketScan {
 public:
  static constexpr std::size_t npos = std::string_view::npos;

  // For the value's next bytes; the first of all is its opening bracket. Bytes up to and with the
  // closing one, after which it is ready for another value; npos when the value goes on.
  std::size_t find_end(std::string_view bytes);
  void start_over() { *this = {}; }

 private:
  std::size_t find_end_bytewise(std::string_view bytes);
  std::size_t find_end_in_block(const char* block);

  std::uint64_t depth_ = 0;
  bool is_in_string_ = false;
  bool is_escaped_ = false;  // the next byte, by a backslash
};

// One value after another, put together where it was split.
class ValueCutter {
 public:
  explicit ValueCutter(std::size_t value_bytes_max) : value_bytes_max_(value_bytes_max) {}

  bool is_inside() const { return is_inside_; }
  // Takes the value that begins at the front of `bytes` (or goes on there) off it: the whole value,
  // which holds until the next call and while the bytes do, or "" when more bytes are needed.
  // Errors: Invalid, longer than allowed.
  Result<std::string_view> take(std::string_view& bytes);

 private:
  std::size_t value_bytes_max_;
  BracketScan scan_;
  bool is_inside_ = false;
  std::string begun_;  // the value so far, when it did not end with its piece
  std::string whole_;
};

// Walks over the fields of one object, cutting only the values that are asked for.
class FieldCursor {
 public:
  // `text` begins with the object, or it has no fields.
  explicit FieldCursor(std::string_view text);

  // On to the next field; false after the last one, or when the text is no object from here on.
  bool next();
  std::string_view key() const { return key_; }  // between the quotes, escapes unread
  // The text of the field's value; "" when there is none.
  std::string_view value();
  // True when the object ended well; after next() gave false.
  bool is_whole() const { return is_whole_; }

 private:
  void skip_space();
  std::size_t string_end(std::size_t at) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view key_;
  bool is_value_next_ = false;
  bool is_first_ = true;
  bool is_whole_ = false;
};

inline bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// What a JSON string in quotes says; "" for null and for what is missing. Views into `text`, or
// into `scratch` where it has escapes. Errors: Invalid, no string.
Result<std::string_view> json_string(std::string_view text, std::string& scratch);

}  // namespace jogak::kube
