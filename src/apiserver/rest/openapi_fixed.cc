// SPDX-License-Identifier: Apache-2.0
//
// Their schemas, written out as JSON.
#include "apiserver/rest/openapi_fixed.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace jogak::api {
namespace {

constexpr FixedComponent kFixed[] = {
    {"Quantity", "io.k8s.apimachinery.pkg.api.resource.Quantity",
     R"({"description":"An amount with an optional suffix: 500m, 2, 4Gi",
         "oneOf":[{"type":"string"},{"type":"number"}]})"},
    {"IntOrString", "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
     R"({"description":"A whole number, or a text such as a percentage or the name of a port",
         "format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]})"},
    {"Time", "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
     R"({"description":"A moment in seconds, RFC 3339","type":"string","format":"date-time"})"},
    {"MicroTime", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
     R"({"description":"A moment in microseconds, RFC 3339","type":"string",
         "format":"date-time"})"},
    {"Duration", "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
     R"({"description":"A span of time: 1h30m","type":"string"})"},
    {"FieldsV1", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
     R"({"description":"A set of members, as a tree","type":"object"})"},
    {"RawExtension", "io.k8s.apimachinery.pkg.runtime.RawExtension",
     R"({"description":"Any object","type":"object"})"},
    {"JSON", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
     R"({"description":"Any JSON value"})"},
    {"JSONSchemaPropsOrArray",
     "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
     R"({"description":"A schema or a list of schemas"})"},
    {"JSONSchemaPropsOrBool",
     "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
     R"({"description":"A schema, or whether anything is allowed"})"},
    {"JSONSchemaPropsOrStringArray",
     "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
     R"({"description":"A schema or a list of member names"})"},
    {"Patch", "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
     R"({"description":"Changes to an object; the content type says in which form",
         "type":"object"})"},
    {"WatchEvent", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
     R"({"description":"One change that a watch reports","type":"object",
         "required":["type","object"],"properties":{
         "object":{"description":"The object after the change, or before it was deleted",
                   "allOf":[{"$ref":"@RawExtension"}]},
         "type":{"type":"string","default":""}},
         "x-kubernetes-group-version-kind":[{"group":"","kind":"WatchEvent","version":"v1"}]})",
     true},
    {"APIResource", "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource",
     R"({"description":"Name and abilities of a resource","type":"object",
         "required":["name","singularName","namespaced","kind","verbs"],"properties":{
         "categories":{"type":"array","items":{"type":"string","default":""},
                       "x-kubernetes-list-type":"atomic"},
         "group":{"type":"string"},
         "kind":{"type":"string","default":""},
         "name":{"type":"string","default":""},
         "namespaced":{"type":"boolean","default":false},
         "shortNames":{"type":"array","items":{"type":"string","default":""},
                       "x-kubernetes-list-type":"atomic"},
         "singularName":{"type":"string","default":""},
         "storageVersionHash":{"type":"string"},
         "verbs":{"type":"array","items":{"type":"string","default":""}},
         "version":{"type":"string"}}})"},
    {"APIResourceList", "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
     R"({"description":"The resources of a group version","type":"object",
         "required":["groupVersion","resources"],"properties":{
         "apiVersion":{"type":"string"},
         "groupVersion":{"type":"string","default":""},
         "kind":{"type":"string"},
         "resources":{"type":"array","items":{"allOf":[{"$ref":"@APIResource"}],"default":{}},
                      "x-kubernetes-list-type":"atomic"}},
         "x-kubernetes-group-version-kind":[{"group":"","kind":"APIResourceList",
                                             "version":"v1"}]})"},
    {"GroupVersionForDiscovery", "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery",
     R"({"description":"A version of a group","type":"object",
         "required":["groupVersion","version"],"properties":{
         "groupVersion":{"type":"string","default":""},
         "version":{"type":"string","default":""}}})"},
    {"ServerAddressByClientCIDR", "io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR",
     R"({"description":"Address of the server for clients of some network","type":"object",
         "required":["clientCIDR","serverAddress"],"properties":{
         "clientCIDR":{"type":"string","default":""},
         "serverAddress":{"type":"string","default":""}}})"},
    {"APIGroup", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
     R"({"description":"Name and versions of a group","type":"object",
         "required":["name","versions"],"properties":{
         "apiVersion":{"type":"string"},
         "kind":{"type":"string"},
         "name":{"type":"string","default":""},
         "preferredVersion":{"allOf":[{"$ref":"@GroupVersionForDiscovery"}],"default":{}},
         "serverAddressByClientCIDRs":{"type":"array",
             "items":{"allOf":[{"$ref":"@ServerAddressByClientCIDR"}],"default":{}},
             "x-kubernetes-list-type":"atomic"},
         "versions":{"type":"array",
             "items":{"allOf":[{"$ref":"@GroupVersionForDiscovery"}],"default":{}},
             "x-kubernetes-list-type":"atomic"}},
         "x-kubernetes-group-version-kind":[{"group":"","kind":"APIGroup","version":"v1"}]})"},
    {"APIGroupList", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
     R"({"description":"All groups","type":"object","required":["groups"],"properties":{
         "apiVersion":{"type":"string"},
         "groups":{"type":"array","items":{"allOf":[{"$ref":"@APIGroup"}],"default":{}},
                   "x-kubernetes-list-type":"atomic"},
         "kind":{"type":"string"}},
         "x-kubernetes-group-version-kind":[{"group":"","kind":"APIGroupList",
                                             "version":"v1"}]})"},
    {"APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions",
     R"({"description":"Versions of the core group","type":"object",
         "required":["versions","serverAddressByClientCIDRs"],"properties":{
         "apiVersion":{"type":"string"},
         "kind":{"type":"string"},
         "serverAddressByClientCIDRs":{"type":"array",
             "items":{"allOf":[{"$ref":"@ServerAddressByClientCIDR"}],"default":{}},
             "x-kubernetes-list-type":"atomic"},
         "versions":{"type":"array","items":{"type":"string","default":""},
                     "x-kubernetes-list-type":"atomic"}},
         "x-kubernetes-group-version-kind":[{"group":"","kind":"APIVersions",
                                             "version":"v1"}]})"},
    {"Info", "io.k8s.apimachinery.pkg.version.Info",
     R"({"description":"Version of the server","type":"object",
         "required":["major","minor","gitVersion","gitCommit","gitTreeState","buildDate",
                     "goVersion","compiler","platform"],"properties":{
         "buildDate":{"type":"string","default":""},
         "compiler":{"type":"string","default":""},
         "emulationMajor":{"type":"string"},
         "emulationMinor":{"type":"string"},
         "gitCommit":{"type":"string","default":""},
         "gitTreeState":{"type":"string","default":""},
         "gitVersion":{"type":"string","default":""},
         "goVersion":{"type":"string","default":""},
         "major":{"type":"string","default":""},
         "minCompatibilityMajor":{"type":"string"},
         "minCompatibilityMinor":{"type":"string"},
         "minor":{"type":"string","default":""},
         "platform":{"type":"string","default":""}}})"},
};

}  // namespace

const FixedComponent& fixed_component(std::string_view short_name) {
  const auto it = std::ranges::find(kFixed, short_name, &FixedComponent::short_name);
  JOGAK_CHECK(it != std::end(kFixed), "no component {}", short_name);
  return *it;
}

}  // namespace jogak::api
