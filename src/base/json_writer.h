// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON text as it goes: keys and values in the order of the calls, commas and indentation by
// itself. A sequence of calls that would not be JSON is a bug of the caller and fails a check.
// Strings are UTF-8; bytes that are not become U+FFFD, so that the output always parses.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jogak {

// Appends `text` in double quotes, escaped so that it is a string in JSON and in YAML too.
void append_json_string(std::string& out, std::string_view text);

// Whether all of it is UTF-8, as JSON and YAML must be.
bool is_utf8(std::string_view text);

// A number with exactly `places` digits after the point (0 to 17), "-0.00" as "0.00". What is not
// finite has no number in JSON and gives "null".
std::string fixed_decimal(double value, int places);

// unscaled / 10^places, exactly: (1234, 2) is "12.34". `places` is 0 to 18.
std::string fixed_decimal(std::int64_t unscaled, int places);

class JsonWriter {
 public:
  enum class Style : std::uint8_t { Compact, Pretty };

  explicit JsonWriter(Style style = Style::Compact) : style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  // In an object, before each value.
  JsonWriter& key(std::string_view name);

  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
  {
    return raw(std::to_string(number));
  }
  JsonWriter& value(double number, int places) { return raw(fixed_decimal(number, places)); }

  // Text that is a JSON value already.
  JsonWriter& raw(std::string_view json);

  template <class... T>
  JsonWriter& field(std::string_view name, const T&... args) {
    return key(name).value(args...);
  }

  // The finished text; pretty text ends with a newline. The writer is empty afterwards.
  std::string take();

 private:
  struct Level {
    char closer = '}';
    bool is_empty = true;
    bool has_key = false;  // a key waits for its value
  };

  JsonWriter& open(char opener);
  JsonWriter& close(char closer);
  void before_item();
  void before_value();
  void new_line();

  Style style_;
  std::string out_;
  std::vector<Level> levels_;
};

}  // namespace jogak
