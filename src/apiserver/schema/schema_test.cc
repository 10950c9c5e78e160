// SPDX-License-Identifier: Apache-2.0
//
// The facts of kube.types as they are read: fields, shapes, flags, lookups.
#include "apiserver/schema/schema.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/schema/kube_types.h"

namespace jogak::schema {
namespace {

using Shape = Type::Shape;

TEST(Schema, TextIsLinkedIn) {
  EXPECT_TRUE(kube_types().starts_with("# Written by tools/kube_schema.py"));
  EXPECT_TRUE(kube_types().ends_with("\n"));
}

TEST(Schema, FindsStructsByName) {
  EXPECT_EQ(get("core.v1.Pod").name, "core.v1.Pod");
  EXPECT_EQ(find("core.v1.Nothing"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(Schema, EveryFieldIsFoundAtItsPlace) {
  for (const char* name : {"core.v1.PodSpec", "core.v1.Container", "meta.v1.ObjectMeta",
                           "apiextensions.v1.JSONSchemaProps", "core.v1.Volume"}) {
    const Struct& type = get(name);
    for (const Field& field : type.fields) EXPECT_EQ(type.find(field.name), &field) << field.name;
  }
}

TEST(Schema, NamesAreCaseSensitive) {
  const Struct& type = get("core.v1.PodSpec");
  EXPECT_EQ(type.find("nodeselector"), nullptr);
  EXPECT_EQ(type.find(""), nullptr);
  EXPECT_EQ(type.find("containersx"), nullptr);
}

TEST(Schema, FieldsStandInOrderWithTheirNumbers) {
  const Struct& pod = get("core.v1.Pod");
  ASSERT_EQ(pod.fields.size(), 5U);
  EXPECT_EQ(pod.fields[0].name, "kind");
  EXPECT_EQ(pod.fields[0].number, 0);
  EXPECT_EQ(pod.fields[3].name, "spec");
  EXPECT_EQ(pod.fields[3].number, 2);
  EXPECT_EQ(pod.fields[3].type.of, &get("core.v1.PodSpec"));
}

TEST(Schema, AFieldMayBeCalledType) {
  const Struct& condition = get("core.v1.PodCondition");
  ASSERT_NE(condition.find("type"), nullptr);
  EXPECT_EQ(condition.find("type")->number, 1);
}

TEST(Schema, Shapes) {
  struct Case {
    const char *type, *field;
    Base base;
    bool is_pointer;
    Shape shape, inner;
  };
  const Case cases[] = {
      {"core.v1.PodSpec", "containers", Base::Struct, false, Shape::List, Shape::One},
      {"core.v1.PodSpec", "nodeSelector", Base::String, false, Shape::Map, Shape::One},
      {"core.v1.PodSpec", "priority", Base::Int32, true, Shape::One, Shape::One},
      {"core.v1.PodSpec", "securityContext", Base::Struct, true, Shape::One, Shape::One},
      {"core.v1.ResourceRequirements", "limits", Base::Quantity, false, Shape::Map, Shape::One},
      {"authentication.v1.UserInfo", "extra", Base::String, false, Shape::Map, Shape::List},
      {"core.v1.Secret", "data", Base::Bytes, false, Shape::Map, Shape::One},
      {"meta.v1.ManagedFieldsEntry", "fieldsV1", Base::Fields, true, Shape::One, Shape::One},
      {"core.v1.ServicePort", "targetPort", Base::IntOrString, false, Shape::One, Shape::One},
      {"coordination.v1.LeaseSpec", "renewTime", Base::MicroTime, true, Shape::One, Shape::One},
  };
  for (const Case& c : cases) {
    const Field* field = get(c.type).find(c.field);
    ASSERT_NE(field, nullptr) << c.type << " " << c.field;
    EXPECT_EQ(field->type.base, c.base) << c.field;
    EXPECT_EQ(field->type.is_pointer, c.is_pointer) << c.field;
    EXPECT_EQ(field->type.shape, c.shape) << c.field;
    EXPECT_EQ(field->type.inner_shape, c.inner) << c.field;
  }
}

TEST(Schema, ElementOfAMapOfListsIsAList) {
  const Type type = get("authentication.v1.UserInfo").find("extra")->type;
  EXPECT_EQ(type.element().shape, Shape::List);
  EXPECT_EQ(type.element().element().shape, Shape::One);
}

TEST(Schema, PatchAndListFlags) {
  const Field* containers = get("core.v1.PodSpec").find("containers");
  EXPECT_TRUE(containers->patch_merge);
  EXPECT_EQ(containers->patch_key, "name");
  EXPECT_EQ(containers->list, ListKind::Map);
  EXPECT_EQ(containers->list_keys, (std::vector<std::string_view>{"name"}));
  const Field* volumes = get("core.v1.PodSpec").find("volumes");
  EXPECT_TRUE(volumes->patch_merge);
  EXPECT_TRUE(volumes->patch_retain_keys);
  const Field* strategy = get("apps.v1.DeploymentSpec").find("strategy");
  EXPECT_TRUE(strategy->patch_retain_keys);
  EXPECT_FALSE(strategy->patch_merge);
  const Field* ports = get("core.v1.Container").find("ports");
  EXPECT_EQ(ports->patch_key, "containerPort");
  EXPECT_EQ(ports->list_keys, (std::vector<std::string_view>{"containerPort", "protocol"}));
  EXPECT_EQ(get("core.v1.ContainerPort").find("protocol")->default_text, "\"TCP\"");
  EXPECT_EQ(get("meta.v1.ObjectMeta").find("finalizers")->list, ListKind::Set);
  EXPECT_TRUE(get("core.v1.PodSpec").find("nodeSelector")->is_atomic);
  EXPECT_TRUE(get("core.v1.ObjectReference").is_atomic);
  EXPECT_FALSE(get("core.v1.Pod").is_atomic);
}

TEST(Schema, InlineMembersNameTheirMessage) {
  const Struct& volume = get("core.v1.Volume");
  EXPECT_EQ(volume.find("name")->inline_number, 0);
  EXPECT_EQ(volume.find("hostPath")->inline_number, 2);
  EXPECT_EQ(volume.find("hostPath")->number, 1);
}

TEST(Schema, WhatGoWritesEvenWhenZero) {
  EXPECT_TRUE(get("core.v1.Pod").find("status")->is_always);
  EXPECT_TRUE(get("core.v1.PodSpec").find("containers")->is_always);
  EXPECT_FALSE(get("core.v1.PodSpec").find("volumes")->is_always);
  EXPECT_FALSE(get("core.v1.PodSpec").find("securityContext")->is_always);
  EXPECT_FALSE(get("core.v1.Pod").find("kind")->is_always);
  EXPECT_TRUE(get("core.v1.Event").find("firstTimestamp")->is_always);
  EXPECT_FALSE(get("meta.v1.ObjectMeta").find("creationTimestamp")->is_always);
}

}  // namespace
}  // namespace jogak::schema
