// SPDX-License-Identifier: Apache-2.0
//
// The algebra of field sets: merges of sorted trees.
#include "apiserver/patch/field_set.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace jogak::patch {
namespace {

constexpr std::string_view kSelf = ".";
constexpr std::string_view kAny = "*";

using Children = std::span<const Doc::Member>;

bool has_self(const FieldSet& node) { return !node.empty() && node.members().front().key == kSelf; }

void mark_self(FieldSet& node) {
  if (node.empty()) return;  // {} says it already
  Doc::Members& members = node.members();
  members.insert(members.begin(), self_mark());
}

void clear_self(FieldSet& node) {
  if (has_self(node)) node.members().erase(node.members().begin());
}

// Whether the node holds nothing any more.
bool erase_below(FieldSet& node, std::span<const std::string> path) {
  const bool is_in_set = is_member(node);
  Doc* child = node.find(path.front());
  if (child == nullptr) return false;
  if (path.size() == 1 || erase_below(*child, path.subspan(1))) node.erase(path.front());
  if (is_in_set && node.size() == 1) clear_self(node);  // {} says it now
  return node.empty() && !is_in_set;
}

// Appends a node unless it holds nothing.
void append(Doc::Members& out, const std::string& key, bool is_in_set, Doc::Members children) {
  if (!is_in_set && children.empty()) return;
  out.push_back({.key = key, .value = make_node(is_in_set, std::move(children))});
}

// Walks two sorted lists: only_a(member), only_b(member), both(a, b), in order.
template <class OnlyA, class OnlyB, class Both>
void zip(Children a, Children b, const OnlyA& only_a, const OnlyB& only_b, const Both& both) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int order = compare_elements(a[i].key, b[j].key);
    if (order < 0) {
      only_a(a[i++]);
    } else if (order > 0) {
      only_b(b[j++]);
    } else {
      both(a[i++], b[j++]);
    }
  }
  while (i < a.size()) only_a(a[i++]);
  while (j < b.size()) only_b(b[j++]);
}

void ignore(const Doc::Member& /*member*/) {}

Doc::Members unite_children(Children a, Children b) {
  Doc::Members out;
  out.reserve(std::max(a.size(), b.size()) + 1);
  const auto keep = [&](const Doc::Member& member) { out.push_back(member); };
  zip(a, b, keep, keep, [&](const Doc::Member& x, const Doc::Member& y) {
    append(out, x.key, is_member(x.value) || is_member(y.value),
           unite_children(children_of(x.value), children_of(y.value)));
  });
  return out;
}

Doc::Members intersect_children(Children a, Children b) {
  Doc::Members out;
  zip(a, b, ignore, ignore, [&](const Doc::Member& x, const Doc::Member& y) {
    append(out, x.key, is_member(x.value) && is_member(y.value),
           intersect_children(children_of(x.value), children_of(y.value)));
  });
  return out;
}

Doc::Members subtract_children(Children a, Children b, bool is_deep) {
  Doc::Members out;
  const auto keep = [&](const Doc::Member& member) { out.push_back(member); };
  zip(a, b, keep, ignore, [&](const Doc::Member& x, const Doc::Member& y) {
    if (is_deep && is_member(y.value)) return;
    append(out, x.key, is_member(x.value) && !is_member(y.value),
           subtract_children(children_of(x.value), children_of(y.value), is_deep));
  });
  return out;
}

// The child of that element, made when absent as a node that holds nothing yet.
Doc& child_at(FieldSet& node, std::string_view element) {
  if (Doc* child = node.find(element)) return *child;
  Doc::Members& members = node.members();
  const auto start = members.begin() + (has_self(node) ? 1 : 0);
  const auto place = std::partition_point(start, members.end(), [&](const Doc::Member& member) {
    return compare_elements(member.key, element) < 0;
  });
  return members.insert(place, {.key = std::string(element), .value = Doc::object()})->value;
}

void unite_below(FieldSet& node, Children others) {
  for (const Doc::Member& other : others) {
    const bool is_new = node.find(other.key) == nullptr;
    Doc& child = child_at(node, other.key);
    if (is_new) {
      child = other.value;
      continue;
    }
    const bool is_in_set = is_member(child) || is_member(other.value);
    clear_self(child);
    unite_below(child, children_of(other.value));
    if (is_in_set) mark_self(child);
  }
}

void subtract_below(FieldSet& node, Children others) {
  for (const Doc::Member& other : others) {
    Doc* child = node.find(other.key);
    if (child == nullptr) continue;
    const bool is_in_set = is_member(*child) && !is_member(other.value);
    clear_self(*child);
    subtract_below(*child, children_of(other.value));
    if (is_in_set) {
      mark_self(*child);
    } else if (child->empty()) {
      node.erase(other.key);
    }
  }
}

using Patterns = std::vector<std::span<const std::string>>;

Doc::Members keep_children(Children children, const Patterns& patterns) {
  Doc::Members out;
  for (const Doc::Member& child : children) {
    Patterns rest;
    bool is_whole = false;
    for (const auto pattern : patterns) {
      if (pattern.front() != kAny && pattern.front() != child.key) continue;
      is_whole = is_whole || pattern.size() == 1;
      rest.push_back(pattern.subspan(1));
    }
    if (is_whole) {
      out.push_back(child);
    } else if (!rest.empty()) {
      append(out, child.key, is_member(child.value), keep_children(children_of(child.value), rest));
    }
  }
  return out;
}

void visit_paths(Children children, FieldPath& path, const PathVisitor& visit) {
  for (const auto& [key, node] : children) {
    if (!is_member(node)) continue;
    path.push_back(key);
    visit(path);
    path.pop_back();
  }
  for (const auto& [key, node] : children) {
    path.push_back(key);
    visit_paths(children_of(node), path, visit);
    path.pop_back();
  }
}

// The canonical children of a node that somebody sent; false when it cannot be read.
bool read_children(const Doc& sent, FieldSet& out) {
  if (!sent.is_object() && !sent.is_null()) return false;
  for (const auto& [key, value] : sent.members()) {
    if (key == kSelf) continue;
    const auto element = canonical_element(key);
    if (!element) return false;
    if (element->empty()) continue;
    FieldSet child = Doc::object();
    if (!read_children(value, child)) return false;
    if (child.empty() || value.has(kSelf)) {
      child = make_node(true, std::move(child.members()));
    }
    Doc::Members one;
    one.push_back({.key = *element, .value = std::move(child)});
    unite_below(out, one);
  }
  return true;
}

}  // namespace

bool is_member(const FieldSet& node) { return node.empty() || has_self(node); }

std::span<const Doc::Member> children_of(const FieldSet& node) {
  const Children all = node.members();
  return has_self(node) ? all.subspan(1) : all;
}

FieldSet make_node(bool is_in_set, Doc::Members children) {
  FieldSet node = make_root(std::move(children));
  if (has_self(node)) {
    if (node.size() == 1) node.members().clear();
  } else if (is_in_set) {
    mark_self(node);
  }
  return node;
}

Doc::Member self_mark() { return {.key = std::string(kSelf), .value = Doc::object()}; }

FieldSet make_root(Doc::Members children) {
  FieldSet set = Doc::object();
  set.members() = std::move(children);
  return set;
}

std::optional<FieldSet> canonical_set(const Doc& sent) {
  FieldSet set = Doc::object();
  if (!read_children(sent, set)) return std::nullopt;
  return set;
}

bool has_path(const FieldSet& set, const FieldPath& path) {
  const FieldSet* node = &set;
  for (const std::string& element : path) {
    node = node->find(element);
    if (node == nullptr) return false;
  }
  return !path.empty() && is_member(*node);
}

void insert_path(FieldSet& set, const FieldPath& path) {
  FieldSet one = Doc::object();
  for (std::size_t i = path.size(); i > 0; --i) {
    Doc::Members members;
    members.push_back({.key = path[i - 1], .value = std::move(one)});
    one = make_root(std::move(members));
  }
  unite_with(set, one);
}

FieldSet unite(const FieldSet& a, const FieldSet& b) {
  return make_root(unite_children(children_of(a), children_of(b)));
}

FieldSet intersect(const FieldSet& a, const FieldSet& b) {
  return make_root(intersect_children(children_of(a), children_of(b)));
}

FieldSet subtract(const FieldSet& a, const FieldSet& b) {
  return make_root(subtract_children(children_of(a), children_of(b), false));
}

FieldSet subtract_deep(const FieldSet& a, const FieldSet& b) {
  return make_root(subtract_children(children_of(a), children_of(b), true));
}

void unite_with(FieldSet& a, const FieldSet& b) { unite_below(a, children_of(b)); }

void subtract_from(FieldSet& a, const FieldSet& b) { subtract_below(a, children_of(b)); }

void erase_path(FieldSet& set, const FieldPath& path) { erase_below(set, path); }

FieldSet keep_matching(const FieldSet& set, const std::vector<FieldPath>& patterns) {
  Patterns open;
  for (const FieldPath& pattern : patterns) open.emplace_back(pattern);
  return make_root(keep_children(children_of(set), open));
}

void each_path(const FieldSet& set, const PathVisitor& visit) {
  FieldPath path;
  visit_paths(children_of(set), path, visit);
}

std::string path_text(const FieldPath& path) {
  std::string text;
  for (const std::string& element : path) text += element_text(element);
  return text;
}

}  // namespace jogak::patch
