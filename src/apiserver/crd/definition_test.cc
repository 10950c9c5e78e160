// SPDX-License-Identifier: Apache-2.0
//
// Definitions: what is filled in, what is refused and where, what deletion does.
#include "apiserver/crd/definition.h"

#include <algorithm>
#include <functional>

#include "apiserver/crd/crd.h"
#include "apiserver/crd/testing.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

const Strategy& strategy() {
  static Registry registry = [] {
    Registry made;
    add_crd_kind(made);
    return made;
  }();
  return *registry.find_storage(kCrdTable)->strategy;
}

struct NoLookup : Lookup {
  std::optional<Doc> get(std::string_view, std::string_view, std::string_view) const override {
    return std::nullopt;
  }
  std::vector<Doc> list(std::string_view, std::string_view) const override { return {}; }
};

// A write's surroundings.
struct Writing {
  NoLookup lookup;
  Rng rng{1, "test"};
  User user;
  std::vector<std::string> warnings;
  WriteContext context{.now = 1'700'000'000 * kSecondInUs,
                       .lookup = lookup,
                       .rng = rng,
                       .user = user,
                       .is_dry_run = false,
                       .warnings = warnings};
};

Doc created(Doc crd = testing::widget_definition()) {
  Writing writing;
  strategy().set_defaults(crd);
  strategy().prepare_create(crd, writing.context);
  return crd;
}

// Fields of the findings after a change to a right definition.
Lines findings(const std::function<void(Doc&)>& change) {
  Doc crd = testing::widget_definition();
  change(crd);
  crd = created(crd);
  FieldErrors errors;
  check_definition(crd, nullptr, errors);
  return testing::fields(errors);
}

Doc& first_version(Doc& crd) { return crd.at("spec", "versions").items()[0]; }

TEST(Definition, DefaultsOfARealServer) {
  const Doc crd = created();
  EXPECT_EQ(crd.get("spec", "names", "listKind").as_string(), "WidgetList");
  EXPECT_EQ(crd.get("spec", "conversion", "strategy").as_string(), "None");
  EXPECT_EQ(testing::json(crd["status"]), R"({"storedVersions":["v1"]})");
}

TEST(Definition, TheWidgetIsRight) {
  EXPECT_EQ(findings([](Doc&) {}), Lines{});
}

TEST(Definition, TheNameIsPluralAndGroup) {
  EXPECT_EQ(findings([](Doc& crd) { crd.at("metadata").set("name", "other.g.example"); }),
            Lines{"metadata.name"});
}

TEST(Definition, GroupsAndScope) {
  EXPECT_EQ(findings([](Doc& crd) {
              crd.at("spec").set("group", "g");
              crd.at("metadata").set("name", "widgets.g");
            }),
            Lines{"spec.group"});
  EXPECT_EQ(findings([](Doc& crd) { crd.at("spec").set("scope", "Elsewhere"); }),
            Lines{"spec.scope"});
}

TEST(Definition, ExactlyOneStorageVersion) {
  EXPECT_EQ(findings([](Doc& crd) {
              Doc second = testing::widget_version();
              second.set("name", "v2");
              crd.at("spec", "versions").push(second);
            }),
            (Lines{"spec.versions", "status.storedVersions"}));
  EXPECT_EQ(findings([](Doc& crd) { first_version(crd).set("storage", false); }),
            (Lines{"spec.versions", "status.storedVersions"}));
}

TEST(Definition, VersionNames) {
  EXPECT_EQ(findings([](Doc& crd) { first_version(crd).set("name", "V1"); }),
            Lines{"spec.versions[0].name"});
  EXPECT_EQ(findings([](Doc& crd) {
              Doc second = testing::widget_version();
              second.set("storage", false);
              crd.at("spec", "versions").push(second);
            }),
            Lines{"spec.versions"});
}

TEST(Definition, ASchemaIsNeeded) {
  EXPECT_EQ(findings([](Doc& crd) { first_version(crd).erase("schema"); })[0],
            "spec.versions[0].schema.openAPIV3Schema");
}

TEST(Definition, WhatAllVersionsShareIsShownAtTheTop) {
  const auto break_column = [](Doc& version) {
    version.at("additionalPrinterColumns").items()[0].set("type", "text");
  };
  EXPECT_EQ(findings([&](Doc& crd) { break_column(first_version(crd)); }),
            Lines{"spec.additionalPrinterColumns[0].type"});
  EXPECT_EQ(findings([&](Doc& crd) {
              Doc second = testing::widget_version();
              second.set("name", "v2").set("storage", false);
              break_column(second);
              crd.at("spec", "versions").push(second);
            }),
            Lines{"spec.versions[1].additionalPrinterColumns[0].type"});
}

TEST(Definition, ScalePaths) {
  EXPECT_EQ(findings([](Doc& crd) {
              first_version(crd).at("subresources", "scale").set("specReplicasPath", ".status.x");
            }),
            Lines{"spec.subresources.scale.specReplicasPath"});
}

TEST(Definition, SelectableFields) {
  const auto select = [](std::string_view path) {
    return findings([&](Doc& crd) {
      Doc field = Doc::object();
      field.set("jsonPath", path);
      first_version(crd).at("selectableFields").push(field);
    });
  };
  EXPECT_EQ(select(".spec.size"), Lines{});
  EXPECT_EQ(select(".spec.none"), Lines{"spec.selectableFields[1].jsonPath"});
  EXPECT_EQ(select(".spec.any"), Lines{"spec.selectableFields[1].jsonPath"});
  EXPECT_EQ(select(".spec.color"), Lines{"spec.selectableFields[1].jsonPath"});
  EXPECT_EQ(select(".spec.tags[0]"), Lines{"spec.selectableFields[1].jsonPath"});
}

TEST(Definition, Names) {
  EXPECT_EQ(findings([](Doc& crd) { crd.at("spec", "names").set("listKind", "Widget"); }),
            Lines{"spec.names.listKind"});
  EXPECT_EQ(findings([](Doc& crd) { crd.at("spec", "names").set("kind", "wid get"); }),
            (Lines{"spec.names.kind", "spec.names.listKind"}));
}

TEST(Definition, ProtectedGroupsNeedApproval) {
  const auto protect = [](std::string_view approval) {
    return findings([&](Doc& crd) {
      crd.at("spec").set("group", "x.k8s.io");
      crd.at("metadata").set("name", "widgets.x.k8s.io");
      if (!approval.empty()) {
        crd.at("metadata", "annotations").set("api-approved.kubernetes.io", approval);
      }
    });
  };
  constexpr std::string_view kAt = "metadata.annotations[api-approved.kubernetes.io]";
  EXPECT_EQ(protect(""), Lines{std::string(kAt)});
  EXPECT_EQ(protect("maybe"), Lines{std::string(kAt)});
  EXPECT_EQ(protect("https://example.com/pull/1"), Lines{});
  EXPECT_EQ(protect("unapproved, a trial"), Lines{});
}

TEST(Definition, Conversion) {
  EXPECT_EQ(
      findings(
          [](Doc& crd) { crd.at("spec").set("conversion", doc(R"({"strategy": "Webhook"})")); }),
      (Lines{"spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions"}));
  EXPECT_EQ(
      findings([](Doc& crd) { crd.at("spec").set("conversion", doc(R"({"strategy": "Other"})")); }),
      Lines{"spec.conversion.strategy"});
}

TEST(Definition, WhatMayNotChange) {
  Doc old = created();
  Doc crd = old;
  crd.at("spec").set("scope", "Cluster");
  crd.at("spec", "names").set("kind", "Gadget").set("plural", "gadgets");
  FieldErrors before;
  check_definition(crd, &old, before);
  EXPECT_EQ(testing::fields(before), Lines{"spec.names.plural"});
  set_condition(old, "Established", "True", "InitialNamesAccepted", "", 0);
  FieldErrors after;
  check_definition(crd, &old, after);
  EXPECT_EQ(testing::fields(after), (Lines{"spec.scope", "spec.names.kind", "spec.names.plural"}));
}

TEST(Definition, StorageVersionsAddUp) {
  const Doc old = created();
  Doc crd = old;
  Doc second = testing::widget_version();
  second.set("name", "v2");
  first_version(crd).set("storage", false);
  crd.at("spec", "versions").push(second);
  Writing writing;
  strategy().prepare_update(crd, old, writing.context);
  EXPECT_EQ(testing::json(crd.get("status", "storedVersions")), R"(["v1","v2"])");
  std::erase_if(crd.at("spec", "versions").items(),
                [](const Doc& version) { return version["name"].as_string() == "v1"; });
  FieldErrors errors;
  check_definition(crd, &old, errors);
  EXPECT_EQ(testing::fields(errors), Lines{"status.storedVersions[0]"});
}

TEST(Definition, UnknownFormatsWarn) {
  Doc crd = testing::widget_definition();
  first_version(crd)
      .at("schema", "openAPIV3Schema")
      .at("properties", "status", "properties", "phase")
      .set("format", "mood");
  crd = created(crd);
  Writing writing;
  FieldErrors errors;
  strategy().validate_create(crd, writing.context, errors);
  EXPECT_TRUE(errors.empty()) << errors.text();
  EXPECT_EQ(writing.warnings, Lines{"unrecognized format \"mood\""});
}

TEST(Definition, DeletionWaitsForTheObjects) {
  Writing writing;
  const Doc crd = created();
  auto marked = strategy().delete_instead(crd, writing.context);
  ASSERT_TRUE(marked && marked->has_value());
  EXPECT_TRUE(is_deleting(**marked));
  EXPECT_TRUE(has_finalizer(**marked, kCleanupFinalizer));
  EXPECT_FALSE(meta(**marked).has("deletionGracePeriodSeconds"));
  EXPECT_EQ(condition_of(**marked, "Terminating")["reason"].as_string(), "InstanceDeletionPending");
  EXPECT_FALSE(strategy().delete_instead(**marked, writing.context).has_value());
}

TEST(Definition, PreferredVersions) {
  Lines versions = {"foo10", "v1", "v12alpha1", "foo1", "v3beta1", "v10", "v11beta2", "v2"};
  std::sort(versions.begin(), versions.end(),
            [](const std::string& a, const std::string& b) { return is_preferred_over(a, b); });
  EXPECT_EQ(versions,
            (Lines{"v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "foo1", "foo10"}));
}

}  // namespace
}  // namespace jogak::api
