// SPDX-License-Identifier: Apache-2.0
//
// Order matters at the start: definitions of custom kinds are restored before their objects, and
// the objects every cluster has come last.
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
constexpr TimeUs kKeepInterval = 10 * kSecondInUs;  // as often as a real server looks

}  // namespace

struct Server::Impl {
  Impl(Loop& loop_in, ServerOptions options_in)
      : options(std::move(options_in)),
        loop(loop_in),
        store(loop, options.store),
        ops(loop, store, registry, Rng(options.seed, "apiserver")),
        rest(ops, options.tokens, options.node_proxy),
        hub(ops) {}

  Result<void> open();
  Result<void> restore();
  Result<void> restore_definition(const store::Object& object);
  Result<void> restore_object(std::string_view table, store::Object object);
  void make_initial_objects();
  void keep_initial_objects();
  ~Impl() { loop.cancel(keeper); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ServerOptions options;
  Loop& loop;
  store::Store store;
  Registry registry;
  Ops ops;
  RestHandler rest;
  FollowHub hub;
  std::unique_ptr<store::SqliteJournal> journal;
  std::unique_ptr<Api> own_api;
  std::unique_ptr<CustomKinds> custom;
  TimerId keeper = 0;
};

Result<void> Server::Impl::open() {
  if (options.allows_privileged) ops.allow_privileged();
  options.kinds.authenticate = [this](std::string_view token) -> std::optional<User> {
    const auto it = options.tokens.find(token);
    if (it == options.tokens.end()) return std::nullopt;
    return it->second;
  };
  add_builtin_kinds(registry, options.kinds);
  add_crd_kind(registry);
  const auto write_status = [this](std::string_view resource, std::string_view ns,
                                   std::string_view name,
                                   const StatusChange& change) -> ApiResult<void> {
    WriteRequest request{.resource = registry.find_storage(resource),
                         .ns = std::string(ns),
                         .name = std::string(name),
                         .subresource = "status",
                         .manager = std::string(kManager),
                         .user = {},
                         .is_dry_run = false,
                         .is_apply = false,
                         .warnings = {}};
    JOGAK_TRY_VOID(ops.change(request, change));
    return {};
  };
  for (auto& plugin : default_admission(write_status)) ops.add_plugin(std::move(plugin));
  for (const auto& resource : registry.all()) store.table(resource->table);
  if (!options.data_dir.empty()) JOGAK_TRY_VOID(restore());
  own_api = std::make_unique<LocalApi>(ops, hub, std::string(kManager));
  custom = std::make_unique<CustomKinds>(registry, *own_api);
  keep_initial_objects();
  return {};
}

// Whoever deletes one has it back, as from a real server. What cannot be made now (its address may
// be taken by then) is tried again.
void Server::Impl::keep_initial_objects() {
  make_initial_objects();
  keeper = loop.after(kKeepInterval, [this] { keep_initial_objects(); });
}

void Server::Impl::make_initial_objects() {
  const bool is_new = store.revision() == 0;
  for (Doc& object : initial_objects(options.kinds, loop.now())) {
    const std::string api_version = object["apiVersion"].as_string();
    const std::size_t slash = api_version.find('/');
    const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
    const std::string version =
        slash == std::string::npos ? api_version : api_version.substr(slash + 1);
    const Resource* resource = registry.find_kind(group, version, object["kind"].as_string());
    JOGAK_CHECK(resource != nullptr, "no resource for {}", object["kind"].as_string());
    if (store.get(store.table(resource->table), namespace_of(object), name_of(object)) != nullptr) {
      continue;  // also: restored from the data folder
    }
    const std::string ns = namespace_of(object);
    const auto made = own_api->create(resource->table, ns, std::move(object), "", "");
    JOGAK_CHECK(made.has_value() || !is_new, "{}", made.error().message);
  }
}

// Objects come back as bytes; what selectors ask of them is found again.
Result<void> Server::Impl::restore() {
  JOGAK_TRY(journal, store::SqliteJournal::open(options.data_dir));
  // Definitions first: they say what may be selected by among the objects of their kinds.
  JOGAK_TRY_VOID(journal->restore([this](std::string_view table, const store::Object& object) {
    return table == kCrdTable ? restore_definition(object) : Result<void>();
  }));
  JOGAK_TRY_VOID(journal->restore([this](std::string_view table, store::Object object) {
    return restore_object(table, std::move(object));
  }));
  if (journal->revision() > 0) store.restore_revision(journal->revision());
  store.set_journal(journal.get());
  return {};
}

Result<void> Server::Impl::restore_definition(const store::Object& object) {
  const auto parsed = codec::parse_json(object.json);
  if (!parsed.has_value()) {
    return invalid("{}: definition {} is not JSON: {}", options.data_dir, object.name,
                   parsed.error().what);
  }
  add_custom_resources(registry, parsed->doc);
  return {};
}

Result<void> Server::Impl::restore_object(std::string_view table, store::Object object) {
  const auto parsed = codec::parse_json(object.json);
  if (!parsed.has_value()) {
    return invalid("{}: object {}/{} of {} is not JSON: {}", options.data_dir, object.ns,
                   object.name, table, parsed.error().what);
  }
  const Resource* resource = registry.find_storage(table);
  // of a custom kind whose definition is not read yet: it has labels, like every object
  static const Resource kUnknown = [] {
    Resource unknown;
    unknown.strategy = std::make_shared<const Strategy>();
    return unknown;
  }();
  index_object(resource == nullptr ? kUnknown : *resource, parsed->doc, object);
  object.header_size = header_size_of(parsed->doc);
  store.restore(store.table(table), std::move(object));
  return {};
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::make(Loop& loop, ServerOptions options) {
  auto impl = std::make_unique<Impl>(loop, std::move(options));
  JOGAK_TRY_VOID(impl->open());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  impl_->rest.handle(std::move(request), std::move(writer));
}

std::unique_ptr<Api> Server::api(std::string manager) {
  return std::make_unique<LocalApi>(impl_->ops, impl_->hub, std::move(manager));
}

Ops& Server::ops() { return impl_->ops; }
store::Store& Server::store() { return impl_->store; }
Registry& Server::registry() { return impl_->registry; }

Result<void> Server::flush() {
  if (impl_->journal == nullptr) return {};
  auto flushed = impl_->journal->flush();
  if (!flushed.has_value()) {
    impl_->ops.refuse_writes("the data folder takes no more changes: " + flushed.error().what);
  }
  return flushed;
}

}  // namespace jogak::api
