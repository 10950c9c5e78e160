// SPDX-License-Identifier: Apache-2.0
//
// Sets of field paths, as managedFields keeps them. A set is held in the very form that the wire
// has, FieldsV1: a tree of objects whose keys are path elements (path_element.h). A path is in the
// set where its node is {} or has the key "." (then other paths lie below it). Canonical: keys in
// the order of compare_elements(), "." first, no node that holds nothing. The functions take
// canonical sets and give canonical sets.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/patch/path_element.h"
#include "base/doc.h"

namespace jogak::patch {

using FieldSet = Doc;                        // an object
using FieldPath = std::vector<std::string>;  // of elements

// A set that somebody sent. nullopt when it cannot be read.
std::optional<FieldSet> canonical_set(const Doc& sent);

bool has_path(const FieldSet& set, const FieldPath& path);
void insert_path(FieldSet& set, const FieldPath& path);

// Whether the path of this node, which is not the root, is in the set.
bool is_member(const FieldSet& node);
// What lies below a node, without its own mark.
std::span<const Doc::Member> children_of(const FieldSet& node);
// A node with these children in their order, itself in the set or not. The mark of the node may be
// among the children already, at the front. A node that holds nothing must not be made.
FieldSet make_node(bool is_in_set, Doc::Members children);
// The mark of a node that has children: the key ".".
Doc::Member self_mark();
// A whole set of what lies below the root.
FieldSet make_root(Doc::Members children);

FieldSet unite(const FieldSet& a, const FieldSet& b);
FieldSet intersect(const FieldSet& a, const FieldSet& b);
// Paths of a that are not in b.
FieldSet subtract(const FieldSet& a, const FieldSet& b);
// The same, and without all that lies below a path of b.
FieldSet subtract_deep(const FieldSet& a, const FieldSet& b);
// In place; their cost grows with b, not with a.
void unite_with(FieldSet& a, const FieldSet& b);
void subtract_from(FieldSet& a, const FieldSet& b);
// Takes out a path and all that lies below it.
void erase_path(FieldSet& set, const FieldPath& path);

// The part of the set that lies on or below one of the patterns. A "*" in a pattern stands for any
// element. Paths above a pattern are kept where something below them is.
FieldSet keep_matching(const FieldSet& set, const std::vector<FieldPath>& patterns);

// Every path of the set as people read it, the paths of a level before those below it:
// `.spec.replicas`.
using PathVisitor = std::function<void(const FieldPath& path)>;
void each_path(const FieldSet& set, const PathVisitor& visit);
std::string path_text(const FieldPath& path);

}  // namespace jogak::patch
