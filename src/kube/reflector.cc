// SPDX-License-Identifier: Apache-2.0
//
// One exchange at a time: a streaming list that becomes a watch, a page of a list, or a watch.
// Whatever ends it decides what comes next: at once, or after the back-off. Each exchange and each
// wait belongs to a turn; what still comes from an earlier turn is not listened to.
#include "kube/reflector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "kube/list_page.h"
#include "kube/object_tracker.h"
#include "kube/status.h"
#include "kube/watch_stream.h"

namespace jogak::kube {

namespace {

constexpr TimeUs kMinute = 60 * kSecondInUs;

// Back-off between failures: client-go's.
constexpr TimeUs kBackoffStart = 800 * kMsInUs;
constexpr TimeUs kBackoffMax = 30 * kSecondInUs;
constexpr TimeUs kBackoffReset = 2 * kMinute;
constexpr TimeUs kRetryAfterMax = kMinute;

// A watch ends at the server after 5 to 10 minutes. Bookmarks come about once a minute, so that a
// silence of three is a dead peer.
constexpr std::int64_t kWatchSecondsMin = 300, kWatchSecondsMax = 600;
constexpr TimeUs kWatchSilence = 3 * kMinute;
constexpr TimeUs kWatchOvertime = kMinute;
constexpr TimeUs kTooShort = kSecondInUs;
constexpr TimeUs kHealthyAfter = 2 * kSecondInUs;
// Watches in a row that brought nothing at all, until the version is doubted: a server that was
// restored from an old state is silent until it has caught up with it.
constexpr int kSilentWatchesMax = 2;

// A streaming list must bring something every so often, and end.
constexpr TimeUs kStreamQuietMax = 15 * kSecondInUs;
constexpr TimeUs kStreamMax = 2 * kMinute;
constexpr int kStreamFailuresMax = 2;

constexpr TimeUs kPageSilence = kMinute;
constexpr TimeUs kPageLimit = 5 * kMinute;
// A list whose continuation is too old, so soon after it began, is slow because of its size.
constexpr TimeUs kSoon = 10 * kSecondInUs;

constexpr std::size_t kProblemBytesMax = std::size_t{64} << 10;

}  // namespace

struct Reflector::Impl : std::enable_shared_from_this<Reflector::Impl> {
  enum class Phase : std::uint8_t { Waiting, StreamingList, Page, Watch };

  Impl(ApiClient& client, ReflectorOptions of, Events to)
      : api(client),
        options(std::move(of)),
        events(std::move(to)),
        rng(options.seed, "reflector"),
        tracker(options.seed, [this](const ObjectChange& change) {
          if (events.on_change) events.on_change(change);
          return !is_stopped;
        }) {}

  // What is under way, and when.
  void go();
  void go_at_once();
  void leave();
  void stop();
  void start_streaming_list();
  void start_page();
  void start_watch();
  void start(Phase next, net::ClientRequest request);
  net::ClientRequest get(const std::string& query) const;
  net::ClientRequest get_watch(const std::string& query);

  // What the exchange brings.
  void on_head(int status);
  void on_body(std::string_view bytes);
  void on_end(Result<void> outcome);
  void read_events(std::string_view bytes);
  void read_items(std::string_view bytes);
  bool take_event(const WatchEvent& event);
  bool take_bookmark(std::string_view object);
  void page_ended();
  void watch_ended(const Result<void>& outcome);
  void list_done(const std::string& version);
  void check_streaming_list();

  // What went wrong.
  void refused(const ApiProblem& problem, TimeUs retry_after);
  void watch_refused(const ApiProblem& problem, TimeUs retry_after);
  void streaming_refused(const ApiProblem& problem, TimeUs retry_after);
  void page_refused(const ApiProblem& problem, TimeUs retry_after);
  void gone(const ApiProblem& problem);
  void fail(Error error, TimeUs at_least = 0);
  void note_failure(const Error& error);
  void went_on();
  TimeUs next_backoff();

  void arm(TimerId& timer, TimeUs delay, void (Impl::*then)());
  TimeUs now() const { return api.loop().now(); }
  std::string_view what() const { return phase == Phase::Watch ? "watch" : "list"; }

  ApiClient& api;
  ReflectorOptions options;
  Events events;
  Rng rng;
  ObjectTracker tracker;
  MetaReader meta_reader;
  ReflectorState state;
  bool is_stopped = false;

  // The exchange of this turn.
  Phase phase = Phase::Waiting;
  std::uint64_t turn = 0;
  std::shared_ptr<void> exchange;
  TimeUs began_at = 0;
  TimeUs heard_at = 0;
  int status = 0;
  net::Headers headers;
  std::string problem_body;
  bool has_progress = false;  // an event moved the version
  bool has_bytes = false;
  std::optional<WatchStream> stream;
  std::optional<ListPageReader> page;

  // What to do next.
  bool needs_list = true;
  bool is_list_begun = false;      // pages of it were read
  std::string next_page;           // where its next page begins
  bool has_no_page_limit = false;  // its continuation was too old once
  bool may_stream = true;
  int stream_failures = 0;
  bool is_truth = false;       // versions went back
  bool is_any_version = true;  // a streaming list need not name the version last seen
  int server_errors = 0;       // of watches, in a row
  int silent_watches = 0;
  TimeUs listed_at = 0;  // when the last list was complete

  TimeUs backoff = 0;
  TimeUs waited_until = 0;  // when the last wait was over
  TimerId wait_timer = 0, stream_timer = 0, health_timer = 0;
};

// --- what is under way

void Reflector::Impl::arm(TimerId& timer, TimeUs delay, void (Impl::*then)()) {
  api.loop().cancel(timer);
  timer = api.loop().after(delay, [weak = weak_from_this(), &timer, then] {
    const auto self = weak.lock();
    if (self == nullptr || self->is_stopped) return;
    timer = 0;
    (self.get()->*then)();
  });
}

void Reflector::Impl::stop() {
  is_stopped = true;
  leave();
  api.loop().cancel(wait_timer);
}

// Nothing is under way any more.
void Reflector::Impl::leave() {
  ++turn;
  phase = Phase::Waiting;
  exchange.reset();
  api.loop().cancel(std::exchange(stream_timer, 0));
  api.loop().cancel(std::exchange(health_timer, 0));
}

void Reflector::Impl::go_at_once() {
  leave();
  arm(wait_timer, 0, &Impl::go);
}

void Reflector::Impl::go() {
  if (!needs_list) return start_watch();
  if (may_stream && !is_list_begun && stream_failures < kStreamFailuresMax) {
    return start_streaming_list();
  }
  start_page();
}

net::ClientRequest Reflector::Impl::get(const std::string& query) const {
  std::string target = options.path + "?" + query;
  if (!options.field_selector.empty()) target += "&fieldSelector=" + escape(options.field_selector);
  if (!options.label_selector.empty()) target += "&labelSelector=" + escape(options.label_selector);
  return {.method = "GET", .target = std::move(target)};
}

net::ClientRequest Reflector::Impl::get_watch(const std::string& query) {
  const std::int64_t seconds = rng.between(kWatchSecondsMin, kWatchSecondsMax);
  net::ClientRequest request =
      get(fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}{}", seconds, query));
  request.time_limit = seconds * kSecondInUs + kWatchOvertime;
  request.silence_limit = kWatchSilence;
  return request;
}

void Reflector::Impl::start(Phase next, net::ClientRequest request) {
  const std::uint64_t mine = ++turn;
  phase = next;
  began_at = heard_at = now();
  status = 0;
  headers.clear();
  problem_body.clear();
  has_progress = has_bytes = false;
  const auto self_in = [weak = weak_from_this(), mine]() -> std::shared_ptr<Impl> {
    auto self = weak.lock();
    return self != nullptr && !self->is_stopped && self->turn == mine ? self : nullptr;
  };
  exchange = api.stream(std::move(request), {.on_head =
                                                 [self_in](int code, const net::Headers& of) {
                                                   const auto self = self_in();
                                                   if (self == nullptr) return;
                                                   self->headers = of;
                                                   self->on_head(code);
                                                 },
                                             .on_body =
                                                 [self_in](std::string_view bytes) {
                                                   if (const auto self = self_in())
                                                     self->on_body(bytes);
                                                 },
                                             .on_end =
                                                 [self_in](Result<void> outcome) {
                                                   if (const auto self = self_in())
                                                     self->on_end(std::move(outcome));
                                                 }});
}

void Reflector::Impl::start_streaming_list() {
  ++state.lists;
  ++state.watches;
  tracker.begin_list(is_truth);
  stream.emplace();
  std::string query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  if (!is_any_version && !is_truth && !tracker.version().empty()) {
    query += "&resourceVersion=" + escape(tracker.version());
  }
  start(Phase::StreamingList, get_watch(query));
  arm(stream_timer, kStreamQuietMax, &Impl::check_streaming_list);
}

void Reflector::Impl::start_page() {
  if (!is_list_begun) {
    ++state.lists;
    tracker.begin_list(is_truth);
    is_list_begun = true;
    next_page.clear();
  }
  page.emplace();
  std::string query = has_no_page_limit ? "limit=0" : fmt::format("limit={}", options.page_size);
  if (!next_page.empty()) query += "&continue=" + escape(next_page);
  net::ClientRequest request = get(query);
  request.silence_limit = kPageSilence;
  request.time_limit = kPageLimit;
  start(Phase::Page, std::move(request));
}

void Reflector::Impl::start_watch() {
  ++state.watches;
  stream.emplace();
  start(Phase::Watch, get_watch("&resourceVersion=" + escape(tracker.version())));
}

// --- what it brings

void Reflector::Impl::on_head(int code) {
  status = code;
  heard_at = now();
  if (status == 200 && phase == Phase::Watch) arm(health_timer, kHealthyAfter, &Impl::went_on);
}

void Reflector::Impl::on_body(std::string_view bytes) {
  heard_at = now();
  if (status != 200) {
    problem_body.append(bytes.substr(0, kProblemBytesMax - problem_body.size()));
    return;
  }
  has_bytes = has_bytes || !bytes.empty();
  if (phase == Phase::Page) {
    read_items(bytes);
  } else {
    read_events(bytes);
  }
}

void Reflector::Impl::read_items(std::string_view bytes) {
  page->feed(bytes);
  for (;;) {
    const auto item = page->next_item();
    if (!item) return fail(item.error());
    if (item->empty()) return;
    const auto meta = meta_reader.read(*item);
    if (!meta) return fail(meta.error());
    if (!tracker.listed(*meta, *item)) return;
  }
}

void Reflector::Impl::read_events(std::string_view bytes) {
  stream->feed(bytes);
  const std::uint64_t mine = turn;
  for (;;) {
    const auto event = stream->next();
    if (!event) return fail(event.error());
    if (!*event) return;
    if (!take_event(**event) || turn != mine) return;
  }
}

// False: it goes on elsewhere, or not at all.
bool Reflector::Impl::take_event(const WatchEvent& event) {
  using Type = WatchEvent::Type;
  if (event.type == Type::Unknown) return true;  // of a newer server
  if (event.type == Type::Error) {
    const ApiProblem problem = problem_of_status(event.object);
    refused(problem, 0);
    return false;
  }
  if (event.type == Type::Bookmark) return take_bookmark(event.object);
  ++state.events;
  const auto meta = meta_reader.read(event.object);
  if (!meta) {
    fail(meta.error());
    return false;
  }
  const std::string before = phase == Phase::Watch ? tracker.version() : std::string();
  const bool goes_on = event.type == Type::Deleted ? tracker.deleted(*meta, event.object)
                                                   : tracker.changed(*meta, event.object);
  if (!goes_on) return false;
  if (phase == Phase::Watch && tracker.version() != before) {
    has_progress = true;
    went_on();
  }
  return true;
}

bool Reflector::Impl::take_bookmark(std::string_view object) {
  const auto meta = meta_reader.read(object);
  if (!meta) {
    fail(meta.error());
    return false;
  }
  if (phase == Phase::Watch) {
    tracker.advance(meta->version);
    went_on();
    return true;
  }
  if (!is_initial_events_end(object)) return true;
  if (meta->version.empty()) {
    fail({.code = Errc::Invalid, .what = "the end of the initial events names no version"});
    return false;
  }
  const std::string version(meta->version);
  list_done(version);
  return !is_stopped;
}

void Reflector::Impl::list_done(const std::string& version) {
  api.loop().cancel(std::exchange(stream_timer, 0));
  is_list_begun = false;
  if (tracker.is_list_older(version)) {
    is_truth = true;
    return go_at_once();
  }
  const bool is_streaming = phase == Phase::StreamingList;
  needs_list = false;
  is_truth = is_any_version = has_no_page_limit = false;
  stream_failures = server_errors = silent_watches = 0;
  listed_at = now();
  if (!tracker.end_list(version)) return;
  state.version = tracker.version();
  went_on();
  if (is_streaming) {
    phase = Phase::Watch;
    has_progress = true;
  }
  if (!std::exchange(state.is_synced, true) && events.on_synced) {
    events.on_synced();
    if (is_stopped) return;
  }
  if (!is_streaming) go_at_once();
}

// The deadlines of a streaming list: whoever serves it may not know what that is.
void Reflector::Impl::check_streaming_list() {
  if (phase != Phase::StreamingList) return;
  const TimeUs end = std::min(heard_at + kStreamQuietMax, began_at + kStreamMax);
  if (now() < end) return arm(stream_timer, end - now(), &Impl::check_streaming_list);
  may_stream = false;
  note_failure({.code = Errc::Timeout,
                .what = fmt::format("list of {}: the streaming list does not end; from now on it "
                                    "is read in pages",
                                    options.path)});
  if (!is_stopped) go_at_once();
}

void Reflector::Impl::on_end(Result<void> outcome) {
  if (status != 0 && status != 200) {
    // Even when its text broke off.
    ApiAnswer answer{.status = status, .body = std::move(problem_body)};
    return refused(problem_of(answer), retry_after_of(headers, answer.body).value_or(0));
  }
  if (phase == Phase::Watch) return watch_ended(outcome);
  if (phase == Phase::StreamingList) {
    // Cut off before its head as well: a server that cannot hold the whole may do so each time.
    if (status == 200 || (!outcome && outcome.error().code == Errc::Timeout)) ++stream_failures;
    if (outcome) return fail({Errc::Timeout, "the streaming list ended before it was complete"});
    return fail(outcome.error());
  }
  if (!outcome) return fail(outcome.error());
  page_ended();
}

void Reflector::Impl::page_ended() {
  const auto tail = page->finish();
  if (!tail) return fail(tail.error());
  if (tail->next.empty()) return list_done(tail->version);
  if (tail->next == next_page) {
    is_list_begun = false;
    return fail({Errc::Invalid, "a page of the list gives its own place as that of the next page"});
  }
  next_page = tail->next;
  go_at_once();
}

void Reflector::Impl::watch_ended(const Result<void>& outcome) {
  const TimeUs lived = now() - began_at;
  if (status == 200 && !has_bytes && lived >= kMinute) {
    if (++silent_watches >= kSilentWatchesMax) {
      silent_watches = 0;
      needs_list = true;
    }
  } else if (has_bytes) {
    silent_watches = 0;
  }
  // One that went well for long has nothing to answer for; what is wrong the next one will tell.
  if (status == 200 && lived >= kMinute) return go_at_once();
  if (!outcome) return fail(outcome.error());
  if (stream->is_inside_event()) return fail({Errc::Timeout, "the watch ended inside an event"});
  if (lived < kTooShort && !has_progress) {
    return fail({Errc::Unavailable, "the watch ended at once, without an event"});
  }
  go_at_once();
}

// --- what went wrong

void Reflector::Impl::refused(const ApiProblem& problem, TimeUs retry_after) {
  switch (phase) {
    case Phase::Watch:
      return watch_refused(problem, retry_after);
    case Phase::StreamingList:
      return streaming_refused(problem, retry_after);
    case Phase::Page:
      return page_refused(problem, retry_after);
    case Phase::Waiting:
      return;
  }
}

void Reflector::Impl::watch_refused(const ApiProblem& problem, TimeUs retry_after) {
  if (problem.status == 410) return gone(problem);
  if (problem.cause == "ResourceVersionTooLarge") {
    needs_list = is_truth = true;
    return fail(error_of(problem), std::max(retry_after, kSecondInUs));
  }
  switch (problem.status) {
    case 401:
    case 403:
    case 408:
    case 429:
    case 502:
    case 503:
    case 504:
      break;  // the version is as good as before
    case 500:
      // Also the answer to a version that is none.
      if (++server_errors >= 2) needs_list = true;
      break;
    default:
      needs_list = true;
  }
  fail(error_of(problem), retry_after);
}

void Reflector::Impl::gone(const ApiProblem& problem) {
  ++state.gaps;
  needs_list = true;
  // Again, right after a list: then the version of the list is of no use to this server.
  if (listed_at != 0 && now() - listed_at < kSoon) {
    is_any_version = true;
    return fail(error_of(problem));
  }
  go_at_once();
}

void Reflector::Impl::streaming_refused(const ApiProblem& problem, TimeUs retry_after) {
  if (problem.status == 400 || problem.status == 406 || problem.status == 422) {
    may_stream = false;
    return go_at_once();
  }
  if (problem.status == 410 && !std::exchange(is_any_version, true)) {
    ++state.gaps;
    return go_at_once();
  }
  if (problem.cause == "ResourceVersionTooLarge") {
    is_truth = is_any_version = true;
    return fail(error_of(problem), std::max(retry_after, kSecondInUs));
  }
  fail(error_of(problem), retry_after);
}

void Reflector::Impl::page_refused(const ApiProblem& problem, TimeUs retry_after) {
  const bool was_first = next_page.empty();
  if (problem.status == 410 && !was_first) {
    ++state.gaps;
    is_list_begun = false;
    // Twice: pages take longer than their token lives.
    if (std::exchange(has_no_page_limit, true)) return fail(error_of(problem));
    return go_at_once();
  }
  if (problem.status == 400 || problem.status == 410) is_list_begun = false;
  fail(error_of(problem), retry_after);
}

TimeUs Reflector::Impl::next_backoff() {
  if (now() - waited_until > kBackoffReset) backoff = 0;
  // Half of it is jitter.
  backoff = backoff == 0 ? kBackoffStart : std::min(backoff * 2, kBackoffMax / 2);
  return backoff + rng.between(0, backoff);
}

void Reflector::Impl::note_failure(const Error& error) {
  state.last_error = error.what;
  if (state.failing_since == 0) state.failing_since = now();
  if (events.on_error) events.on_error(error);
}

void Reflector::Impl::fail(Error error, TimeUs at_least) {
  error.what.insert(0, fmt::format("{} of {}: ", what(), options.path));
  leave();
  const TimeUs delay = std::max(next_backoff(), std::min(at_least, kRetryAfterMax));
  waited_until = now() + delay;
  arm(wait_timer, delay, &Impl::go);
  note_failure(error);
}

void Reflector::Impl::went_on() {
  if (phase == Phase::Watch) server_errors = 0;
  if (!tracker.version().empty()) state.version = tracker.version();
  state.last_error.clear();
  state.failing_since = 0;
}

Reflector::Reflector(ApiClient& api, ReflectorOptions options, Events events)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(events))) {
  impl_->may_stream = impl_->options.may_stream;
  impl_->go();
}

Reflector::~Reflector() { impl_->stop(); }

const ReflectorState& Reflector::state() const { return impl_->state; }

std::size_t Reflector::size() const { return impl_->tracker.size(); }

}  // namespace jogak::kube
