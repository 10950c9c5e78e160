// SPDX-License-Identifier: Apache-2.0
//
// A stream starts with a list or at a revision, and then follows the store until its time is up;
// an object that starts or stops to match the selectors comes as ADDED or DELETED.
#include "apiserver/rest/watch.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/schema/normalise.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMinTimeoutS = 1800;  // of watches that do not say; up to twice that
constexpr TimeUs kBookmarkEvery = 60 * kSecondInUs;
constexpr TimeUs kBookmarkBeforeEnd = 2 * kSecondInUs;
constexpr std::size_t kInitialAhead = 1U << 20U;  // bytes of the initial state written ahead
constexpr std::size_t kPendingMax = 64U << 20U;   // bytes a slow watcher may lag behind

std::string_view word_of(store::EventType type) {
  switch (type) {
    case store::EventType::Added:
      return "ADDED";
    case store::EventType::Modified:
      return "MODIFIED";
    case store::EventType::Deleted:
      return "DELETED";
  }
  return "";
}

std::string envelope(std::string_view type, std::string_view object) {
  std::string text;
  text.reserve(type.size() + object.size() + 26);
  text.append(R"({"type":")").append(type).append(R"(","object":)").append(object).append("}\n");
  return text;
}

// One stream. Kept alive by the writer's callbacks and its timers.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(Ops& ops, std::shared_ptr<EventBytes> bytes, std::shared_ptr<Exchange> exchange,
        const Resource& resource, ListOptions options)
      : ops_(ops),
        bytes_(std::move(bytes)),
        exchange_(std::move(exchange)),
        resource_(resource),
        options_(std::move(options)),
        is_plain_(exchange_->takes_stored_json(resource)) {}

  void start();

 private:
  void begin();
  void send_initial();
  void follow(store::Revision since);
  void on_event(const store::EventPtr& event);
  void send(const store::EventPtr& event, std::string_view type, const store::Object& object);
  void send_doc(std::string_view type, Doc object);
  void send_bookmark(bool ends_initial);
  void send_error(const ApiError& error);
  void arm_timers();
  void bookmark_again();
  void finish();
  void stop();
  std::string_view ns() const { return exchange_->info.ns; }

  Ops& ops_;
  std::shared_ptr<EventBytes> bytes_;
  std::shared_ptr<Exchange> exchange_;
  const Resource resource_;  // a copy: a custom resource may go while it is watched
  ListOptions options_;
  bool is_plain_;
  bool has_sent_columns_ = false;
  bool is_over_ = false;
  store::WatchId watch_ = 0;
  store::Revision seen_ = 0;                   // of the last change known to the client
  std::optional<store::Store::Page> initial_;  // what is left of it from next_initial_ on
  std::size_t next_initial_ = 0;
  store::Revision initial_revision_ = 0;
  TimerId end_timer_ = 0;
  TimerId bookmark_timer_ = 0;
};

void Watch::start() {
  store::Revision since = 0;
  const std::string& version = options_.version;
  if (!version.empty()) {
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), since);
    if (error != std::errc() || end != version.data() + version.size()) {
      exchange_->refuse(bare_error(500, "resourceVersion: Invalid value: \"" + version +
                                            "\": strconv.ParseUint: parsing \"" + version +
                                            "\": invalid syntax")
                            .error());
      return;
    }
  }
  begin();
  const bool wants_all = since == 0 && options_.send_initial_events.value_or(true);
  if (wants_all || options_.send_initial_events.value_or(false)) {
    store::Store::Range range;
    range.ns = ns();
    initial_ = ops_.store().list(ops_.store().table(resource_.table), range);
    initial_revision_ = ops_.store().revision();
    exchange_->writer->on_drain([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->send_initial();
    });
    return send_initial();
  }
  follow(since == 0 ? ops_.store().revision() : since);
  if (!is_over_) arm_timers();
}

void Watch::begin() {
  std::string type = exchange_->form.content_type;
  if (exchange_->form.form == codec::Form::Protobuf) type += ";stream=watch";
  exchange_->writer->begin(200, exchange_->headers(type));
  exchange_->writer->on_close([self = shared_from_this()] { self->stop(); });
}

// As fast as the peer takes it, so that a large collection never waits in memory as text. Changes
// meanwhile are in the store's history and follow.
void Watch::send_initial() {
  if (is_over_ || !initial_.has_value()) return;
  while (next_initial_ < initial_->objects.size()) {
    const store::ObjectPtr& object = initial_->objects[next_initial_++];
    if (selects(options_, ns(), *object)) send(nullptr, "ADDED", *object);
    if (exchange_->writer->pending() > kInitialAhead) return;
  }
  seen_ = initial_->revision;
  initial_.reset();
  if (options_.send_initial_events.value_or(false) && options_.allow_bookmarks) {
    send_bookmark(true);
  }
  follow(initial_revision_);
  if (!is_over_) arm_timers();
}

void Watch::follow(store::Revision since) {
  seen_ = std::max(seen_, since);
  const store::Revision from = std::min(since, ops_.store().revision());
  auto watch = ops_.store().watch(ops_.store().table(resource_.table), from,
                                  [self = weak_from_this(), since](const store::EventPtr& event) {
                                    const auto alive = self.lock();
                                    if (alive != nullptr && event->revision > since)
                                      alive->on_event(event);
                                  });
  if (!watch.has_value()) {
    send_error(expired(fmt::format("too old resource version: {} ({})", since,
                                   ops_.store().oldest(ops_.store().table(resource_.table))))
                   .error());
    finish();
    return;
  }
  if (is_over_) {
    ops_.store().unwatch(*watch);
  } else {
    watch_ = *watch;
  }
}

void Watch::on_event(const store::EventPtr& event) {
  if (is_over_) return;
  seen_ = event->revision;
  const bool now =
      event->type != store::EventType::Deleted && selects(options_, ns(), *event->object);
  const bool before = event->previous != nullptr && selects(options_, ns(), *event->previous);
  if (now) {
    send(event, before ? "MODIFIED" : "ADDED", *event->object);
  } else if (before && event->type == store::EventType::Deleted) {
    send(event, word_of(event->type), *event->object);
  } else if (before) {  // it left the selection: the last state that was in it, at this version
    Doc last = ops_.parse(*event->previous);
    last.at("metadata").set("resourceVersion", std::to_string(event->revision));
    send_doc("DELETED", ops_.in_version(std::move(last), resource_));
  }
  if (exchange_->writer->pending() > kPendingMax) exchange_->writer->abort();
}

void Watch::send(const store::EventPtr& event, std::string_view type, const store::Object& object) {
  if (!is_plain_) {
    send_doc(type, ops_.in_version(ops_.parse(object), resource_));
  } else if (event != nullptr) {
    exchange_->writer->write_shared(bytes_->get(event, type, object));
  } else {
    exchange_->writer->write(envelope(type, object.json));
  }
}

void Watch::send_doc(std::string_view type, Doc object) {
  using As = codec::Negotiated::As;
  const codec::Negotiated& form = exchange_->form;
  const schema::Struct* schema_type = resource_.type;
  if (form.as == As::Table) {
    Doc table =
        table_of(resource_, Doc::object().set("resourceVersion", meta(object)["resourceVersion"]),
                 !has_sent_columns_);
    has_sent_columns_ = true;
    table.at("rows").push(table_row(resource_, object, exchange_->info.parameter("includeObject"),
                                    ops_.loop().now()));
    object = std::move(table);
    schema_type = nullptr;
  } else if (form.as == As::Partial) {
    object = partial_of(object);
    schema_type = &schema::get("meta.v1.PartialObjectMetadata");
  }
  if (form.form == codec::Form::Protobuf && schema_type != nullptr) {
    exchange_->writer->write(codec::encode_protobuf_watch_event(type, object, *schema_type));
    return;
  }
  std::string text;
  object.append_json(text);
  exchange_->writer->write(envelope(type, text));
}

void Watch::send_bookmark(bool ends_initial) {
  Doc object = Doc::object();
  object.set("kind", resource_.kind).set("apiVersion", resource_.api_version());
  object.at("metadata").set("resourceVersion", std::to_string(seen_));
  if (ends_initial) {
    object.at("metadata").at("annotations").set("k8s.io/initial-events-end", "true");
  }
  if (resource_.type != nullptr) object = schema::encode(std::move(object), *resource_.type);
  // replicas that are a pointer on the wire are a plain number inside the real server
  if (resource_.group == "apps" && resource_.subresource("scale") != nullptr) {
    object.at("spec").set("replicas", 0);
  }
  send_doc("BOOKMARK", std::move(object));
}

void Watch::send_error(const ApiError& error) {
  const Doc status = status_of(error);
  if (exchange_->form.form == codec::Form::Protobuf) {
    exchange_->writer->write(
        codec::encode_protobuf_watch_event("ERROR", status, schema::get("meta.v1.Status")));
    return;
  }
  std::string text;
  status.append_json(text);
  exchange_->writer->write(envelope("ERROR", text));
}

void Watch::arm_timers() {
  std::int64_t seconds = options_.timeout_s;
  if (seconds <= 0) {
    seconds = kMinTimeoutS + static_cast<std::int64_t>(ops_.rng().below(kMinTimeoutS));
  }
  const TimeUs span = seconds * kSecondInUs;
  end_timer_ = ops_.loop().after(span, [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->finish();
  });
  if (!options_.allow_bookmarks) return;
  const TimeUs before_end = span - kBookmarkBeforeEnd;
  if (before_end <= kBookmarkBeforeEnd) return;  // too short for one
  bookmark_timer_ =
      ops_.loop().after(std::min(kBookmarkEvery, before_end), [self = weak_from_this()] {
        if (const auto alive = self.lock()) alive->bookmark_again();
      });
}

void Watch::bookmark_again() {
  // what is older than the store's counter has been seen or does not concern this watch
  seen_ = std::max(seen_, ops_.store().revision());
  send_bookmark(false);
  bookmark_timer_ = ops_.loop().after(kBookmarkEvery, [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->bookmark_again();
  });
}

void Watch::finish() {
  if (is_over_) return;
  const auto self = shared_from_this();  // end() may drop the last owner
  exchange_->writer->end();
  stop();
}

void Watch::stop() {
  if (is_over_) return;
  is_over_ = true;
  if (watch_ != 0) ops_.store().unwatch(watch_);
  ops_.loop().cancel(end_timer_);
  ops_.loop().cancel(bookmark_timer_);
}

}  // namespace

std::shared_ptr<const std::string> EventBytes::get(const store::EventPtr& event,
                                                   std::string_view type,
                                                   const store::Object& object) {
  if (event != last_ || type != last_type_) {
    last_ = event;
    last_type_ = type;
    bytes_ = std::make_shared<const std::string>(envelope(type, object.json));
  }
  return bytes_;
}

bool selects(const ListOptions& options, std::string_view ns, const store::Object& object) {
  if (!ns.empty() && object.ns != ns) return false;
  if (!options.labels.matches(object.labels)) return false;
  if (options.fields.terms.empty()) return true;
  return options.fields.matches([&](std::string_view path) -> std::string_view {
    if (path == "metadata.name") return object.name;
    if (path == "metadata.namespace") return object.ns;
    return object.field(path);
  });
}

void serve_watch(Ops& ops, std::shared_ptr<EventBytes> bytes, std::shared_ptr<Exchange> exchange,
                 const Resource& resource, ListOptions options) {
  std::make_shared<Watch>(ops, std::move(bytes), std::move(exchange), resource, std::move(options))
      ->start();
}

}  // namespace jogak::api
