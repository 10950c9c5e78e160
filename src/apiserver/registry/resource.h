// SPDX-License-Identifier: Apache-2.0
//
// A resource of the API: its names, what may be done with it, and the code that knows its rules.
// The generic handlers (rest/) do everything else, the same for every kind.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "apiserver/object/api_error.h"
#include "apiserver/object/field_errors.h"
#include "apiserver/object/names.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"
#include "base/loop.h"
#include "base/rng.h"

namespace jogak::api {

struct Resource;

struct User {
  std::string name = "admin";
  std::string uid;
  std::vector<std::string> groups = {"system:masters", "system:authenticated"};
};

// Read access to what is stored, for admission and for rules that look at other objects. Objects
// come parsed, in the storage version; nullopt when absent. `resource` is "pods", "nodes",
// "priorityclasses.scheduling.k8s.io".
class Lookup {
 public:
  virtual ~Lookup() = default;
  virtual std::optional<Doc> get(std::string_view resource, std::string_view ns,
                                 std::string_view name) const = 0;
  virtual std::vector<Doc> list(std::string_view resource, std::string_view ns) const = 0;
};

// What a rule may use besides the object itself.
struct WriteContext {
  TimeUs now = 0;
  const Lookup& lookup;
  Rng& rng;  // for generated names, uids, ports
  const User& user;
  bool is_dry_run = false;
  std::vector<std::string>& warnings;  // become Warning headers
};

// The rules of one kind. Objects are Docs that schema::decode() has been through: absent or of the
// right type. The defaults here suit a kind without rules of its own.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Fills in what a client left out (pkg/apis/<group>/<version>/defaults.go of Kubernetes). Runs on
  // create, update and every patch, before admission.
  virtual void set_defaults(Doc& object) const;
  // Create, before validation: drop or set what only the server may (status, gated members).
  // metadata is done already; generation is 1.
  virtual void prepare_create(Doc& object, WriteContext& context) const;
  // The spec and all else but metadata, which the generic code checks.
  virtual void validate_create(const Doc& object, WriteContext& context, FieldErrors& errors) const;
  // Update of the main resource: the default keeps the old status of kinds that have a status
  // subresource. The generic code raises metadata.generation when spec_changed().
  virtual void prepare_update(Doc& object, const Doc& old, WriteContext& context) const;
  virtual void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                               FieldErrors& errors) const;
  // Update through a subresource that takes the whole object ("status", "ephemeralcontainers",
  // "resize", "finalize"). The default is for "status": status from `object`, the rest from `old`.
  virtual void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                          WriteContext& context) const;
  virtual void validate_subresource_update(std::string_view subresource, const Doc& object,
                                           const Doc& old, WriteContext& context,
                                           FieldErrors& errors) const;
  // Whether metadata.generation grows; the default compares everything but metadata and status.
  virtual bool spec_changed(const Doc& object, const Doc& old) const;

  // What may be asked in field selectors besides metadata.name and metadata.namespace.
  virtual std::vector<std::string_view> selectable_fields() const { return {}; }
  // The value of one of them, "" when absent. The default walks the path.
  virtual std::string field(const Doc& object, std::string_view path) const;

  virtual NameCheck name_check() const { return check_dns1123_subdomain; }
  virtual bool tracks_generation() const { return true; }
  virtual bool allows_unconditional_update() const { return true; }
  virtual bool allows_create_on_update() const { return false; }
  // Seconds of grace of a DELETE. `asked` is deleteOptions.gracePeriodSeconds. nullopt: this kind
  // knows no graceful deletion.
  virtual std::optional<std::int64_t> deletion_grace(const Doc& object,
                                                     std::optional<std::int64_t> asked) const;
  // What DELETE stores instead of deleting (a namespace turns Terminating), or why it may not be
  // deleted now. nullopt: the ordinary way.
  virtual std::optional<ApiResult<Doc>> delete_instead(const Doc& object,
                                                       WriteContext& context) const;
  // Whether an object that is being deleted and has no metadata.finalizers left may vanish with
  // this update (a namespace: only when spec.finalizers is empty).
  virtual bool may_vanish(const Doc& object) const;
  // How often an update is checked for the rules of metadata besides the generic check, so that the
  // same mistake is reported as often as on the real server.
  enum class MetaChecks : std::uint8_t { ByItself, Changes, ChangesAndWhole };
  virtual MetaChecks meta_checks_on_update() const { return MetaChecks::Changes; }
  // Whether DELETE answers with the object instead of a Status.
  virtual bool returns_deleted_object() const { return false; }
  // Whether DELETE without a policy orphans dependents instead of deleting them in the background.
  virtual bool orphans_by_default() const { return false; }
  // What a client hears whose DELETE names no policy, "" for nothing.
  virtual std::string_view deletion_warning() const { return {}; }
  // Between versions that share a table (autoscaling v1 and v2, the two event groups): from the
  // storage version to this one and back. The default changes nothing but apiVersion.
  virtual Doc from_storage(Doc object) const { return object; }
  virtual Doc to_storage(Doc object) const { return object; }
  // How the storage version calls one of the selectable fields.
  virtual std::string_view stored_field(std::string_view path) const { return path; }
  // The group that refusals of an object name: that of the kind inside the server, which the two
  // event groups share.
  virtual std::string_view error_group(const Resource& resource) const;
};

// Bits, one a verb.
enum class Verb : std::uint16_t {
  Get = 1,
  List = 2,
  Watch = 4,
  Create = 8,
  Update = 16,
  Patch = 32,
  Delete = 64,
  DeleteCollection = 128
};
constexpr std::uint16_t verbs_of(std::initializer_list<Verb> verbs) {
  unsigned bits = 0;
  for (const Verb verb : verbs) bits |= static_cast<unsigned>(verb);
  return static_cast<std::uint16_t>(bits);
}
constexpr std::uint16_t kAllVerbs = 255;
constexpr std::uint16_t kReadAndChange = verbs_of({Verb::Get, Verb::Patch, Verb::Update});
// "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", sorted.
std::vector<std::string_view> verb_names(std::uint16_t verbs);

class Ops;  // ops/ops.h

// A request to a subresource or a resource that stores nothing (reviews), decoded and authorised.
struct Call {
  const Resource* resource = nullptr;
  std::string subresource;
  Verb verb = Verb::Get;
  std::string ns, name;
  Doc body;  // decoded by the subresource's type; null for Get
  std::vector<std::pair<std::string, std::string>> query;  // decoded parameters, in order
  User user;
  std::string manager;  // field manager
  bool is_dry_run = false;
  std::vector<std::string> warnings;  // filled in
};

struct Answer {
  int code = 200;
  Doc body;              // an object with kind and apiVersion
  bool is_text = false;  // the answer is `text` as text/plain (logs)
  std::string text;
};
using CallHandler = std::function<ApiResult<Answer>(Ops&, Call&)>;

// A subresource that shows part of the object as another kind (scale).
struct Projection {
  std::function<ApiResult<Doc>(const Doc& object)> read;
  // The object changed as the projected one says, or why not.
  std::function<ApiResult<Doc>(Doc object, const Doc& projected)> write;
};

// A subresource: what is read or posted there. One of: a handler; a projection; neither, then the
// body is the whole object and Strategy::prepare_subresource_update() decides what counts.
struct Subresource {
  std::string name;                  // "binding", "scale", "status"
  std::string group, version, kind;  // of the body: policy v1 Eviction
  std::uint16_t verbs = 0;
  const schema::Struct* type = nullptr;  // of the body
  CallHandler handler;
  std::shared_ptr<const Projection> projection;
};

// A column of a Table; see tables/.
struct Column {
  std::string name, type = "string", format;
  std::int32_t priority = 0;
  std::string description;
};

struct Resource {
  std::string group, version, plural, singular, kind;  // group "" is the core group
  std::string list_kind;
  bool is_namespaced = true;
  std::vector<std::string> short_names, categories;
  std::uint16_t verbs = kAllVerbs;
  std::vector<Subresource> subresources;
  // Built-in kinds have a type; custom ones (crd/) a structural schema.
  const schema::Struct* type = nullptr;
  const Doc* custom_schema = nullptr;  // openAPIV3Schema; lives as long as the resource
  Doc printer_columns;                 // additionalPrinterColumns of a custom resource's version
  std::shared_ptr<const Strategy> strategy;
  CallHandler create_handler;  // POST goes here instead of the store (reviews, pods' bindings)
  std::string table;           // of the store: "pods", "deployments.apps"; shared by versions
  bool is_storage_version = true;
  bool is_preferred = true;  // the version that names without a version mean
  std::string storage_version_hash;
  std::string deprecation;  // what every request is warned of, "" for nothing

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  ResourceName name() const { return {plural, group}; }
  bool can(Verb verb) const { return (verbs & static_cast<std::uint16_t>(verb)) != 0; }
  const Subresource* subresource(std::string_view name) const;
  bool has_status() const { return subresource("status") != nullptr; }
};

// A subresource of that resource whose body is the whole object.
Subresource whole_subresource(std::string name, const Resource& resource,
                              std::uint16_t verbs = kReadAndChange);

class Registry {
 public:
  // Resources are listed in the order they were added (discovery shows that order).
  const Resource& add(Resource resource);
  void remove(std::string_view group, std::string_view version, std::string_view plural);

  const Resource* find(std::string_view group, std::string_view version,
                       std::string_view plural) const;
  // "pods", "deployments.apps": in the storage version.
  const Resource* find_storage(std::string_view table) const;
  const Resource* find_kind(std::string_view group, std::string_view version,
                            std::string_view kind) const;
  const std::vector<std::unique_ptr<Resource>>& all() const { return resources_; }
  // Grows with every add and remove; part of discovery's etag.
  std::uint64_t generation() const { return generation_; }

 private:
  std::vector<std::unique_ptr<Resource>> resources_;
  // group, version, plural; std::less<> lets string_views look up
  std::map<std::tuple<std::string, std::string, std::string>, const Resource*, std::less<>>
      by_path_;
  std::map<std::string, const Resource*, std::less<>> by_table_;
  std::uint64_t generation_ = 0;
};

enum class Operation : std::uint8_t { Create, Update, Delete, Connect };

// A write on its way through admission.
struct Admission {
  Operation operation = Operation::Create;
  const Resource& resource;
  std::string_view subresource;
  std::string_view ns, name;
  Doc* object = nullptr;     // null for Delete
  const Doc* old = nullptr;  // null for Create
};

class AdmissionPlugin {
 public:
  virtual ~AdmissionPlugin() = default;
  virtual ApiResult<void> mutate(Admission&, WriteContext&) const { return {}; }
  virtual ApiResult<void> validate(const Admission&, WriteContext&) const { return {}; }
};

}  // namespace jogak::api
