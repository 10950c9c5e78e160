// SPDX-License-Identifier: Apache-2.0
//
// One attempt at a time: a look at the lease and perhaps a write, or, while it leads, a write at
// once. What still comes of an attempt that was given up is not listened to.
#include "kube/leader_election.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "base/utc_time.h"
#include "kube/lease_record.h"

namespace jogak::kube {

namespace {

constexpr TimeUs kReleaseLimit = 5 * kSecondInUs;
constexpr int kReleaseAttempts = 3;

}  // namespace

struct LeaderElection::Impl : std::enable_shared_from_this<LeaderElection::Impl> {
  Impl(ApiClient& client, LeaseOptions of, Events to)
      : api(client),
        options(std::move(of)),
        events(std::move(to)),
        rng(options.seed, "leader election"),
        collection("/apis/coordination.k8s.io/v1/namespaces/" + escape(options.ns) + "/leases") {}

  void attempt();
  void look();
  void looked(const Result<ApiAnswer>& answer);
  void write();
  void create();
  void wrote(TimeUs sent_at, const Result<ApiAnswer>& answer);
  void missing();
  void wait_for_others();
  void lead(TimeUs sent_at);
  void lose(const std::string& why);
  void fail(const Error& error);
  void attempt_later();
  void attempt_at(TimeUs when);
  bool observe(std::string json, LeaseRecord record);
  LeaseRecord my_record() const;
  void release(std::function<void()> done);
  void release_look();
  void release_looked(TimeUs, const Result<ApiAnswer>& answer);
  void release_write();
  void release_wrote(TimeUs, const Result<ApiAnswer>& answer);
  void released();
  void stop();

  void send(std::string method, std::string body,
            void (Impl::*then)(TimeUs sent_at, const Result<ApiAnswer>& answer));
  void looked_at(TimeUs, const Result<ApiAnswer>& answer) { looked(answer); }
  TimeUs now() const { return api.loop().now(); }
  std::string what() const { return "lease " + options.ns + "/" + options.name; }
  bool is_mine() const { return seen && seen->holder == options.identity; }
  TimeUs seen_duration() const {
    return seen->duration_seconds > 0 ? seen->duration_seconds * kSecondInUs
                                      : options.lease_duration;
  }
  // When another may take what was seen last.
  TimeUs expiry() const { return seen_at + seen_duration(); }

  ApiClient& api;
  LeaseOptions options;
  Events events;
  Rng rng;
  std::string collection;

  bool is_stopped = false;
  bool is_leading = false;
  TimeUs valid_until = 0;
  std::string holder;

  // The lease as it was last seen to change.
  std::optional<LeaseRecord> seen;
  std::string seen_json;
  TimeUs seen_at = 0;
  bool exists = false;   // it was there when it was last looked at
  TimeUs lead_from = 0;  // even if it holds the lease before

  std::uint64_t turn = 0;   // of requests: older answers are not listened to
  TimeUs sent_at = 0;       // of the last request
  bool is_writing = false;  // a write is under way, or was when it was given up
  bool was_conflict = false;
  TimerId attempt_timer = 0, lose_timer = 0;

  std::function<void()> on_released;
  bool is_releasing = false;
  int release_attempts = 0;
  TimeUs release_end = 0;
};

void LeaderElection::Impl::send(std::string method, std::string body,
                                void (Impl::*then)(TimeUs, const Result<ApiAnswer>&)) {
  const bool is_create = method == "POST";
  // Half of the deadline, so that a request that hangs leaves time for another.
  TimeUs limit = options.renew_deadline / 2;
  if (is_leading) limit = std::min(limit, valid_until - now());
  if (is_releasing) limit = std::min(limit, release_end - now());
  is_writing = is_writing || method != "GET";
  sent_at = now();
  const std::uint64_t mine = ++turn;
  api.call({.method = std::move(method),
            .target = is_create ? collection : collection + "/" + escape(options.name),
            .body = std::move(body),
            .time_limit = std::max(limit, kMsInUs),
            .retries_max = 0},
           [weak = weak_from_this(), mine, at = sent_at, then](const Result<ApiAnswer>& answer) {
             const auto self = weak.lock();
             if (self == nullptr || self->is_stopped || self->turn != mine) return;
             (self.get()->*then)(at, answer);
           });
}

void LeaderElection::Impl::attempt_at(TimeUs when) {
  ++turn;
  api.loop().cancel(attempt_timer);
  attempt_timer = api.loop().at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->is_stopped) return;
    self->attempt_timer = 0;
    self->attempt();
  });
}

// The leader keeps time; the others spread, but one is there when the lease of another runs out.
void LeaderElection::Impl::attempt_later() {
  if (is_leading) return attempt_at(std::max(sent_at + options.retry_period, now()));
  TimeUs when = now() + options.retry_period + rng.between(0, options.retry_period * 6 / 5);
  if (seen && exists && !is_mine() && !seen->holder.empty() && expiry() > now()) {
    when = std::min(when, expiry() + rng.between(0, options.retry_period / 4));
  }
  attempt_at(when);
}

void LeaderElection::Impl::attempt() {
  was_conflict = false;
  if (is_leading) return write();
  look();
}

void LeaderElection::Impl::look() { send("GET", "", &Impl::looked_at); }

// Remembers what the lease says. False: whoever was told ended this.
bool LeaderElection::Impl::observe(std::string json, LeaseRecord record) {
  if (!seen || !exists || seen->version != record.version) seen_at = now();
  exists = true;
  seen_json = std::move(json);
  const bool is_new_holder = record.holder != holder;
  holder = record.holder;
  seen = std::move(record);
  const std::uint64_t mine = turn;
  if (is_new_holder && !holder.empty() && !is_releasing && events.on_new_leader) {
    const std::string copy = holder;
    events.on_new_leader(copy);
  }
  return !is_stopped && turn == mine;
}

void LeaderElection::Impl::looked(const Result<ApiAnswer>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->status == 404) return missing();
  if (answer->status != 200) return fail(error_of(problem_of(*answer)));
  auto record = read_lease(answer->body);
  if (!record) return fail(record.error());
  is_writing = false;
  const bool is_others = record->holder != options.identity && !record->holder.empty();
  if (is_leading && record->holder != options.identity) {
    const std::string now_held = record->holder.empty() ? "nobody" : record->holder;
    if (!observe(answer->body, *std::move(record))) return;
    return lose(fmt::format("the {} is held by {}", what(), now_held));
  }
  // Its own, made by a write whose answer did not come.
  const bool is_made_anew = record->holder == options.identity && record->transitions == 0;
  if (is_made_anew && seen && !(exists && is_mine())) wait_for_others();
  if (!observe(answer->body, *std::move(record))) return;
  if (is_others && now() < expiry()) return attempt_later();
  write();
}

// The lease does not exist.
void LeaderElection::Impl::missing() {
  is_writing = false;
  exists = false;
  if (is_leading) return lose(fmt::format("the {} was deleted", what()));
  create();
}

// It was made anew where there had been one: whoever held that cannot renew it any more, and leads
// for one deadline at most from now on.
void LeaderElection::Impl::wait_for_others() {
  lead_from = now() + std::max(seen_duration(), options.lease_duration);
}

LeaseRecord LeaderElection::Impl::my_record() const {
  LeaseRecord record;
  if (seen && exists) record = *seen;
  if (!exists || record.holder != options.identity) {
    record.transitions = exists ? record.transitions + 1 : 0;
    record.acquire_time = utc_micros(now());
  }
  record.holder = options.identity;
  record.duration_seconds = options.lease_duration / kSecondInUs;
  return record;
}

void LeaderElection::Impl::create() {
  const auto body = write_lease("", options.ns, options.name, my_record(), now());
  if (!body) return fail(body.error());
  send("POST", *body, &Impl::wrote);
}

void LeaderElection::Impl::write() {
  const auto body = write_lease(seen_json, options.ns, options.name, my_record(), now());
  if (!body) return fail(body.error());
  send("PUT", *body, &Impl::wrote);
}

void LeaderElection::Impl::wrote(TimeUs of, const Result<ApiAnswer>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->status == 409) {
    is_writing = false;
    // Somebody was faster, or changed something else about it.
    if (std::exchange(was_conflict, true)) return attempt_later();
    return look();
  }
  if (answer->status == 404 && exists) return missing();
  if (answer->status != 200 && answer->status != 201) return fail(error_of(problem_of(*answer)));
  is_writing = false;
  auto record = read_lease(answer->body);
  if (!record) return fail(record.error());
  if (answer->status == 201 && seen && !seen->holder.empty()) wait_for_others();
  if (!observe(answer->body, *std::move(record))) return;
  if (!is_mine()) return fail({Errc::Invalid, "the answer to a write names another holder"});
  lead(of);
}

void LeaderElection::Impl::lead(TimeUs of) {
  const TimeUs until = of + options.renew_deadline;
  if (until <= now()) return attempt_later();  // too late to rely on
  if (now() < lead_from) return attempt_at(std::min(now() + options.retry_period, lead_from));
  valid_until = until;
  const bool is_new = !std::exchange(is_leading, true);
  api.loop().cancel(lose_timer);
  lose_timer = api.loop().at(valid_until, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->is_stopped) return;
    self->lose_timer = 0;
    self->lose(fmt::format("the {} could not be renewed in time", self->what()));
  });
  attempt_later();
  if (is_new && events.on_lead) events.on_lead();
}

void LeaderElection::Impl::lose(const std::string& why) {
  is_leading = false;
  valid_until = 0;
  api.loop().cancel(std::exchange(lose_timer, 0));
  attempt_later();
  if (events.on_lose) events.on_lose(why);
}

void LeaderElection::Impl::fail(const Error& error) {
  attempt_later();
  if (!events.on_error) return;
  Error told = error;
  told.what.insert(0, what() + ": ");
  events.on_error(told);
}

void LeaderElection::Impl::stop() {
  is_stopped = true;
  ++turn;
  api.loop().cancel(attempt_timer);
  api.loop().cancel(lose_timer);
}

// --- giving it up

void LeaderElection::Impl::release(std::function<void()> done) {
  if (is_stopped || is_releasing) {
    if (done) api.loop().post(std::move(done));
    return;
  }
  on_released = std::move(done);
  is_releasing = true;
  is_leading = false;
  valid_until = 0;
  api.loop().cancel(attempt_timer);
  api.loop().cancel(lose_timer);
  attempt_timer = 0;
  release_end = now() + kReleaseLimit;
  lose_timer = api.loop().at(release_end, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->released();
  });
  ++turn;
  // A write that is under way may still arrive, and it would be held again.
  if (is_writing) return release_look();
  if (seen && exists && is_mine()) return release_write();
  api.loop().post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->released();
  });
}

void LeaderElection::Impl::release_look() {
  if (release_attempts++ >= kReleaseAttempts) return released();
  send("GET", "", &Impl::release_looked);
}

void LeaderElection::Impl::release_looked(TimeUs, const Result<ApiAnswer>& answer) {
  if (!answer || answer->status != 200) return released();
  auto record = read_lease(answer->body);
  if (!record || record->holder != options.identity) return released();
  if (observe(answer->body, *std::move(record))) release_write();
}

void LeaderElection::Impl::release_write() {
  LeaseRecord record = *seen;
  record.holder.clear();
  record.duration_seconds = 1;
  record.acquire_time = utc_micros(now());
  const auto body = write_lease(seen_json, options.ns, options.name, record, now());
  if (!body) return released();
  send("PUT", *body, &Impl::release_wrote);
}

void LeaderElection::Impl::release_wrote(TimeUs, const Result<ApiAnswer>& answer) {
  if (answer && answer->status != 409) return released();
  release_look();
}

void LeaderElection::Impl::released() {
  if (is_stopped) return;
  stop();
  if (const auto done = std::exchange(on_released, nullptr)) done();
}

namespace {

Result<void> check(const LeaseOptions& options) {
  if (options.identity.empty()) {
    return invalid("leader election: identity is empty; want a name unlike any other's");
  }
  if (options.ns.empty() || options.name.empty()) {
    return invalid("leader election: the lease needs a namespace and a name");
  }
  if (options.lease_duration < kSecondInUs || options.lease_duration % kSecondInUs != 0) {
    return invalid("leader election: lease_duration is {} us; want whole seconds, at least one",
                   options.lease_duration);
  }
  if (options.renew_deadline >= options.lease_duration) {
    return invalid(
        "leader election: renew_deadline is not below lease_duration; want less, as 10 s "
        "of 15 s");
  }
  if (options.retry_period <= 0 || options.retry_period * 6 / 5 >= options.renew_deadline) {
    return invalid(
        "leader election: retry_period times 1.2 is not between 0 and renew_deadline; "
        "want less, as 2 s of 10 s");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LeaderElection>> LeaderElection::make(ApiClient& api, LeaseOptions options,
                                                             Events events) {
  JOGAK_TRY_VOID(check(options));
  auto impl = std::make_shared<Impl>(api, std::move(options), std::move(events));
  impl->attempt();
  return std::unique_ptr<LeaderElection>(new LeaderElection(std::move(impl)));
}

LeaderElection::LeaderElection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

LeaderElection::~LeaderElection() { impl_->stop(); }

bool LeaderElection::is_leader() const {
  return impl_->is_leading && impl_->now() < impl_->valid_until;
}

const std::string& LeaderElection::holder() const { return impl_->holder; }

TimeUs LeaderElection::valid_until() const { return impl_->valid_until; }

void LeaderElection::release(std::function<void()> done) { impl_->release(std::move(done)); }

}  // namespace jogak::kube
