// SPDX-License-Identifier: Apache-2.0
//
// The store's rules, one a test; store_prop_test.cc compares long random runs with a plain model.
#include "apiserver/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"

namespace jogak::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StoreTest : public testing::Test {
 protected:
  Object object(std::string_view ns, std::string_view name, std::string_view json = "{}") {
    Object made;
    made.ns = ns;
    made.name = name;
    made.json = json;
    made.revision = store_.next_revision();
    return made;
  }
  Revision put(std::string_view ns, std::string_view name, std::string_view json = "{}") {
    return store_.put(pods_, object(ns, name, json))->revision;
  }
  Revision remove(std::string_view ns, std::string_view name) {
    store_.remove(pods_, object(ns, name, "last"));
    return store_.revision();
  }
  // "ns/name=json" per object
  static std::vector<std::string> text(const Store::Page& page) {
    std::vector<std::string> lines;
    for (const ObjectPtr& each : page.objects) {
      lines.push_back(each->ns + "/" + each->name + "=" + each->json);
    }
    return lines;
  }
  std::vector<std::string> list(const Store::Range& range = {}) const {
    return text(store_.list(pods_, range));
  }
  // "A 2 a/x" per event, appended to `log_`
  Store::Sink log(std::string prefix = "") {
    return [this, prefix](const EventPtr& event) {
      log_.push_back(prefix + std::string("AMD").substr(static_cast<std::size_t>(event->type), 1) +
                     std::to_string(event->revision) + " " + event->object->name);
    };
  }

  SimLoop loop_;
  Store store_{loop_, {.history_age = 10 * kSecondInUs, .history_events = 100}};
  TableId pods_ = store_.table("pods");
  std::vector<std::string> log_;
};

TEST_F(StoreTest, AFreshStoreIsAtRevisionOne) {
  EXPECT_EQ(store_.revision(), 1U);
  EXPECT_EQ(store_.oldest(pods_), 1U);
  EXPECT_EQ(store_.count(pods_), 0U);
  EXPECT_THAT(list(), IsEmpty());
}

TEST_F(StoreTest, ATableIsMadeOnce) {
  EXPECT_EQ(store_.table("pods"), pods_);
  EXPECT_NE(store_.table("nodes"), pods_);
}

// A custom kind gets its table when it is defined: revisions from before say nothing of it.
TEST_F(StoreTest, ATableBeginsAtThePresent) {
  put("a", "x");
  const TableId late = store_.table("widgets.example.org");
  EXPECT_EQ(store_.oldest(late), 2U);
  EXPECT_EQ(store_.watch(late, 1, log()).error().code, Errc::Gone);
}

TEST_F(StoreTest, OneCounterForAllTables) {
  const TableId nodes = store_.table("nodes");
  EXPECT_EQ(put("a", "x"), 2U);
  EXPECT_EQ(store_.put(nodes, object("", "n"))->revision, 3U);
  EXPECT_EQ(put("a", "x"), 4U);
  EXPECT_EQ(remove("a", "x"), 5U);
  EXPECT_EQ(store_.count(pods_), 0U);
  EXPECT_EQ(store_.count(nodes), 1U);
}

TEST_F(StoreTest, GetFindsByNamespaceAndName) {
  put("a", "x", "1");
  put("b", "x", "2");
  EXPECT_EQ(store_.get(pods_, "b", "x")->json, "2");
  EXPECT_EQ(store_.get(pods_, "c", "x"), nullptr);
  EXPECT_EQ(store_.get(pods_, "a", ""), nullptr);
}

TEST_F(StoreTest, AVersionOnceReadNeverChanges) {
  put("a", "x", "1");
  const ObjectPtr first = store_.get(pods_, "a", "x");
  put("a", "x", "2");
  EXPECT_EQ(first->json, "1");
  EXPECT_EQ(first->revision, 2U);
}

TEST_F(StoreTest, ListsByKeyAsADatabaseOfPathsDoes) {
  put("b", "x");
  put("a", "y");
  put("a", "x-1");
  put("a", "x");
  put("a-1", "z");
  EXPECT_THAT(list(), ElementsAre("a-1/z={}", "a/x={}", "a/x-1={}", "a/y={}", "b/x={}"));
  EXPECT_THAT(list({.ns = "a"}), ElementsAre("a/x={}", "a/x-1={}", "a/y={}"));
  EXPECT_THAT(list({.ns = "a-1"}), ElementsAre("a-1/z={}"));
  EXPECT_THAT(list({.ns = "aa"}), IsEmpty());
}

TEST_F(StoreTest, PagesGoOnBehindAKey) {
  for (const char* name : {"p1", "p2", "p3", "p4", "p5"}) put("a", name);
  const auto page = store_.list(pods_, {.after_ns = "a", .after_name = "p2", .limit = 2});
  EXPECT_THAT(text(page), ElementsAre("a/p3={}", "a/p4={}"));
  EXPECT_TRUE(page.has_more);
  const auto last =
      store_.list(pods_, {.ns = "a", .after_ns = "a", .after_name = "p3", .limit = 2});
  EXPECT_THAT(text(last), ElementsAre("a/p4={}", "a/p5={}"));
  EXPECT_FALSE(last.has_more);
}

TEST_F(StoreTest, ThePlaceToGoOnMayBeGone) {
  put("a", "p1");
  put("a", "p3");
  EXPECT_THAT(list({.after_ns = "a", .after_name = "p2"}), ElementsAre("a/p3={}"));
}

TEST_F(StoreTest, WhatAPageLeavesOutDoesNotCount) {
  for (const char* json : {"1", "2", "3", "4", "5"}) put("a", std::string("p") + json, json);
  const std::function<bool(const Object&)> odd = [](const Object& o) { return o.json[0] % 2 == 1; };
  const auto page = store_.list(pods_, {.limit = 2, .keep = &odd});
  EXPECT_THAT(text(page), ElementsAre("a/p1=1", "a/p3=3"));
  EXPECT_TRUE(page.has_more);
  EXPECT_FALSE(store_.list(pods_, {.limit = 3, .keep = &odd}).has_more);
}

TEST_F(StoreTest, ListsOfThePastUndoWhatCameAfter) {
  put("a", "x", "1");
  put("a", "y", "1");
  const Revision then = store_.revision();
  put("a", "x", "2");
  remove("a", "y");
  put("a", "z", "1");
  put("a", "y", "again");
  EXPECT_THAT(text(*store_.list_at(pods_, {}, then)), ElementsAre("a/x=1", "a/y=1"));
  EXPECT_THAT(text(*store_.list_at(pods_, {}, then + 1)), ElementsAre("a/x=2", "a/y=1"));
  EXPECT_THAT(text(*store_.list_at(pods_, {}, then + 2)), ElementsAre("a/x=2"));
  EXPECT_THAT(text(*store_.list_at(pods_, {}, 1)), IsEmpty());
  EXPECT_EQ(store_.list_at(pods_, {}, then)->revision, then);
  EXPECT_THAT(text(*store_.list_at(pods_, {}, store_.revision())), list());
}

TEST_F(StoreTest, AListOfTheFutureIsAnError) {
  EXPECT_EQ(store_.list_at(pods_, {}, 2).error().code, Errc::Invalid);
}

TEST_F(StoreTest, ThePastGoesByAge) {
  put("a", "x");  // 2
  loop_.run_for(6 * kSecondInUs);
  put("a", "x");  // 3
  loop_.run_for(5 * kSecondInUs);
  put("a", "x");  // 4: the first is 11 s old
  EXPECT_EQ(store_.oldest(pods_), 2U);
  EXPECT_TRUE(store_.list_at(pods_, {}, 2).has_value());
  EXPECT_EQ(store_.list_at(pods_, {}, 1).error().code, Errc::Gone);
  EXPECT_EQ(store_.watch(pods_, 1, log()).error().code, Errc::Gone);
  EXPECT_TRUE(store_.watch(pods_, 2, log()).has_value());
}

TEST_F(StoreTest, ThePastGoesByCount) {
  for (int i = 0; i < 150; ++i) put("a", "x");
  EXPECT_EQ(store_.revision(), 151U);
  EXPECT_EQ(store_.oldest(pods_), 51U);
  ASSERT_TRUE(store_.watch(pods_, 51, log()).has_value());
  EXPECT_EQ(log_.size(), 100U);
}

TEST_F(StoreTest, AQuietTableLetsGoOfItsPastToo) {
  put("a", "x");
  loop_.run_for(11 * kSecondInUs);
  const TableId nodes = store_.table("nodes");
  for (int i = 0; i < 2; ++i) store_.put(nodes, object("", "n"));
  EXPECT_EQ(store_.oldest(pods_), 2U);
}

TEST_F(StoreTest, CompactionForgetsInAllTables) {
  const TableId nodes = store_.table("nodes");
  put("a", "x", "1");
  put("a", "x", "2");
  store_.compact(2);
  EXPECT_EQ(store_.oldest(pods_), 2U);
  EXPECT_EQ(store_.oldest(nodes), 2U);
  EXPECT_THAT(text(*store_.list_at(pods_, {}, 2)), ElementsAre("a/x=1"));
  EXPECT_EQ(store_.list_at(nodes, {}, 1).error().code, Errc::Gone);
  store_.compact(99);  // no further than the present
  EXPECT_EQ(store_.oldest(pods_), 3U);
}

TEST_F(StoreTest, AWatchReplaysThenFollows) {
  put("a", "x");
  put("a", "y");
  put("a", "x");
  ASSERT_TRUE(store_.watch(pods_, 2, log()).has_value());
  EXPECT_THAT(log_, ElementsAre("A3 y", "M4 x"));
  remove("a", "y");
  store_.put(store_.table("nodes"), object("", "n"));
  EXPECT_THAT(log_, ElementsAre("A3 y", "M4 x", "D5 y"));
}

TEST_F(StoreTest, EventsCarryBothStates) {
  std::vector<EventPtr> events;
  ASSERT_TRUE(store_.watch(pods_, 1, [&](const EventPtr& e) { events.push_back(e); }).has_value());
  put("a", "x", "1");
  put("a", "x", "2");
  remove("a", "x");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0]->previous, nullptr);
  EXPECT_EQ(events[1]->previous, events[0]->object);
  EXPECT_EQ(events[2]->previous, events[1]->object);
  EXPECT_EQ(events[2]->object->json, "last");
  EXPECT_EQ(events[2]->object->revision, 4U);
}

TEST_F(StoreTest, AWatchFromTheFutureIsSilentUntilThen) {
  ASSERT_TRUE(store_.watch(pods_, 3, log()).has_value());
  put("a", "x");
  put("a", "y");
  EXPECT_THAT(log_, IsEmpty());
  put("a", "z");
  EXPECT_THAT(log_, ElementsAre("A4 z"));
}

TEST_F(StoreTest, AWatchEnds) {
  const WatchId watch = *store_.watch(pods_, 1, log());
  put("a", "x");
  store_.unwatch(watch);
  store_.unwatch(watch);
  store_.unwatch(12345);
  put("a", "x");
  EXPECT_THAT(log_, ElementsAre("A2 x"));
}

TEST_F(StoreTest, ASinkMayEndWatchesItsOwnToo) {
  WatchId first = 0, third = 0;
  const auto alive = std::make_shared<int>(0);
  first = *store_.watch(pods_, 1, [&, alive](const EventPtr&) {
    log_.emplace_back("first");
    store_.unwatch(first);
    store_.unwatch(third);
    EXPECT_GE(alive.use_count(), 2);  // the sink under way is not destroyed
  });
  ASSERT_TRUE(store_.watch(pods_, 1, log("second ")).has_value());
  third = *store_.watch(pods_, 1, log("third "));
  put("a", "x");
  EXPECT_THAT(log_, ElementsAre("first", "second A2 x"));
  EXPECT_EQ(alive.use_count(), 1);
  put("a", "x");
  EXPECT_THAT(log_, ElementsAre("first", "second A2 x", "second M3 x"));
}

TEST_F(StoreTest, AWatchBegunInASinkSeesEachEventOnce) {
  bool is_begun = false;
  ASSERT_TRUE(store_
                  .watch(pods_, 1,
                         [&](const EventPtr&) {
                           if (!std::exchange(is_begun, true)) {
                             EXPECT_TRUE(store_.watch(pods_, 1, log()).has_value());
                           }
                         })
                  .has_value());
  put("a", "x");
  put("a", "y");
  EXPECT_THAT(log_, ElementsAre("A2 x", "A3 y"));
}

TEST_F(StoreTest, ASinkMayEndOtherWatchesDuringItsReplay) {
  put("a", "x");
  const WatchId other = *store_.watch(pods_, store_.revision(), log());
  ASSERT_TRUE(store_.watch(pods_, 1, [&](const EventPtr&) { store_.unwatch(other); }).has_value());
  put("a", "x");
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(StoreTest, FieldsAreFoundByPath) {
  Object pod = object("a", "x");
  pod.fields = {{"spec.nodeName", "n1"}, {"status.phase", "Running"}};
  EXPECT_EQ(pod.field("status.phase"), "Running");
  EXPECT_EQ(pod.field("spec.schedulerName"), "");
}

TEST_F(StoreTest, ARestoredStoreHasNoPast) {
  Object old = object("a", "x", "old");
  old.revision = 41;
  store_.restore(pods_, old);
  store_.restore_revision(50);
  EXPECT_EQ(store_.revision(), 50U);
  EXPECT_EQ(store_.get(pods_, "a", "x")->revision, 41U);
  EXPECT_EQ(store_.oldest(pods_), 50U);
  EXPECT_EQ(store_.oldest(store_.table("new")), 50U);
  EXPECT_EQ(store_.watch(pods_, 49, log()).error().code, Errc::Gone);
  ASSERT_TRUE(store_.watch(pods_, 50, log()).has_value());
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(put("a", "x"), 51U);
  EXPECT_THAT(log_, ElementsAre("M51 x"));
}

struct RecordingJournal : Journal {
  void put(std::string_view table, const Object& object) override {
    lines.push_back(std::string(table) + " put " + object.name + std::to_string(object.revision));
  }
  void remove(std::string_view table, const Object& last) override {
    lines.push_back(std::string(table) + " remove " + last.name + std::to_string(last.revision));
  }
  std::vector<std::string> lines;
};

TEST_F(StoreTest, TheJournalHearsOfAChangeBeforeItsWatchers) {
  RecordingJournal journal;
  store_.set_journal(&journal);
  ASSERT_TRUE(store_
                  .watch(pods_, 1,
                         [&](const EventPtr& event) {
                           EXPECT_EQ(journal.lines.size(), event->revision - 1);
                         })
                  .has_value());
  put("a", "x");
  remove("a", "x");
  EXPECT_THAT(journal.lines, ElementsAre("pods put x2", "pods remove x3"));
}

using StoreDeathTest = StoreTest;

TEST_F(StoreDeathTest, WritesMustCarryTheNextRevision) {
  Object late = object("a", "x");
  late.revision = 7;
  EXPECT_DEATH(store_.put(pods_, late), "carries 7 after 1");
  EXPECT_DEATH(store_.remove(pods_, object("a", "x")), "pods has no a/x");
}

TEST_F(StoreDeathTest, ASinkMustNotWrite) {
  ASSERT_TRUE(store_.watch(pods_, 1, [&](const EventPtr&) { put("a", "y"); }).has_value());
  EXPECT_DEATH(put("a", "x"), "a sink wrote to pods");
}

}  // namespace
}  // namespace jogak::store
