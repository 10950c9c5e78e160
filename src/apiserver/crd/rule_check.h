// SPDX-License-Identifier: Apache-2.0
//
// The rules of a schema (x-kubernetes-validations), compiled once and checked against objects.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/crd/cel.h"
#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

class Rules {
 public:
  // Whether there is any rule in the schema, be it one that cannot be evaluated here.
  static bool has_any(const Doc& schema);
  // The schema must live as long as this.
  explicit Rules(const Doc& schema);

  // `old` may be null. Rules on what did not change hold from before, unless they look at oldSelf.
  void check(const Doc& value, const Doc* old, FieldErrors& errors) const;

 private:
  struct Rule {
    cel::Expression expression;
    std::optional<cel::Expression> message_expression;
    const Doc* source;
    bool is_transition;  // looks at oldSelf
  };

  void collect(const Doc& schema);
  void check_at(const Doc& value, const Doc* old, const Doc& schema, const Path& at,
                FieldErrors& errors) const;
  void check_rule(const Rule& rule, const Doc& value, const Doc* old, const Doc& schema,
                  const Path& at, FieldErrors& errors) const;

  const Doc& schema_;
  // By schema; what has no rules below is not in there.
  std::map<const Doc*, std::vector<Rule>> rules_;
};

}  // namespace jogak::api
