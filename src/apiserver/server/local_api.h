// SPDX-License-Identifier: Apache-2.0
//
// The API for code in the same process, on the verbs of ops/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/ops/ops.h"
#include "apiserver/registry/api.h"

namespace jogak::api {

// Hands the changes of the store to followers, each in a turn of the loop of its own, parsed once.
class FollowHub {
 public:
  explicit FollowHub(Ops& ops) : ops_(ops) {}
  ~FollowHub();

  std::shared_ptr<void> follow(std::string_view table, Api::Follower follower);

 private:
  struct Entry {
    Api::Follower follower;
    store::Revision since = 0;  // changes up to here are known to it
    bool has_started = false;
  };
  struct Channel {
    store::WatchId watch = 0;
    std::vector<std::weak_ptr<Entry>> entries;
  };

  void start(const std::string& table, const std::weak_ptr<Entry>& entry);
  void deliver(const std::string& table, const store::EventPtr& event);

  Ops& ops_;
  std::map<std::string, Channel, std::less<>> channels_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class LocalApi : public Api {
 public:
  LocalApi(Ops& ops, FollowHub& hub, std::string manager)
      : ops_(ops), hub_(hub), manager_(std::move(manager)) {}

  Loop& loop() const override { return ops_.loop(); }
  ApiResult<Doc> get(std::string_view resource, std::string_view ns,
                     std::string_view name) const override;
  std::vector<Doc> list(std::string_view resource, std::string_view ns,
                        const LabelSelector& selector) const override;
  ApiResult<Doc> create(std::string_view resource, std::string_view ns, Doc object,
                        std::string_view subresource, std::string_view name) override;
  ApiResult<Doc> update(std::string_view resource, Doc object,
                        std::string_view subresource) override;
  ApiResult<Doc> patch(std::string_view resource, std::string_view ns, std::string_view name,
                       PatchType type, const Doc& patch, std::string_view subresource) override;
  ApiResult<void> remove(std::string_view resource, std::string_view ns, std::string_view name,
                         const Doc& options) override;
  std::vector<Table> tables() const override;
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override;

 private:
  ApiResult<const Resource*> find(std::string_view resource) const;
  WriteRequest request(const Resource& resource, std::string_view ns, std::string_view name,
                       std::string_view subresource) const;

  Ops& ops_;
  FollowHub& hub_;
  std::string manager_;
};

}  // namespace jogak::api
