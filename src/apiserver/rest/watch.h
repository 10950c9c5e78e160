// SPDX-License-Identifier: Apache-2.0
//
// Watch streams: initial events, changes through selectors, bookmarks, the end.
#pragma once

#include <memory>

#include "apiserver/ops/ops.h"
#include "apiserver/rest/exchange.h"
#include "apiserver/rest/options.h"

namespace jogak::api {

// The bytes of an event, made once for all watchers that want the plain JSON of the object.
class EventBytes {
 public:
  std::shared_ptr<const std::string> get(const store::EventPtr& event, std::string_view type,
                                         const store::Object& object);

 private:
  store::EventPtr last_;
  std::string last_type_;
  std::shared_ptr<const std::string> bytes_;
};

// Serves a watch until the client leaves, the time is over or the client is too slow.
void serve_watch(Ops& ops, std::shared_ptr<EventBytes> bytes, std::shared_ptr<Exchange> exchange,
                 const Resource& resource, ListOptions options);

// Whether a stored version passes the selectors and lies in the namespace ("" for any).
bool selects(const ListOptions& options, std::string_view ns, const store::Object& object);

}  // namespace jogak::api
