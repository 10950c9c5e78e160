// SPDX-License-Identifier: Apache-2.0
//
// Any bytes may come as a watch or as a list: how they are split makes no difference, what is cut
// out of them lies inside them, and reading metadata from it never runs over.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kube/list_page.h"
#include "kube/object_meta.h"
#include "kube/watch_stream.h"

namespace {

using jogak::kube::ListPageReader;
using jogak::kube::MetaReader;
using jogak::kube::WatchStream;

// Everything that was read, and how it ended.
std::string meta_of(std::string_view object) {
  MetaReader reader;
  const auto meta = reader.read(object);
  static_cast<void>(jogak::kube::is_initial_events_end(object));
  if (!meta) return "no object";
  std::string result;
  for (const std::string_view part : {meta->ns, meta->name, meta->uid, meta->version}) {
    result.append(part).append("|");
  }
  return result;
}

std::string events_of(std::string_view text, std::size_t piece) {
  std::string result;
  WatchStream stream(100'000);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    // On the heap and of exactly that size, so that a sanitizer sees a step beyond.
    const std::string_view part = text.substr(at, piece);
    const std::vector<char> bytes(part.begin(), part.end());
    stream.feed({bytes.data(), bytes.size()});
    for (;;) {
      const auto event = stream.next();
      if (!event) return result + "error";
      if (!*event) break;
      const std::string_view object = (*event)->object;
      JOGAK_CHECK(object.size() >= 2 && object.front() == '{' && object.size() < text.size());
      result.append(object).append(meta_of(object)).append(";");
    }
  }
  return result + (stream.is_inside_event() ? "inside" : "");
}

std::string items_of(std::string_view text, std::size_t piece) {
  std::string result;
  ListPageReader page(100'000);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    const std::vector<char> bytes(part.begin(), part.end());
    page.feed({bytes.data(), bytes.size()});
    for (;;) {
      const auto item = page.next_item();
      if (!item) return result + "error";
      if (item->empty()) break;
      result.append(*item).append(meta_of(*item)).append(";");
    }
  }
  const auto tail = page.finish();
  if (!tail) return result + "error";
  JOGAK_CHECK(!tail->version.empty());
  return result + tail->version + "," + tail->next;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t whole = std::max<std::size_t>(size, 1);
  const std::string events = events_of(text, whole);
  const std::string items = items_of(text, whole);
  for (const std::size_t piece : {1, 7, 64, 100}) {
    JOGAK_CHECK(events_of(text, piece) == events, "events in pieces of {} bytes", piece);
    JOGAK_CHECK(items_of(text, piece) == items, "items in pieces of {} bytes", piece);
  }
  return 0;
}
