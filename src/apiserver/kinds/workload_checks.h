// SPDX-License-Identifier: Apache-2.0
//
// Checks that several workload kinds share: counts, "5" or "20%", immutable members, selectors
// against the labels of their template, conditions. Each adds what it finds in the server's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "apiserver/object/names.h"
#include "base/doc.h"

namespace jogak::api {

inline constexpr std::string_view kNotNegative = "must be greater than or equal to 0";
inline constexpr std::string_view kImmutable = "field is immutable";
inline constexpr std::string_view kSelectorMismatch = "`selector` does not match template `labels`";

// parent[name], where it is there, is not below zero.
void check_not_negative(const Doc& parent, std::string_view name, const Path& parent_at,
                        FieldErrors& errors);
// The same for several members, in that order.
void check_not_negative(const Doc& parent, std::initializer_list<std::string_view> names,
                        const Path& parent_at, FieldErrors& errors);
// status[name] is at most status[bound].
void check_at_most(const Doc& status, std::string_view name, std::string_view bound,
                   std::string_view detail, const Path& at, FieldErrors& errors);
// parent[name] equals what it was.
void check_immutable(const Doc& parent, const Doc& old_parent, std::string_view name,
                     const Path& parent_at, FieldErrors& errors);
// The counter of hash collisions never falls; absent counts as zero.
void check_collisions(const Doc& status, const Doc& old_status, const Path& at,
                      FieldErrors& errors);
// A member that must be one of `supported`; `value` is not empty.
void check_supported(const Doc& value, const std::vector<std::string_view>& supported,
                     const Path& at, FieldErrors& errors);

// An IntOrString: a count from zero, or a percentage.
void check_int_or_percent(const Doc& value, const Path& at, FieldErrors& errors);
void check_at_most_100_percent(const Doc& value, const Path& at, FieldErrors& errors);
// The number of either; 0 for a text that is no percentage.
std::int64_t int_or_percent_value(const Doc& value);

// A selector that must be there and must select something; `kind_word` "deployment". False when it
// cannot be used to match labels.
bool check_selector(const Doc& selector, std::string_view kind_word, const Path& at,
                    FieldErrors& errors);
// The template's restart policy is Always and it has no deadline; `kind_word` "ReplicaSet".
void check_runs_forever(const Doc& pod_template, std::string_view kind_word, const Path& at,
                        FieldErrors& errors);

// A name that becomes part of pod names should be a DNS label.
void warn_about_name(const Doc& object, std::vector<std::string>& warnings);

}  // namespace jogak::api
