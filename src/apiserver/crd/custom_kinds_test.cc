// SPDX-License-Identifier: Apache-2.0
//
// Definitions from their creation to their end, with a store that keeps Docs and follows as the
// server does: every change in a turn of its own after the write.
#include <map>
#include <utility>

#include "apiserver/crd/crd.h"
#include "apiserver/crd/custom_strategy.h"
#include "apiserver/crd/definition.h"
#include "apiserver/crd/testing.h"
#include "apiserver/object/meta.h"
#include "base/sim_loop.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

// Objects by resource, namespace and name; writes are taken as they are.
class FakeApi : public Api {
 public:
  explicit FakeApi(SimLoop& loop) : loop_(loop) {}

  Loop& loop() const override { return loop_; }

  ApiResult<Doc> get(std::string_view resource, std::string_view ns,
                     std::string_view name) const override {
    const auto found = objects_.find(key(resource, ns, name));
    if (found == objects_.end()) return not_found({"x", ""}, name);
    return found->second;
  }

  std::vector<Doc> list(std::string_view resource, std::string_view /*ns*/,
                        const LabelSelector& /*selector*/) const override {
    std::vector<Doc> out;
    for (const auto& [where, object] : objects_) {
      if (std::get<0>(where) == resource) out.push_back(object);
    }
    return out;
  }

  ApiResult<Doc> create(std::string_view resource, std::string_view ns, Doc object,
                        std::string_view /*subresource*/, std::string_view /*name*/) override {
    objects_[key(resource, ns, name_of(object))] = object;
    tell(resource, store::EventType::Added, object);
    return object;
  }

  ApiResult<Doc> update(std::string_view resource, Doc object,
                        std::string_view /*subresource*/) override {
    ++updates;
    const auto where = key(resource, namespace_of(object), name_of(object));
    if (is_deleting(object) && meta(object)["finalizers"].empty()) {
      objects_.erase(where);
      tell(resource, store::EventType::Deleted, object);
      return object;
    }
    objects_[where] = object;
    tell(resource, store::EventType::Modified, object);
    return object;
  }

  ApiResult<Doc> patch(std::string_view, std::string_view, std::string_view, PatchType, const Doc&,
                       std::string_view) override {
    return internal_error("not asked for here");
  }

  ApiResult<void> remove(std::string_view resource, std::string_view ns, std::string_view name,
                         const Doc& /*options*/) override {
    const auto found = objects_.find(key(resource, ns, name));
    if (found == objects_.end()) return not_found({"x", ""}, name);
    if (!meta(found->second)["finalizers"].empty()) {
      found->second.at("metadata").set("deletionTimestamp", "2026-02-02T02:09:39Z");
      return {};
    }
    objects_.erase(found);
    return {};
  }

  std::vector<Table> tables() const override { return {}; }

  std::shared_ptr<void> follow(std::string_view /*resource*/, Follower follower) override {
    auto handle = std::make_shared<Follower>(std::move(follower));
    follower_ = handle;
    return handle;
  }

  int updates = 0;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  static Key key(std::string_view resource, std::string_view ns, std::string_view name) {
    return {std::string(resource), std::string(ns), std::string(name)};
  }

  void tell(std::string_view resource, store::EventType type, const Doc& object) {
    if (resource != kCrdTable) return;
    loop_.post([this, type, object = std::make_shared<const Doc>(object)] {
      if (const auto follower = follower_.lock()) (*follower)({.type = type, .object = object});
    });
  }

  SimLoop& loop_;
  std::map<Key, Doc> objects_;
  std::weak_ptr<Follower> follower_;
};

class CustomKindsTest : public ::testing::Test {
 protected:
  CustomKindsTest() { add_crd_kind(registry_); }

  static Doc defaulted(Doc crd) {
    static Registry registry = [] {
      Registry made;
      add_crd_kind(made);
      return made;
    }();
    registry.find_storage(kCrdTable)->strategy->set_defaults(crd);
    return crd;
  }

  Doc create(Doc crd = testing::widget_definition()) {
    const std::string name = name_of(crd);
    (void)api_.create(kCrdTable, "", defaulted(std::move(crd)), "", "");
    loop_.run_ready();
    return current(name);
  }

  Doc current(std::string_view name = "widgets.g.example") {
    return api_.get(kCrdTable, "", name).value_or(Doc());
  }

  // As the strategy does on DELETE.
  void start_deletion() {
    Doc crd = current();
    crd.at("metadata").set("deletionTimestamp", "2026-02-02T02:09:39Z");
    crd.at("metadata", "finalizers").push(kCleanupFinalizer);
    set_condition(crd, "Terminating", "True", "InstanceDeletionPending", "", loop_.now());
    (void)api_.update(kCrdTable, crd, "");
  }

  SimLoop loop_;
  Registry registry_;
  FakeApi api_{loop_};
  CustomKinds kinds_{registry_, api_};
};

TEST_F(CustomKindsTest, NamesAreAcceptedThenItIsEstablished) {
  const Doc crd = create();
  EXPECT_EQ(api_.updates, 2);
  EXPECT_EQ(crd.get("status", "acceptedNames"), crd.get("spec", "names"));
  const auto& conditions = crd.get("status", "conditions").items();
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(conditions[0]["type"].as_string(), "NamesAccepted");
  EXPECT_EQ(conditions[0]["reason"].as_string(), "NoConflicts");
  EXPECT_EQ(conditions[1]["type"].as_string(), "Established");
  EXPECT_EQ(conditions[1]["reason"].as_string(), "InitialNamesAccepted");
}

TEST_F(CustomKindsTest, ResourcesCanBeHadBeforeAnybodyFollows) {
  const Doc crd = create();
  Registry other;
  add_custom_resources(other, defaulted(testing::widget_definition()));
  EXPECT_EQ(other.find("g.example", "v1", "widgets"), nullptr);  // not established
  add_custom_resources(other, crd);
  ASSERT_NE(other.find("g.example", "v1", "widgets"), nullptr);
  EXPECT_EQ(other.find("g.example", "v1", "widgets")->strategy->selectable_fields().size(), 1U);
}

TEST_F(CustomKindsTest, AnEstablishedDefinitionIsServed) {
  create();
  const Resource* widgets = registry_.find("g.example", "v1", "widgets");
  ASSERT_NE(widgets, nullptr);
  EXPECT_EQ(widgets->kind, "Widget");
  EXPECT_EQ(widgets->list_kind, "WidgetList");
  EXPECT_EQ(widgets->singular, "widget");
  EXPECT_EQ(widgets->short_names, Lines{"wix"});
  EXPECT_EQ(widgets->categories, Lines{"all"});
  EXPECT_TRUE(widgets->is_namespaced);
  EXPECT_TRUE(widgets->has_status());
  EXPECT_NE(widgets->subresource("scale"), nullptr);
  EXPECT_EQ(widgets->table, "widgets.g.example");
  EXPECT_EQ(widgets->printer_columns.size(), 1U);
  EXPECT_EQ(widgets->storage_version_hash.size(), 12U);
  ASSERT_NE(widgets->custom_schema, nullptr);
  EXPECT_TRUE(widgets->custom_schema->is_object());
}

TEST_F(CustomKindsTest, EveryServedVersionIsAResource) {
  Doc crd = testing::widget_definition();
  Doc& versions = crd.at("spec", "versions");
  for (const std::string_view name : {"v1beta1", "v2", "v3"}) {
    Doc version = testing::widget_version();
    version.set("name", name).set("storage", false).set("served", name != "v3");
    versions.push(version);
  }
  create(crd);
  ASSERT_NE(registry_.find("g.example", "v2", "widgets"), nullptr);
  EXPECT_TRUE(registry_.find("g.example", "v2", "widgets")->is_preferred);
  EXPECT_FALSE(registry_.find("g.example", "v1", "widgets")->is_preferred);
  EXPECT_TRUE(registry_.find("g.example", "v1", "widgets")->is_storage_version);
  EXPECT_NE(registry_.find("g.example", "v1beta1", "widgets"), nullptr);
  EXPECT_EQ(registry_.find("g.example", "v3", "widgets"), nullptr);
  EXPECT_EQ(registry_.find_storage("widgets.g.example")->version, "v1");
}

TEST_F(CustomKindsTest, ANewSchemaIsServed) {
  create();
  Doc crd = current();
  crd.at("spec", "versions")
      .items()[0]
      .at("schema", "openAPIV3Schema")
      .at("properties", "spec", "properties", "size")
      .set("maximum", 99);
  const std::uint64_t before = registry_.generation();
  (void)api_.update(kCrdTable, crd, "");
  loop_.run_ready();
  EXPECT_GT(registry_.generation(), before);
  const Resource* widgets = registry_.find("g.example", "v1", "widgets");
  ASSERT_NE(widgets, nullptr);
  EXPECT_EQ(
      widgets->custom_schema->get("properties", "spec", "properties", "size", "maximum").as_int(),
      99);
}

TEST_F(CustomKindsTest, AStatusWriteLeavesTheResourceAlone) {
  create();
  const std::uint64_t before = registry_.generation();
  Doc crd = current();
  crd.at("metadata", "labels").set("a", "b");
  (void)api_.update(kCrdTable, crd, "");
  loop_.run_ready();
  EXPECT_EQ(registry_.generation(), before);
}

TEST_F(CustomKindsTest, NamesInUseAreConflicts) {
  create();
  Doc other = testing::widget_definition();
  other.at("metadata").set("name", "gadgets.g.example");
  other.at("spec", "names").set("plural", "gadgets").set("singular", "gadget");
  const Doc crd = create(other);
  EXPECT_TRUE(condition_is(crd, "NamesAccepted", "False"));
  EXPECT_EQ(condition_of(crd, "NamesAccepted")["reason"].as_string(), "ListKindConflict");
  EXPECT_EQ(condition_of(crd, "Established")["reason"].as_string(), "NotAccepted");
  EXPECT_EQ(crd.get("status", "acceptedNames", "plural").as_string(), "gadgets");
  EXPECT_FALSE(crd.get("status", "acceptedNames").has("shortNames"));
  EXPECT_EQ(registry_.find("g.example", "v1", "gadgets"), nullptr);
}

TEST_F(CustomKindsTest, FreedNamesGoToTheNext) {
  create();
  Doc other = testing::widget_definition();
  other.at("metadata").set("name", "gadgets.g.example");
  other.at("spec", "names").set("plural", "gadgets").set("singular", "gadget");
  create(other);
  start_deletion();
  loop_.run_ready();
  EXPECT_TRUE(current().is_null());
  EXPECT_TRUE(condition_is(current("gadgets.g.example"), "Established", "True"));
  EXPECT_NE(registry_.find("g.example", "v1", "gadgets"), nullptr);
}

TEST_F(CustomKindsTest, DeletionTakesTheObjectsAlong) {
  create();
  (void)api_.create("widgets.g.example", "n", doc(R"({"metadata": {"name": "a",
                    "namespace": "n"}})"),
                    "", "");
  start_deletion();
  loop_.run_ready();
  EXPECT_TRUE(current().is_null());
  EXPECT_TRUE(api_.list("widgets.g.example", "", {}).empty());
  EXPECT_EQ(registry_.find("g.example", "v1", "widgets"), nullptr);
}

TEST_F(CustomKindsTest, FinalizersOfObjectsAreWaitedFor) {
  create();
  (void)api_.create("widgets.g.example", "n", doc(R"({"metadata": {"name": "a",
                    "namespace": "n", "finalizers": ["x/y"]}})"),
                    "", "");
  start_deletion();
  loop_.run_ready();
  EXPECT_EQ(condition_of(current(), "Terminating")["reason"].as_string(),
            "InstanceDeletionInProgress");
  const Resource* widgets = registry_.find("g.example", "v1", "widgets");
  ASSERT_NE(widgets, nullptr);
  EXPECT_TRUE(static_cast<bool>(widgets->create_handler));  // nothing new comes in
  Doc object = *api_.get("widgets.g.example", "n", "a");
  object.at("metadata").erase("finalizers");
  (void)api_.update("widgets.g.example", object, "");
  loop_.run_for(6 * kSecondInUs);
  EXPECT_TRUE(current().is_null());
  EXPECT_EQ(registry_.find("g.example", "v1", "widgets"), nullptr);
}

}  // namespace
}  // namespace jogak::api
