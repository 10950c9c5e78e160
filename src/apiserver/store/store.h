// SPDX-License-Identifier: Apache-2.0
//
// The objects of the API server: bytes plus the few fields that lists and watches select by, under
// one revision counter, with a window of history for watches and for lists of the past. Knows
// nothing of kinds or HTTP. One thread (a Loop's) owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/object/selector.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::store {

using Revision = std::uint64_t;

// One version of one object. Never changes once stored.
struct Object {
  std::string ns, name, uid;
  Revision revision = 0;  // of the change that made this version
  std::string json;       // whole object, kind and apiVersion first, resourceVersion inside
  std::uint32_t header_size =
      0;  // bytes of `{"kind":"Pod","apiVersion":"v1",`: list items leave it
  api::Labels labels;
  // What field selectors may ask, by path; the paths live as long as the program.
  std::vector<std::pair<std::string_view, std::string>> fields;

  std::string_view field(std::string_view path) const;  // "" when absent
};
using ObjectPtr = std::shared_ptr<const Object>;

enum class EventType : std::uint8_t { Added, Modified, Deleted };

struct Event {
  EventType type = EventType::Added;
  Revision revision = 0;
  ObjectPtr object;    // the new state; of Deleted the last one, with the revision of the deletion
  ObjectPtr previous;  // the state before, null for Added
};
using EventPtr = std::shared_ptr<const Event>;

using TableId = std::uint32_t;
using WatchId = std::uint64_t;

// Where committed changes go so that they survive the process. Called in the order of revisions.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void put(std::string_view table, const Object& object) = 0;
  virtual void remove(std::string_view table, const Object& last) = 0;
};

struct StoreOptions {
  TimeUs history_age = 90 * kSecondInUs;  // younger events are kept...
  std::size_t history_events = 100'000;   // ...up to so many a table
};

class Store {
 public:
  explicit Store(Loop& loop, StoreOptions options = {});
  ~Store();

  // The table of that name ("pods", "deployments.apps"), made when it is new: nothing is known of
  // it before the present revision.
  TableId table(std::string_view name);

  // Of the latest change; 1 in a fresh store.
  Revision revision() const;
  // What the next write must carry.
  Revision next_revision() const { return revision() + 1; }

  ObjectPtr get(TableId table, std::string_view ns, std::string_view name) const;
  // Adds or replaces. CHECKs that object.revision is next_revision().
  ObjectPtr put(TableId table, Object object);
  // Removes the object of that ns and name; `last` is its final state with the revision of the
  // deletion.
  void remove(TableId table, Object last);

  struct Page {
    std::vector<ObjectPtr> objects;  // sorted by the text "ns/name"
    Revision revision = 0;
    bool has_more = false;  // more than `limit` matched
  };
  struct Range {
    std::string_view ns = {};                         // "" for all
    std::string_view after_ns = {}, after_name = {};  // continue behind this key
    std::size_t limit = SIZE_MAX;
    const std::function<bool(const Object&)>* keep = nullptr;  // selectors; counts before `limit`
  };
  Page list(TableId table, const Range& range) const;
  // The state as of an earlier revision. Errc::Gone when history does not reach that far.
  Result<Page> list_at(TableId table, const Range& range, Revision at) const;
  std::size_t count(TableId table) const;

  // Calls `sink` for every change after `since`, first those of the past (before this returns),
  // then each new one inside put() and remove(). A sink must not write to the store. Errc::Gone
  // when history does not reach back to `since`.
  using Sink = std::function<void(const EventPtr&)>;
  Result<WatchId> watch(TableId table, Revision since, Sink sink);
  void unwatch(WatchId watch);

  // Forgets history up to and including `through`.
  void compact(Revision through);
  // The oldest revision that list_at() and watch() of this table still answer.
  Revision oldest(TableId table) const;

  void set_journal(Journal* journal);
  // Fills an empty store (from a journal): sets the counter and the objects, no events.
  void restore(TableId table, Object object);
  void restore_revision(Revision revision);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::store
