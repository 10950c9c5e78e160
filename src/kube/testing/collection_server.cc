// SPDX-License-Identifier: Apache-2.0
// All changes since the last compaction are kept in one line; a watch is a place in it.
#include "kube/testing/collection_server.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/parse_number.h"

namespace jogak::kube::testing {

namespace {

std::string parameter(const std::string& target, const std::string& name) {
  for (const char* const before : {"?", "&"}) {
    const std::size_t at = target.find(before + name + "=");
    if (at == std::string::npos) continue;
    const std::size_t begin = at + name.size() + 2;
    return target.substr(begin, target.find('&', begin) - begin);
  }
  return {};
}

std::string status(int code, const std::string& reason) {
  return fmt::format(R"({{"kind":"Status","reason":"{}","message":"no","code":{}}})", reason, code);
}

std::string event(const std::string& type, const std::string& json) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, json);
}

std::string bookmark_of(std::int64_t version, bool is_end) {
  return event("BOOKMARK",
               fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"{}}}}})", version,
                           is_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : ""));
}

}  // namespace

std::string CollectionServer::json(const std::string& name, const Object& object, bool is_item) {
  return fmt::format(
      R"({{{}"metadata":{{"name":"{}","namespace":"n\u0073","uid":"{}","resourceVersion":"{}",)"
      R"("managedFields":[{{"fieldsV1":{{"f:a\"}}":{{}}}}}}]}},"spec":{{"text":"\\\"{{["}}}})",
      is_item ? "" : R"("kind":"Pod",)", name, object.uid, object.version);
}

void CollectionServer::record(const char* type, const std::string& name, const Object& object) {
  changes_.push_back({object.version, type, json(name, object, false)});
  deliver_soon();
}

void CollectionServer::change(std::uint64_t names) {
  const std::string name = fmt::format("o{}", rng_.below(names));
  const auto it = state_.find(name);
  if (it == state_.end()) {
    const Object made{fmt::format("uid-{}", next_uid_++), ++version_};
    state_[name] = made;
    return record("ADDED", name, made);
  }
  it->second.version = ++version_;
  if (rng_.chance(1, 2)) return record("MODIFIED", name, it->second);
  record("DELETED", name, it->second);
  state_.erase(it);
  if (rng_.chance(1, 3)) {  // another of that name, at once
    const Object made{fmt::format("uid-{}", next_uid_++), ++version_};
    state_[name] = made;
    record("ADDED", name, made);
  }
}

void CollectionServer::compact(std::size_t kept) {
  if (changes_.size() > kept) {
    const std::size_t dropped = changes_.size() - kept;
    compacted_ = changes_[dropped - 1].version;
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(dropped));
    forgotten_ += dropped;
  }
  snapshots_.clear();
}

void CollectionServer::drop_watches(bool is_clean) {
  for (Watch& watch : std::exchange(watches_, {})) {
    if (is_clean) {
      watch.exchange->end();
    } else {
      watch.exchange->cut(Errc::Timeout);
    }
  }
}

void CollectionServer::bookmark() {
  for (Watch& watch : watches_) {
    if (watch.next == forgotten_ + changes_.size()) {
      send(watch.exchange, bookmark_of(version_, false));
    }
  }
}

// In pieces, now and then cut off in the middle.
void CollectionServer::send(const ScriptedHttp::ExchangePtr& exchange, const std::string& text) {
  if (fault()) {
    exchange->body(text.substr(0, rng_.below(text.size() + 1)));
    return exchange->cut(Errc::Timeout);
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = rng_.chance(1, 2) ? text.size() : 1 + rng_.below(100);
    exchange->body(text.substr(at, size));
    at += std::min(size, text.size() - at);
  }
}

void CollectionServer::deliver_soon() {
  if (std::exchange(is_delivering_, true)) return;
  loop_.after(rng_.between(0, 200 * kMsInUs), [this] {
    is_delivering_ = false;
    for (Watch& watch : watches_) deliver(watch);
    std::erase_if(watches_, [](const Watch& watch) { return !watch.exchange->is_open(); });
  });
}

void CollectionServer::deliver(Watch& watch) {
  if (watch.next < forgotten_) {  // too slow
    send(watch.exchange, event("ERROR", status(410, "Expired")));
    return watch.exchange->end();
  }
  std::string text;
  for (; watch.next < forgotten_ + changes_.size(); ++watch.next) {
    const Change& change = changes_[watch.next - forgotten_];
    text += event(change.type, change.json);
    const std::size_t oldest = std::max(watch.first, forgotten_);
    if (faults.repeats && rng_.chance(1, 5)) {
      const Change& again = changes_[oldest - forgotten_ + rng_.below(watch.next - oldest + 1)];
      text += event(again.type, again.json);
    }
  }
  if (!text.empty()) send(watch.exchange, text);
}

void CollectionServer::refuse(const ScriptedHttp::ExchangePtr& exchange) {
  switch (rng_.below(6)) {
    case 0:
      return exchange->cut(Errc::Unavailable, "connection refused");
    case 1:
      return exchange->cut(Errc::Timeout);
    case 2:
      return exchange->answer({.status = 429, .headers = {{"Retry-After", "1"}}});
    case 3:
      return exchange->answer({.status = 503, .body = "no"});
    case 4:
      return exchange->answer({});  // a clean end without anything
    default:
      return;  // no answer
  }
}

void CollectionServer::handle(const ScriptedHttp::ExchangePtr& exchange) {
  if (fault()) return refuse(exchange);
  if (parameter(exchange->request().target, "watch") == "true") return watch(exchange);
  list(exchange);
}

void CollectionServer::list(const ScriptedHttp::ExchangePtr& exchange) {
  const std::string& target = exchange->request().target;
  const std::string token = parameter(target, "continue");
  Snapshot snapshot{state_, version_};
  std::string after;
  if (!token.empty()) {
    const std::string id = token.substr(0, token.find('.'));
    const auto it = snapshots_.find(id);
    if (it == snapshots_.end()) {
      return exchange->answer({.status = 410, .body = status(410, "Expired")});
    }
    snapshot = it->second;
    after = token.substr(id.size() + 1);
  }
  const auto limit = static_cast<std::size_t>(parse_int(parameter(target, "limit")).value_or(0));
  std::string items;
  std::size_t count = 0;
  auto it = snapshot.state.upper_bound(after);
  for (; it != snapshot.state.end() && (limit == 0 || count < limit); ++it, ++count) {
    items += (items.empty() ? "" : ",") + json(it->first, it->second, true);
    after = it->first;
  }
  std::string next;
  if (it != snapshot.state.end()) {
    const std::string id = fmt::format("s{}", rng_.below(1'000'000));
    snapshots_[id] = snapshot;
    next = id + "." + after;
  }
  const std::string meta = fmt::format(R"("metadata":{{"resourceVersion":"{}","continue":"{}"}})",
                                       snapshot.version, next);
  exchange->head(200);
  const bool is_first = rng_.chance(1, 2);
  send(exchange, fmt::format(R"({{"kind":"PodList",{}"items":[{}]{}}})", is_first ? meta + "," : "",
                             items, is_first ? "" : "," + meta));
  exchange->end();
}

void CollectionServer::watch(const ScriptedHttp::ExchangePtr& exchange) {
  const std::string& target = exchange->request().target;
  const bool is_list = parameter(target, "sendInitialEvents") == "true";
  const std::string from = parameter(target, "resourceVersion");
  if (is_list && !faults.knows_streams && !faults.ignores_streams) {
    return exchange->answer({.status = 422, .body = status(422, "Invalid")});
  }
  Watch watch{exchange, forgotten_ + changes_.size(), forgotten_ + changes_.size()};
  std::string text;
  if (is_list || from.empty() || from == "0") {
    for (const auto& [name, object] : state_) text += event("ADDED", json(name, object, false));
    if (is_list && !faults.ignores_streams) text += bookmark_of(version_, true);
  } else {
    const std::int64_t version = parse_int(from).value_or(0);
    if (version < compacted_) {
      return rng_.chance(1, 2) ? exchange->answer({.status = 410, .body = status(410, "Expired")})
                               : exchange->answer({.body = event("ERROR", status(410, "Expired"))});
    }
    const auto it = std::find_if(changes_.begin(), changes_.end(), [version](const Change& change) {
      return change.version > version;
    });
    watch.next = watch.first = forgotten_ + static_cast<std::size_t>(it - changes_.begin());
  }
  exchange->head(200);
  if (!text.empty()) send(exchange, text);
  watches_.push_back(watch);
  deliver_soon();
}

}  // namespace jogak::kube::testing
