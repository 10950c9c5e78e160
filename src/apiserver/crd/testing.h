// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this folder share: values from text, findings as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api::testing {

inline Doc doc(std::string_view json) {
  auto parsed = codec::parse_json(json);
  EXPECT_TRUE(parsed.has_value()) << json;
  return parsed ? std::move(parsed->doc) : Doc();
}

inline std::string json(const Doc& value) {
  std::string out;
  value.append_json(out);
  return out;
}

// "REASON FIELD: MESSAGE", one a finding.
inline std::vector<std::string> lines(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.list()) {
    out.push_back(std::string(reason_of(error.type)) + " " + error.field + ": " + error.message);
  }
  return out;
}

// "FIELD", one a finding.
inline std::vector<std::string> fields(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.list()) out.push_back(error.field);
  return out;
}

using Lines = std::vector<std::string>;

// A definition as a real cluster was given it, with every kind of rule in its schema.
inline constexpr std::string_view kWidgetSchema = R"({"type": "object", "properties": {
  "spec": {"type": "object", "required": ["size"], "properties": {
    "size": {"type": "integer", "minimum": 1, "maximum": 10},
    "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "replicas": {"type": "integer", "default": 1},
    "sel": {"type": "string"},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 5},
             "x-kubernetes-list-type": "set"},
    "ports": {"type": "array", "x-kubernetes-list-type": "map",
              "x-kubernetes-list-map-keys": ["p"],
              "items": {"type": "object", "required": ["p"], "properties": {
                "p": {"type": "integer"}, "n": {"type": "string", "pattern": "^[a-z]+$"}}}},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    "is": {"x-kubernetes-int-or-string": true}},
   "x-kubernetes-validations": [
    {"rule": "self.replicas <= self.size", "message": "replicas over size"},
    {"rule": "!has(oldSelf.sel) || self.sel == oldSelf.sel", "message": "sel is fixed"}]},
  "status": {"type": "object", "properties": {
    "replicas": {"type": "integer"}, "phase": {"type": "string"},
    "selector": {"type": "string"}}}}})";

inline Doc widget_version() {
  Doc version = doc(R"({"name": "v1", "served": true, "storage": true,
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
      "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    "selectableFields": [{"jsonPath": ".spec.color"}]})");
  version.at("schema").set("openAPIV3Schema", doc(kWidgetSchema));
  return version;
}

inline Doc widget_definition() {
  Doc crd = doc(R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.g.example"},
    "spec": {"group": "g.example", "scope": "Namespaced", "names": {"kind": "Widget",
      "plural": "widgets", "singular": "widget", "shortNames": ["wix"], "categories": ["all"]}}})");
  crd.at("spec", "versions").push(widget_version());
  return crd;
}

}  // namespace jogak::api::testing
