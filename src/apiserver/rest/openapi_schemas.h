// SPDX-License-Identifier: Apache-2.0
//
// The components of an OpenAPI v3 document: every type that its operations mention, and all that
// those need, each once.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apiserver/registry/resource.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"

namespace jogak::api {

// "core.v1.Pod" is "io.k8s.api.core.v1.Pod".
std::string component_name(const schema::Struct& type);
// The object of a custom resource: group g.example is "example.g.v1.Widget".
std::string custom_component_name(const Resource& resource);

class Components {
 public:
  // Of the document of that group version ("" and "" for documents without one).
  Components(std::string group, std::string version)
      : group_(std::move(group)), version_(std::move(version)) {}

  // {"$ref": "#/components/schemas/NAME"}; the component is added.
  Doc ref(const schema::Struct& type);
  // Components without a type of their own: "Patch", "WatchEvent", "APIResourceList", "Quantity".
  Doc ref_fixed(std::string_view short_name);
  // The object of a resource, and the list of such objects.
  Doc ref_object(const Resource& resource);
  Doc ref_list(const Resource& resource);

  // All of them, by name.
  Doc take();

 private:
  static Doc ref_to(std::string_view name);
  Doc struct_schema(const schema::Struct& type);
  Doc custom_schema(const Resource& resource);
  Doc member_schema(const schema::Struct& type, const schema::Field& field);
  Doc element_schema(schema::Type type);
  void add_gvk(Doc& schema, const schema::Struct& type) const;

  std::string group_, version_;
  std::map<std::string, Doc> schemas_;
};

}  // namespace jogak::api
