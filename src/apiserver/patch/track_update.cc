// SPDX-License-Identifier: Apache-2.0
//
// managedFields of creates and of updates that are no apply: the writer takes what it changed.
#include <algorithm>
#include <string_view>
#include <utility>

#include "apiserver/object/meta.h"
#include "apiserver/patch/compare.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/managers.h"
#include "apiserver/patch/typed_value.h"

namespace jogak::patch {
namespace {

constexpr std::string_view kManagedFields = "managedFields";

// The managers that the write starts from. A client may send its own, except through subresources;
// who sends none, or nonsense, does not lose those there are. Takes them out of the object.
Managers starting_managers(const Doc& old, Doc& object, const Writer& writer) {
  const Doc& known = api::meta(old)[kManagedFields];
  Doc sent;
  if (Doc* metadata = object.find("metadata"); metadata != nullptr && metadata->is_object()) {
    if (Doc* member = metadata->find(kManagedFields)) {
      sent = std::move(*member);
      metadata->erase(kManagedFields);
    }
  }
  if (sent == known) return sent.is_array() ? std::move(sent.items()) : Managers();
  if (writer.subresource.empty()) {
    if (is_reset(sent)) return {};
    if (auto managers = read_managers(sent); managers && !managers->empty()) return *managers;
  }
  return known.items();
}

// Scaling shows the client a Scale, whose managers are those that own the replicas. When there are
// none nobody is tracked; a new one has no time, as the parent knows none for it.
void track_scale(const FieldSet& changed, const Writer& writer, Managers& managers) {
  const bool is_tracked = std::ranges::any_of(managers, [&](const Doc& manager) {
    return !intersect(fields_of(manager), changed).empty();
  });
  if (!is_tracked) return;
  take_fields(managers, changed);
  Doc self = make_manager(writer.manager, kUpdate, writer.api_version, writer.subresource);
  if (Doc* known = find_manager(managers, self)) {
    known->set("fieldsV1", changed);
  } else {
    self.set("fieldsV1", changed);
    managers.push_back(std::move(self));
  }
  drop_empty(managers);
}

void track(Comparison difference, const Writer& writer, Managers& managers) {
  take_fields(managers, difference.removed);
  take_fields(managers, difference.changed);
  if (!difference.changed.empty()) {
    Doc self = make_manager(writer.manager.empty() ? "unknown" : writer.manager, kUpdate,
                            writer.api_version, writer.subresource);
    Doc* entry = find_manager(managers, self);
    if (entry != nullptr) {
      unite_with(entry->at("fieldsV1"), difference.changed);
    } else {
      entry = &managers.emplace_back(std::move(self));
      entry->set("fieldsV1", std::move(difference.changed));
    }
    set_time(*entry, writer.now);
  }
  drop_empty(managers);
  cap_updaters(managers);
}

}  // namespace

void track_update(const Doc& old, Doc& object, const Writer& writer, const ObjectType& type) {
  Managers managers = starting_managers(old, object, writer);
  const bool is_create = api::uid_of(old).empty();
  if (managers.empty() && !is_create) return;  // not tracked so far: stays so
  const TypeView view = TypeView::of(type);
  if (type.builtin == nullptr) {
    // What does not fit its schema cannot be tracked; its managers are forgotten.
    for (const Doc* side : {&std::as_const(object), &old}) {
      if (!type_problem(*side, view, Repeats::Allowed).empty()) return;
    }
    for (Doc& manager : managers) manager.set("fieldsV1", fit_to_type(fields_of(manager), view));
  }
  Comparison difference = compare(old, object, view);
  difference.changed = without_reset_fields(std::move(difference.changed), writer, type);
  difference.removed = without_reset_fields(std::move(difference.removed), writer, type);
  if (writer.subresource == "scale") {
    track_scale(difference.changed, writer, managers);
  } else {
    track(std::move(difference), writer, managers);
  }
  write_managers(std::move(managers), object);
}

void keep_times_if_same(const Doc& old, Doc& object) {
  const Doc& before = api::meta(old)[kManagedFields];
  Doc* metadata = object.find("metadata");
  Doc* after = metadata == nullptr ? nullptr : metadata->find(kManagedFields);
  if (after == nullptr || before.size() != after->size() || before == *after) return;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Doc& was = before.items()[i];
    Doc& is = after->items()[i];
    if (!is_same_manager(was, is) || fields_of(was) != fields_of(is)) return;
  }
  const auto is_equal_besides = [](const Doc& a, const Doc& b, std::string_view key) {
    return std::ranges::all_of(a.members(),
                               [&](const Doc::Member& member) {
                                 const Doc* other = b.find(member.key);
                                 return member.key == key ||
                                        (other != nullptr && *other == member.value);
                               }) &&
           a.size() == b.size();
  };
  if (!is_equal_besides(old, object, "metadata")) return;
  if (!is_equal_besides(api::meta(old), *metadata, kManagedFields)) return;
  *after = before;
}

}  // namespace jogak::patch
