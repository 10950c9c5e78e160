// SPDX-License-Identifier: Apache-2.0
//
// Routes of discovery, and the documents that are kept from one request to the next.
#include "apiserver/rest/discovery.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/rest/discovery_answer.h"
#include "apiserver/rest/discovery_groups.h"
#include "apiserver/rest/discovery_hash.h"
#include "apiserver/rest/openapi.h"

namespace jogak::api {
namespace {

constexpr std::string_view kAggregatedKind = "APIGroupDiscoveryList";
constexpr std::string_view kAggregatedGroup = "apidiscovery.k8s.io";
constexpr std::string_view kAggregatedType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// The first alternative that this server has at all decides between the two forms.
bool wants_aggregated(const net::Headers& headers) {
  for (const codec::MediaType& type : accepted_types(headers)) {
    if (!covers(type, "application/json")) {
      continue;
    }
    if (type.parameter("as").empty()) {
      return false;
    }
    if (type.parameter("as") == kAggregatedKind && type.parameter("g") == kAggregatedGroup &&
        type.parameter("v") == "v2") {
      return true;
    }
  }
  return false;
}

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) {
      parts.push_back(path.substr(0, slash));
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

}  // namespace

struct Discovery::Impl {
  explicit Impl(const Registry& all) : registry(all), openapi(all) {}

  // Forgets what no longer holds.
  void refresh() {
    if (is_fresh && generation == registry.generation()) {
      return;
    }
    groups = discovery_groups(registry);
    core = make_aggregated(true);
    others = make_aggregated(false);
    generation = registry.generation();
    is_fresh = true;
  }

  struct Aggregated {
    std::string text, tag;
  };
  Aggregated make_aggregated(bool is_core) const {
    std::string text;
    aggregated_list(groups, is_core).append_json(text);
    text += "\n";
    std::string tag = content_hash(text);
    return {.text = std::move(text), .tag = std::move(tag)};
  }

  const Group* find_group(std::string_view name) const {
    const auto it = std::ranges::find(groups, name, &Group::name);
    return it == groups.end() ? nullptr : &*it;
  }

  TextAnswer answer_root(bool is_core, std::string_view query, const net::Headers& headers) const {
    if (wants_aggregated(headers)) {
      const Aggregated& list = is_core ? core : others;
      TextAnswer answer = cached_answer(list.text, kAggregatedType, list.tag, headers);
      answer.headers.front().second = "public";
      return answer;
    }
    if (!is_core) {
      return document_answer(api_group_list(groups), query, headers);
    }
    const Group nothing;
    const Group* group = find_group("");
    const std::string_view host = net::header(headers, "host");
    return document_answer(api_versions(group == nullptr ? nothing : *group, host), query, headers);
  }

  std::optional<TextAnswer> answer_group(std::string_view name, std::string_view version,
                                         std::string_view query,
                                         const net::Headers& headers) const {
    const Group* group = find_group(name);
    if (group == nullptr) {
      return std::nullopt;
    }
    if (version.empty()) {
      return document_answer(api_group(*group), query, headers);
    }
    const GroupVersion* found = group->find(version);
    if (found == nullptr) {
      return error_answer(no_such_resource().error());
    }
    return document_answer(api_resource_list(registry, *group, *found), query, headers);
  }

  Doc index_document() const {
    std::vector<std::string> paths = health_paths();
    for (const char* path :
         {"/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"}) {
      paths.emplace_back(path);
    }
    for (const Group& group : groups) {
      const std::string root = group.name.empty() ? "/api" : "/apis/" + group.name;
      if (!group.name.empty()) {
        paths.push_back(root);
      }
      for (const GroupVersion& version : group.versions) {
        paths.push_back(root + "/" + version.version);
      }
    }
    std::ranges::sort(paths);
    Doc doc = Doc::object();
    doc.set("paths", Doc::strings(paths));
    return doc;
  }

  const Registry& registry;
  OpenApi openapi;
  bool is_fresh = false;
  std::uint64_t generation = 0;
  std::vector<Group> groups;
  Aggregated core, others;
};

Discovery::Discovery(const Registry& registry) : impl_(std::make_unique<Impl>(registry)) {}
Discovery::~Discovery() = default;

std::optional<TextAnswer> Discovery::answer(std::string_view path, std::string_view query,
                                            const net::Headers& headers) {
  if (path.empty() || path.front() != '/') {
    return std::nullopt;
  }
  if (path.starts_with("/openapi/")) {
    return impl_->openapi.answer(path, query, headers);
  }
  const std::vector<std::string_view> parts = split_path(path);
  impl_->refresh();
  if (parts.empty()) {
    return document_answer(impl_->index_document(), "pretty=true", headers);
  }
  if (parts[0] == "version" && parts.size() == 1) {
    return document_answer(version_document(), "pretty=true", headers);
  }
  if (parts[0] == "api" && parts.size() <= 2) {
    return parts.size() == 1 ? impl_->answer_root(true, query, headers)
                             : impl_->answer_group("", parts[1], query, headers);
  }
  if (parts[0] == "apis" && parts.size() <= 3) {
    return parts.size() == 1
               ? impl_->answer_root(false, query, headers)
               : impl_->answer_group(parts[1], parts.size() == 3 ? parts[2] : "", query, headers);
  }
  return answer_health(path, query);
}

}  // namespace jogak::api
