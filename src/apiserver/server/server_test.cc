// SPDX-License-Identifier: Apache-2.0
//
// The server across restarts, and its API for code in the same process.
#include "apiserver/server/server.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/sim_loop.h"
#include "base/testing/temp_folder.h"

namespace jogak::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Doc config_map(std::string_view name) {
  Doc object = Doc::object();
  object.set("apiVersion", "v1").set("kind", "ConfigMap");
  object.at("metadata").set("name", name).set("namespace", "default");
  object.at("metadata", "labels").set("app", name);
  return object;
}

class DataFolder : public testing::Test {
 protected:
  Result<void> open() {
    close();
    ServerOptions options;
    options.data_dir = folder_.path("data");
    options.seed = ++starts_;
    auto made = Server::make(loop_, std::move(options));
    if (!made.has_value()) return std::unexpected(made.error());
    server_ = *std::move(made);
    api_ = server_->api("test");
    loop_.run_ready();
    return {};
  }
  void close() {
    if (server_ != nullptr) {
      EXPECT_TRUE(server_->flush().has_value());
    }
    api_ = nullptr;
    server_ = nullptr;
  }
  ApiResult<Doc> create(Doc object) {
    return api_->create("configmaps", "default", std::move(object));
  }

  TempFolder folder_;
  SimLoop loop_;
  std::uint64_t starts_ = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Api> api_;
};

TEST_F(DataFolder, ObjectsComeBackAsTheyWere) {
  ASSERT_TRUE(open().has_value());
  const auto made = create(config_map("a"));
  ASSERT_TRUE(made.has_value());
  const store::Revision revision = server_->store().revision();
  ASSERT_TRUE(open().has_value());
  EXPECT_EQ(api_->get("configmaps", "default", "a").value(), *made);
  EXPECT_EQ(server_->store().revision(), revision);  // a start writes nothing anew
}

TEST_F(DataFolder, RevisionsGoOn) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  ASSERT_TRUE(api_->remove("configmaps", "default", "a").has_value());
  const store::Revision revision = server_->store().revision();
  ASSERT_TRUE(open().has_value());
  EXPECT_EQ(server_->store().revision(), revision);  // of a deletion, which left no object
  const auto made = create(config_map("b"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["resourceVersion"].as_string(), std::to_string(revision + 1));
}

TEST_F(DataFolder, DeletedStaysDeleted) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(api_->remove("configmaps", "default", "a").has_value());
  ASSERT_TRUE(open().has_value());
  EXPECT_FALSE(api_->get("configmaps", "default", "a").has_value());
}

TEST_F(DataFolder, SelectorsWorkOnWhatCameBack) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  ASSERT_TRUE(create(config_map("b")).has_value());
  ASSERT_TRUE(open().has_value());
  const auto selector = LabelSelector::parse("app=b");
  ASSERT_TRUE(selector.has_value());
  const auto found = api_->list("configmaps", "default", *selector);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(name_of(found[0]), "b");
}

TEST_F(DataFolder, WatchesFromBeforeTheRestartAreTooOld) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  const store::Revision then = server_->store().revision();
  ASSERT_TRUE(create(config_map("b")).has_value());
  ASSERT_TRUE(open().has_value());
  store::Store& store = server_->store();
  const store::TableId table = store.table("configmaps");
  const auto old = store.watch(table, then, [](const store::EventPtr&) {});
  ASSERT_FALSE(old.has_value());
  EXPECT_EQ(old.error().code, Errc::Gone);
  const auto present = store.watch(table, store.revision(), [](const store::EventPtr&) {});
  ASSERT_TRUE(present.has_value());
  store.unwatch(*present);
}

TEST_F(DataFolder, NamesTakenBeforeAreTakenStill) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  ASSERT_TRUE(open().has_value());
  const auto again = create(config_map("a"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().reason, "AlreadyExists");
}

TEST_F(DataFolder, CustomResourcesAndTheirObjectsComeBack) {
  ASSERT_TRUE(open().has_value());
  Doc definition = Doc::object();
  definition.set("apiVersion", "apiextensions.k8s.io/v1").set("kind", "CustomResourceDefinition");
  definition.at("metadata").set("name", "queues.gpu.example");
  Doc& spec = definition.at("spec");
  spec.set("group", "gpu.example").set("scope", "Namespaced");
  spec.set("names", Doc::object()
                        .set("plural", "queues")
                        .set("singular", "queue")
                        .set("kind", "Queue")
                        .set("listKind", "QueueList"));
  Doc schema = Doc::object();
  schema.set("type", "object");
  schema.at("properties", "spec").set("type", "object");
  schema.at("properties", "spec", "properties", "share").set("type", "integer");
  Doc version = Doc::object();
  version.set("name", "v1").set("served", true).set("storage", true);
  version.at("schema").set("openAPIV3Schema", std::move(schema));
  spec.set("versions", Doc::array().push(std::move(version)));
  ASSERT_TRUE(api_->create("customresourcedefinitions.apiextensions.k8s.io", "", definition));
  loop_.run_for(kSecondInUs);
  Doc queue = Doc::object();
  queue.set("apiVersion", "gpu.example/v1").set("kind", "Queue");
  queue.at("metadata").set("name", "training").set("namespace", "default");
  queue.at("spec").set("share", 3);
  const auto made = api_->create("queues.gpu.example", "default", queue);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_TRUE(open().has_value());
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(api_->get("queues.gpu.example", "default", "training").value(), *made);
  queue.at("metadata").set("name", "second");
  queue.at("spec").set("share", "three");
  const auto refused = api_->create("queues.gpu.example", "default", queue);
  ASSERT_FALSE(refused.has_value());  // its schema is known again
  EXPECT_EQ(refused.error().code, 422);
}

TEST_F(DataFolder, WhatEveryClusterHasIsMadeOnce) {
  ASSERT_TRUE(open().has_value());
  const auto first = api_->get("namespaces", "", "default");
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(open().has_value());
  EXPECT_EQ(uid_of(*api_->get("namespaces", "", "default")), uid_of(*first));
}

TEST_F(DataFolder, WhatEveryClusterHasComesBackWhenItIsDeleted) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(api_->remove("services", "default", "kubernetes").has_value());
  EXPECT_FALSE(api_->get("services", "default", "kubernetes").has_value());
  loop_.run_for(10 * kSecondInUs);
  EXPECT_TRUE(api_->get("services", "default", "kubernetes").has_value());
}

TEST_F(DataFolder, AnAddressThatIsTakenByThenDoesNotStopTheServer) {
  ASSERT_TRUE(open().has_value());
  Doc service = *api_->get("services", "default", "kubernetes");
  ASSERT_TRUE(api_->remove("services", "default", "kubernetes").has_value());
  service.set("metadata", Doc::object().set("name", "mine"));
  ASSERT_TRUE(api_->create("services", "default", service).has_value());
  ASSERT_TRUE(open().has_value());
  loop_.run_for(30 * kSecondInUs);
  EXPECT_FALSE(api_->get("services", "default", "kubernetes").has_value());
  ASSERT_TRUE(api_->remove("services", "default", "mine").has_value());
  loop_.run_for(10 * kSecondInUs);
  EXPECT_TRUE(api_->get("services", "default", "kubernetes").has_value());
}

TEST_F(DataFolder, TwoServersDoNotShareOne) {
  ASSERT_TRUE(open().has_value());
  ServerOptions options;
  options.data_dir = folder_.path("data");
  const auto second = Server::make(loop_, std::move(options));
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().what, HasSubstr(folder_.path()));
}

TEST_F(DataFolder, ABrokenFolderIsRefusedAndLeftAlone) {
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  close();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path("data"))) {
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << "this was a data base once\n";
  }
  const auto refused = open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().what, HasSubstr(folder_.path()));
  for (const auto& file : files) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    EXPECT_EQ(line, "this was a data base once") << file;
  }
}

TEST_F(DataFolder, AFileInItsPlaceIsRefused) {
  std::ofstream(folder_.path("data")) << "x";
  const auto refused = open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().what, HasSubstr("data"));
}

class InProcess : public testing::Test {
 protected:
  InProcess() {
    auto made = Server::make(loop_, {});
    EXPECT_TRUE(made.has_value());
    server_ = *std::move(made);
    api_ = server_->api("test");
    loop_.run_ready();
  }
  ~InProcess() override { follow_ = nullptr; }
  void follow() {
    follow_ = api_->follow("configmaps", [this](const Api::Change& change) {
      if (namespace_of(*change.object) != "default") return;
      static constexpr const char* kWords[] = {"+", "~", "-"};
      seen_.push_back(kWords[static_cast<int>(change.type)] + name_of(*change.object));
    });
  }
  ApiResult<Doc> create(Doc object) {
    return api_->create("configmaps", "default", std::move(object));
  }

  SimLoop loop_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Api> api_;
  std::shared_ptr<void> follow_;
  std::vector<std::string> seen_;
};

TEST_F(InProcess, FollowersHearWhatIsThereThenWhatChangesInOrder) {
  ASSERT_TRUE(create(config_map("b")).has_value());
  ASSERT_TRUE(create(config_map("a")).has_value());
  follow();
  EXPECT_TRUE(seen_.empty());  // in a turn of its own
  loop_.run_ready();
  EXPECT_THAT(seen_, ElementsAre("+a", "+b"));
  seen_.clear();
  ASSERT_TRUE(create(config_map("c")).has_value());
  Doc patch = Doc::object();
  patch.at("data").set("k", "v");
  ASSERT_TRUE(api_->patch("configmaps", "default", "c", PatchType::Merge, patch).has_value());
  ASSERT_TRUE(api_->remove("configmaps", "default", "c").has_value());
  EXPECT_TRUE(seen_.empty());
  loop_.run_ready();
  EXPECT_THAT(seen_, ElementsAre("+c", "~c", "-c"));
}

TEST_F(InProcess, WritesBeforeTheFirstTurnAreToldOnce) {
  follow();
  ASSERT_TRUE(create(config_map("a")).has_value());
  loop_.run_ready();
  EXPECT_THAT(seen_, ElementsAre("+a"));
}

TEST_F(InProcess, ALateFollowerIsNotToldTwice) {
  follow();
  loop_.run_ready();
  ASSERT_TRUE(create(config_map("a")).has_value());  // its event is still to be handed out
  std::vector<std::string> late;
  const auto second = api_->follow("configmaps", [&](const Api::Change& change) {
    if (namespace_of(*change.object) == "default") late.push_back(name_of(*change.object));
  });
  loop_.run_ready();
  EXPECT_THAT(late, ElementsAre("a"));
  EXPECT_THAT(seen_, ElementsAre("+a"));
}

TEST_F(InProcess, NobodyHearsAfterTheHandleIsGone) {
  follow();
  loop_.run_ready();
  ASSERT_TRUE(create(config_map("a")).has_value());
  follow_ = nullptr;
  loop_.run_ready();
  EXPECT_TRUE(seen_.empty());
}

TEST_F(InProcess, AFollowerMayWriteAndLetGoWhileItListens) {
  int calls = 0;
  std::shared_ptr<void> handle;
  handle = api_->follow("configmaps", [&](const Api::Change& change) {
    if (namespace_of(*change.object) != "default") return;
    ++calls;
    handle = nullptr;
    EXPECT_TRUE(create(config_map("made-by-follower")).has_value());
  });
  loop_.run_ready();
  ASSERT_TRUE(create(config_map("a")).has_value());
  loop_.run_ready();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(api_->get("configmaps", "default", "made-by-follower").has_value());
}

TEST_F(InProcess, ManagedFieldsAreNotHandedToFollowers) {
  bool has_fields = false;
  follow_ = api_->follow("configmaps", [&](const Api::Change& change) {
    has_fields = has_fields || meta(*change.object).has("managedFields");
  });
  const auto made = create(config_map("a"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(meta(*made)["managedFields"].items().front()["manager"].as_string(), "test");
  loop_.run_ready();
  EXPECT_FALSE(has_fields);
}

TEST_F(InProcess, UnknownResourcesAreRefused) {
  EXPECT_EQ(api_->get("nothings", "default", "x").error().code, 404);
  EXPECT_TRUE(api_->list("nothings").empty());
  EXPECT_FALSE(api_->create("nothings", "default", config_map("a")).has_value());
  EXPECT_FALSE(api_->remove("nothings", "default", "x").has_value());
}

TEST_F(InProcess, TheServerMayGoBeforeItsEventsAreHandedOut) {
  follow();
  loop_.run_ready();
  ASSERT_TRUE(create(config_map("a")).has_value());
  api_ = nullptr;
  server_ = nullptr;
  loop_.run_ready();
  EXPECT_TRUE(seen_.empty());
}

// A daemon set, whose template is a pod's, so that no account has to be there.
bool takes_privileged(bool is_allowed, std::string* refusal) {
  SimLoop loop;
  ServerOptions options;
  options.allows_privileged = is_allowed;
  const auto server = Server::make(loop, std::move(options));
  if (!server.has_value()) return false;
  Doc container = Doc::object();
  container.set("name", "agent").set("image", "agent:1");
  container.at("securityContext").set("privileged", true);
  Doc set = Doc::object();
  set.set("apiVersion", "apps/v1").set("kind", "DaemonSet");
  set.at("metadata").set("name", "agent").set("namespace", "default");
  set.at("spec", "selector").at("matchLabels").set("app", "agent");
  set.at("spec", "template").at("metadata").at("labels").set("app", "agent");
  set.at("spec", "template").at("spec", "containers").push(std::move(container));
  const auto made = (*server)->api("test")->create("daemonsets.apps", "default", std::move(set));
  if (!made.has_value()) *refusal = made.error().message;
  return made.has_value();
}

TEST(PrivilegedContainers, AreRefusedUnlessAllowed) {
  std::string refusal;
  EXPECT_TRUE(takes_privileged(true, &refusal)) << refusal;
  EXPECT_FALSE(takes_privileged(false, &refusal));
  EXPECT_THAT(refusal, HasSubstr("securityContext.privileged: Forbidden: disallowed by cluster"));
}

}  // namespace
}  // namespace jogak::api
