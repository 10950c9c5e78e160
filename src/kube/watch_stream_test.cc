// SPDX-License-Identifier: Apache-2.0
// Events and items of lists out of streams of bytes, split anywhere.
#include "kube/watch_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "kube/list_page.h"
#include "kube/object_meta.h"

namespace jogak::kube {
namespace {

// The types and objects of the events, and how it ended.
std::string events_of(std::string_view text, std::size_t piece) {
  std::string result;
  WatchStream stream;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    // Pieces of their own, so that views into another are seen by the sanitizers.
    const std::string bytes(text.substr(at, piece));
    stream.feed(bytes);
    for (;;) {
      const auto event = stream.next();
      if (!event) return result + "error: " + event.error().what;
      if (!*event) break;
      result += std::to_string(static_cast<int>((*event)->type));
      result += std::string((*event)->object) + ";";
    }
  }
  return result + (stream.is_inside_event() ? "inside" : "");
}

TEST(WatchStream, CutsEventsWhereverTheyAreSplit) {
  const std::string text =
      "{\"type\":\"ADDED\",\"object\":{\"a\":\"}\\\"{\"}}\n{\"object\":{\"b\":[{}]},"
      "\"type\":\"DELETED\"}{\"type\":\"BOOKMARK\",\"object\":{}}\r\n \t"
      "{\"type\":\"MODIFIED\",\"x\":1,\"object\":{\"c\":2},\"y\":[3]}\n"
      "{\"type\":\"ERROR\",\"object\":{\"d\":1}}{\"type\":\"NEW\",\"object\":{}}";
  const std::string want = "0{\"a\":\"}\\\"{\"};2{\"b\":[{}]};3{};1{\"c\":2};4{\"d\":1};5{};";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(events_of(text, piece), want) << piece;
  }
}

TEST(WatchStream, KnowsThatAnEventIsNotWhole) {
  EXPECT_EQ(events_of("{\"type\":\"ADDED\",", 100), "inside");
  EXPECT_EQ(events_of(" \n", 100), "");
}

TEST(WatchStream, RefusesWhatIsNoEvent) {
  for (const char* text : {"x", "[]", "\"a\"", "{}", R"({"type":"ADDED"})", R"({"object":{}})",
                           R"({"type":"ADDED","object":[]})", R"({"type":"ADDED","object":null})",
                           R"({"type":"ADDED","object":{}]})", R"({"type":"ADDED" "object":{}})"}) {
    EXPECT_NE(events_of(text, 100).find("error: "), std::string::npos) << text;
  }
}

std::string items_of(std::string_view text, std::size_t piece) {
  std::string result;
  ListPageReader page;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string bytes(text.substr(at, piece));
    page.feed(bytes);
    for (;;) {
      const auto item = page.next_item();
      if (!item) return result + "error: " + item.error().what;
      if (item->empty()) break;
      result += std::string(*item) + ";";
    }
  }
  const auto tail = page.finish();
  if (!tail) return result + "error: " + tail.error().what;
  return result + tail->version + "," + tail->next;
}

TEST(ListPage, CutsItemsWhereverTheyAreSplit) {
  for (const std::string& text :
       {std::string(R"({"kind":"L","metadata":{"resourceVersion":"7","continue":"a\u0062"},)"
                    R"("items" : [ {"a":"]"} , {"b":[{}]},{"metadata":{"resourceVersion":"1"}}]})"
                    "\n"),
        std::string(
            R"( {"a":{"items":[{"x":1}]},"items":[{"a":"]"},{"b":[{}]})"
            R"(,{"metadata":{"resourceVersion":"1"}}],"kind":"items",)"
            R"("metadata":{"continue":"ab","remainingItemCount":3,"resourceVersion":"7"}})")}) {
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
      EXPECT_EQ(items_of(text, piece),
                R"({"a":"]"};{"b":[{}]};{"metadata":{"resourceVersion":"1"}};7,ab)")
          << piece;
    }
  }
}

TEST(ListPage, EmptyLists) {
  EXPECT_EQ(items_of(R"({"metadata":{"resourceVersion":"7"},"items":[]})", 100), "7,");
  EXPECT_EQ(items_of(R"({"metadata":{"resourceVersion":"7","continue":null},"items":null})", 100),
            "7,");
  EXPECT_EQ(items_of(R"({"metadata":{"resourceVersion":"7"}})", 3), "7,");
}

TEST(ListPage, RefusesWhatIsNoList) {
  for (const char* text :
       {"", "[]", "x", "{}", R"({"items":[]})", R"({"items":[1],"metadata":{}})",
        R"({"items":[{}],"metadata":{"resourceVersion":7}})", R"({"items":[{})", R"({"items":[)",
        R"({"metadata":{"resourceVersion":"7"}} x)", R"({"metadata":{"resourceVersion":"7"}}{})"}) {
    EXPECT_NE(items_of(text, 100).find("error: "), std::string::npos) << text;
  }
}

TEST(ListPage, WhatIsAroundTheItemsIsBounded) {
  const std::string text = R"({"a":")" + std::string(std::size_t{2} << 20, 'x');
  EXPECT_NE(items_of(text, 4096).find("bytes around the items"), std::string::npos);
}

std::string meta_of(std::string_view json) {
  MetaReader reader;
  const auto meta = reader.read(json);
  if (!meta) return "error: " + meta.error().what;
  std::string result;
  for (const std::string_view part : {meta->ns, meta->name, meta->uid, meta->version}) {
    result.append(part).append("|");
  }
  return result;
}

TEST(ObjectMeta, ReadsTheFieldsInAnyOrder) {
  EXPECT_EQ(meta_of(R"({"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}})"),
            "n|a|u|7|");
  EXPECT_EQ(
      meta_of(R"({"kind":"K","data":{"metadata":1},"metadata":{"managedFields":[{"name":"x"}],)"
              R"("resourceVersion":"7","uid":"u","name":"\u0061"},"spec":{}})"),
      "|a|u|7|");
  EXPECT_EQ(meta_of(R"({"metadata":{}})"), "||||");
  EXPECT_EQ(meta_of(R"({"metadata":{"name":null}})"), "||||");
}

TEST(ObjectMeta, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "{}", R"({"metadata":[]})", R"({"metadata":{"name":1}})",
                           R"({"metadata":{"name":"a" "uid":"u"}})", R"({"metadata":{"name")"}) {
    EXPECT_TRUE(meta_of(text).starts_with("error: ")) << text;
  }
}

TEST(ObjectMeta, KnowsTheEndOfInitialEvents) {
  EXPECT_TRUE(is_initial_events_end(
      R"({"metadata":{"annotations":{"a":"b","k8s.io/initial-events-end":"true"}}})"));
  EXPECT_FALSE(is_initial_events_end(
      R"({"metadata":{"annotations":{"k8s.io/initial-events-end":"false"}}})"));
  EXPECT_FALSE(is_initial_events_end(R"({"metadata":{}})"));
  EXPECT_FALSE(
      is_initial_events_end(R"({"metadata":{"labels":{"k8s.io/initial-events-end":"true"}}})"));
}

TEST(Versions, CompareAsDecimalsOfAnyLength) {
  EXPECT_EQ(compare_versions("9", "10"), -1);
  EXPECT_EQ(compare_versions("0010", "10"), 0);
  EXPECT_EQ(compare_versions("0", "00"), 0);
  EXPECT_EQ(compare_versions("100000000000000000000000000000000001",
                             "100000000000000000000000000000000000"),
            1);
  for (const char* odd : {"", "a", "1a", "-1", "1.0", " 1"}) {
    EXPECT_EQ(compare_versions(odd, "1"), std::nullopt) << odd;
    EXPECT_FALSE(is_older(odd, "1"));
  }
  EXPECT_TRUE(is_older("1", "2"));
  EXPECT_FALSE(is_older("2", "2"));
}

}  // namespace
}  // namespace jogak::kube
