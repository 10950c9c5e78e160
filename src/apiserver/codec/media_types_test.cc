// SPDX-License-Identifier: Apache-2.0
//
// Accept and Content-Type: what a real server answered, and the rules behind it.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"

namespace jogak::codec {
namespace {

using As = Negotiated::As;

// "json", "yaml+table", "406"
std::string answer(const char* accept, bool allow_protobuf = true, bool allow_table = true) {
  const auto found = negotiate(accept, allow_protobuf, allow_table);
  if (!found) return "406";
  std::string text = found->form == Form::Json ? "json" : found->form == Form::Yaml ? "yaml" : "pb";
  if (found->as == As::Table) text += "+table";
  if (found->as == As::Partial) text += "+partial";
  if (found->is_pretty) text += "+pretty";
  return text;
}

struct Case {
  const char *accept, *expected;
};

TEST(Negotiate, PlainTypes) {
  const Case cases[] = {
      {"", "json"},
      {"*/*", "json"},
      {"*", "406"},
      {"application/*", "406"},
      {"application/json", "json"},
      {"application/yaml", "yaml"},
      {"application/vnd.kubernetes.protobuf", "pb"},
      {"application/cbor", "406"},
      {"text/html", "406"},
      {"text/html,application/json", "json"},
      {"text/html, */*;q=0.1", "json"},
      {"application/json;charset=utf-8", "json"},
      {"application/vnd.kubernetes.protobuf,application/json", "pb"},
      {"application/json,application/vnd.kubernetes.protobuf", "json"},
      {"application/json; pretty=1", "json+pretty"},
      {"application/json/x", "406"},
      {",,", "406"},
  };
  for (const Case& c : cases) EXPECT_EQ(answer(c.accept), c.expected) << c.accept;
}

TEST(Negotiate, Qualities) {
  const Case cases[] = {
      {"application/json;q=0.1,application/yaml;q=0.9", "yaml"},
      {"application/yaml;q=0.9,application/json;q=0.1", "yaml"},
      {"application/yaml;q=x,application/json;q=0.1", "json"},
      {"*/*,application/yaml", "yaml"},
      {"application/json;q=0", "json"},
  };
  for (const Case& c : cases) EXPECT_EQ(answer(c.accept), c.expected) << c.accept;
}

TEST(Negotiate, Transforms) {
  const Case cases[] = {
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "json+table"},
      {"application/json;as=Table;v=v1beta1;g=meta.k8s.io", "json+table"},
      {"application/yaml;as=Table;v=v1;g=meta.k8s.io", "yaml+table"},
      {"application/json;as=Table;v=v2;g=meta.k8s.io", "406"},
      {"application/json;as=Table;v=v1;g=meta.k8s.io;stream=watch", "json+table"},
      {"application/json;as=Table", "406"},
      {"application/json;as=Table,application/json", "json"},
      {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", "406"},
      {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "json+partial"},
      {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
       "pb+partial"},
      {"application/json;as=Foo;v=v1;g=meta.k8s.io", "406"},
  };
  for (const Case& c : cases) EXPECT_EQ(answer(c.accept), c.expected) << c.accept;
  EXPECT_EQ(answer("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", true, false),
            "json");
}

TEST(Negotiate, Streams) {
  const Case cases[] = {
      {"application/json;stream=watch", "json"},
      {"application/vnd.kubernetes.protobuf;stream=watch", "pb"},
      {"application/yaml;stream=watch", "406"},
      {"application/json;stream=other", "406"},
  };
  for (const Case& c : cases) EXPECT_EQ(answer(c.accept), c.expected) << c.accept;
}

TEST(Negotiate, CustomResourcesHaveNoProtobuf) {
  EXPECT_EQ(answer("application/vnd.kubernetes.protobuf", false), "406");
  EXPECT_EQ(answer("application/vnd.kubernetes.protobuf,application/json", false), "json");
  const char* metadata =
      "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  EXPECT_EQ(answer(metadata, false), "pb+partial");
  // No router looks at the header first.
  EXPECT_EQ(answer("application/*", false), "json");
}

TEST(Negotiate, ContentTypeIsTheTypeAlone) {
  EXPECT_EQ(negotiate("application/json;as=Table;v=v1;g=meta.k8s.io", true, true)->content_type,
            "application/json");
  EXPECT_EQ(negotiate("application/vnd.kubernetes.protobuf", true, true)->content_type,
            "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(negotiate("", true, true)->content_type, "application/json");
}

TEST(MediaTypes, AreSplitIntoParameters) {
  const auto types = parse_media_types("application/json; as=Table ;v=v1;q=0.5 , text/plain;x");
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[0].type, "application/json");
  EXPECT_EQ(types[0].parameter("as"), "Table");
  EXPECT_EQ(types[0].parameter("v"), "v1");
  EXPECT_EQ(types[0].parameter("nothing"), "");
  EXPECT_EQ(types[1].type, "text/plain");
  EXPECT_TRUE(types[1].parameters.empty());
}

TEST(ContentType, Forms) {
  EXPECT_EQ(form_of(""), Form::Json);
  EXPECT_EQ(form_of("application/json; charset=utf-8"), Form::Json);
  EXPECT_EQ(form_of("Application/JSON"), Form::Json);
  EXPECT_EQ(form_of("application/yaml"), Form::Yaml);
  EXPECT_EQ(form_of("application/vnd.kubernetes.protobuf"), Form::Protobuf);
  EXPECT_EQ(form_of("text/plain"), std::nullopt);
  EXPECT_EQ(form_of("application/merge-patch+json"), std::nullopt);
}

TEST(ContentType, Types) {
  EXPECT_EQ(media_type_of("Application/Merge-Patch+JSON ; a=b"), "application/merge-patch+json");
  EXPECT_EQ(media_type_of("a/b; c=\"d;\\\"e\"; f=g"), "a/b");
  EXPECT_EQ(media_type_of("a/b;"), "a/b");
  for (const char* wrong : {"", "a b/c", "a/", "a/b; c", "a/b; c=", "a/b; c=\"d", "a/b; c=d e"}) {
    EXPECT_EQ(media_type_of(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace jogak::codec
