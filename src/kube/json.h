// SPDX-License-Identifier: Apache-2.0
// A JSON value that knows where it is, for the decoders of this folder (it includes simdjson, which
// is slow to compile: no other header here may include it). Reading is lenient about absence, as
// Go's decoder is: a missing or null field reads as empty. The first thing that is wrong is
// remembered with its path, and the caller asks once at the end, so that decoders stay straight
// lines.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// tidy: layering: only the decoders in this folder include this header
#include <simdjson.h>

#include "base/result.h"

namespace jogak::kube {

// What one document's values share. It outlives them.
class JsonContext {
 public:
  // The first problem found, "PATH: what is wrong"; empty if all was well.
  const std::string& problem() const { return problem_; }
  void start_over() {
    problem_.clear();
    frames_.clear();
    frames_.push_back({});
  }

 private:
  friend class Json;
  struct Frame {
    std::uint32_t parent = 0;
    std::uint32_t index = 0;
    std::string_view key;
    bool is_item = false;  // of a list, at `index`
  };
  std::string problem_;
  std::vector<Frame> frames_ = {{}};  // [0]: the document
};

class Json {
 public:
  Json(JsonContext& context, simdjson::dom::element element)
      : context_(&context), element_(element), present_(true) {}

  bool present() const { return present_; }
  explicit operator bool() const { return present_; }

  // The field; absent if there is none or it is null. Wrong unless this is an object or absent.
  Json operator[](std::string_view key) const;

  // Values; empty, zero or false where absent.
  std::string text() const { return std::string(view()); }
  std::string_view view() const;  // valid until the next document is parsed
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  std::int32_t int32() const {
    return static_cast<std::int32_t>(integer(std::numeric_limits<std::int32_t>::min(),
                                             std::numeric_limits<std::int32_t>::max()));
  }
  bool flag() const;
  // A string, or a number written as one: quantities may be either.
  std::string number_text() const;

  template <class Fn>
  void each_item(Fn fn) const {
    simdjson::dom::array array;
    if (!list(array)) return;
    std::uint32_t i = 0;
    for (const simdjson::dom::element item : array) fn(child({}, i++, true, item));
  }
  template <class Fn>
  void each_field(Fn fn) const {
    simdjson::dom::object object;
    if (!fields(object)) return;
    for (const auto field : object) {
      if (!field.value.is_null()) fn(field.key, child(field.key, 0, false, field.value));
    }
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    each_item([&result](const Json& item) { result.push_back(item.text()); });
    return result;
  }

  // Remembers that this value is wrong, unless something was wrong before.
  void complain(std::string_view problem) const;
  std::string path() const;

 private:
  Json() = default;
  Json child(std::string_view key, std::uint32_t index, bool is_item,
             simdjson::dom::element element) const;
  bool list(simdjson::dom::array& out) const;
  bool fields(simdjson::dom::object& out) const;
  void complain_type(std::string_view wanted) const;

  JsonContext* context_ = nullptr;
  simdjson::dom::element element_;
  std::uint32_t frame_ = 0;
  bool present_ = false;
};

}  // namespace jogak::kube
