// SPDX-License-Identifier: Apache-2.0
//
// The walk over two values side by side. Children are visited in the order of their path elements,
// so that the sets grow in canonical order.
#include "apiserver/patch/compare.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apiserver/patch/item_index.h"

namespace jogak::patch {
namespace {

constexpr std::array<std::string_view, 9> kServerMetadata = {
    "name",        "namespace",  "creationTimestamp", "selfLink",       "uid",
    "clusterName", "generation", "managedFields",     "resourceVersion"};

bool is_server_metadata(std::string_view name) {
  return std::ranges::find(kServerMetadata, name) != kServerMetadata.end();
}

// The members of a struct that Go writes even when they are zero.
const std::vector<const schema::Field*>& always_written(const schema::Struct& type) {
  thread_local std::unordered_map<const schema::Struct*, std::vector<const schema::Field*>> known;
  const auto [it, is_new] = known.try_emplace(&type);
  if (is_new) {
    for (const schema::Field& field : type.fields) {
      if (field.is_always) it->second.push_back(&field);
    }
  }
  return it->second;
}

// One value in both versions: the marks on its own path and what lies below.
struct Level {
  bool is_changed = false;
  bool is_removed = false;
  Doc::Members changed;
  Doc::Members removed;
};

// One member in both versions; nullptr where it is absent.
struct Pair {
  std::string_view name;
  const Doc* old = nullptr;
  const Doc* now = nullptr;
};

enum class Place : std::uint8_t { Root, Metadata, Below };

// The member of that name; `hint` is where it probably stands.
const Doc* member_hinted(const Doc* object, std::string_view name, std::size_t hint) {
  if (object == nullptr) return nullptr;
  const Doc::Members& members = object->members();
  if (hint < members.size() && members[hint].key == name) return &members[hint].value;
  return object->find(name);
}

void add_always(const schema::Struct& type, const Doc* old, const Doc* now,
                std::vector<Pair>& pairs) {
  for (const schema::Field* field : always_written(type)) {
    const bool lacks_old = old != nullptr && !old->has(field->name);
    const bool lacks_now = now != nullptr && !now->has(field->name);
    if (!lacks_old && !lacks_now) continue;
    if (lacks_old && lacks_now) continue;  // zero on both sides
    const auto known = std::ranges::find(pairs, field->name, &Pair::name);
    if (known == pairs.end()) {
      // Absent as a whole on one side, or equal and passed over.
      if (lacks_old && now == nullptr) pairs.push_back({field->name, &zero_value(*field), nullptr});
      if (lacks_now && old == nullptr) pairs.push_back({field->name, nullptr, &zero_value(*field)});
      continue;
    }
    if (lacks_old) known->old = &zero_value(*field);
    if (lacks_now) known->now = &zero_value(*field);
  }
}

// The members that may differ, by name. Those of `filled` that Go always writes count as there.
std::vector<Pair> member_pairs(const Doc* old, const Doc* now, const schema::Struct* filled) {
  std::vector<Pair> pairs;
  if (now != nullptr) {
    const Doc::Members& members = now->members();
    pairs.reserve(members.size() + 4);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Doc* before = member_hinted(old, members[i].key, i);
      if (before != nullptr && *before == members[i].value) continue;
      pairs.push_back({members[i].key, before, &members[i].value});
    }
  }
  if (old != nullptr) {
    const Doc::Members& members = old->members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (member_hinted(now, members[i].key, i) != nullptr) continue;
      pairs.push_back({members[i].key, &members[i].value, nullptr});
    }
  }
  if (filled != nullptr) add_always(*filled, old, now, pairs);
  std::ranges::sort(pairs, {}, &Pair::name);
  return pairs;
}

class Walk {
 public:
  explicit Walk(Reading reading) : reading_(reading) {}
  void visit(const Doc* old, const Doc* now, const TypeView& type, Place place, Level& out);

 private:
  // Whether the value was taken as one leaf.
  bool visit_as(TypeView::Form form, const Doc* old, const Doc* now, const TypeView& type,
                Place place, Level& out);
  bool leaf(const Doc* old, const Doc* now, const TypeView& type, Level& out);
  bool visit_map(const Doc* old, const Doc* now, const TypeView& type, Place place, Level& out);
  bool visit_list(const Doc* old, const Doc* now, const TypeView& type, Level& out);
  void visit_item(const ItemIndex::Entry* old, const ItemIndex::Entry* now, const TypeView& item,
                  Level& out);
  static void add(std::string element, Level level, Level& out);
  bool is_same(const Doc& a, const Doc& b, const TypeView& type) const {
    return same_value(a, b, reading_ == Reading::AsGo ? type : TypeView::deduced());
  }
  // The struct whose absent members count, if any.
  const schema::Struct* filled(const TypeView& type) const {
    return reading_ == Reading::AsGo ? type.as_struct() : nullptr;
  }

  Reading reading_;
};

void Walk::add(std::string element, Level level, Level& out) {
  if (level.is_removed || !level.removed.empty()) {
    out.removed.push_back(
        {.key = element, .value = make_node(level.is_removed, std::move(level.removed))});
  }
  if (level.is_changed || !level.changed.empty()) {
    out.changed.push_back({.key = std::move(element),
                           .value = make_node(level.is_changed, std::move(level.changed))});
  }
}

bool Walk::leaf(const Doc* old, const Doc* now, const TypeView& type, Level& out) {
  if (old == nullptr) {
    out.is_changed = true;
  } else if (now == nullptr) {
    out.is_removed = true;
  } else if (!is_same(*old, *now, type)) {
    out.is_changed = true;
  }
  return true;
}

void Walk::visit(const Doc* old, const Doc* now, const TypeView& type, Place place, Level& out) {
  const TypeView::Form old_form = type.form_for(old);
  const TypeView::Form now_form = type.form_for(now);
  bool is_leaf = false;
  if (now == nullptr) {
    is_leaf = visit_as(old_form, old, now, type, place, out);
  } else {
    if (old != nullptr && old_form != now_form) visit_as(old_form, old, now, type, place, out);
    is_leaf = visit_as(now_form, old, now, type, place, out);
  }
  if (is_leaf) return;
  if (old == nullptr) out.is_changed = true;
  if (now == nullptr) out.is_removed = true;
}

bool Walk::visit_as(TypeView::Form form, const Doc* old, const Doc* now, const TypeView& type,
                    Place place, Level& out) {
  switch (form) {
    case TypeView::Form::Map:
      return visit_map(old, now, type, place, out);
    case TypeView::Form::Scalar:
      return leaf(old, now, type, out);
    case TypeView::Form::List:
      return visit_list(old, now, type, out);
  }
  return false;
}

bool Walk::visit_map(const Doc* old, const Doc* now, const TypeView& type, Place place,
                     Level& out) {
  const Doc* old_map = old != nullptr && old->is_object() ? old : nullptr;
  const Doc* now_map = now != nullptr && now->is_object() ? now : nullptr;
  const auto is_empty = [&](const Doc* map) {
    if (map == nullptr) return true;
    return map->empty() && (filled(type) == nullptr || always_written(*filled(type)).empty());
  };
  if (type.is_atomic_map() || (is_empty(old_map) && is_empty(now_map))) {
    return leaf(old, now, type, out);
  }
  const std::vector<Pair> pairs = member_pairs(old_map, now_map, filled(type));
  if (old == nullptr) {
    out.changed.reserve(pairs.size() + 1);
    if (place == Place::Below) out.changed.push_back(self_mark());
  }
  for (const Pair& pair : pairs) {
    Place inner = Place::Below;
    if (place == Place::Root) {
      if (pair.name == "apiVersion" || pair.name == "kind") continue;
      if (pair.name == "metadata") inner = Place::Metadata;
    } else if (place == Place::Metadata && is_server_metadata(pair.name)) {
      continue;
    }
    Level level;
    const auto member = type.member(pair.name);
    visit(pair.old, pair.now, member ? *member : TypeView::deduced(), inner, level);
    if (inner == Place::Metadata) level.is_changed = level.is_removed = false;
    add(field_element(pair.name), std::move(level), out);
  }
  return false;
}

void Walk::visit_item(const ItemIndex::Entry* old, const ItemIndex::Entry* now,
                      const TypeView& item, Level& out) {
  const bool old_repeated = old != nullptr && old->is_repeated();
  const bool now_repeated = now != nullptr && now->is_repeated();
  if (!old_repeated && !now_repeated) {
    const Doc* before = old == nullptr ? nullptr : old->item;
    const Doc* after = now == nullptr ? nullptr : now->item;
    if (before != nullptr && after != nullptr && *before == *after) return;
    visit(before, after, item, Place::Below, out);
    return;
  }
  if (old_repeated && now_repeated) {
    // Items that share a key have no fields of their own: they are one value together.
    out.is_changed = !std::ranges::equal(
        old->all, now->all, [&](const Doc* a, const Doc* b) { return is_same(*a, *b, item); });
    return;
  }
  if (old_repeated) {
    if (now != nullptr) visit(nullptr, now->item, item, Place::Below, out);
    out.is_removed = true;
    return;
  }
  if (old != nullptr) visit(old->item, nullptr, item, Place::Below, out);
  out.is_changed = true;
}

bool Walk::visit_list(const Doc* old, const Doc* now, const TypeView& type, Level& out) {
  static const Doc::Items kNone;
  const Doc::Items& old_items = old != nullptr && old->is_array() ? old->items() : kNone;
  const Doc::Items& now_items = now != nullptr && now->is_array() ? now->items() : kNone;
  if (type.is_atomic_list() || (old_items.empty() && now_items.empty())) {
    return leaf(old, now, type, out);
  }
  const ItemIndex before(old_items, type);
  const ItemIndex after(now_items, type);
  struct Both {
    std::string_view element;
    const ItemIndex::Entry* old;
    const ItemIndex::Entry* now;
  };
  std::vector<Both> all;
  all.reserve(before.entries().size() + after.entries().size());
  for (const ItemIndex::Entry& entry : before.entries()) {
    all.push_back({entry.element, &entry, after.find(entry.element)});
  }
  for (const ItemIndex::Entry& entry : after.entries()) {
    if (before.find(entry.element) == nullptr) all.push_back({entry.element, nullptr, &entry});
  }
  std::ranges::sort(
      all, [](const Both& a, const Both& b) { return compare_elements(a.element, b.element) < 0; });
  const TypeView item = type.item();
  for (const Both& both : all) {
    Level level;
    visit_item(both.old, both.now, item, level);
    add(std::string(both.element), std::move(level), out);
  }
  return false;
}

bool same_struct(const Doc& a, const Doc& b, const TypeView& type) {
  return std::ranges::all_of(member_pairs(&a, &b, type.as_struct()), [&](const Pair& pair) {
    if (pair.old == nullptr || pair.now == nullptr) return false;
    const auto member = type.member(pair.name);
    return same_value(*pair.old, *pair.now, member ? *member : TypeView::deduced());
  });
}

}  // namespace

bool same_value(const Doc& a, const Doc& b, const TypeView& type) {
  if (a == b) return true;
  if (a.is_number() && b.is_number()) {
    if (a.is_int() && b.is_int()) return false;
    return std::strtod(a.number_text().c_str(), nullptr) ==
           std::strtod(b.number_text().c_str(), nullptr);
  }
  if (a.kind() != b.kind()) return false;
  if (a.is_object()) return same_struct(a, b, type);
  if (!a.is_array() || a.size() != b.size()) return false;
  const TypeView item = type.item();
  return std::ranges::equal(a.items(), b.items(),
                            [&](const Doc& x, const Doc& y) { return same_value(x, y, item); });
}

Comparison compare(const Doc& old, const Doc& object, const TypeView& type, Reading reading) {
  static const Doc kNothing = Doc::object();
  Level level;
  Walk(reading).visit(old.is_null() ? &kNothing : &old, &object, type, Place::Root, level);
  return {.changed = make_root(std::move(level.changed)),
          .removed = make_root(std::move(level.removed))};
}

}  // namespace jogak::patch
