// SPDX-License-Identifier: Apache-2.0
//
// Server-side apply: the intent is laid over the live object, what the applier named last time and
// names no more goes unless somebody else owns it, and what changes in fields of others is a
// conflict.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/patch/compare.h"
#include "apiserver/patch/conflicts.h"
#include "apiserver/patch/last_applied.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/managers.h"
#include "apiserver/patch/typed_value.h"
#include "apiserver/schema/normalise.h"

namespace jogak::patch {
namespace {

constexpr std::string_view kBeforeFirstApply = "before-first-apply";

// "apps/v1, Kind=Deployment", "/v1, Kind=Pod"
std::string type_text(const Doc& object) {
  const std::string& version = object["apiVersion"].as_string();
  const bool has_group = version.find('/') != std::string::npos;
  return fmt::format("{}{}, Kind={}", has_group ? "" : "/", version.empty() ? "" : version,
                     object["kind"].as_string());
}

std::string_view kind_of(const ObjectType& type, const Doc& live) {
  if (type.builtin == nullptr) return live["kind"].as_string();
  const std::string_view name = type.builtin->name;
  return name.substr(name.rfind('.') + 1);
}

// The metadata that is never anybody's.
const FieldSet& unowned_fields() {
  static const FieldSet kSet = [] {
    FieldSet set = Doc::object();
    const std::string metadata = field_element("metadata");
    for (const std::string_view name : {"apiVersion", "kind", "metadata"}) {
      insert_path(set, {field_element(name)});
    }
    for (const std::string_view name :
         {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
          "managedFields", "resourceVersion"}) {
      insert_path(set, {metadata, field_element(name)});
    }
    return set;
  }();
  return kSet;
}

// Without what the applier named last time and names no more, unless somebody owns it.
Doc prune(const Doc& merged, const Managers& managers, const FieldSet& last, const TypeView& type) {
  if (last.empty()) return merged;
  const auto all_named = [&](const Doc& value) {
    return with_named_members(named_fields(value, type), type);
  };
  const FieldSet last_named = with_named_members(last, type);
  const FieldSet merged_named = all_named(merged);
  FieldSet owned = Doc::object();
  for (const Doc& manager : managers) unite_with(owned, fields_of(manager));
  const Doc bare = remove_fields(merged, last_named, type);
  const FieldSet kept = unite(all_named(bare), with_named_members(owned, type));
  const Doc with_owned = remove_fields(merged, subtract(merged_named, kept), type);
  // What went with a list item or a map around it, but was never the applier's, comes back.
  const FieldSet gone = subtract(merged_named, all_named(with_owned));
  return remove_fields(merged, intersect(gone, last_named), type);
}

class Application {
 public:
  Application(const Doc& live, const Doc& intent, const Writer& writer, const ObjectType& type)
      : live_(live), intent_(intent), writer_(writer), type_(type), view_(TypeView::of(type)) {
    // Read anew: an object that went through a sorted map has lost the order of its sets.
    managers_ = read_managers(api::meta(live)["managedFields"]).value_or(Managers());
    for (Doc& manager : managers_) manager.set("fieldsV1", fit_to_type(fields_of(manager), view_));
    if (managers_.empty() && !api::uid_of(live).empty()) adopt();
  }

  struct Outcome {
    std::vector<Conflict> conflicts;
    Doc object;
  };
  Outcome run(bool is_forced) const;

 private:
  // The object was not tracked so far: all it holds belongs to whoever came before.
  void adopt();
  // Conflicts with others. Without any, or by force, the fields are taken from them.
  std::vector<Conflict> settle(const Doc& merged, bool is_forced, Managers& managers) const;
  Doc self() const {
    return make_manager(writer_.manager, kApply, writer_.api_version, writer_.subresource);
  }

  const Doc& live_;  // with every member that Go writes
  const Doc& intent_;
  const Writer& writer_;
  const ObjectType& type_;
  TypeView view_;
  Managers managers_;
};

void Application::adopt() {
  FieldSet found = without_reset_fields(compare(Doc(), live_, view_).changed, writer_, type_);
  if (found.empty()) return;
  Doc& before = managers_.emplace_back(
      make_manager(kBeforeFirstApply, kUpdate, writer_.api_version, writer_.subresource));
  before.set("fieldsV1", std::move(found));
  set_time(before, writer_.now);
}

std::vector<Conflict> Application::settle(const Doc& merged, bool is_forced,
                                          Managers& managers) const {
  Comparison difference = compare(live_, merged, view_, Reading::AsWritten);
  difference.changed = without_reset_fields(std::move(difference.changed), writer_, type_);
  difference.removed = without_reset_fields(std::move(difference.removed), writer_, type_);
  const Doc own = self();
  std::vector<Conflict> conflicts;
  for (const Doc& manager : managers) {
    if (is_same_manager(manager, own)) continue;
    each_path(intersect(fields_of(manager), difference.changed), [&](const FieldPath& path) {
      conflicts.push_back({.manager = manager_text(manager), .path = path});
    });
  }
  if (!conflicts.empty() && !is_forced) return conflicts;
  for (Doc& manager : managers) {
    if (is_same_manager(manager, own)) continue;
    subtract_from(manager.at("fieldsV1"), difference.changed);
    subtract_from(manager.at("fieldsV1"), difference.removed);
  }
  return {};
}

Application::Outcome Application::run(bool is_forced) const {
  Managers managers = managers_;
  FieldSet last = Doc::object();
  if (const Doc* known = find_manager(managers, self())) {
    last = fields_of(*known);
  } else {
    managers.push_back(self());
  }
  Doc& own = *find_manager(managers, self());
  own.set("apiVersion", writer_.api_version);
  own.set("fieldsV1", without_reset_fields(named_fields(intent_, view_), writer_, type_));
  Doc merged = prune(merge_values(live_, intent_, view_), managers, last, view_);
  if (auto conflicts = settle(merged, is_forced, managers); !conflicts.empty()) {
    return {.conflicts = std::move(conflicts), .object = {}};
  }
  // To the letter: a member given up is a change even where Go would write it again.
  const bool is_same = same_value(live_, merged, TypeView::deduced());
  subtract_from(own.at("fieldsV1"), unowned_fields());
  if (!is_same) set_time(own, writer_.now);
  drop_empty(managers);
  Outcome outcome{.conflicts = {}, .object = std::move(merged)};
  if (is_same) outcome.object = live_;
  write_managers(std::move(managers), outcome.object);
  return outcome;
}

// The conflicts that are none because kubectl left those fields so with its client-side apply.
std::vector<Conflict> without_last_applied(std::vector<Conflict> conflicts, const Doc& live,
                                           const Writer& writer, const ObjectType& type) {
  const auto allowed = last_applied_fields(live, writer.api_version, type);
  if (!allowed) return conflicts;
  std::erase_if(conflicts,
                [&](const Conflict& conflict) { return has_path(*allowed, conflict.path); });
  return conflicts;
}

api::Refusal bad_intent(const Doc& intent, std::string_view doing, std::string_view problem) {
  return api::bare_error(
      500, fmt::format("failed to {} ({}/{}; {}): {}", doing, api::namespace_of(intent),
                       api::name_of(intent), type_text(intent), problem));
}

// Custom objects may be stored that their schema, changed since, does not fit.
std::string live_problem(const Doc& live, const ObjectType& type) {
  if (type.builtin != nullptr || live.is_null()) return "";
  return type_problem(live, TypeView::of(type), Repeats::Allowed);
}

}  // namespace

api::ApiResult<Doc> apply(const Doc& live, Doc intent, const Writer& writer, bool is_forced,
                          const ObjectType& type) {
  const std::string_view kind = kind_of(type, live);
  if (intent["apiVersion"].as_string() != writer.api_version ||
      intent["kind"].as_string().empty() || (!kind.empty() && intent["kind"].as_string() != kind)) {
    return api::bad_request("invalid object type: " + type_text(intent));
  }
  if (!api::meta(intent)["managedFields"].is_null()) {
    return api::bad_request("metadata.managedFields must be nil");
  }
  if (std::string problem = type_problem(intent, TypeView::of(type)); !problem.empty()) {
    return bad_intent(intent, "create typed patch object", problem);
  }
  if (std::string problem = live_problem(live, type); !problem.empty()) {
    return bad_intent(intent, "create typed live object", problem);
  }
  Doc whole = live;
  if (live.is_null()) whole.set("kind", intent["kind"]).set("apiVersion", intent["apiVersion"]);
  if (type.builtin != nullptr) whole = schema::encode(std::move(whole), *type.builtin);

  const Application application(whole, intent, writer, type);
  Application::Outcome outcome = application.run(is_forced);
  if (!outcome.conflicts.empty() && writer.manager == kKubectl) {
    outcome.conflicts = without_last_applied(std::move(outcome.conflicts), live, writer, type);
    if (outcome.conflicts.empty()) outcome = application.run(true);
  }
  if (!outcome.conflicts.empty()) return conflict_error(outcome.conflicts);
  if (writer.manager == kKubectl) update_last_applied(outcome.object, intent);
  if (type.builtin == nullptr) return std::move(outcome.object);
  schema::Complaints complaints;
  auto decoded = schema::decode(std::move(outcome.object), *type.builtin, complaints);
  if (!decoded) return bad_intent(intent, "convert new object", decoded.error().what);
  return *std::move(decoded);
}

}  // namespace jogak::patch
