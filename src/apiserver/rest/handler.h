// SPDX-License-Identifier: Apache-2.0
//
// HTTP in front of the verbs: who asks, for what, in which form; errors as Status objects. Serves
// /api and /apis, discovery and health; nothing here knows sockets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/ops/ops.h"
#include "apiserver/rest/body.h"
#include "apiserver/rest/discovery.h"
#include "apiserver/rest/exchange.h"
#include "apiserver/rest/options.h"
#include "apiserver/rest/watch.h"
#include "net/http.h"

namespace jogak::api {

// Bearer tokens and whom they stand for.
using Tokens = std::map<std::string, User, std::less<>>;

// A GET of nodes/NAME:PORT/proxy/PATH, for whoever serves that port of that node: the target is the
// path and query there, the headers are the client's without its credentials. False: nobody does,
// and the writer was not touched.
using NodeProxy = std::function<bool(std::string_view node, int port, net::HttpRequest request,
                                     std::shared_ptr<net::ResponseWriter> writer)>;

// What a list selects, for others than GET.
struct Found {
  std::vector<store::ObjectPtr> objects;
  Doc metadata;  // of the list
};
ApiResult<Found> find_objects(Ops& ops, const Resource& resource, const ListOptions& options,
                              std::string_view ns);

class RestHandler {
 public:
  RestHandler(Ops& ops, Tokens tokens, NodeProxy node_proxy = nullptr)
      : ops_(ops),
        tokens_(std::move(tokens)),
        node_proxy_(std::move(node_proxy)),
        discovery_(ops.registry()) {}

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer);

 private:
  using ExchangePtr = std::shared_ptr<Exchange>;

  ApiResult<User> authenticate(const net::HttpRequest& request) const;
  void dispatch(const ExchangePtr& exchange);
  void on_collection(const ExchangePtr& exchange, const Resource& resource);
  void on_object(const ExchangePtr& exchange, const Resource& resource);
  void on_subresource(const ExchangePtr& exchange, const Resource& resource,
                      const Subresource& subresource);
  bool proxy_to_node(const ExchangePtr& exchange);

  void list(const ExchangePtr& exchange, const Resource& resource);
  void get(const ExchangePtr& exchange, const Resource& resource);
  ApiResult<void> create(const ExchangePtr& exchange, const Resource& resource);
  ApiResult<void> update(const ExchangePtr& exchange, const Resource& resource,
                         const Subresource* subresource);
  ApiResult<void> patch(const ExchangePtr& exchange, const Resource& resource,
                        const Subresource* subresource);
  // `projection` is that of the subresource that was written, null for the whole object.
  ApiResult<void> answer_updated(const ExchangePtr& exchange, const WriteRequest& write,
                                 ApiResult<Ops::Updated> updated, const Expected& expected,
                                 const Projection* projection);
  ApiResult<void> remove(const ExchangePtr& exchange, const Resource& resource);
  ApiResult<void> remove_collection(const ExchangePtr& exchange, const Resource& resource);
  ApiResult<void> call(const ExchangePtr& exchange, const Resource& resource,
                       const Subresource* subresource, Verb verb, const CallHandler& handler);
  ApiResult<void> show_projection(const ExchangePtr& exchange, const Resource& resource,
                                  const Subresource& subresource);
  using Read = void (RestHandler::*)(const ExchangePtr&, const Resource&);
  // Reads as soon as the store has that version; refuses at the deadline.
  void read_when_reached(const ExchangePtr& exchange, store::Revision wanted, TimeUs deadline,
                         Read read);
  WriteRequest write_request(const Exchange& exchange, const Resource& resource,
                             const WriteOptions& options) const;

  Ops& ops_;
  Tokens tokens_;
  NodeProxy node_proxy_;
  Discovery discovery_;
  std::shared_ptr<EventBytes> event_bytes_ = std::make_shared<EventBytes>();
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);  // timers watch it
};

}  // namespace jogak::api
