// SPDX-License-Identifier: Apache-2.0
//
// Objects of a custom kind against the answers that a real server gave to the same requests.
#include "apiserver/crd/custom_strategy.h"

#include "apiserver/crd/crd.h"
#include "apiserver/crd/testing.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

struct NoLookup : Lookup {
  std::optional<Doc> get(std::string_view, std::string_view, std::string_view) const override {
    return std::nullopt;
  }
  std::vector<Doc> list(std::string_view, std::string_view) const override { return {}; }
};

class WidgetTest : public ::testing::Test {
 protected:
  WidgetTest() {
    resource_.group = "g.example";
    resource_.version = "v1";
    resource_.kind = "Widget";
    resource_.plural = "widgets";
    resource_.custom_schema = &strategy_.schema();
  }

  static Doc widget(std::string_view spec) {
    Doc object = doc(R"({"apiVersion": "g.example/v1", "kind": "Widget",
                         "metadata": {"name": "b", "namespace": "n"}})");
    object.set("spec", doc(spec));
    return object;
  }

  Lines create(std::string_view spec) {
    Doc object = widget(spec);
    drop(object);
    FieldErrors errors;
    strategy_.set_defaults(object);
    strategy_.prepare_create(object, context_);
    strategy_.validate_create(object, context_, errors);
    return testing::lines(errors);
  }

  Lines update(std::string_view spec, std::string_view old, std::string_view subresource = "") {
    FieldErrors errors;
    Doc object = widget(spec);
    const Doc before = widget(old);
    if (subresource.empty()) {
      strategy_.validate_update(object, before, context_, errors);
    } else {
      strategy_.validate_subresource_update(subresource, object, before, context_, errors);
    }
    return testing::lines(errors);
  }

  void drop(Doc& object) {
    schema::Complaints complaints;
    auto decoded = decode_custom(object, resource_, complaints);
    ASSERT_TRUE(decoded);
    object = *std::move(decoded);
  }

  CustomStrategy strategy_{testing::widget_version(), doc(testing::kWidgetSchema)};
  Resource resource_;
  NoLookup lookup_;
  Rng rng_{1, "test"};
  User user_;
  std::vector<std::string> warnings_;
  WriteContext context_{.now = 0,
                        .lookup = lookup_,
                        .rng = rng_,
                        .user = user_,
                        .is_dry_run = false,
                        .warnings = warnings_};
};

const std::string kUnchecked =
    "FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because "
    "the object was invalid; correct the existing errors to complete validation";

TEST_F(WidgetTest, CreatesOfARealServer) {
  EXPECT_EQ(create(R"({"size": 3})"), Lines{});
  EXPECT_EQ(create(R"({"size": 0})"),
            (Lines{"FieldValueInvalid spec.size: Invalid value: 0: spec.size in body should be "
                   "greater than or equal to 1",
                   "FieldValueInvalid spec: Invalid value: replicas over size"}));
  EXPECT_EQ(create("{}"), (Lines{"FieldValueRequired spec.size: Required value", kUnchecked}));
  EXPECT_EQ(create(R"({"size": null})"),
            (Lines{"FieldValueRequired spec.size: Required value", kUnchecked}));
  EXPECT_EQ(create(R"({"size": 2, "color": null})"), Lines{});
  EXPECT_EQ(create(R"({"size": 3, "tags": ["a", "a"]})"),
            Lines{"FieldValueDuplicate spec.tags[1]: Duplicate value: \"a\""});
  EXPECT_EQ(create(R"({"size": 3, "replicas": 9})"),
            Lines{"FieldValueInvalid spec: Invalid value: replicas over size"});
}

TEST_F(WidgetTest, TransitionRules) {
  EXPECT_EQ(update(R"({"size": 3, "replicas": 1, "sel": "y"})",
                   R"({"size": 3, "replicas": 1, "sel": "x"})"),
            Lines{"FieldValueInvalid spec: Invalid value: sel is fixed"});
  EXPECT_EQ(update(R"({"size": 3, "replicas": 1, "sel": "x"})", R"({"size": 3, "replicas": 1})"),
            Lines{});
}

TEST_F(WidgetTest, ABrokenRuleOnWhatDidNotChangeIsForgiven) {
  constexpr std::string_view kOver = R"({"size": 1, "replicas": 2})";
  EXPECT_EQ(update(kOver, kOver), Lines{});
  EXPECT_EQ(update(R"({"size": 1, "replicas": 3})", kOver).size(), 1U);
}

TEST_F(WidgetTest, ScaleIsCheckedAsAnUpdate) {
  EXPECT_EQ(update(R"({"size": 3, "replicas": -3})", R"({"size": 3, "replicas": 1})", "scale"),
            Lines{"FieldValueInvalid .spec.replicas: Invalid value: -3: should be a non-negative "
                  "integer"});
}

TEST_F(WidgetTest, StatusUpdatesTouchTheStatusAlone) {
  Doc old = widget(R"({"size": 3, "replicas": 1})");
  old.at("metadata", "labels").set("a", "b");
  Doc object = widget(R"({"size": 9})");
  object.set("status", doc(R"({"phase": "Up"})"));
  strategy_.prepare_subresource_update("status", object, old, context_);
  EXPECT_EQ(object["spec"], old["spec"]);
  EXPECT_EQ(meta(object)["labels"], meta(old)["labels"]);
  EXPECT_EQ(object.get("status", "phase").as_string(), "Up");
  FieldErrors errors;
  object.at("status").set("replicas", "many");
  strategy_.validate_subresource_update("status", object, old, context_, errors);
  EXPECT_EQ(testing::fields(errors), (Lines{"status.replicas", ".status.replicas", "<nil>"}));
}

TEST_F(WidgetTest, CreatesAndUpdatesKeepTheStatusOut) {
  Doc object = widget(R"({"size": 3})");
  object.set("status", doc(R"({"phase": "x"})"));
  Doc changed = object;
  strategy_.prepare_create(object, context_);
  EXPECT_FALSE(object.has("status"));
  strategy_.prepare_update(changed, object, context_);
  EXPECT_FALSE(changed.has("status"));
}

TEST_F(WidgetTest, GenerationsFollowTheSpec) {
  const Doc old = widget(R"({"size": 3})");
  Doc object = old;
  object.at("metadata", "labels").set("a", "b");
  object.set("status", doc("{}"));
  EXPECT_FALSE(strategy_.spec_changed(object, old));
  object.at("spec").set("size", 4);
  EXPECT_TRUE(strategy_.spec_changed(object, old));
}

TEST_F(WidgetTest, WithoutASubresourceTheStatusIsLikeTheSpec) {
  Doc version = testing::widget_version();
  version.erase("subresources");
  const CustomStrategy strategy(version, doc(testing::kWidgetSchema));
  Doc object = widget(R"({"size": 3})");
  const Doc old = object;
  object.set("status", doc(R"({"phase": "x"})"));
  EXPECT_TRUE(strategy.spec_changed(object, old));
  strategy.prepare_create(object, context_);
  EXPECT_TRUE(object.has("status"));
}

TEST_F(WidgetTest, SelectableFields) {
  EXPECT_EQ(strategy_.selectable_fields(), std::vector<std::string_view>{"spec.color"});
  EXPECT_EQ(strategy_.field(widget(R"({"color": "red"})"), "spec.color"), "red");
}

TEST_F(WidgetTest, FinalizersWithoutADomainWarn) {
  Doc object = widget(R"({"size": 3, "replicas": 1})");
  object.at("metadata", "finalizers").push("mine").push("a.example/ok");
  FieldErrors errors;
  strategy_.validate_create(object, context_, errors);
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(WidgetTest, ScaleShowsAndWrites) {
  const auto projection = scale_projection("Widget", "g.example", *strategy_.scale());
  Doc object = widget(R"({"size": 3, "replicas": 2})");
  object.set("status", doc(R"({"replicas": 1, "selector": "a=b"})"));
  const auto scale = projection->read(object);
  ASSERT_TRUE(scale);
  EXPECT_EQ(testing::json(*scale),
            R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"b",)"
            R"("namespace":"n"},"spec":{"replicas":2},"status":{"replicas":1,"selector":"a=b"}})");
  const auto written = projection->write(object, doc(R"({"spec": {"replicas": 4}})"));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->get("spec", "replicas").as_int(), 4);
}

TEST_F(WidgetTest, ScaleNeedsItsField) {
  const auto projection = scale_projection("Widget", "g.example", *strategy_.scale());
  const auto scale = projection->read(widget("{}"));
  ASSERT_FALSE(scale);
  EXPECT_EQ(scale.error().code, 500);
}

class DecodeTest : public WidgetTest {
 protected:
  ApiResult<Doc> decode(std::string_view text) {
    complaints_ = {};
    return decode_custom(doc(text), resource_, complaints_);
  }

  schema::Complaints complaints_;
};

TEST_F(DecodeTest, UnknownMembersGoWithAComplaint) {
  const auto object = decode(R"({"apiVersion": "g.example/v1", "kind": "Widget",
      "metadata": {"name": "d", "foo": 1}, "spec": {"size": 3, "foo": 1}})");
  ASSERT_TRUE(object);
  EXPECT_EQ((*object)["spec"], doc(R"({"size": 3})"));
  EXPECT_EQ(complaints_.unknown,
            (Lines{"unknown field \"metadata.foo\"", "unknown field \"spec.foo\""}));
}

TEST_F(DecodeTest, AKindIsNeeded) {
  const auto object = decode(R"({"metadata": {"name": "nokind"}, "spec": {"size": 1}})");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, 400);
  EXPECT_TRUE(object.error().message.starts_with(
      "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing"));
}

TEST_F(DecodeTest, AnotherVersionHasNoSchema) {
  const auto object = decode(R"({"apiVersion": "g.example/v2", "kind": "Widget",
      "metadata": {"name": "v2"}, "spec": {"size": 1}})");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().message,
            "the API version in the data (g.example/v2) does not match the expected API version "
            "(g.example/v1)");
  EXPECT_EQ(complaints_.unknown, Lines{"unknown field \"spec\""});
}

TEST_F(DecodeTest, AnotherKindIsInvalid) {
  const auto object =
      decode(R"({"kind": "Other", "apiVersion": "g.example/v1", "metadata": {"name": "v2"}})");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, 422);
  EXPECT_EQ(object.error().kind, "Other");
  ASSERT_EQ(object.error().causes.size(), 1U);
  EXPECT_EQ(object.error().causes[0].field, "kind");
  EXPECT_EQ(object.error().causes[0].message, "Invalid value: \"Other\": must be Widget");
}

TEST_F(DecodeTest, WrongMetadataCannotBeHandled) {
  const auto object = decode(R"({"apiVersion": "g.example/v1", "kind": "Widget",
                                 "metadata": {"labels": 1}})");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, 400);
  EXPECT_TRUE(object.error().message.starts_with(
      "Widget in version \"v1\" cannot be handled as a Widget: json: "))
      << object.error().message;
}

TEST_F(DecodeTest, KeysThatStoodTwiceAreComplainedAboutFirst) {
  complaints_ = {};
  complaints_.duplicates = {"duplicate field \"spec.size\""};
  const auto object = decode_custom(doc(R"({"apiVersion": "g.example/v1", "kind": "Widget",
      "metadata": {"name": "d"}, "spec": {"size": 3, "foo": 1}})"),
                                    resource_, complaints_);
  ASSERT_TRUE(object);
  EXPECT_EQ(complaints_.unknown,
            (Lines{"duplicate field \"spec.size\"", "unknown field \"spec.foo\""}));
}

}  // namespace
}  // namespace jogak::api
