// SPDX-License-Identifier: Apache-2.0
//
// The rules that suit a kind without rules of its own, and the list of what is served.
#include "apiserver/registry/resource.h"

#include <algorithm>
#include <array>

#include "apiserver/object/meta.h"

namespace jogak::api {

void Strategy::set_defaults(Doc& /*object*/) const {}

void Strategy::prepare_create(Doc& object, WriteContext& /*context*/) const {
  object.erase("status");
}

void Strategy::validate_create(const Doc& /*object*/, WriteContext& /*context*/,
                               FieldErrors& /*errors*/) const {}

void Strategy::prepare_update(Doc& object, const Doc& old, WriteContext& /*context*/) const {
  if (const Doc* status = old.find("status")) {
    object.set("status", *status);
  } else {
    object.erase("status");
  }
}

void Strategy::validate_update(const Doc& /*object*/, const Doc& /*old*/, WriteContext& /*context*/,
                               FieldErrors& /*errors*/) const {}

void Strategy::prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                          WriteContext& /*context*/) const {
  if (subresource != "status") return;
  Doc merged = old;
  if (const Doc* status = object.find("status")) {
    merged.set("status", *status);
  } else {
    merged.erase("status");
  }
  Doc metadata = object["metadata"];
  // labels and annotations come from the stored object, bookkeeping from the request
  for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (const Doc* kept = meta(old).find(key)) {
      metadata.set(key, *kept);
    } else {
      metadata.erase(key);
    }
  }
  merged.set("metadata", std::move(metadata));
  object = std::move(merged);
}

void Strategy::validate_subresource_update(std::string_view /*subresource*/, const Doc& /*object*/,
                                           const Doc& /*old*/, WriteContext& /*context*/,
                                           FieldErrors& /*errors*/) const {}

bool Strategy::spec_changed(const Doc& object, const Doc& old) const {
  static constexpr std::array<std::string_view, 4> kNotSpec = {"metadata", "status", "kind",
                                                               "apiVersion"};
  const auto same_in = [](const Doc& a, const Doc& b) {
    return std::ranges::all_of(a.members(), [&](const Doc::Member& member) {
      return std::ranges::find(kNotSpec, member.key) != kNotSpec.end() ||
             member.value == b[member.key];
    });
  };
  return !same_in(object, old) || !same_in(old, object);
}

std::string Strategy::field(const Doc& object, std::string_view path) const {
  const Doc* at = &object;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = &(*at)[path.substr(0, dot)];
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  if (at->is_bool()) return at->as_bool() ? "true" : "false";
  return at->is_number() ? at->number_text() : at->as_string();
}

std::optional<std::int64_t> Strategy::deletion_grace(const Doc& /*object*/,
                                                     std::optional<std::int64_t> /*asked*/) const {
  return std::nullopt;
}

std::optional<ApiResult<Doc>> Strategy::delete_instead(const Doc& /*object*/,
                                                       WriteContext& /*context*/) const {
  return std::nullopt;
}

bool Strategy::may_vanish(const Doc& /*object*/) const { return true; }

std::string_view Strategy::error_group(const Resource& resource) const { return resource.group; }

std::vector<std::string_view> verb_names(std::uint16_t verbs) {
  static constexpr std::array<std::pair<std::string_view, Verb>, 8> kNames = {{
      {"create", Verb::Create},
      {"delete", Verb::Delete},
      {"deletecollection", Verb::DeleteCollection},
      {"get", Verb::Get},
      {"list", Verb::List},
      {"patch", Verb::Patch},
      {"update", Verb::Update},
      {"watch", Verb::Watch},
  }};
  std::vector<std::string_view> names;
  for (const auto& [name, verb] : kNames) {
    if ((verbs & static_cast<std::uint16_t>(verb)) != 0) names.push_back(name);
  }
  return names;
}

const Subresource* Resource::subresource(std::string_view wanted) const {
  const auto it = std::ranges::find(subresources, wanted, &Subresource::name);
  return it == subresources.end() ? nullptr : &*it;
}

Subresource whole_subresource(std::string name, const Resource& resource, std::uint16_t verbs) {
  return {.name = std::move(name),
          .group = resource.group,
          .version = resource.version,
          .kind = resource.kind,
          .verbs = verbs,
          .type = resource.type,
          .handler = {},
          .projection = nullptr};
}

const Resource& Registry::add(Resource resource) {
  remove(resource.group, resource.version, resource.plural);
  ++generation_;
  resources_.push_back(std::make_unique<Resource>(std::move(resource)));
  const Resource& added = *resources_.back();
  by_path_[{added.group, added.version, added.plural}] = &added;
  if (added.is_storage_version) by_table_[added.table] = &added;
  return added;
}

void Registry::remove(std::string_view group, std::string_view version, std::string_view plural) {
  const Resource* old = find(group, version, plural);
  if (old == nullptr) return;
  ++generation_;
  by_path_.erase({old->group, old->version, old->plural});
  if (const auto it = by_table_.find(old->table); it != by_table_.end() && it->second == old) {
    by_table_.erase(it);
  }
  std::erase_if(resources_, [&](const auto& resource) { return resource.get() == old; });
}

const Resource* Registry::find(std::string_view group, std::string_view version,
                               std::string_view plural) const {
  const auto it = by_path_.find(std::tuple(group, version, plural));
  return it == by_path_.end() ? nullptr : it->second;
}

const Resource* Registry::find_storage(std::string_view table) const {
  const auto it = by_table_.find(table);
  return it == by_table_.end() ? nullptr : it->second;
}

const Resource* Registry::find_kind(std::string_view group, std::string_view version,
                                    std::string_view kind) const {
  const auto it = std::ranges::find_if(resources_, [&](const auto& resource) {
    return resource->kind == kind && resource->group == group && resource->version == version;
  });
  return it == resources_.end() ? nullptr : it->get();
}

}  // namespace jogak::api
