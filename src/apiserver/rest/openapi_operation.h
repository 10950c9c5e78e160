// SPDX-License-Identifier: Apache-2.0
//
// One operation of an OpenAPI document, and the parameters that operations take.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/doc.h"

namespace jogak::api {

// A parameter by its name, as the documents show it: "dryRun", "name". "{path}" is the part of a
// path, "path" the parameter of a query.
Doc parameter_of(std::string_view name);

constexpr std::string_view kListParameters[] = {"allowWatchBookmarks",
                                                "continue",
                                                "fieldSelector",
                                                "labelSelector",
                                                "limit",
                                                "resourceVersion",
                                                "resourceVersionMatch",
                                                "sendInitialEvents",
                                                "shardSelector",
                                                "timeoutSeconds",
                                                "watch"};
constexpr std::string_view kCollectionParameters[] = {
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "labelSelector",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "sendInitialEvents",
    "resourceVersionMatch",
    "shardSelector",
    "timeoutSeconds"};
constexpr std::string_view kDeleteParameters[] = {
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents", "propagationPolicy"};
constexpr std::string_view kWriteParameters[] = {"dryRun", "fieldManager", "fieldValidation"};
constexpr std::string_view kPatchParameters[] = {"dryRun", "fieldManager", "fieldValidation",
                                                 "force"};
constexpr std::string_view kLogParameters[] = {
    "container",  "follow",    "insecureSkipTLSVerifyBackend",
    "limitBytes", "previous",  "sinceSeconds",
    "stream",     "tailLines", "timestamps"};

constexpr std::string_view kAttachParameters[] = {"container", "stderr", "stdin", "stdout", "tty"};
constexpr std::string_view kExecParameters[] = {"command", "container", "stderr",
                                                "stdin",   "stdout",    "tty"};
constexpr std::string_view kPortParameters[] = {"ports"};
constexpr std::string_view kProxyParameters[] = {"path"};

enum class Content : std::uint8_t { Object, Stream, Log, Connection };

struct ApiOperation {
  std::string method;  // "get"
  std::string id, action, description, tag;
  Doc kind;  // x-kubernetes-group-version-kind, null for none
  std::vector<std::string_view> parameters;
  Doc body;  // a reference; null for none
  bool is_body_required = true;
  bool is_patch = false;
  bool is_custom = false;  // other content types
  Content content = Content::Object;
  Doc result;  // a reference, or a schema of a text
  std::vector<int> codes = {200};
};

// A path with its operations. Parameters that all of them take stand at the path.
Doc path_item(const std::vector<ApiOperation>& operations);

}  // namespace jogak::api
