// SPDX-License-Identifier: Apache-2.0
//
// What the rules of the core kinds share: comparison of what a client sent with what is stored,
// checks that several kinds make, and the base of strategies without generation.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "apiserver/object/amount.h"
#include "apiserver/object/names.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

// Most core kinds carry no metadata.generation.
class PlainStrategy : public Strategy {
 public:
  bool tracks_generation() const override { return false; }

 protected:
  // A status update that takes metadata from the request too, as the older kinds do.
  static void take_status_and_metadata(Doc& object, const Doc& old);
};

// Equal as Go sees it: absent, null, "", 0, false, {} and [] are the same.
bool same(const Doc& a, const Doc& b);
// "field is immutable" unless same().
void require_same(const Doc& value, const Doc& old, const Path& at, FieldErrors& errors);
// The same, but the error shows no value, as declarative validation does it.
void require_same_quietly(const Doc& value, const Doc& old, const Path& at, FieldErrors& errors);

// The quantity that decoding has checked; zero when absent.
Amount quantity_of(const Doc& value);
// What the server stores in resource lists: at most three decimals.
void round_resources(Doc& owner, std::string_view member);

// `must be greater than or equal to 0`; whole numbers where the resource wants them.
void validate_quantity(std::string_view resource, const Doc& value, const Path& at,
                       FieldErrors& errors);
void validate_nonnegative(const Doc& value, const Path& at, FieldErrors& errors);
void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors);

// A NodeSelector.
void validate_node_selector(const Doc& selector, const Path& at, FieldErrors& errors);
// Of a label or taint.
void validate_label_key(std::string_view key, const Path& at, FieldErrors& errors);
// "gpu.example": required, at most 63 characters, a subdomain in any case.
void validate_driver_name(std::string_view name, const Path& at, FieldErrors& errors);
// Type, status, reason and transition time of metav1 conditions.
void validate_conditions(const Doc& conditions, const Path& at, FieldErrors& errors);
// An Invalid per problem of a string; empty strings are checked too.
void validate_name(std::string_view name, NameCheck check, const Path& at, FieldErrors& errors);

Problems check_path_segment(std::string_view text);
bool is_cidr(std::string_view text, bool* is_v6 = nullptr);

// 201 with an object, in the members and order of its type.
Answer created(Doc body, std::string_view type);

// The first value that the list has twice, by key: reported at its index.
void validate_unique(const Doc& list, const Path& at, const std::function<Doc(const Doc&)>& key,
                     FieldErrors& errors);

}  // namespace jogak::api
