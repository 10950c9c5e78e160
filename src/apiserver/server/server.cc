// SPDX-License-Identifier: Apache-2.0
#include "apiserver/server/server.h"

#include "apiserver/admission/admission.h"
#include "apiserver/codec/codec.h"
#include "apiserver/crd/crd.h"
#include "apiserver/kinds/core_initial.h"
#include "apiserver/object/meta.h"
#include "apiserver/server/local_api.h"
#include "apiserver/store/sqlite_journal.h"
#include "base/check.h"

namespace jogak::api {

namespace {

constexpr std::string_view kCrdTable = "customresourcedefinitions.apiextensions.k8s.io";
constexpr std::string_view kManager = "kube-apiserver";

}  // namespace

struct Server::Impl {
  Impl(Loop& loop_in, ServerOptions options_in)
      : options(std::move(options_in)),
        loop(loop_in),
        store(loop, options.store),
        ops(loop, store, registry, Rng(options.seed, "apiserver")),
        rest(ops, options.tokens),
        custom(registry),
        hub(ops) {}

  Result<void> open();
  Result<void> restore();
  void make_initial_objects();
  void on_crd(const store::EventPtr& event);

  ServerOptions options;
  Loop& loop;
  store::Store store;
  Registry registry;
  Ops ops;
  RestHandler rest;
  CustomKinds custom;
  FollowHub hub;
  std::unique_ptr<store::SqliteJournal> journal;
  store::WatchId crd_watch = 0;
};

Result<void> Server::Impl::open() {
  add_builtin_kinds(registry, options.kinds);
  add_crd_kind(registry);
  for (auto& plugin : default_admission()) ops.add_plugin(std::move(plugin));
  if (!options.data_dir.empty()) JOGAK_TRY_VOID(restore());
  auto watch = store.watch(store.table(kCrdTable), store.revision(),
                           [this](const store::EventPtr& event) { on_crd(event); });
  JOGAK_CHECK(watch.has_value());
  crd_watch = *watch;
  make_initial_objects();
  return {};
}

// Definitions decide what is served. A sink may not write to the store, so that what follows from a
// new definition (its status, its instances) happens in a turn of its own.
void Server::Impl::on_crd(const store::EventPtr& event) {
  const Doc definition = ops.parse(*event->object);
  if (event->type == store::EventType::Deleted) {
    custom.crd_removed(definition);
  } else {
    custom.crd_changed(definition);
  }
}

void Server::Impl::make_initial_objects() {
  LocalApi local(ops, hub, std::string(kManager));
  for (Doc& object : initial_objects(options.kinds, loop.now())) {
    const std::string api_version = object["apiVersion"].as_string();
    const std::size_t slash = api_version.find('/');
    const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
    const std::string version =
        slash == std::string::npos ? api_version : api_version.substr(slash + 1);
    const Resource* resource =
        registry.find_kind(group, version, object["kind"].as_string());
    JOGAK_CHECK(resource != nullptr, "no resource for {}", object["kind"].as_string());
    if (store.get(store.table(resource->table), namespace_of(object), name_of(object)) != nullptr) {
      continue;  // restored from the data folder
    }
    const std::string ns = namespace_of(object);
    const auto made = local.create(resource->table, ns, std::move(object), "", "");
    JOGAK_CHECK(made.has_value(), "{}", made.error().message);
  }
}

}  // namespace jogak::api
