// SPDX-License-Identifier: Apache-2.0
//
// A table is an ordered set of its objects and a queue of its latest events. The past is not
// stored: it is the present with those events undone.
#include "apiserver/store/store.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "base/check.h"

namespace jogak::store {
namespace {

struct Key {
  std::string_view ns, name;
};

Key key_of(const Object& object) { return {object.ns, object.name}; }

// The order of the text "ns/name", in which a cluster's own database lists: "a-b" comes before "a",
// since '-' is less than '/'.
bool is_before(const Key& a, const Key& b) {
  if (a.ns == b.ns) return a.name < b.name;
  const std::size_t common = std::min(a.ns.size(), b.ns.size());
  const int order = a.ns.substr(0, common).compare(b.ns.substr(0, common));
  if (order != 0) return order < 0;
  const auto at = [common](std::string_view ns) {
    return static_cast<unsigned char>(common < ns.size() ? ns[common] : '/');
  };
  return at(a.ns) < at(b.ns);
}

struct ByKey {
  using is_transparent = void;
  static Key key(const ObjectPtr& object) { return key_of(*object); }
  static Key key(const Key& key) { return key; }
  bool operator()(const auto& a, const auto& b) const { return is_before(key(a), key(b)); }
};

using Objects = std::set<ObjectPtr, ByKey>;

bool is_within(std::string_view ns, const Key& key) { return ns.empty() || key.ns == ns; }

// The first key of a range is behind this one. No object has an empty name, so that the start of a
// namespace is (ns, "").
Key start_of(const Store::Range& range) {
  const Key after{range.after_ns, range.after_name};
  const Key start{range.ns, ""};
  return is_before(after, start) ? start : after;
}

// Takes objects in key order until the page is full and one more has been seen.
class PageBuilder {
 public:
  PageBuilder(const Store::Range& range, Revision revision) : range_(range) {
    page_.revision = revision;
  }

  // False when nothing further can change the page.
  bool add(const ObjectPtr& object) {
    if (range_.keep != nullptr && !(*range_.keep)(*object)) return true;
    if (page_.objects.size() >= range_.limit) {
      page_.has_more = true;
      return false;
    }
    page_.objects.push_back(object);
    return true;
  }
  Store::Page finish() { return std::move(page_); }

 private:
  const Store::Range& range_;
  Store::Page page_;
};

struct Watcher {
  Revision since = 0;
  Store::Sink sink;
  bool is_gone = false;
};

struct Stamped {
  EventPtr event;
  TimeUs time = 0;
};

struct Table {
  std::string name;
  Objects objects;
  std::deque<Stamped> history;
  Revision oldest = 0;
  std::vector<std::unique_ptr<Watcher>> watchers;

  std::deque<Stamped>::const_iterator first_after(Revision revision) const {
    return std::ranges::upper_bound(history, revision, {},
                                    [](const Stamped& entry) { return entry.event->revision; });
  }
  void forget_first() {
    oldest = history.front().event->revision;
    history.pop_front();
  }
};

}  // namespace

std::string_view Object::field(std::string_view path) const {
  for (const auto& [name_of_field, value] : fields) {
    if (name_of_field == path) return value;
  }
  return {};
}

struct Store::Impl {
  Loop& loop;
  StoreOptions options;
  Revision revision = 1;
  std::vector<std::unique_ptr<Table>> tables;
  std::map<std::string, TableId, std::less<>> ids;
  std::unordered_map<WatchId, Watcher*> watches;
  WatchId last_watch = 0;
  Journal* journal = nullptr;
  int sinks_running = 0;           // calls of deliver() and watch() under way
  bool has_gone_watchers = false;  // some are marked and still in their table
  std::size_t prune_next = 0;

  Impl(Loop& of_loop, StoreOptions with) : loop(of_loop), options(with) {}

  Table& at(TableId id) {
    JOGAK_CHECK(id < tables.size());
    return *tables[id];
  }

  void commit(Table& table, EventPtr event);
  void deliver(Table& table, const EventPtr& event);
  void drop_gone_watchers();
  void prune(Table& table) const;
  Result<void> check_reach(const Table& table, Revision revision_asked) const;
};

void Store::Impl::prune(Table& table) const {
  const TimeUs too_old = loop.now() - options.history_age;
  while (!table.history.empty() &&
         (table.history.front().time <= too_old || table.history.size() > options.history_events)) {
    table.forget_first();
  }
}

// Every write also looks at one other table in turn, so that a table gone quiet lets go of its
// past.
void Store::Impl::commit(Table& table, EventPtr event) {
  revision = event->revision;
  table.history.push_back({event, loop.now()});
  prune(table);
  prune_next = (prune_next + 1) % tables.size();
  prune(*tables[prune_next]);
  deliver(table, event);
}

// Watchers may come and go inside a sink: new ones are appended and have seen the event in their
// replay; those that go are marked here, and taken out at the end.
void Store::Impl::deliver(Table& table, const EventPtr& event) {
  ++sinks_running;
  const std::size_t count = table.watchers.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Watcher* watcher = table.watchers[i].get();
    if (!watcher->is_gone && event->revision > watcher->since) watcher->sink(event);
  }
  --sinks_running;
  drop_gone_watchers();
}

void Store::Impl::drop_gone_watchers() {
  if (sinks_running > 0 || !has_gone_watchers) return;
  has_gone_watchers = false;
  for (const auto& table : tables) {
    std::erase_if(table->watchers, [](const auto& watcher) { return watcher->is_gone; });
  }
}

Result<void> Store::Impl::check_reach(const Table& table, Revision revision_asked) const {
  if (revision_asked >= table.oldest) return {};
  return fail(Errc::Gone, "{}: revision {} is older than {}, the oldest one kept", table.name,
              revision_asked, table.oldest);
}

Store::Store(Loop& loop, StoreOptions options) : impl_(std::make_unique<Impl>(loop, options)) {}
Store::~Store() = default;

TableId Store::table(std::string_view name) {
  if (const auto it = impl_->ids.find(name); it != impl_->ids.end()) return it->second;
  const auto id = static_cast<TableId>(impl_->tables.size());
  auto table = std::make_unique<Table>();
  table->name = name;
  table->oldest = impl_->revision;
  impl_->tables.push_back(std::move(table));
  impl_->ids.emplace(name, id);
  return id;
}

Revision Store::revision() const { return impl_->revision; }

ObjectPtr Store::get(TableId table, std::string_view ns, std::string_view name) const {
  const Objects& objects = impl_->at(table).objects;
  const auto it = objects.find(Key{ns, name});
  return it == objects.end() ? nullptr : *it;
}

ObjectPtr Store::put(TableId table_id, Object object) {
  Table& table = impl_->at(table_id);
  JOGAK_CHECK(impl_->sinks_running == 0, "a sink wrote to {}", table.name);
  JOGAK_CHECK(object.revision == next_revision(), "{}/{} carries {} after {}", object.ns,
              object.name, object.revision, revision());
  JOGAK_CHECK(!object.name.empty());
  auto event = std::make_shared<Event>();
  event->revision = object.revision;
  event->object = std::make_shared<const Object>(std::move(object));
  auto place = table.objects.lower_bound(event->object);
  if (place != table.objects.end() && !table.objects.key_comp()(event->object, *place)) {
    event->type = EventType::Modified;
    // The key stays equal, so the node may stay where it is.
    auto node = table.objects.extract(place++);
    event->previous = std::exchange(node.value(), event->object);
    table.objects.insert(place, std::move(node));
  } else {
    table.objects.insert(place, event->object);
  }
  if (impl_->journal != nullptr) impl_->journal->put(table.name, *event->object);
  ObjectPtr stored = event->object;
  impl_->commit(table, std::move(event));
  return stored;
}

void Store::remove(TableId table_id, Object last) {
  Table& table = impl_->at(table_id);
  JOGAK_CHECK(impl_->sinks_running == 0, "a sink wrote to {}", table.name);
  JOGAK_CHECK(last.revision == next_revision(), "{}/{} carries {} after {}", last.ns, last.name,
              last.revision, revision());
  const auto it = table.objects.find(key_of(last));
  JOGAK_CHECK(it != table.objects.end(), "{} has no {}/{}", table.name, last.ns, last.name);
  auto event = std::make_shared<Event>();
  event->type = EventType::Deleted;
  event->revision = last.revision;
  event->previous = *it;
  event->object = std::make_shared<const Object>(std::move(last));
  table.objects.erase(it);
  if (impl_->journal != nullptr) impl_->journal->remove(table.name, *event->object);
  impl_->commit(table, std::move(event));
}

Store::Page Store::list(TableId table, const Range& range) const {
  const Objects& objects = impl_->at(table).objects;
  PageBuilder page(range, revision());
  for (auto it = objects.upper_bound(start_of(range)); it != objects.end(); ++it) {
    if (!is_within(range.ns, key_of(**it)) || !page.add(*it)) break;
  }
  return page.finish();
}

Result<Store::Page> Store::list_at(TableId table_id, const Range& range, Revision at) const {
  const Table& table = impl_->at(table_id);
  JOGAK_TRY_VOID(impl_->check_reach(table, at));
  if (at > revision()) {
    return invalid("{}: revision {} is ahead of {}", table.name, at, revision());
  }
  const Key start = start_of(range);
  // What differs from the present, by key: the state before the first change after `at`, null where
  // there was nothing.
  std::map<Key, ObjectPtr, bool (*)(const Key&, const Key&)> past(is_before);
  for (auto it = table.first_after(at); it != table.history.end(); ++it) {
    const Key key = key_of(*it->event->object);
    if (is_within(range.ns, key) && is_before(start, key)) past.emplace(key, it->event->previous);
  }
  PageBuilder page(range, at);
  auto now = table.objects.upper_bound(start);
  auto then = past.begin();
  const auto has_now = [&] {
    return now != table.objects.end() && is_within(range.ns, key_of(**now));
  };
  while (has_now() || then != past.end()) {
    const bool is_changed =
        then != past.end() && (!has_now() || !is_before(key_of(**now), then->first));
    if (is_changed && has_now() && !is_before(then->first, key_of(**now))) ++now;
    const ObjectPtr& object = is_changed ? (then++)->second : *now++;
    if (object != nullptr && !page.add(object)) break;
  }
  return page.finish();
}

std::size_t Store::count(TableId table) const { return impl_->at(table).objects.size(); }

Result<WatchId> Store::watch(TableId table_id, Revision since, Sink sink) {
  Table& table = impl_->at(table_id);
  JOGAK_TRY_VOID(impl_->check_reach(table, since));
  ++impl_->sinks_running;
  for (auto it = table.first_after(since); it != table.history.end(); ++it) sink(it->event);
  --impl_->sinks_running;
  auto watcher = std::make_unique<Watcher>();
  watcher->since = std::max(since, revision());
  watcher->sink = std::move(sink);
  const WatchId id = ++impl_->last_watch;
  impl_->watches.emplace(id, watcher.get());
  table.watchers.push_back(std::move(watcher));
  impl_->drop_gone_watchers();
  return id;
}

void Store::unwatch(WatchId watch) {
  const auto it = impl_->watches.find(watch);
  if (it == impl_->watches.end()) return;
  it->second->is_gone = true;
  impl_->watches.erase(it);
  impl_->has_gone_watchers = true;
  impl_->drop_gone_watchers();
}

void Store::compact(Revision through) {
  through = std::min(through, revision());
  for (const auto& table : impl_->tables) {
    while (!table->history.empty() && table->history.front().event->revision <= through) {
      table->forget_first();
    }
    table->oldest = std::max(table->oldest, through);
  }
}

Revision Store::oldest(TableId table) const { return impl_->at(table).oldest; }

void Store::set_journal(Journal* journal) { impl_->journal = journal; }

void Store::restore(TableId table_id, Object object) {
  Table& table = impl_->at(table_id);
  JOGAK_CHECK(table.history.empty(), "{} has changed already", table.name);
  if (object.revision > revision()) restore_revision(object.revision);
  const bool is_new =
      table.objects.insert(std::make_shared<const Object>(std::move(object))).second;
  JOGAK_CHECK(is_new, "{} holds that object already", table.name);
}

void Store::restore_revision(Revision revision) {
  impl_->revision = std::max(impl_->revision, revision);
  for (const auto& table : impl_->tables) table->oldest = impl_->revision;
}

}  // namespace jogak::store
