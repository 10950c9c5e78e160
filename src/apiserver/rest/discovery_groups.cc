// SPDX-License-Identifier: Apache-2.0
//
// Groups and versions in the order of the real server; documents in the order of their members
// there.
#include "apiserver/rest/discovery_groups.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "apiserver/rest/discovery_hash.h"

namespace jogak::api {
namespace {

// Where built-in groups stand; custom ones come after, by name.
constexpr std::array<std::string_view, 21> kGroupOrder = {
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
};

std::size_t place_of(std::string_view group) {
  return static_cast<std::size_t>(std::ranges::find(kGroupOrder, group) - kGroupOrder.begin());
}

// "v2beta10" is version 2, stage 1, step 10; stage 2 is stable.
struct VersionParts {
  std::uint64_t major = 0;
  int stage = 2;
  std::uint64_t step = 0;
  friend auto operator<=>(const VersionParts& a, const VersionParts& b) {
    if (a.stage != b.stage) return a.stage <=> b.stage;
    if (a.major != b.major) return a.major <=> b.major;
    return a.step <=> b.step;
  }
};

std::optional<std::uint64_t> take_number(std::string_view& text) {
  constexpr std::size_t kMostDigits = 18;
  std::size_t size = 0;
  std::uint64_t number = 0;
  while (size < text.size() && text[size] >= '0' && text[size] <= '9') {
    number = number * 10 + static_cast<std::uint64_t>(text[size++] - '0');
  }
  if (size == 0 || size > kMostDigits) {
    return std::nullopt;
  }
  text.remove_prefix(size);
  return number;
}

std::optional<VersionParts> parse_version(std::string_view text) {
  if (!text.starts_with('v')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto major = take_number(text);
  if (!major) {
    return std::nullopt;
  }
  VersionParts parts{.major = *major};
  if (text.empty()) {
    return parts;
  }
  const bool is_beta = text.starts_with("beta");
  if (!is_beta && !text.starts_with("alpha")) {
    return std::nullopt;
  }
  text.remove_prefix(is_beta ? 4 : 5);
  const auto step = take_number(text);
  if (!step || !text.empty()) {
    return std::nullopt;
  }
  parts.stage = is_beta ? 1 : 0;
  parts.step = *step;
  return parts;
}

bool is_custom(const Resource& resource) { return resource.custom_schema != nullptr; }

Doc names_doc(const std::vector<std::string_view>& names) {
  Doc list = Doc::array();
  for (const std::string_view name : names) {
    list.push(name);
  }
  return list;
}

// Custom resources list their verbs in another order.
Doc verbs_doc(const Resource& resource) {
  if (!is_custom(resource)) {
    return names_doc(verb_names(resource.verbs));
  }
  std::vector<std::string_view> names = verb_names(resource.verbs);
  const auto create = std::ranges::find(names, "create");
  const auto update = std::ranges::find(names, "update");
  if (create != names.end() && update != names.end()) {
    std::rotate(create, create + 1, update);
  }
  return names_doc(names);
}

std::string hash_of(const Resource& resource, const Registry& registry) {
  if (!resource.storage_version_hash.empty()) {
    return resource.storage_version_hash;
  }
  const Resource* stored = registry.find_storage(resource.table);
  return stored == nullptr ? "" : storage_hash(stored->group, stored->version, stored->kind);
}

// Custom resources show status before scale.
std::vector<const Subresource*> ordered_subresources(const Resource& resource) {
  std::vector<const Subresource*> ordered;
  for (const Subresource& subresource : resource.subresources) {
    ordered.push_back(&subresource);
  }
  std::ranges::sort(ordered, {}, &Subresource::name);
  if (is_custom(resource)) {
    std::ranges::reverse(ordered);
  }
  return ordered;
}

bool is_foreign(const Resource& resource, const Subresource& subresource) {
  return !subresource.group.empty() &&
         (subresource.group != resource.group || subresource.version != resource.version);
}

const std::string& kind_of(const Resource& resource, const Subresource& subresource) {
  return subresource.kind.empty() ? resource.kind : subresource.kind;
}

Doc plain_resource(const Resource& resource) {
  Doc entry = Doc::object();
  entry.set("name", resource.plural)
      .set("singularName", resource.singular)
      .set("namespaced", resource.is_namespaced)
      .set("kind", resource.kind)
      .set("verbs", verbs_doc(resource));
  if (!resource.short_names.empty()) {
    entry.set("shortNames", Doc::strings(resource.short_names));
  }
  if (!resource.categories.empty()) {
    entry.set("categories", Doc::strings(resource.categories));
  }
  return entry;
}

Doc plain_subresource(const Resource& resource, const Subresource& subresource) {
  Doc entry = Doc::object();
  entry.set("name", resource.plural + "/" + subresource.name)
      .set("singularName", "")
      .set("namespaced", resource.is_namespaced);
  if (is_foreign(resource, subresource)) {
    entry.set("group", subresource.group).set("version", subresource.version);
  }
  entry.set("kind", kind_of(resource, subresource))
      .set("verbs", names_doc(verb_names(subresource.verbs)));
  return entry;
}

// Built-in kinds leave group and version empty where they are those of the list.
Doc response_kind(const Resource& resource, const Subresource* subresource) {
  Doc kind = Doc::object();
  if (subresource != nullptr && is_foreign(resource, *subresource)) {
    kind.set("group", subresource->group).set("version", subresource->version);
  } else if (is_custom(resource)) {
    kind.set("group", resource.group).set("version", resource.version);
  } else {
    kind.set("group", "").set("version", "");
  }
  kind.set("kind", subresource == nullptr ? resource.kind : kind_of(resource, *subresource));
  return kind;
}

Doc aggregated_resource(const Resource& resource) {
  Doc entry = Doc::object();
  entry.set("resource", resource.plural)
      .set("responseKind", response_kind(resource, nullptr))
      .set("scope", resource.is_namespaced ? "Namespaced" : "Cluster")
      .set("singularResource", resource.singular)
      .set("verbs", verbs_doc(resource));
  if (!resource.short_names.empty()) {
    entry.set("shortNames", Doc::strings(resource.short_names));
  }
  if (!resource.categories.empty()) {
    entry.set("categories", Doc::strings(resource.categories));
  }
  Doc subresources = Doc::array();
  for (const Subresource* subresource : ordered_subresources(resource)) {
    Doc item = Doc::object();
    item.set("subresource", subresource->name)
        .set("responseKind", response_kind(resource, subresource))
        .set("verbs", names_doc(verb_names(subresource->verbs)));
    subresources.push(std::move(item));
  }
  if (!subresources.empty()) {
    entry.set("subresources", std::move(subresources));
  }
  return entry;
}

Doc aggregated_group(const Group& group) {
  Doc versions = Doc::array();
  for (const GroupVersion& version : group.versions) {
    Doc resources = Doc::array();
    for (const Resource* resource : version.resources) {
      resources.push(aggregated_resource(*resource));
    }
    Doc entry = Doc::object();
    entry.set("version", version.version)
        .set("resources", std::move(resources))
        .set("freshness", "Current");
    versions.push(std::move(entry));
  }
  Doc metadata = Doc::object();
  if (!group.name.empty()) {
    metadata.set("name", group.name);
  }
  Doc doc = Doc::object();
  doc.set("metadata", std::move(metadata)).set("versions", std::move(versions));
  return doc;
}

// name, versions and preferredVersion
void add_group_facts(Doc& doc, const Group& group) {
  const auto entry = [&](const GroupVersion& version) {
    Doc fact = Doc::object();
    fact.set("groupVersion", group_version_name(group, version.version))
        .set("version", version.version);
    return fact;
  };
  Doc versions = Doc::array();
  for (const GroupVersion& version : group.versions) {
    versions.push(entry(version));
  }
  doc.set("name", group.name).set("versions", std::move(versions));
  doc.set("preferredVersion", entry(group.versions.front()));
}

}  // namespace

const GroupVersion* Group::find(std::string_view version) const {
  const auto it = std::ranges::find(versions, version, &GroupVersion::version);
  return it == versions.end() ? nullptr : &*it;
}

bool is_better_version(std::string_view a, std::string_view b) {
  const auto parts_a = parse_version(a), parts_b = parse_version(b);
  if (parts_a && parts_b) {
    return *parts_a > *parts_b;
  }
  if (parts_a.has_value() != parts_b.has_value()) {
    return parts_a.has_value();
  }
  return a < b;
}

std::string group_version_name(const Group& group, std::string_view version) {
  return group.name.empty() ? std::string(version) : group.name + "/" + std::string(version);
}

std::vector<Group> discovery_groups(const Registry& registry) {
  std::map<std::pair<std::size_t, std::string>, Group> sorted;
  for (const auto& resource : registry.all()) {
    Group& group = sorted[{place_of(resource->group), resource->group}];
    group.name = resource->group;
    auto it = std::ranges::find(group.versions, resource->version, &GroupVersion::version);
    if (it == group.versions.end()) {
      group.versions.push_back({.version = resource->version, .resources = {}});
      it = std::prev(group.versions.end());
    }
    it->resources.push_back(resource.get());
  }
  std::vector<Group> groups;
  for (auto& [place, group] : sorted) {
    std::ranges::sort(group.versions, is_better_version, &GroupVersion::version);
    for (GroupVersion& version : group.versions) {
      std::ranges::sort(version.resources, {}, &Resource::plural);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Doc api_versions(const Group& core, std::string_view server_address) {
  Doc versions = Doc::array();
  for (const GroupVersion& version : core.versions) {
    versions.push(version.version);
  }
  Doc address = Doc::object();
  address.set("clientCIDR", "0.0.0.0/0").set("serverAddress", server_address);
  Doc doc = Doc::object();
  doc.set("kind", "APIVersions")
      .set("versions", std::move(versions))
      .set("serverAddressByClientCIDRs", Doc::array({std::move(address)}));
  return doc;
}

Doc api_group_list(const std::vector<Group>& groups) {
  Doc list = Doc::array();
  for (const Group& group : groups) {
    if (!group.name.empty()) {
      Doc entry = Doc::object();
      add_group_facts(entry, group);
      list.push(std::move(entry));
    }
  }
  Doc doc = Doc::object();
  doc.set("kind", "APIGroupList").set("apiVersion", "v1").set("groups", std::move(list));
  return doc;
}

Doc api_group(const Group& group) {
  Doc doc = Doc::object();
  doc.set("kind", "APIGroup").set("apiVersion", "v1");
  add_group_facts(doc, group);
  return doc;
}

Doc api_resource_list(const Registry& registry, const Group& group, const GroupVersion& version) {
  Doc resources = Doc::array();
  for (const Resource* resource : version.resources) {
    Doc entry = plain_resource(*resource);
    if (resource->can(Verb::Watch)) {  // what is not stored cannot be watched either
      entry.set("storageVersionHash", hash_of(*resource, registry));
    }
    resources.push(std::move(entry));
    for (const Subresource* subresource : ordered_subresources(*resource)) {
      resources.push(plain_subresource(*resource, *subresource));
    }
  }
  Doc doc = Doc::object();
  doc.set("kind", "APIResourceList");
  if (!group.name.empty()) {  // the core group's list never had it
    doc.set("apiVersion", "v1");
  }
  doc.set("groupVersion", group_version_name(group, version.version))
      .set("resources", std::move(resources));
  return doc;
}

Doc aggregated_list(const std::vector<Group>& groups, bool is_core) {
  Doc items = Doc::array();
  for (const Group& group : groups) {
    if (group.name.empty() == is_core) {
      items.push(aggregated_group(group));
    }
  }
  Doc doc = Doc::object();
  doc.set("kind", "APIGroupDiscoveryList")
      .set("apiVersion", "apidiscovery.k8s.io/v2")
      .set("metadata", Doc::object())
      .set("items", std::move(items));
  return doc;
}

}  // namespace jogak::api
