// SPDX-License-Identifier: Apache-2.0
//
// Custom resources: the kind CustomResourceDefinition, the resources that definitions bring, and
// the objects of those. What happens to a definition after its write is asynchronous as on the real
// server: names are accepted, the definition becomes Established and its resources are served
// within the next turns of the loop. Rules in CEL (x-kubernetes-validations) are evaluated as far
// as cel.h says; a rule beyond that is kept and shown, but checks nothing. Defaults that a later
// schema brings come to stored objects with their next write, not with a read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/object/api_error.h"
#include "apiserver/registry/api.h"
#include "apiserver/registry/resource.h"
#include "apiserver/schema/normalise.h"
#include "base/doc.h"

namespace jogak::api {

// customresourcedefinitions.apiextensions.k8s.io/v1.
void add_crd_kind(Registry& registry);

// In place of schema::decode for objects of custom kinds: checks kind and apiVersion (neither may
// be missing), reads metadata, drops what the schema does not know. `complaints` is filled in
// whether or not the object is refused; the real server warns of unknown fields even then. The
// refusal is ready for the client.
ApiResult<Doc> decode_custom(Doc object, const Resource& resource, schema::Complaints& complaints);

// The resources of a stored definition that is established; others bring none. CustomKinds does
// this by itself; before it there is, it is for a server that restores objects and wants to know
// what may be selected by.
void add_custom_resources(Registry& registry, const Doc& crd);

// Keeps a registry in step with the stored definitions, and does what the controllers of the real
// API server do with them: accepted names, conditions, and the deletion of all objects before a
// definition goes. Make one after restore; it follows the definitions itself.
class CustomKinds {
 public:
  // `api` writes as "kube-apiserver". Both live longer than this.
  CustomKinds(Registry& registry, Api& api);
  ~CustomKinds();
  CustomKinds(const CustomKinds&) = delete;
  CustomKinds& operator=(const CustomKinds&) = delete;

 private:
  void crd_changed(const Doc& crd);
  void crd_removed(const Doc& crd);
  void serve(const Doc& crd);
  void withdraw(const std::string& crd_name);
  // Each returns true when it wrote, and the write brings the next call.
  bool accept_names(const Doc& crd);
  bool establish(const Doc& crd);
  void finalise(const Doc& crd);
  void check_again(std::string_view group, std::string_view but);
  void recheck(const std::string& name);

  struct Served;

  Registry& registry_;
  Api& api_;
  std::map<std::string, std::unique_ptr<Served>> served_;  // by the name of the definition
  std::map<std::string, TimerId> rechecks_;                // deletions that wait for finalizers
  std::shared_ptr<void> following_;
};

}  // namespace jogak::api
