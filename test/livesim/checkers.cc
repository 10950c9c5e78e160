// SPDX-License-Identifier: Apache-2.0
//
// Rules about requests look at what a process could know when it sent them; rules about the store
// look at what became true.
#include "test/livesim/checkers.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "base/doc.h"

namespace jogak::livesim {

namespace {

constexpr TimeUs kMinute = 60 * kSecondInUs;

std::string label(const PodFacts& pod) { return fmt::format("{}/{}", pod.ns, pod.name); }

std::vector<std::string> segments(std::string_view path) {
  std::vector<std::string> parts;
  path = path.substr(0, path.find('?'));
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

}  // namespace

Checkers::Checkers(Facts& facts, CheckOptions options) : facts_(facts), options_(options) {
  facts_.listener = this;
}

void Checkers::add_process(int process, std::string identity) {
  identities_[process] = std::move(identity);
}

void Checkers::fail(std::string_view rule, std::string what) {
  constexpr std::size_t kMax = 20;
  if (violations_.size() < kMax) violations_.push_back({std::string(rule), std::move(what)});
}

// /api/v1/namespaces/NS/pods/NAME[/binding|/status] and the older /bindings are what matters.
Checkers::Write Checkers::read(const Call& call) {
  Write write{
      .verb = Verb::Other, .process = call.process, .ns = {}, .name = {}, .uid = {}, .node = {}};
  const std::vector<std::string> path = segments(call.target);
  if (std::ranges::find(path, "leases") != path.end()) {
    write.verb = Verb::Lease;
    return write;
  }
  if (path.size() < 5 || path[2] != "namespaces") return write;
  Doc body;
  if (auto parsed = codec::parse_json(call.body); parsed.has_value()) body = std::move(parsed->doc);
  write.ns = path[3];
  const bool is_pod = path[4] == "pods" && path.size() >= 6;
  if (is_pod) write.name = path[5];
  const std::string& uid = body.get("metadata", "uid").as_string();
  if (is_pod && path.size() == 7 && path[6] == "binding" && call.method == "POST") {
    write.verb = Verb::Bind;
    write.uid = uid;
    write.node = body.get("target", "name").as_string();
  } else if (path[4] == "bindings" && call.method == "POST") {
    write.verb = Verb::Bind;
    write.name = body.get("metadata", "name").as_string();
    write.uid = uid;
    write.node = body.get("target", "name").as_string();
  } else if (is_pod && call.method == "DELETE") {
    write.verb = Verb::Delete;
    write.uid = body.get("preconditions", "uid").as_string();
  } else if (is_pod && path.size() == 7 && path[6] == "eviction") {
    write.verb = Verb::Delete;
    write.uid = body.get("deleteOptions", "preconditions", "uid").as_string();
  } else if (is_pod && (call.method == "PATCH" || call.method == "PUT")) {
    write.verb = Verb::Patch;
    write.uid = uid;
  }
  return write;
}

void Checkers::on_sent(const Call& call) {
  ++counts_.calls;
  // A review is a question, for all that it is a POST.
  if (call.method == "GET" || call.target.starts_with("/apis/authorization.k8s.io/")) return;
  ++counts_.writes;
  const Write write = read(call);
  if (write.verb == Verb::Lease) return;
  check_lease(call);
  if (is_at_rest_)
    fail("writes-at-rest", fmt::format("{} {} {}", call.method, call.target, call.body));
  check_pace(write);
  const bool is_event = call.target.find("/events") != std::string::npos;
  if (facts_.trace && !is_event) {
    facts_.trace(fmt::format("  {} sends #{} {} {} {}", identities_[call.process], call.number,
                             call.method, call.target, write.node));
  }
  if (write.verb == Verb::Bind) check_bind_sent(call, write);
  if (write.verb == Verb::Delete) check_delete_sent(write);
  if (write.verb == Verb::Patch) ++counts_.refusals;
  if (write.verb == Verb::Other) ++counts_.events;
  open_[call.number] = write;
}

void Checkers::check_lease(const Call& call) {
  if (!options_.has_lease) return;
  const LeaseFacts& lease = facts_.lease();
  const std::string& identity = identities_[call.process];
  if (lease.holder != identity) {
    return fail("wrote-without-lease",
                fmt::format("{} sends {} {} while \"{}\" holds the lease", identity, call.method,
                            call.target, lease.holder));
  }
  const TimeUs age = facts_.now() - lease.renewed_at;
  if (age > lease.duration_s * kSecondInUs) {
    fail("wrote-without-lease",
         fmt::format("{} sends {} {} {} ms after the last renewal of its lease of {} s", identity,
                     call.method, call.target, age / kMsInUs, lease.duration_s));
  }
}

void Checkers::check_pace(const Write& write) {
  if (write.name.empty()) return;
  auto& [since, count] = pace_[{write.process, write.ns + "/" + write.name}];
  if (facts_.now() - since >= kMinute) {
    since = facts_.now();
    count = 0;
  }
  if (++count == options_.requests_max + 1) {
    fail("endless-retry", fmt::format("more than {} requests about pod {}/{} in a minute",
                                      options_.requests_max, write.ns, write.name));
  }
}

void Checkers::check_bind_sent(const Call& call, const Write& write) {
  ++counts_.binds;
  if (write.uid.empty()) {
    return fail("bind-without-uid", fmt::format("pod {}/{}", write.ns, write.name));
  }
  if (known_bound_.contains({write.process, write.uid})) {
    fail("bind-twice", fmt::format("pod {}/{} again, although the server said that it is bound",
                                   write.ns, write.name));
  }
  for (const auto& [number, other] : open_) {
    if (number != call.number && other.verb == Verb::Bind && other.process == write.process &&
        other.uid == write.uid) {
      fail("bind-twice", fmt::format("pod {}/{} to {} and {} at once", write.ns, write.name,
                                     other.node, write.node));
    }
  }
}

void Checkers::check_delete_sent(const Write& write) {
  if (write.uid.empty()) {
    return fail("delete-without-uid", fmt::format("pod {}/{}", write.ns, write.name));
  }
  bool is_again = known_deleted_.contains({write.process, write.uid});
  for (const auto& [number, other] : open_) {
    is_again = is_again || (other.verb == Verb::Delete && other.process == write.process &&
                            other.uid == write.uid);
  }
  if (is_again) fail("deleted-twice", fmt::format("pod {}/{}", write.ns, write.name));
}

void Checkers::on_handled(const Call& call) {
  if (call.method == "GET") return;
  const Write write = read(call);
  if (facts_.trace && write.verb != Verb::Other && write.verb != Verb::Lease) {
    facts_.trace(fmt::format("  the server gets #{}", call.number));
  }
  if (write.verb == Verb::Bind) {
    at_server_[call.number] = write;
    const PodFacts* pod = facts_.find_uid(write.uid);
    if (pod == nullptr) return;
    if (pod->is_gated && !pod->is_gone()) fail("bind-gated", "pod " + label(*pod));
    if (!pod->is_ours()) {
      fail("bind-foreign", fmt::format("pod {} of {}", label(*pod), pod->scheduler));
    }
  } else if (write.verb == Verb::Delete) {
    at_server_[call.number] = write;
  }
}

void Checkers::on_answered(const Call& call) {
  const auto it = at_server_.find(call.number);
  if (it == at_server_.end()) return;
  const Write write = std::move(it->second);
  at_server_.erase(it);
  if (call.status / 100 == 2 && write.verb == Verb::Delete) note_eviction(write);
}

void Checkers::on_told(const Call& call) {
  const auto it = open_.find(call.number);
  if (it == open_.end()) return;
  const Write& write = it->second;
  if (facts_.trace && write.verb != Verb::Other) {
    facts_.trace(fmt::format("  #{} is answered {}", call.number, call.told_status));
  }
  const bool is_done = call.told_status / 100 == 2;
  if (is_done && write.verb == Verb::Bind) known_bound_.insert({write.process, write.uid});
  if ((is_done || call.told_status == 404) && write.verb == Verb::Delete) {
    known_deleted_.insert({write.process, write.uid});
  }
}

void Checkers::on_ended(const Call& call) { open_.erase(call.number); }

void Checkers::on_bound(PodFacts& pod, bool is_outside) {
  if (is_outside) return;
  pod.is_bound_by_us = true;
  ++counts_.bound;
  check_devices(pod);
  check_room(pod);
}

void Checkers::check_devices(const PodFacts& pod) {
  const auto node = facts_.nodes().find(pod.node);
  if (pod.holds.empty()) return;
  const std::int64_t wanted = pod.share_milli > 0 ? pod.share_count : pod.gpus;
  std::set<std::int64_t> distinct;
  for (const Holding& holding : pod.holds) distinct.insert(holding.gpu);
  if (static_cast<std::int64_t>(pod.holds.size()) != wanted ||
      distinct.size() != pod.holds.size()) {
    fail("gpu-holds-wrong", fmt::format("pod {} asks for {} devices and holds {}", label(pod),
                                        wanted, pod.holds.size()));
  }
  for (const Holding& holding : pod.holds) {
    bool was_healthy = false;
    if (node != facts_.nodes().end()) {
      const auto has = [&](const std::vector<bool>& devices) {
        const auto index = static_cast<std::size_t>(holding.gpu);
        return index < devices.size() && devices[index];
      };
      was_healthy = has(node->second.devices);
      for (const auto& [until, devices] : node->second.device_states) {
        if (until + options_.stale_max >= facts_.now()) was_healthy = was_healthy || has(devices);
      }
    }
    if (!was_healthy) {
      fail("gpu-holds-wrong", fmt::format("pod {} holds device {} of {}, which was not healthy",
                                          label(pod), holding.gpu, pod.node));
    }
    std::int64_t taken = holding.milli;
    std::string others;
    for (const auto& [uid, other] : facts_.pods()) {
      if (uid == pod.uid || other.node != pod.node || !other.takes_room()) continue;
      for (const Holding& held : other.holds) {
        if (held.gpu != holding.gpu) continue;
        taken += held.milli;
        others += " " + label(other);
      }
    }
    if (taken > 1000) {
      fail("gpu-owned-twice", fmt::format("device {} of {} is given to {} and is held by{}",
                                          holding.gpu, pod.node, label(pod), others));
    }
  }
}

void Checkers::check_room(const PodFacts& pod) {
  const auto it = facts_.nodes().find(pod.node);
  if (it == facts_.nodes().end()) return;
  const Room room = it->second.most_since(facts_.now() - options_.stale_max);
  Room taken;
  for (const auto& [uid, other] : facts_.pods()) {
    if (other.node != pod.node || !other.takes_room() || !other.is_bound_by_us) continue;
    taken.cpu_milli += other.cpu_milli;
    taken.gpus += other.gpus;
    ++taken.pods;
  }
  if (taken.cpu_milli > room.cpu_milli || taken.gpus > room.gpus || taken.pods > room.pods) {
    fail("node-overcommitted",
         fmt::format("{} gives {}m cpu, {} GPUs, {} pods of {}m, {}, {} after pod {}", pod.node,
                     taken.cpu_milli, taken.gpus, taken.pods, room.cpu_milli, room.gpus, room.pods,
                     label(pod)));
  }
}

void Checkers::note_eviction(const Write& write) {
  ++counts_.evicted;
  const PodFacts* victim = facts_.find_uid(write.uid);
  if (victim == nullptr || victim->is_over) return;
  Eviction eviction{.victim = label(*victim),
                    .node = victim->node,
                    .at = facts_.now(),
                    .priority = victim->priority,
                    .for_whom = {}};
  const TimeUs since = facts_.now() - options_.stale_max;
  // Those whom the node was promised; if nobody (any more), whoever may have been.
  for (const auto& [uid, pod] : facts_.pods()) {
    if (pod.waits() && pod.is_ours() && pod.nominated == victim->node &&
        pod.priority > victim->priority) {
      eviction.for_whom.push_back(uid);
    }
  }
  const bool is_promised = !eviction.for_whom.empty();
  for (const auto& [uid, pod] : facts_.pods()) {
    if (is_promised || !pod.is_ours() || pod.is_gated || pod.priority <= victim->priority) continue;
    const bool waited = pod.node.empty() || pod.bound_at >= since;
    const bool was_there = !pod.is_gone() || pod.gone_at >= since;
    if (waited && was_there) eviction.for_whom.push_back(uid);
  }
  if (eviction.for_whom.empty()) {
    return fail(
        "evicted-for-nothing",
        fmt::format("no pod of higher priority waited when {} was deleted", eviction.victim));
  }
  evictions_.push_back(std::move(eviction));
}

bool Checkers::has_devices(const NodeFacts& node, const PodFacts& pod, std::int64_t floor) const {
  if (pod.gpus == 0 && pod.share_milli == 0) return true;
  if (!node.has_devices) return pod.share_milli == 0;
  std::vector<std::int64_t> free;
  for (const bool is_healthy : node.devices) free.push_back(is_healthy ? 1000 : 0);
  std::int64_t unknown = 0;
  for (const auto& [uid, other] : facts_.pods()) {
    if (other.node != node.name || !other.takes_room() || other.priority < floor) continue;
    if (other.holds.empty()) unknown += other.gpus;
    for (const Holding& held : other.holds) {
      const auto index = static_cast<std::size_t>(held.gpu);
      if (index < free.size()) free[index] = std::max<std::int64_t>(0, free[index] - held.milli);
    }
  }
  const std::int64_t wanted = pod.share_milli > 0 ? pod.share_count : pod.gpus;
  const std::int64_t each = pod.share_milli > 0 ? pod.share_milli : 1000;
  return std::ranges::count_if(free, [&](std::int64_t left) { return left >= each; }) >=
         wanted + unknown;
}

bool Checkers::has_room(const NodeFacts& node, const PodFacts& pod, std::int64_t floor) const {
  if (!node.is_open) return false;
  if (!pod.zone.empty() && pod.zone != node.zone) return false;
  for (const std::string& claim : pod.claims) {
    const auto zone = facts_.claim_zone(pod.ns, claim);
    if (zone.has_value() && !zone->empty() && *zone != node.zone) return false;
  }
  Room room = node.allocatable;
  for (const auto& [uid, other] : facts_.pods()) {
    if (other.node != node.name || !other.takes_room() || other.priority < floor) continue;
    room.cpu_milli -= other.cpu_milli;
    room.gpus -= other.gpus;
    --room.pods;
  }
  return room.cpu_milli >= pod.cpu_milli && room.gpus >= pod.gpus && room.pods >= 1 &&
         has_devices(node, pod, floor);
}

std::string Checkers::room_for(const PodFacts& pod, std::int64_t floor) const {
  for (const auto& [name, node] : facts_.nodes()) {
    if (has_room(node, pod, floor)) return name;
  }
  return "";
}

void Checkers::check_rest() {
  for (const auto& [uid, pod] : facts_.pods()) {
    if (!pod.waits() || !pod.is_ours()) continue;
    if (pod.is_gated) continue;
    if (pod.condition != "False" || pod.reason.empty()) {
      fail("no-reason", fmt::format("pod {} waits, and PodScheduled is \"{}\" with reason \"{}\"",
                                    label(pod), pod.condition, pod.reason));
    }
    if (const std::string node = room_for(pod, INT64_MIN); !node.empty()) {
      fail("lost-pod", fmt::format("pod {} waits although {} has room; it was told: {}", label(pod),
                                   node, pod.message));
    } else if (const std::string made = room_for(pod, pod.priority); !made.empty()) {
      fail("lost-pod",
           fmt::format("pod {} waits although pods of lower priority hold {}", label(pod), made));
    }
  }
  for (const Eviction& eviction : evictions_) {
    if (was_of_use(eviction)) continue;
    fail("evicted-for-nothing",
         fmt::format("{} was deleted on {}, and no pod was placed that it made way for",
                     eviction.victim, eviction.node));
  }
}

// Placed, or gone; or the node is another one since; or somebody of higher priority than the victim
// came in between.
bool Checkers::was_of_use(const Eviction& eviction) const {
  for (const std::string& uid : eviction.for_whom) {
    const PodFacts* pod = facts_.find_uid(uid);
    if (pod == nullptr || pod->is_gone() || pod->is_deleting || !pod->node.empty()) return true;
  }
  const auto node = facts_.nodes().find(eviction.node);
  if (node == facts_.nodes().end() || node->second.changed_at >= eviction.at) return true;
  return std::ranges::any_of(facts_.pods(), [&](const auto& entry) {
    const PodFacts& pod = entry.second;
    return pod.node == eviction.node && pod.bound_at >= eviction.at &&
           (pod.priority > eviction.priority || !pod.is_bound_by_us);
  });
}

void Checkers::forget() {
  const auto is_known = [&](const std::pair<int, std::string>& entry) {
    return facts_.find_uid(entry.second) != nullptr;
  };
  std::erase_if(known_bound_, [&](const auto& entry) { return !is_known(entry); });
  std::erase_if(known_deleted_, [&](const auto& entry) { return !is_known(entry); });
  std::erase_if(pace_,
                [&](const auto& entry) { return entry.second.first + 2 * kMinute < facts_.now(); });
  evictions_.clear();
}

}  // namespace jogak::livesim
