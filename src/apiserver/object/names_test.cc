// SPDX-License-Identifier: Apache-2.0
//
// The rules for names and metadata with the words of the API machinery.
#include "apiserver/object/names.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

const std::string kLong63(63, 'a');
const std::string kLong64(64, 'a');

std::vector<std::string> fields_of(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.list()) out.push_back(error.field);
  return out;
}

std::vector<std::string> meta_errors(const Doc& metadata, bool is_namespaced = true) {
  FieldErrors errors;
  validate_meta(metadata, is_namespaced, check_dns1123_subdomain, Path("metadata"), errors);
  return fields_of(errors);
}

Doc plain_meta() {
  Doc metadata = Doc::object();
  metadata.set("name", "x").set("namespace", "n");
  return metadata;
}

TEST(Names, Labels) {
  EXPECT_TRUE(check_dns1123_label("a-b0").empty());
  EXPECT_TRUE(check_dns1123_label(kLong63).empty());
  EXPECT_EQ(check_dns1123_label(kLong64), Problems{"must be no more than 63 characters"});
  EXPECT_EQ(check_dns1123_label("a.b"), Problems{"must not contain dots"});
  EXPECT_EQ(check_dns1123_label("A").size(), 1U);
  EXPECT_TRUE(check_dns1123_label("0a").empty());
  EXPECT_FALSE(check_dns1035_label("0a").empty());
  EXPECT_TRUE(check_dns1035_label("a0").empty());
}

TEST(Names, SubdomainsInTheServersWords) {
  EXPECT_TRUE(check_dns1123_subdomain("a.b-c.0").empty());
  EXPECT_FALSE(check_dns1123_subdomain("").empty());
  EXPECT_FALSE(check_dns1123_subdomain("a..b").empty());
  EXPECT_FALSE(check_dns1123_subdomain("a.").empty());
  EXPECT_EQ(check_dns1123_subdomain("Bad_Name"),
            Problems{"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                     "characters, '-' or '.', and must start and end with an alphanumeric "
                     "character (e.g. 'example.com', regex used for validation is "
                     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"});
  EXPECT_EQ(check_dns1123_subdomain(std::string(254, 'a')),
            Problems{"must be no more than 253 characters"});
}

TEST(Names, QualifiedNames) {
  for (const std::string_view good : {"a", "A_b.c", "nvidia.com/gpu", "a.b/C"}) {
    EXPECT_TRUE(check_qualified_name(good).empty()) << good;
  }
  EXPECT_EQ(check_qualified_name("").size(), 2U);
  EXPECT_EQ(check_qualified_name("/a"), Problems{"prefix part must be non-empty"});
  EXPECT_EQ(check_qualified_name("a/b/c").size(), 1U);
  EXPECT_EQ(check_qualified_name("nvidia com/gpu").size(), 1U);
  EXPECT_EQ(check_qualified_name("a/" + kLong64),
            Problems{"name part must be no more than 63 bytes"});
}

TEST(Names, LabelValues) {
  EXPECT_TRUE(check_label_value("").empty());
  EXPECT_TRUE(check_label_value("A-1_.z").empty());
  EXPECT_EQ(check_label_value("a b"),
            Problems{"a valid label must be an empty string or consist of alphanumeric "
                     "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                     "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                     "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"});
}

TEST(Names, SmallRules) {
  EXPECT_TRUE(check_port(1).empty());
  EXPECT_FALSE(check_port(0).empty());
  EXPECT_FALSE(check_port(65536).empty());
  EXPECT_TRUE(check_port_name("http-2").empty());
  EXPECT_EQ(check_port_name("--").size(), 3U);
  EXPECT_EQ(check_port_name("123").size(), 1U);
  EXPECT_TRUE(check_env_name("a b").empty());
  EXPECT_FALSE(check_env_name("a=b").empty());
  EXPECT_FALSE(check_env_name("").empty());
  EXPECT_TRUE(check_config_key("A_b-c.d").empty());
  EXPECT_EQ(check_config_key(".."), Problems{"must not be '..'"});
  EXPECT_EQ(check_config_key("..a"), Problems{"must not start with '..'"});
  EXPECT_FALSE(check_config_key("a/b").empty());
  EXPECT_TRUE(check_percent("50%").empty());
  EXPECT_FALSE(check_percent("%").empty());
  EXPECT_FALSE(check_percent("50").empty());
}

TEST(Names, Addresses) {
  for (const std::string_view good : {"10.9.8.7", "2001:db8::ffff", "::1"}) {
    EXPECT_TRUE(check_ip(good).empty()) << good;
  }
  EXPECT_EQ(check_ip("010.0.0.1"), Problems{"must not have leading 0s"});
  EXPECT_EQ(check_ip("::ffff:1.2.3.4"), Problems{"must not be an IPv4-mapped IPv6 address"});
  for (const std::string_view bad : {"", "1.2.3", "1.2.3.256", "x", "1.2.3.4/8"}) {
    EXPECT_EQ(check_ip(bad),
              Problems{"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"})
        << bad;
  }
}

TEST(ValidateMeta, NameIsNeeded) {
  Doc metadata = Doc::object();
  metadata.set("namespace", "n");
  EXPECT_EQ(meta_errors(metadata), std::vector<std::string>{"metadata.name"});
  EXPECT_TRUE(meta_errors(plain_meta()).empty());
}

TEST(ValidateMeta, ABadPrefixMakesABadName) {
  Doc metadata = plain_meta();
  metadata.set("generateName", "Bad_").set("name", "Bad_xyz12");
  EXPECT_EQ(meta_errors(metadata),
            (std::vector<std::string>{"metadata.generateName", "metadata.name"}));
  metadata.set("generateName", "good-").set("name", "good-xyz12");
  EXPECT_TRUE(meta_errors(metadata).empty());
}

TEST(ValidateMeta, NamespaceGoesWithTheKind) {
  EXPECT_EQ(meta_errors(plain_meta(), false), std::vector<std::string>{"metadata.namespace"});
  Doc metadata = Doc::object();
  metadata.set("name", "x");
  EXPECT_EQ(meta_errors(metadata), std::vector<std::string>{"metadata.namespace"});
  EXPECT_TRUE(meta_errors(metadata, false).empty());
}

TEST(ValidateMeta, LabelsAnnotationsFinalizers) {
  Doc metadata = plain_meta();
  metadata.at("labels").set("a/b/c", "v").set("ok", "a b");
  metadata.at("annotations").set("Upper.Case/x", "any value").set("a b", "");
  metadata.at("finalizers").push("orphan").push("foregroundDeletion");
  EXPECT_EQ(meta_errors(metadata),
            (std::vector<std::string>{"metadata.labels", "metadata.labels", "metadata.annotations",
                                      "metadata.finalizers"}));
}

TEST(ValidateMeta, AnnotationsHaveALimit) {
  Doc metadata = plain_meta();
  metadata.at("annotations").set("a", std::string(256 * 1024 - 1, 'x'));
  EXPECT_TRUE(meta_errors(metadata).empty());
  metadata.at("annotations").set("b", "");
  EXPECT_EQ(meta_errors(metadata), std::vector<std::string>{"metadata.annotations"});
}

TEST(ValidateMeta, OneControllerOnly) {
  Doc owner = Doc::object();
  owner.set("apiVersion", "apps/v1").set("kind", "ReplicaSet").set("name", "r").set("uid", "u");
  owner.set("controller", true);
  Doc metadata = plain_meta();
  metadata.at("ownerReferences").push(owner);
  EXPECT_TRUE(meta_errors(metadata).empty());
  metadata.at("ownerReferences").push(owner).push(Doc::object());
  EXPECT_EQ(
      meta_errors(metadata),
      (std::vector<std::string>{"metadata.ownerReferences", "metadata.ownerReferences.apiVersion",
                                "metadata.ownerReferences.kind", "metadata.ownerReferences.name",
                                "metadata.ownerReferences.uid"}));
}

TEST(ValidateMetaUpdate, WhatMayNotChange) {
  Doc before = plain_meta();
  before.set("uid", "u").set("resourceVersion", "5").set("generation", 2);
  FieldErrors fine;
  validate_meta_update(before, before, Path("metadata"), fine);
  EXPECT_TRUE(fine.empty()) << fine.text();
  Doc after = before;
  after.set("uid", "other").set("generation", 1);
  after.erase("resourceVersion");
  FieldErrors errors;
  validate_meta_update(after, before, Path("metadata"), errors);
  EXPECT_EQ(fields_of(errors), (std::vector<std::string>{"metadata.resourceVersion",
                                                         "metadata.generation", "metadata.uid"}));
}

TEST(ValidateMetaUpdate, NoNewFinalizersWhileDeleting) {
  Doc before = plain_meta();
  before.set("resourceVersion", "5").set("deletionTimestamp", "2026-02-02T02:09:39Z");
  before.at("finalizers").push("a/b");
  Doc after = before;
  after.at("finalizers").push("c/d");
  FieldErrors errors;
  validate_meta_update(after, before, Path("metadata"), errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors.list()[0].message,
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers []string{\"c/d\"}");
  after.at("finalizers") = Doc::array();
  FieldErrors none;
  validate_meta_update(after, before, Path("metadata"), none);
  EXPECT_TRUE(none.empty());
}

TEST(ValidateLabelSelector, Terms) {
  Doc selector = Doc::object();
  const auto add = [&](std::string_view op, std::vector<std::string> values) {
    Doc term = Doc::object();
    term.set("key", "k").set("operator", op);
    if (!values.empty()) term.set("values", Doc::strings(values));
    selector.at("matchExpressions").push(term);
  };
  add("In", {});
  add("Exists", {"a"});
  add("Gt", {"1"});
  add("NotIn", {"a b"});
  FieldErrors errors;
  validate_label_selector(selector, Path("s"), errors);
  EXPECT_EQ(fields_of(errors),
            (std::vector<std::string>{
                "s.matchExpressions[0].values", "s.matchExpressions[1].values",
                "s.matchExpressions[2].operator", "s.matchExpressions[3].values[0]"}));
}

}  // namespace
}  // namespace jogak::api
