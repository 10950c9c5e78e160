// SPDX-License-Identifier: Apache-2.0
//
// Label and field selectors: the query strings of list and watch, and the LabelSelector objects in
// specs. Grammar: the Kubernetes API conventions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::api {

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key

class LabelSelector {
 public:
  enum class Op : std::uint8_t { In, NotIn, Exists, DoesNotExist, Gt, Lt };
  struct Requirement {
    std::string key;
    Op op = Op::In;
    std::vector<std::string> values;  // sorted
    bool is_exact = false;            // written with = or !=, which text() keeps
  };

  LabelSelector() = default;  // everything
  static LabelSelector nothing();
  // "a=b,c in (d,e),!f,g>5". Errors in the server's words.
  static Result<LabelSelector> parse(std::string_view text);
  // {matchLabels, matchExpressions}; null matches nothing, {} everything. The object is valid.
  static LabelSelector from_object(const Doc& selector);
  // {"a": "b"} as replication controllers and services have it; empty matches nothing.
  static LabelSelector from_map(const Doc& labels);

  bool matches(const Labels& labels) const;
  bool matches(const Doc& labels) const;  // metadata.labels
  bool is_everything() const { return !is_nothing_ && requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  // The canonical text: "a=b,c in (d,e)", keys sorted; what scale's status.selector shows.
  std::string text() const;

 private:
  bool is_nothing_ = false;
  std::vector<Requirement> requirements_;
};

// path=value and path!=value terms, ANDed.
struct FieldSelector {
  struct Term {
    std::string path;
    bool equals = true;
    std::string value;
  };
  std::vector<Term> terms;

  static Result<FieldSelector> parse(std::string_view text);
  // `field` gives the value of a path ("" when absent).
  bool matches(const std::function<std::string_view(std::string_view)>& field) const;
};

}  // namespace jogak::api
