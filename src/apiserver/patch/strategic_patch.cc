// SPDX-License-Identifier: Apache-2.0
//
// Strategic merge patch: a merge patch that knows how the lists of a type merge, with directives
// for what a merge cannot say. Everything the patch cannot mean is refused as the server does it.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/strategic_order.h"
#include "base/result.h"

namespace jogak::patch {
namespace {

using schema::Base;
using schema::Field;
using schema::Struct;
using Shape = schema::Type::Shape;
template <class T>
using Outcome = api::ApiResult<T>;

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeleteFromList = "$deleteFromPrimitiveList";
constexpr std::string_view kSetOrder = "$setElementOrder";

// A Go error that the server passes on as it is.
api::Refusal go_error(std::string message) { return api::bare_error(500, std::move(message)); }

api::Refusal bad_format(std::string_view of) {
  return api::bad_request(fmt::format("invalid patch format of {}", of));
}

// As Go prints a value: map[a:1 b:x].
std::string go_text(const Doc& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_null()) return "<nil>";
  std::string text;
  if (value.is_array()) {
    for (const Doc& item : value.items()) text += (text.empty() ? "" : " ") + go_text(item);
    return "[" + text + "]";
  }
  if (value.is_object()) {
    std::vector<const Doc::Member*> members;
    for (const Doc::Member& member : value.members()) members.push_back(&member);
    std::ranges::sort(members, {},
                      [](const Doc::Member* m) -> const std::string& { return m->key; });
    for (const Doc::Member* member : members) {
      text += (text.empty() ? "" : " ") + member->key + ":" + go_text(member->value);
    }
    return "map[" + text + "]";
  }
  value.append_json(text);
  return text;
}

api::Refusal no_merge_key(const Doc& item, std::string_view key) {
  return go_error(
      fmt::format("map: {} does not contain declared merge key: {}", go_text(item), key));
}

api::Refusal unknown_directive(const Doc& directive, const Doc& patch) {
  return go_error(
      fmt::format("unknown patch type: {} in map: {}", go_text(directive), go_text(patch)));
}

// The list name of "$setElementOrder/containers"; nullopt when the directive is misspelt.
std::optional<std::string> directive_target(std::string_view key, std::string_view directive) {
  key.remove_prefix(directive.size());
  if (!key.starts_with('/')) return std::nullopt;
  return std::string(key.substr(1));
}

void discard_nulls(Doc& value) {
  if (value.is_object()) {
    std::erase_if(value.members(),
                  [](const Doc::Member& member) { return member.value.is_null(); });
    for (auto& [key, inner] : value.members()) discard_nulls(inner);
  } else if (value.is_array()) {
    for (Doc& item : value.items()) discard_nulls(item);
  }
}

// Takes out what a directive stands in; false when that is the value itself.
bool drop_directives(Doc& value) {
  if (value.is_object()) {
    if (value.has(kPatch)) return false;
    std::erase_if(value.members(), [](Doc::Member& m) { return !drop_directives(m.value); });
  } else if (value.is_array()) {
    std::erase_if(value.items(), [](Doc& item) { return !drop_directives(item); });
  }
  return true;
}

// How a member merges, and the type of what is in it.
struct Merge {
  bool is_merge = false;  // of lists: items merge
  bool is_replace = false;
  std::string_view key;
  const Struct* inner = nullptr;  // of the object, of the items; nullptr for what is no struct
};

class StrategicMerge {
 public:
  static Outcome<Doc> merge_objects(Doc object, Doc patch, const Struct* type);

 private:
  static Outcome<Merge> look_up(const Struct* type, std::string_view member);
  static Outcome<void> retain_keys(Doc& object, Doc& patch);
  static Outcome<void> apply_orders(Doc& object, Doc& patch, const Struct* type);
  static Outcome<void> apply_order(Doc& object, Doc& patch, const Struct* type,
                                   const std::string& name, const Doc& order);
  static Outcome<void> merge_member(Doc& object, const std::string& key, Doc change,
                                    const Struct* type, bool is_deletion);
  static Outcome<Doc::Items> merge_lists(Doc::Items live, Doc::Items patch, const Merge& merge,
                                         bool is_deletion);
  static Outcome<bool> apply_item_directives(Doc::Items& live, Doc::Items& patch,
                                             std::string_view key);
  static Outcome<Doc::Items> order_after(Doc::Items live, Doc::Items patch, std::string_view key);
  static Outcome<Doc::Items> merge_items(Doc::Items live, const Doc::Items& patch,
                                         const Merge& merge);
};

// "string", "map[string]interface {}": kinds must agree within a list.
std::string_view go_kind(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null:
      return "nil";
    case Doc::Kind::Bool:
      return "bool";
    case Doc::Kind::Int:
      return "int64";
    case Doc::Kind::Number:
      return "float64";
    case Doc::Kind::String:
      return "string";
    case Doc::Kind::Array:
      return "slice";
    case Doc::Kind::Object:
      return "map";
  }
  return "";
}

// Whether the items are objects. Items of two kinds, lists of lists and empty lists are refused.
Outcome<bool> has_object_items(const Doc::Items& a, const Doc::Items& b) {
  const Doc* first = nullptr;
  for (const Doc::Items* items : {&a, &b}) {
    for (const Doc& item : *items) {
      if (item.is_null()) return go_error("list element is null");
      if (item.is_array()) return api::unprocessable();
      if (first == nullptr) first = &item;
      if (go_kind(*first) != go_kind(item)) {
        return go_error(fmt::format("list element types are not identical: {} and {}",
                                    go_kind(*first), go_kind(item)));
      }
    }
  }
  if (first == nullptr) return go_error("no elements in any of the given slices");
  return first->is_object();
}

Outcome<void> require_key(const Doc::Items& items, std::string_view key) {
  for (const Doc& item : items) {
    if (!item.has(key)) return no_merge_key(item, key);
  }
  return {};
}

Outcome<Merge> StrategicMerge::look_up(const Struct* type, std::string_view member) {
  if (type == nullptr) {
    return go_error("merging an object in json but data type is not struct, instead is: map");
  }
  const Field* field = type->find(member);
  if (field == nullptr) {
    const std::string_view name = type->name.substr(type->name.rfind('.') + 1);
    return go_error(fmt::format("unable to find api field in struct {} for the json field \"{}\"",
                                name, member));
  }
  Merge merge{.is_merge = field->patch_merge,
              .is_replace = field->patch_replace,
              .key = field->patch_key,
              .inner = nullptr};
  const bool is_direct = field->type.shape == Shape::One || (field->type.shape == Shape::List &&
                                                             field->type.inner_shape == Shape::One);
  if (is_direct && field->type.base == Base::Struct) merge.inner = field->type.of;
  return merge;
}

// Keeps only the members that the directive names, of which the patch may change no others.
Outcome<void> StrategicMerge::retain_keys(Doc& object, Doc& patch) {
  const Doc* directive = patch.find(kRetainKeys);
  if (directive == nullptr) return {};
  const Doc keys = *directive;
  patch.erase(kRetainKeys);
  if (!keys.is_array()) return bad_format("retainKeys");
  const auto is_kept = [&](std::string_view key) {
    return std::ranges::any_of(keys.items(),
                               [&](const Doc& one) { return one.as_string() == key; });
  };
  for (const auto& [key, value] : patch.members()) {
    if (value.is_null() || key.starts_with(kDeleteFromList) || key.starts_with(kSetOrder)) continue;
    if (!is_kept(key)) return bad_format("retainKeys");
  }
  std::erase_if(object.members(), [&](const Doc::Member& member) { return !is_kept(member.key); });
  return {};
}

// Whether the item of the patch is the one at this place of the order.
Outcome<bool> is_item_at(const Doc& item, const Doc& place, std::string_view key) {
  if (key.empty()) return item == place;
  for (const Doc* one : {&item, &place}) {
    if (!one->is_object()) {
      return go_error(fmt::format("expected a map, but received a {}", go_kind(*one)));
    }
    if (!one->has(key)) return no_merge_key(*one, key);
  }
  return item[key] == place[key];
}

// The items of the patch must be items of the order, in that order; deletions do not count.
Outcome<void> check_order(const Doc::Items& patch, const Doc::Items& order, std::string_view key) {
  if (patch.empty() || order.empty()) return {};
  std::vector<const Doc*> items;
  for (const Doc& item : patch) {
    if (!key.empty() && !item.is_object()) {
      return go_error(fmt::format("expected a map, but received a {}", go_kind(item)));
    }
    if (key.empty() || item[kPatch].as_string() != "delete") items.push_back(&item);
  }
  std::size_t next = 0;
  std::size_t place = 0;
  while (next < items.size() && place < order.size()) {
    if (items[next]->has(kPatch)) {
      ++next;
      continue;
    }
    JOGAK_TRY(const bool is_here, is_item_at(*items[next], order[place], key));
    if (is_here) ++next;
    ++place;
  }
  if (next == items.size()) return {};
  return go_error(fmt::format("The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                              go_text(Doc::array(patch)), kSetOrder, go_text(Doc::array(order))));
}

Outcome<void> StrategicMerge::apply_order(Doc& object, Doc& patch, const Struct* type,
                                          const std::string& name, const Doc& order) {
  if (!order.is_array()) {
    return go_error(fmt::format("expected a slice, but received a {}", go_kind(order)));
  }
  const Doc* live_list = object.find(name);
  const Doc* patch_list = patch.find(name);
  for (const Doc* list : {live_list, patch_list}) {
    if (list != nullptr && !list->is_array()) {
      return go_error(fmt::format("expected a slice, but received a {}", go_kind(*list)));
    }
  }
  JOGAK_TRY(const Merge merge, look_up(type, name));
  Doc::Items live = live_list == nullptr ? Doc::Items() : live_list->items();
  Doc::Items changes = patch_list == nullptr ? Doc::Items() : patch_list->items();
  JOGAK_TRY_VOID(check_order(changes, order.items(), merge.key));
  if (live_list == nullptr && patch_list == nullptr) return {};
  Doc::Items merged = live;
  if (live_list == nullptr) {
    Doc added = Doc::array(changes);
    drop_directives(added);
    merged = std::move(added.items());
  } else if (patch_list != nullptr) {
    if (merge.is_merge) {
      JOGAK_TRY(merged, merge_lists(live, changes, merge, false));
    } else {
      merged = changes;
    }
  }
  JOGAK_TRY(const bool has_objects, has_object_items(live, changes));
  if (has_objects || !merge.key.empty()) {
    JOGAK_TRY_VOID(require_key(merged, merge.key));
    JOGAK_TRY_VOID(require_key(order.items(), merge.key));
  }
  if (has_objects && merge.is_merge && live_list != nullptr) {
    JOGAK_TRY(live, order_after(std::move(live), std::move(changes), merge.key));
  }
  auto [named, others] = split_by_presence(std::move(merged), order.items(), merge.key);
  object.set(name, Doc::array(merge_order(std::move(named), std::move(others), order.items(), live,
                                          merge.key)));
  patch.erase(name);
  return {};
}

Outcome<void> StrategicMerge::apply_orders(Doc& object, Doc& patch, const Struct* type) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : patch.members()) {
    if (key.starts_with(kSetOrder)) keys.push_back(key);
  }
  for (const std::string& key : keys) {
    const Doc order = patch[key];
    patch.erase(key);
    const auto name = directive_target(key, kSetOrder);
    if (!order.is_array()) {
      return go_error(fmt::format("expected a slice, but received a {}", go_kind(order)));
    }
    if (!name) return bad_format("setElementOrder list");
    JOGAK_TRY_VOID(apply_order(object, patch, type, *name, order));
  }
  return {};
}

// Deletes the live items that the patch deletes, and takes directives out of the patch. Whether the
// patch's items replace the list.
Outcome<bool> StrategicMerge::apply_item_directives(Doc::Items& live, Doc::Items& patch,
                                                    std::string_view key) {
  bool is_replacement = false;
  Doc::Items rest;
  for (Doc& item : patch) {
    const Doc* directive = item.find(kPatch);
    if (directive == nullptr) {
      rest.push_back(std::move(item));
      continue;
    }
    const std::string& word = directive->as_string();
    if (word == "delete") {
      const Doc* value = item.find(key);
      if (value == nullptr) return no_merge_key(item, key);
      std::erase_if(live, [&](const Doc& candidate) {
        const Doc* other = candidate.find(key);
        return other != nullptr && *other == *value;
      });
    } else if (word == "replace") {
      is_replacement = true;
    } else if (word == "merge") {
      return go_error("merging lists cannot yet be specified in the patch");
    } else {
      return unknown_directive(*directive, item);
    }
  }
  patch = std::move(rest);
  return is_replacement;
}

// The live order as the server remembers it after a merge: what was deleted is gone, and what was
// added stands behind the rest as long as there is room in the old list.
Outcome<Doc::Items> StrategicMerge::order_after(Doc::Items live, Doc::Items patch,
                                                std::string_view key) {
  const std::size_t room = live.size();
  JOGAK_TRY(const bool is_replacement, apply_item_directives(live, patch, key));
  if (is_replacement) return live;
  ItemPlaces places(live, key);
  for (Doc& item : patch) {
    if (live.size() < room && places.add(item, live.size())) live.push_back(std::move(item));
  }
  return live;
}

Outcome<Doc::Items> StrategicMerge::merge_items(Doc::Items live, const Doc::Items& patch,
                                                const Merge& merge) {
  ItemPlaces places(live, merge.key);
  for (const Doc& item : patch) {
    if (!item.has(merge.key)) return no_merge_key(item, merge.key);
    const std::size_t place = places.find(item);
    if (place == ItemPlaces::kNone) {
      places.add(item, live.size());
      live.push_back(item);
      continue;
    }
    JOGAK_TRY(live[place], merge_objects(std::move(live[place]), item, merge.inner));
  }
  return live;
}

Outcome<Doc::Items> StrategicMerge::merge_lists(Doc::Items live, Doc::Items patch,
                                                const Merge& merge, bool is_deletion) {
  if (live.empty() && patch.empty()) return live;
  JOGAK_TRY(const bool has_objects, has_object_items(live, patch));
  Doc::Items merged;
  if (!has_objects) {
    if (is_deletion) {
      return split_by_presence(std::move(live), patch, "").second;
    }
    if (!merge.key.empty()) return go_error("expected a map, but received a scalar");
    ItemPlaces places({}, "");
    for (const Doc::Items* items : {&live, &patch}) {
      for (const Doc& item : *items) {
        if (places.add(item, merged.size())) merged.push_back(item);
      }
    }
  } else {
    if (merge.key.empty()) return go_error("cannot merge lists without merge key for struct");
    JOGAK_TRY(const bool is_replacement, apply_item_directives(live, patch, merge.key));
    if (is_replacement) {
      live = std::move(patch);
      patch.clear();
    }
    JOGAK_TRY(merged, merge_items(live, patch, merge));
    for (const Doc::Items* items : {&merged, &patch, &live}) {
      JOGAK_TRY_VOID(require_key(*items, merge.key));
    }
  }
  auto [named, others] = split_by_presence(std::move(merged), patch, merge.key);
  return merge_order(std::move(named), std::move(others), patch, live, merge.key);
}

Outcome<void> StrategicMerge::merge_member(Doc& object, const std::string& key, Doc change,
                                           const Struct* type, bool is_deletion) {
  if (change.is_null()) {
    object.erase(key);
    return {};
  }
  Doc* member = object.find(key);
  if (member == nullptr || go_kind(*member) != go_kind(change)) {
    if (is_deletion) return {};
    discard_nulls(change);
    if (drop_directives(change)) {
      object.set(key, std::move(change));
    } else {
      object.erase(key);
    }
    return {};
  }
  if (change.is_object()) {
    JOGAK_TRY(const Merge merge, look_up(type, key));
    if (merge.is_replace) {
      *member = std::move(change);
    } else {
      JOGAK_TRY(*member, merge_objects(std::move(*member), std::move(change), merge.inner));
    }
    return {};
  }
  if (change.is_array()) {
    JOGAK_TRY(const Merge merge, look_up(type, key));
    if (merge.is_merge || is_deletion) {
      JOGAK_TRY(Doc::Items merged, merge_lists(std::move(member->items()),
                                               std::move(change.items()), merge, is_deletion));
      *member = Doc::array(std::move(merged));
    } else {
      *member = std::move(change);
    }
    return {};
  }
  *member = std::move(change);
  return {};
}

Outcome<Doc> StrategicMerge::merge_objects(Doc object, Doc patch, const Struct* type) {
  if (const Doc* directive = patch.find(kPatch)) {
    if (directive->as_string() == "replace") {
      patch.erase(kPatch);
      return patch;
    }
    if (directive->as_string() == "delete") return Doc::object();
    return unknown_directive(*directive, patch);
  }
  if (object.is_null()) object = Doc::object();
  JOGAK_TRY_VOID(retain_keys(object, patch));
  JOGAK_TRY_VOID(apply_orders(object, patch, type));
  for (auto& [key, change] : patch.members()) {
    std::string name = key;
    const bool is_deletion = key.starts_with(kDeleteFromList);
    if (is_deletion) {
      auto target = directive_target(key, kDeleteFromList);
      if (!target) return bad_format("primitive list");
      name = std::move(*target);
    }
    JOGAK_TRY_VOID(merge_member(object, name, std::move(change), type, is_deletion));
  }
  return object;
}

}  // namespace

api::ApiResult<Doc> strategic_merge_patch(Doc object, const Doc& patch,
                                          const schema::Struct& type) {
  if (!patch.is_object() && !patch.is_null()) {
    return api::bad_request(
        fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    patch.is_array()    ? "array"
                    : patch.is_string() ? "string"
                    : patch.is_bool()   ? "bool"
                                        : "number"));
  }
  if (patch.is_null()) return object;
  return StrategicMerge::merge_objects(std::move(object), patch, &type);
}

}  // namespace jogak::patch
