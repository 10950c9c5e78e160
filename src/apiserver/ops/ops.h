// SPDX-License-Identifier: Apache-2.0
//
// The verbs on stored objects, for every kind alike: naming, defaults, admission, validation,
// managed fields, preconditions, deletion with grace and finalizers. Values in, values out; no
// HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/registry/resource.h"
#include "apiserver/store/store.h"

namespace jogak::api {

// What a write is about and how it was asked for.
struct WriteRequest {
  const Resource* resource = nullptr;
  std::string ns, name;     // name may be empty on create
  std::string subresource;  // "" or "status" and the like
  std::string manager;      // field manager
  User user;
  bool is_dry_run = false;
  bool is_apply = false;              // managed fields come from the patch itself
  std::vector<std::string> warnings;  // filled in
};

struct Preconditions {
  std::string uid, resource_version;  // "" for any
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_s;
  Preconditions preconditions;
  std::string propagation_policy;  // "", Background, Foreground, Orphan
};

// Fills in the labels and selectable fields of a stored version from the object.
void index_object(const Resource& resource, const Doc& object, store::Object& result);

// Bytes of `{"kind":"Pod","apiVersion":"v1",` in front of that object's JSON.
std::uint32_t header_size_of(const Doc& object);

class Ops : public Lookup {
 public:
  Ops(Loop& loop, store::Store& store, Registry& registry, Rng rng);
  ~Ops() override;

  void add_plugin(std::unique_ptr<AdmissionPlugin> plugin);
  // From now on every write is refused (503) with this text: what is acknowledged could not be
  // kept.
  void refuse_writes(std::string why);
  // Privileged containers are let pass, as by a server with --allow-privileged.
  void allow_privileged();

  Loop& loop() const;
  store::Store& store() const;
  Registry& registry() const;
  Rng& rng();

  ApiResult<Doc> create(WriteRequest& request, Doc object);

  // The outcome of PUT and PATCH.
  struct Updated {
    Doc object;
    bool is_created = false;
  };
  // PUT.
  ApiResult<Updated> update(WriteRequest& request, Doc object);
  // Reads, changes, checks and writes one object; the base of PATCH and of subresources. `change`
  // gets the current object (a null Doc when absent and `may_create`) and returns the new one.
  using Change = std::function<ApiResult<Doc>(const Doc& current)>;
  ApiResult<Updated> change(WriteRequest& request, const Change& change, bool may_create = false);

  struct Removed {
    Doc object;  // last state, or the state that waits for grace or finalizers
    bool is_gone = false;
  };
  ApiResult<Removed> remove(WriteRequest& request, const DeleteOptions& options);

  // Lookup.
  std::optional<Doc> get(std::string_view resource, std::string_view ns,
                         std::string_view name) const override;
  std::vector<Doc> list(std::string_view resource, std::string_view ns) const override;

  // The bytes of a stored object as a Doc, and in another version of its resource.
  Doc parse(const store::Object& object) const;
  Doc in_version(Doc object, const Resource& resource) const;

 private:
  struct Impl;

  ApiResult<Updated> replace(WriteRequest& request, const Change& change, bool may_create,
                             bool is_put);

  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::api
