// SPDX-License-Identifier: Apache-2.0
//
// JSONPath as the printer columns of custom resources use it: the expressions of kubectl
// (client-go util/jsonpath) without templates, so `.spec.size`, `.metadata.labels['a.b/c']`,
// `.items[-1:]`, `.status.conditions[?(@.type=="Ready")].status`, `..name`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::api {

class JsonPath {
 public:
  // Errc::Invalid when the text is not a path.
  static Result<JsonPath> parse(std::string_view text);

  // The values found, in order; empty where members are missing. nullopt where the path cannot be
  // walked (an index out of range, a filter on what is not a list).
  std::optional<std::vector<Doc>> find(const Doc& root) const;

 private:
  struct Step;
  using Steps = std::vector<Step>;
  using Found = std::optional<std::vector<Doc>>;

  struct Filter;
  struct Step {
    enum class Kind : std::uint8_t { Field, Wildcard, Recursive, Slice, Union, Filter, Literal };
    Kind kind = Kind::Field;
    std::string name = {};                                           // of Field
    std::optional<std::int64_t> first = {}, last = {}, stride = {};  // of Slice
    bool is_index = false;          // one element: last is first + 1
    std::vector<Steps> parts = {};  // of Union
    std::shared_ptr<const Filter> filter = {};
    Doc literal = {};
  };
  struct Filter {
    Steps left, right;
    std::string comparison;  // empty: whether the left side exists
  };
  class Parser;

  static Found walk(const Steps& steps, std::vector<Doc> values);
  static Found step(const Step& step, const std::vector<Doc>& values);
  static bool add_slice(const Step& step, const Doc& list, std::vector<Doc>& found);
  static bool add_filtered(const Filter& filter, const Doc& list, std::vector<Doc>& found);
  static void add_all(const Doc& value, std::vector<Doc>& found);
  static void add_below(const Doc& value, std::vector<Doc>& found);

  Steps steps_;
};

}  // namespace jogak::api
