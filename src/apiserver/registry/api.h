// SPDX-License-Identifier: Apache-2.0
//
// The API for code in the same process: controllers, simulated kubelets, tests. The same handlers,
// admission and validation as over HTTP, without the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/api_error.h"
#include "apiserver/object/selector.h"
#include "apiserver/store/store.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

enum class PatchType : std::uint8_t { Json, Merge, Strategic, Apply };

// `resource` is "pods" or "deployments.apps" (the storage version is meant). `ns` is "" for cluster
// resources. Names the field manager of writes at construction (Server::api("name")).
class Api {
 public:
  virtual ~Api() = default;

  virtual Loop& loop() const = 0;
  TimeUs now() const { return loop().now(); }

  virtual ApiResult<Doc> get(std::string_view resource, std::string_view ns,
                             std::string_view name) const = 0;
  virtual std::vector<Doc> list(std::string_view resource, std::string_view ns = "",
                                const LabelSelector& selector = {}) const = 0;
  // POST; with a subresource (binding, eviction, token) `name` says of which object.
  virtual ApiResult<Doc> create(std::string_view resource, std::string_view ns, Doc object,
                                std::string_view subresource = "", std::string_view name = "") = 0;
  // PUT, by the object's own name; "status" for the status subresource.
  virtual ApiResult<Doc> update(std::string_view resource, Doc object,
                                std::string_view subresource = "") = 0;
  virtual ApiResult<Doc> patch(std::string_view resource, std::string_view ns,
                               std::string_view name, PatchType type, const Doc& patch,
                               std::string_view subresource = "") = 0;
  // DELETE; `options` as DeleteOptions, or null.
  virtual ApiResult<void> remove(std::string_view resource, std::string_view ns,
                                 std::string_view name, const Doc& options = {}) = 0;

  // What is stored here, custom resources too, in no particular order of importance.
  struct Table {
    std::string name;  // for the calls below: "pods", "deployments.apps"
    std::string api_version, kind;
    bool is_namespaced = true;
  };
  virtual std::vector<Table> tables() const = 0;

  // Follows a resource: first an Added for every object there is (during this call's first turn of
  // the loop, in key order), then every change, each in its own turn after the write that made it.
  // `object` is parsed once for all followers and without managedFields; of Deleted it is the last
  // state. Until the returned handle is destroyed.
  struct Change {
    store::EventType type = store::EventType::Added;
    std::shared_ptr<const Doc> object;
  };
  using Follower = std::function<void(const Change&)>;
  virtual std::shared_ptr<void> follow(std::string_view resource, Follower follower) = 0;
};

}  // namespace jogak::api
