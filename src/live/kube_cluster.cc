// SPDX-License-Identifier: Apache-2.0
//
// Requests and what their answers mean. Facts: kube-scheduler 1.36 (binding, status patches,
// preemption, events), client-go tools/events (series).
#include "live/kube_cluster.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "kube/event.h"
#include "live/kube_requests.h"

namespace jogak::live {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kPaths = {{
    {"nodes", "/api/v1/nodes"},
    {"pods", "/api/v1/pods"},
    {"namespaces", "/api/v1/namespaces"},
    {"services", "/api/v1/services"},
    {"replicationcontrollers", "/api/v1/replicationcontrollers"},
    {"persistentvolumes", "/api/v1/persistentvolumes"},
    {"persistentvolumeclaims", "/api/v1/persistentvolumeclaims"},
    {"replicasets.apps", "/apis/apps/v1/replicasets"},
    {"statefulsets.apps", "/apis/apps/v1/statefulsets"},
    {"poddisruptionbudgets.policy", "/apis/policy/v1/poddisruptionbudgets"},
    {"storageclasses.storage.k8s.io", "/apis/storage.k8s.io/v1/storageclasses"},
    {"csinodes.storage.k8s.io", "/apis/storage.k8s.io/v1/csinodes"},
    {"csidrivers.storage.k8s.io", "/apis/storage.k8s.io/v1/csidrivers"},
    {"csistoragecapacities.storage.k8s.io", "/apis/storage.k8s.io/v1/csistoragecapacities"},
    {"volumeattachments.storage.k8s.io", "/apis/storage.k8s.io/v1/volumeattachments"},
}};

constexpr std::size_t kNotesAtOnce = 4;
// Beside bindings events may take this much of the server: 20 a second, 20 at once. What waits
// follows as soon as the bindings are done.
constexpr TimeUs kNoteCostUs = kSecondInUs / 20;
constexpr TimeUs kNoteBurstUs = 20 * kNoteCostUs;
constexpr TimeUs kNoteLimit = 5 * kSecondInUs;
constexpr int kNoteTriesMax = 3;
constexpr TimeUs kNotePause = kSecondInUs;
constexpr TimeUs kQuietAfter = 500 * kMsInUs;
constexpr TimeUs kSeriesLength = 360 * kSecondInUs;
constexpr TimeUs kSeriesRefresh = 1800 * kSecondInUs;
constexpr std::size_t kSeriesMax = 20'000;

}  // namespace

std::string_view collection_path(std::string_view resource) {
  const auto* const at = std::ranges::find(kPaths, resource, [](const auto& p) { return p.first; });
  return at == kPaths.end() ? std::string_view() : at->second;
}

struct KubeCluster::Following {
  std::string resource;
  Follower follower;
  std::unique_ptr<kube::Reflector> reflector;
};

KubeCluster::KubeCluster(kube::ApiClient& api, KubeClusterOptions options)
    : api_(api), options_(std::move(options)) {}

KubeCluster::~KubeCluster() {
  alive_.reset();
  api_.loop().cancel(note_timer_);
}

std::shared_ptr<void> KubeCluster::follow(std::string_view resource, Follower follower) {
  auto following = std::make_shared<Following>();
  following->resource = resource;
  following->follower = std::move(follower);
  kube::ReflectorOptions options{.path = std::string(collection_path(resource)),
                                 .seed = options_.seed + following_.size()};
  JOGAK_CHECK(!options.path.empty(), "no path is known for {}", resource);
  // What has finished holds nothing; a pod that finishes is told as deleted.
  if (resource == "pods") {
    options.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  }
  Following* const told = following.get();
  following->reflector = std::make_unique<kube::Reflector>(
      api_, std::move(options),
      kube::Reflector::Events{.on_change =
                                  [told](const kube::ObjectChange& change) {
                                    told->follower.on_change({.is_deleted = change.is_deleted,
                                                              .ns = change.ns,
                                                              .name = change.name,
                                                              .json = change.json});
                                  },
                              .on_synced =
                                  [told] {
                                    if (told->follower.on_synced) told->follower.on_synced();
                                  },
                              .on_error =
                                  [this, told](const Error& error) {
                                    if (on_watch_error) on_watch_error(told->resource, error);
                                  }});
  following_.push_back(following);
  return following;
}

std::vector<KubeCluster::Informer> KubeCluster::informers() const {
  std::vector<Informer> result;
  for (const std::weak_ptr<Following>& weak : following_) {
    const auto following = weak.lock();
    if (following == nullptr) continue;
    result.push_back({.resource = following->resource,
                      .state = &following->reflector->state(),
                      .objects = following->reflector->size()});
  }
  return result;
}

// ---- writes ---------------------------------------------------------------------------------

void KubeCluster::write(kube::ApiRequest request, Done done) {
  const TimeUs now = api_.loop().now();
  request.retries_max = 0;
  request.time_limit = options_.request_limit;
  if (options_.write_until) {
    const TimeUs until = options_.write_until();
    if (now >= until) {
      ++counts_.writes_withheld;
      return api_.loop().post([done = std::move(done)] {
        done(fail(Errc::Unavailable, "not written: the lease is lost"));
      });
    }
    request.time_limit = std::min(request.time_limit, until + options_.write_grace - now);
  }
  last_write_ = now;
  api_.call(std::move(request), [done = std::move(done)](Result<kube::ApiAnswer> answer) {
    done(outcome_of_write(answer));
  });
}

void KubeCluster::bind(const Binding& binding, Done done) {
  write(binding_request(binding), std::move(done));
}

void KubeCluster::refuse(const Refusal& refusal, Done done) {
  write(refusal_request(refusal, api_.loop().now()), std::move(done));
}

void KubeCluster::preempt(const PodRef& victim, const std::string& message, Done done) {
  write(disruption_request(victim, message, api_.loop().now()),
        [this, alive = std::weak_ptr<bool>(alive_), victim,
         done = std::move(done)](const Result<void>& marked) {
          if (alive.expired()) return;
          if (!marked.has_value()) return done(marked);
          delete_victim(victim, done);
        });
}

void KubeCluster::delete_victim(const PodRef& victim, Done done) {
  write(deletion_request(victim), std::move(done));
}

void KubeCluster::plan_claim(const ClaimPlan& plan, Done done) {
  if (!plan.volume.empty()) return claim_volume(plan, std::move(done));
  write(selected_node_request(plan), std::move(done));
}

// A volume may have been claimed by somebody else meanwhile: it is claimed as it was read, or not.
void KubeCluster::claim_volume(const ClaimPlan& plan, Done done) {
  const std::string target =
      fmt::format("{}/{}", collection_path("persistentvolumes"), kube::escape(plan.volume));
  api_.call({.method = "GET", .target = target, .time_limit = options_.request_limit},
            [this, alive = std::weak_ptr<bool>(alive_), plan,
             done = std::move(done)](const Result<kube::ApiAnswer>& answer) {
              if (alive.expired()) return;
              if (const Result<void> read = outcome_of_read(answer); !read.has_value()) {
                return done(read);
              }
              const Result<kube::ApiRequest> request = claim_request(plan, answer->body);
              if (!request.has_value()) return done(std::unexpected(request.error()));
              write(*request, done);
            });
}

void KubeCluster::read_pod(const PodRef& pod, std::function<void(Result<std::string> json)> done) {
  api_.call({.method = "GET", .target = pod_target(pod), .time_limit = options_.request_limit},
            [done = std::move(done)](Result<kube::ApiAnswer> answer) {
              const Result<void> read = outcome_of_read(answer);
              if (!read.has_value()) return done(std::unexpected(read.error()));
              done(std::move(answer->body));
            });
}

// ---- events ---------------------------------------------------------------------------------

void KubeCluster::note(const PodNote& note) {
  if (notes_.size() >= options_.notes_max) {
    ++counts_.notes_dropped;
    return;
  }
  notes_.push_back({.note = note});
  pump_notes();
}

bool KubeCluster::take_note_token() {
  const TimeUs now = api_.loop().now();
  note_tokens_us_ = std::min(kNoteBurstUs, note_tokens_us_ + (now - note_tokens_at_));
  note_tokens_at_ = now;
  if (now - last_write_ > kQuietAfter) return true;
  if (note_tokens_us_ < kNoteCostUs) return false;
  note_tokens_us_ -= kNoteCostUs;
  return true;
}

// Events never hold up the writes that matter: they go slowly while those go on.
void KubeCluster::pump_notes() {
  while (!notes_.empty() && notes_open_ < kNotesAtOnce) {
    if (!take_note_token()) {
      if (note_timer_ != 0) return;
      note_timer_ = api_.loop().after(kNoteCostUs, [this] {
        note_timer_ = 0;
        pump_notes();
      });
      return;
    }
    QueuedNote queued = std::move(notes_.front());
    notes_.pop_front();
    send_note(std::move(queued));
  }
}

// With the message: client-go leaves it out, but names the pod by its resourceVersion, which the
// new text of the condition has just changed. Users see each text once, in either way.
std::string KubeCluster::note_key(const PodNote& note) const {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", note.type, note.action, note.reason, note.reporter,
                     note.pod.uid, note.related.uid, note.message);
}

void KubeCluster::forget_old_series() {
  const TimeUs now = api_.loop().now();
  while (!series_by_age_.empty()) {
    const auto& [when, key] = series_by_age_.front();
    if (now - when <= kSeriesLength && series_by_age_.size() <= kSeriesMax) return;
    const auto at = series_.find(key);
    if (at != series_.end()) {
      if (now - at->second.last <= kSeriesLength && series_.size() <= kSeriesMax) {
        series_by_age_.emplace_back(at->second.last, key);
      } else {
        series_.erase(at);
      }
    }
    series_by_age_.pop_front();
  }
}

void KubeCluster::send_note(QueuedNote queued) {
  const TimeUs now = api_.loop().now();
  if (options_.write_until && now >= options_.write_until()) {  // others tell by now
    ++counts_.notes_dropped;
    return;
  }
  forget_old_series();
  const PodNote& note = queued.note;
  const std::string key = note_key(note);
  const auto known = series_.find(key);
  const std::string ns = note.pod.ns.empty() ? "default" : note.pod.ns;
  const std::string collection =
      fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", kube::escape(ns));
  kube::ApiRequest request{.time_limit = kNoteLimit, .retries_max = 0};
  if (known != series_.end()) {
    Series& series = known->second;
    ++series.count;
    series.last = now;
    // The first repetition makes it a series; later ones are told now and then.
    if (series.count > 2 && now - series.told < kSeriesRefresh) return;
    series.told = now;
    request.method = "PATCH";
    request.content_type = "application/merge-patch+json";
    request.target = fmt::format("{}/{}", collection, kube::escape(series.name));
    request.body = kube::event_series_json(series.count, now);
  } else {
    const std::string name = fmt::format(
        "{}.{:x}", note.pod.name, static_cast<std::uint64_t>(now) * 1000 + next_event_++ % 1000);
    series_[key] = {.name = name, .count = 1, .last = now, .told = now};
    series_by_age_.emplace_back(now, key);
    request.method = "POST";
    request.target = collection;
    request.body = event_json(note, ns, name, options_.host, now);
  }
  ++notes_open_;
  api_.call(std::move(request),
            [this, alive = std::weak_ptr<bool>(alive_), key,
             queued = std::move(queued)](const Result<kube::ApiAnswer>& answer) {
              if (!alive.expired()) note_answered(key, queued, answer);
            });
}

void KubeCluster::note_answered(const std::string& key, QueuedNote queued,
                                const Result<kube::ApiAnswer>& answer) {
  --notes_open_;
  const Result<void> outcome = outcome_of_write(answer);
  ++(outcome.has_value() ? counts_.notes_sent : counts_.notes_failed);
  if (!outcome.has_value()) {
    // What is not there cannot be counted on: the next one is an event of its own.
    series_.erase(key);
    const bool did_not_arrive = outcome.error().code == Errc::Unavailable;
    if (did_not_arrive && ++queued.tries < kNoteTriesMax && notes_.size() < options_.notes_max) {
      notes_.push_back(std::move(queued));
      if (note_timer_ == 0) {
        note_timer_ = api_.loop().after(kNotePause, [this] {
          note_timer_ = 0;
          pump_notes();
        });
      }
      return;
    }
  }
  pump_notes();
}

}  // namespace jogak::live
