// SPDX-License-Identifier: Apache-2.0
//
// One collection of the API behind a ScriptedHttp: pages, streaming lists and watches with
// bookmarks, over a history that is compacted. It may refuse, cut, delay, repeat and forget, as a
// real server and the network before it legally may.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube::testing {

struct CollectionFaults {
  std::uint64_t of_hundred = 0;  // requests and deliveries that go wrong
  bool knows_streams = true;     // else refuses them
  bool ignores_streams = false;  // does not know the parameters, and watches
  bool repeats = false;          // sends events again
};

class CollectionServer {
 public:
  struct Object {
    std::string uid;
    std::int64_t version = 0;
    friend bool operator==(const Object&, const Object&) = default;
  };
  using State = std::map<std::string, Object>;  // by name

  CollectionServer(Loop& loop, std::uint64_t seed) : loop_(loop), rng_(seed, "collection") {}

  CollectionFaults faults;

  // Creates, changes, deletes or replaces a random one of `names` objects.
  void change(std::uint64_t names);
  // Forgets all but the last `kept` changes; lists that were begun before expire.
  void compact(std::size_t kept);
  // Ends all watches, well or not.
  void drop_watches(bool is_clean);
  void bookmark();

  void handle(const ScriptedHttp::ExchangePtr& exchange);
  const State& state() const { return state_; }

 private:
  struct Change {
    std::int64_t version;
    std::string type, json;
  };
  struct Watch {
    ScriptedHttp::ExchangePtr exchange;
    std::size_t next = 0;  // in all changes ever
    std::size_t first = 0;
  };

  bool fault() { return rng_.below(100) < faults.of_hundred; }
  static std::string json(const std::string& name, const Object& object, bool is_item);
  void record(const char* type, const std::string& name, const Object& object);
  void refuse(const ScriptedHttp::ExchangePtr& exchange);
  void list(const ScriptedHttp::ExchangePtr& exchange);
  void watch(const ScriptedHttp::ExchangePtr& exchange);
  void deliver(Watch& watch);
  void send(const ScriptedHttp::ExchangePtr& exchange, const std::string& text);
  void deliver_soon();

  Loop& loop_;
  Rng rng_;
  State state_;
  std::int64_t version_ = 100;
  std::int64_t next_uid_ = 1;
  std::vector<Change> changes_;  // the last ones
  std::size_t forgotten_ = 0;    // changes before those
  std::int64_t compacted_ = 100;
  std::vector<Watch> watches_;
  struct Snapshot {
    State state;
    std::int64_t version;
  };
  std::map<std::string, Snapshot> snapshots_;  // by token
  bool is_delivering_ = false;
};

}  // namespace jogak::kube::testing
