// SPDX-License-Identifier: Apache-2.0
//
// Built-in kinds keep the number in one place; a custom kind's definition says where.
#include "apiserver/controllers/scale_target.h"

#include <algorithm>
#include <array>

namespace jogak::controllers {

namespace {

constexpr std::array<std::string_view, 4> kBuiltIn = {
    "deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"};

std::string_view group_of(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

// The first name of the path, which is taken off it.
std::string_view take_name(std::string_view& path) {
  path.remove_prefix(path.starts_with('.') ? 1 : 0);
  const std::size_t end = std::min(path.find('.'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(end);
  return name;
}

}  // namespace

std::string table_of(const api::Api& api, std::string_view api_version, std::string_view kind) {
  for (const api::Api::Table& table : api.tables()) {
    const bool is_it = table.kind == kind && group_of(table.api_version) == group_of(api_version);
    if (is_it) return table.name;
  }
  return "";
}

std::optional<std::string> replicas_path(const api::Api& api, std::string_view table) {
  if (std::ranges::find(kBuiltIn, table) != kBuiltIn.end()) return ".spec.replicas";
  const auto definition = api.get("customresourcedefinitions.apiextensions.k8s.io", "", table);
  if (!definition.has_value()) return std::nullopt;
  for (const Doc& version : definition->get("spec", "versions").items()) {
    const Doc& path = version.get("subresources", "scale", "specReplicasPath");
    if (!path.is_null()) return path.as_string();
  }
  return std::nullopt;
}

const Doc& at_path(const Doc& object, std::string_view path) {
  const Doc* at = &object;
  while (!path.empty()) at = &(*at)[take_name(path)];
  return *at;
}

Doc patch_at_path(std::string_view path, Doc value) {
  Doc patch = Doc::object();
  Doc* at = &patch;
  while (!path.empty()) at = &at->at(take_name(path));
  *at = std::move(value);
  return patch;
}

}  // namespace jogak::controllers
