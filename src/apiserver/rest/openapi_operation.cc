// SPDX-License-Identifier: Apache-2.0
//
// Operations and parameters as documents. Words are our own.
#include "apiserver/rest/openapi_operation.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace jogak::api {
namespace {

struct ParameterFact {
  std::string_view name, type, description;
  std::string_view place = "query";
};

constexpr ParameterFact kParameters[] = {
    {"allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks"},
    {"command", "string", "What to run; repeated for its arguments"},
    {"container", "string", "Container of the pod that is meant"},
    {"continue", "string", "Token of the page before"},
    {"dryRun", "string", "All: do everything but store"},
    {"fieldManager", "string", "Who owns the members that this request sets"},
    {"fieldSelector", "string", "Only objects with these values of members"},
    {"fieldValidation", "string", "Ignore, Warn or Strict: what unknown members mean"},
    {"follow", "boolean", "Whether to go on as the log grows"},
    {"force", "boolean", "Whether to take members that others own"},
    {"gracePeriodSeconds", "integer", "Seconds until the object is deleted"},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean",
     "Whether to delete what cannot be read"},
    {"insecureSkipTLSVerifyBackend", "boolean", "Whether not to check the kubelet's certificate"},
    {"labelSelector", "string", "Only objects with these labels"},
    {"limit", "integer", "Most objects in one answer"},
    {"limitBytes", "integer", "Most bytes of the log"},
    {"name", "string", "Name of the object", "path"},
    {"namespace", "string", "Namespace of the object", "path"},
    {"orphanDependents", "boolean", "Whether owned objects stay; use propagationPolicy"},
    {"path", "string", "Path to ask for"},
    {"ports", "integer", "Ports of the pod"},
    {"pretty", "string", "true: JSON with indents"},
    {"previous", "boolean", "Whether the log of the container before is meant"},
    {"propagationPolicy", "string", "Orphan, Background or Foreground: of owned objects"},
    {"resourceVersion", "string", "Version that the answer goes by"},
    {"resourceVersionMatch", "string", "Exact or NotOlderThan"},
    {"sendInitialEvents", "boolean", "Whether a watch starts with all objects"},
    {"shardSelector", "string", "Only objects of this shard"},
    {"sinceSeconds", "integer", "Only lines of the last so many seconds"},
    {"stderr", "boolean", "Whether its errors are sent"},
    {"stdin", "boolean", "Whether it gets input"},
    {"stdout", "boolean", "Whether its output is sent"},
    {"stream", "string", "All, Stdout or Stderr"},
    {"tailLines", "integer", "Only so many last lines"},
    {"timeoutSeconds", "integer", "When the answer ends at the latest"},
    {"timestamps", "boolean", "Whether each line has its time"},
    {"tty", "boolean", "Whether it gets a terminal"},
    {"watch", "boolean", "Whether to follow changes"},
    {"{path}", "string", "Path to ask for", "path"},
};

constexpr std::string_view kObjectTypes[] = {
    "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"};
constexpr std::string_view kStreamTypes[] = {
    "application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch", "application/yaml"};
constexpr std::string_view kLogTypes[] = {"application/json", "application/vnd.kubernetes.protobuf",
                                          "application/yaml", "text/plain"};
constexpr std::string_view kCustomTypes[] = {"application/json", "application/yaml"};
constexpr std::string_view kAnyType[] = {"*/*"};
constexpr std::string_view kPatchTypes[] = {
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json"};

std::span<const std::string_view> result_types(const ApiOperation& operation) {
  if (operation.content == Content::Connection) {
    return kAnyType;
  }
  if (operation.content == Content::Log) {
    return kLogTypes;
  }
  if (operation.is_custom) {
    return kCustomTypes;
  }
  return operation.content == Content::Stream ? std::span<const std::string_view>(kStreamTypes)
                                              : std::span<const std::string_view>(kObjectTypes);
}

std::span<const std::string_view> body_types(const ApiOperation& operation) {
  if (operation.is_patch) {  // custom resources know no strategic merge
    return std::span<const std::string_view>(kPatchTypes).first(operation.is_custom ? 3 : 4);
  }
  return operation.is_custom ? std::span<const std::string_view>(kCustomTypes)
                             : std::span<const std::string_view>(kAnyType);
}

Doc content_of(std::span<const std::string_view> types, const Doc& schema) {
  Doc content = Doc::object();
  for (const std::string_view type : types) {
    Doc entry = Doc::object();
    entry.set("schema", schema);
    content.set(type, std::move(entry));
  }
  return content;
}

std::string_view words_of(int code) {
  switch (code) {
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    default:
      return "OK";
  }
}

Doc responses_of(const ApiOperation& operation) {
  Doc responses = Doc::object();
  for (const int code : operation.codes) {
    Doc response = Doc::object();
    response.set("description", words_of(code))
        .set("content", content_of(result_types(operation), operation.result));
    responses.set(std::to_string(code), std::move(response));
  }
  Doc refused = Doc::object();
  refused.set("description", "Unauthorized");
  responses.set("401", std::move(refused));
  return responses;
}

Doc parameters_of(const std::vector<std::string_view>& names) {
  Doc::Items list;
  for (const std::string_view name : names) {
    list.push_back(parameter_of(name));
  }
  std::ranges::sort(list, {}, [](const Doc& parameter) {
    return std::pair(parameter["name"].as_string(), parameter["in"].as_string());
  });
  return Doc::array(std::move(list));
}

Doc operation_doc(const ApiOperation& operation, const std::vector<std::string_view>& common) {
  Doc doc = Doc::object();
  doc.set("tags", Doc::array({Doc(operation.tag)}))
      .set("description", operation.description)
      .set("operationId", operation.id);
  std::vector<std::string_view> own;
  for (const std::string_view name : operation.parameters) {
    if (std::ranges::find(common, name) == common.end()) {
      own.push_back(name);
    }
  }
  if (!own.empty()) {
    doc.set("parameters", parameters_of(own));
  }
  if (!operation.body.is_null()) {
    Doc body = Doc::object();
    body.set("content", content_of(body_types(operation), operation.body));
    if (operation.is_body_required) {
      body.set("required", true);
    }
    doc.set("requestBody", std::move(body));
  }
  doc.set("responses", responses_of(operation));
  if (!operation.action.empty()) {
    doc.set("x-kubernetes-action", operation.action);
  }
  if (!operation.kind.is_null()) {
    doc.set("x-kubernetes-group-version-kind", operation.kind);
  }
  return doc;
}

}  // namespace

Doc parameter_of(std::string_view name) {
  const auto it = std::ranges::find(kParameters, name, &ParameterFact::name);
  JOGAK_CHECK(it != std::end(kParameters), "no parameter {}", name);
  Doc schema = Doc::object();
  schema.set("type", it->type).set("uniqueItems", true);
  if (name.starts_with('{')) {
    name = name.substr(1, name.size() - 2);
  }
  Doc parameter = Doc::object();
  parameter.set("name", name).set("in", it->place).set("description", it->description);
  if (it->place == "path") {
    parameter.set("required", true);
  }
  parameter.set("schema", std::move(schema));
  return parameter;
}

Doc path_item(const std::vector<ApiOperation>& operations) {
  std::vector<std::string_view> common = operations.front().parameters;
  std::erase_if(common, [&](std::string_view name) {
    return !std::ranges::all_of(operations, [&](const ApiOperation& operation) {
      return std::ranges::find(operation.parameters, name) != operation.parameters.end();
    });
  });
  Doc item = Doc::object();
  for (const ApiOperation& operation : operations) {
    item.set(operation.method, operation_doc(operation, common));
  }
  if (!common.empty()) {
    item.set("parameters", parameters_of(common));
  }
  return item;
}

}  // namespace jogak::api
