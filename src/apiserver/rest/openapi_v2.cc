// SPDX-License-Identifier: Apache-2.0
//
// Version 3 turned back into version 2: parameters lose their schemas, bodies become parameters,
// references stand alone, and what version 2 does not know goes.
#include "apiserver/rest/openapi_v2.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace jogak::api {
namespace {

constexpr std::string_view kNewRefs = "#/components/schemas/";
constexpr std::string_view kOldRefs = "#/definitions/";
constexpr std::array<std::string_view, 7> kMethods = {"get",  "put",   "post",   "delete",
                                                      "head", "patch", "options"};

// What Swagger 2 does not know, or the real server leaves out of it.
constexpr std::array<std::string_view, 7> kDropped = {"default",  "oneOf", "anyOf",     "not",
                                                      "nullable", "allOf", "deprecated"};

Doc old_schema(const Doc& schema) {
  if (!schema.is_object()) {
    return schema;  // additionalProperties: true
  }
  Doc old = Doc::object();
  if (schema["allOf"].size() == 1 && schema["allOf"].items()[0].has("$ref")) {
    old = old_schema(schema["allOf"].items()[0]);
  }
  for (const Doc::Member& member : schema.members()) {
    if (std::ranges::find(kDropped, member.key) != kDropped.end()) {
      continue;
    }
    if (member.key == "$ref") {
      old.set("$ref", std::string(kOldRefs) + member.value.as_string().substr(kNewRefs.size()));
    } else if (member.key == "items" || member.key == "additionalProperties") {
      old.set(member.key, old_schema(member.value));
    } else if (member.key == "properties") {
      Doc properties = Doc::object();
      for (const Doc::Member& property : member.value.members()) {
        properties.set(property.key, old_schema(property.value));
      }
      old.set("properties", std::move(properties));
    } else {
      old.set(member.key, member.value);
    }
  }
  if (schema.has("oneOf") && !old.has("type")) {
    old.set("type", "string");  // quantities, and numbers or strings
  }
  return old;
}

Doc old_parameter(const Doc& parameter) {
  Doc old = Doc::object();
  for (const Doc::Member& member : parameter.members()) {
    if (member.key != "schema") {
      old.set(member.key, member.value);
    }
  }
  for (const Doc::Member& member : parameter["schema"].members()) {
    old.set(member.key, member.value);
  }
  return old;
}

Doc old_parameters(const Doc& parameters) {
  Doc list = Doc::array();
  for (const Doc& parameter : parameters.items()) {
    list.push(old_parameter(parameter));
  }
  return list;
}

Doc keys_of(const Doc& object) {
  Doc keys = Doc::array();
  for (const Doc::Member& member : object.members()) {
    keys.push(member.key);
  }
  return keys;
}

const Doc& schema_in(const Doc& content) {
  static const Doc nothing;
  return content.empty() ? nothing : content.members().front().value["schema"];
}

Doc old_operation(const Doc& operation) {
  Doc parameters = old_parameters(operation["parameters"]);
  const Doc& body = operation["requestBody"];
  Doc consumes = Doc::array({Doc("*/*")});
  if (!body.is_null()) {
    Doc parameter = Doc::object();
    parameter.set("in", "body").set("name", "body");
    if (body["required"].as_bool()) {
      parameter.set("required", true);
    }
    parameter.set("schema", old_schema(schema_in(body["content"])));
    parameters.push(std::move(parameter));
    consumes = keys_of(body["content"]);
  }
  Doc responses = Doc::object(), produces = Doc::array();
  for (const Doc::Member& response : operation["responses"].members()) {
    Doc old = Doc::object();
    old.set("description", response.value["description"]);
    if (const Doc& content = response.value["content"]; !content.empty()) {
      old.set("schema", old_schema(schema_in(content)));
      produces = keys_of(content);
    }
    responses.set(response.key, std::move(old));
  }
  Doc old = Doc::object();
  old.set("tags", operation["tags"])
      .set("description", operation["description"])
      .set("operationId", operation["operationId"])
      .set("consumes", std::move(consumes))
      .set("produces", std::move(produces))
      .set("schemes", Doc::array({Doc("https")}));
  if (!parameters.empty()) {
    old.set("parameters", std::move(parameters));
  }
  old.set("responses", std::move(responses));
  for (const Doc::Member& member : operation.members()) {
    if (member.key.starts_with("x-")) {
      old.set(member.key, member.value);
    }
  }
  return old;
}

}  // namespace

Doc empty_swagger() {
  Doc info = Doc::object();
  info.set("title", "Kubernetes").set("version", "1.36");
  Doc swagger = Doc::object();
  swagger.set("swagger", "2.0")
      .set("info", std::move(info))
      .set("paths", Doc::object())
      .set("definitions", Doc::object());
  return swagger;
}

void add_to_swagger(Doc& swagger, const Doc& v3) {
  Doc& paths = swagger.at("paths");
  for (const Doc::Member& path : v3["paths"].members()) {
    Doc item = Doc::object();
    for (const std::string_view method : kMethods) {
      if (const Doc* operation = path.value.find(method)) {
        item.set(method, old_operation(*operation));
      }
    }
    if (const Doc& common = path.value["parameters"]; !common.empty()) {
      item.set("parameters", old_parameters(common));
    }
    paths.set(path.key, std::move(item));
  }
  Doc& definitions = swagger.at("definitions");
  for (const Doc::Member& component : v3.get("components", "schemas").members()) {
    if (!definitions.has(component.key)) {
      definitions.set(component.key, old_schema(component.value));
    }
  }
}

}  // namespace jogak::api
