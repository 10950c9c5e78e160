// SPDX-License-Identifier: Apache-2.0
//
// GET of an object and of a list: versions, pages, and lists too long for one piece.
#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/rest/base64.h"
#include "apiserver/rest/handler.h"

namespace jogak::api {

namespace {

constexpr TimeUs kVersionWait = 3 * kSecondInUs;   // for a version that may still come
constexpr TimeUs kVersionLook = kSecondInUs / 20;  // how often it is looked for
constexpr std::size_t kPieceBytes = 1U << 20U;     // of a list that is sent in pieces

std::optional<store::Revision> parse_version(std::string_view text) {
  store::Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return revision;
}

std::string parse_complaint(std::string_view version) {
  return fmt::format(
      "resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: parsing \"{0}\": "
      "invalid syntax",
      version);
}

// Where the next page begins, in the state of which revision.
struct Continue {
  store::Revision revision = 0;  // 0: of the present, after the one of the pages before was lost
  std::string ns, name;
};

constexpr std::string_view kPresent = "-1";  // the revision 0 in a token

std::string encode_continue(const Continue& at) {
  const Doc token =
      Doc::object()
          .set("v", "meta.k8s.io/v1")
          .set("rv", at.revision == 0 ? std::string(kPresent) : std::to_string(at.revision))
          .set("ns", at.ns)
          .set("start", at.name);
  std::string text;
  token.append_json(text);
  return base64url(text);
}

ApiResult<Continue> decode_continue(std::string_view token) {
  const auto bad = [] { return bad_request("invalid continue token: continue key is not valid"); };
  const auto text = from_base64url(token);
  if (!text.has_value()) return bad();
  const auto parsed = codec::parse_json(*text);
  if (!parsed.has_value() || parsed->doc["v"].as_string() != "meta.k8s.io/v1") return bad();
  const std::string& version = parsed->doc["rv"].as_string();
  const auto revision = version == kPresent ? 0 : parse_version(version);
  if (!revision.has_value()) return bad();
  return Continue{.revision = *revision,
                  .ns = parsed->doc["ns"].as_string(),
                  .name = parsed->doc["start"].as_string()};
}

struct Listing {
  store::Store::Page page;
  std::string next;                 // continue token
  std::optional<std::size_t> left;  // remainingItemCount
};

// History does not reach that far. Whoever was reading pages may go on with those of the present.
Refusal too_old(const ListOptions& options, const Continue& from) {
  if (options.continue_token.empty()) {
    return expired("The resourceVersion for the provided list is too old.");
  }
  Refusal refusal = expired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this response "
      "to retrieve the remainder of the results; that list is inconsistent: what changed since the "
      "first page may or may not show.");
  refusal.error().continue_token =
      encode_continue({.revision = 0, .ns = from.ns, .name = from.name});
  return refusal;
}

// A limited list names an exact version even without a word on how to match it.
bool is_exact(const ListOptions& options) {
  if (options.version_match == "Exact") return true;
  return options.version_match.empty() && options.limit > 0 && !options.version.empty() &&
         options.version != "0";
}

// What a list answers, before it is written.
ApiResult<Listing> find(Ops& ops, const Resource& resource, const ListOptions& options,
                        std::string_view ns) {
  store::Store& store = ops.store();
  const store::TableId table = store.table(resource.table);
  const std::function<bool(const store::Object&)> keep = [&](const store::Object& object) {
    return selects(options, ns, object);
  };
  Continue from;
  std::optional<store::Revision> at;  // a state of the past
  if (!options.continue_token.empty()) {
    if (!options.version.empty() && options.version != "0") {
      return bad_request("specifying resource version is not allowed when using continue");
    }
    JOGAK_TRY(from, decode_continue(options.continue_token));
    if (from.revision != 0) at = from.revision;
  } else if (is_exact(options)) {
    at = parse_version(options.version);
  }
  // resourceVersion=0 is answered from a cache on the real server, which takes no limit
  const bool is_cached = options.version == "0" && options.continue_token.empty();
  const std::size_t limit =
      options.limit == 0 || is_cached ? SIZE_MAX : static_cast<std::size_t>(options.limit);
  store::Store::Range range;
  range.ns = ns;
  range.after_ns = from.ns;
  range.after_name = from.name;
  range.limit = limit;
  if (options.has_selector()) range.keep = &keep;
  Listing listing;
  if (at.has_value()) {
    auto past = store.list_at(table, range, *at);
    if (!past.has_value()) return too_old(options, from);
    listing.page = *std::move(past);
  } else {
    listing.page = store.list(table, range);
  }
  if (listing.page.has_more) {
    const store::Object& last = *listing.page.objects.back();
    listing.next =
        encode_continue({.revision = listing.page.revision, .ns = last.ns, .name = last.name});
    if (!options.has_selector()) {
      range.after_ns = last.ns;
      range.after_name = last.name;
      range.limit = SIZE_MAX;
      const auto rest = at.has_value() ? store.list_at(table, range, *at)
                                       : Result<store::Store::Page>(store.list(table, range));
      if (rest.has_value()) listing.left = rest->objects.size();
    }
  }
  return listing;
}

Doc meta_of(const Listing& listing, bool always_continue) {
  Doc metadata = Doc::object();
  metadata.set("resourceVersion", std::to_string(listing.page.revision));
  // lists of custom resources always have the member
  if (!listing.next.empty() || always_continue) metadata.set("continue", listing.next);
  if (listing.left.has_value()) metadata.set("remainingItemCount", *listing.left);
  return metadata;
}

// A list as JSON without parsing a single object, in pieces that the client takes at its own pace.
class ListWriter : public std::enable_shared_from_this<ListWriter> {
 public:
  ListWriter(std::shared_ptr<Exchange> exchange, const Resource& resource, Listing listing)
      : exchange_(std::move(exchange)),
        objects_(std::move(listing.page.objects)),
        keeps_kind_(resource.type == nullptr) {
    Doc head = Doc::object();
    head.set("kind", resource.list_kind).set("apiVersion", resource.api_version());
    listing.page.objects.clear();
    head.set("metadata", meta_of(listing, resource.type == nullptr));
    head.append_json(piece_);
    piece_.back() = ',';
    piece_ += R"("items":[)";
  }

  void start() {
    std::size_t total = piece_.size() + 4;
    for (const store::ObjectPtr& object : objects_) total += object->json.size() + 1;
    if (total <= kPieceBytes) {
      fill(SIZE_MAX);
      exchange_->writer->respond(200, exchange_->headers("application/json"), std::move(piece_));
      return;
    }
    exchange_->writer->begin(200, exchange_->headers("application/json"));
    exchange_->writer->on_drain([self = shared_from_this()] { self->next(); });
    next();
  }

 private:
  void fill(std::size_t until) {
    while (at_ < objects_.size() && piece_.size() < until) {
      const store::Object& object = *objects_[at_];
      if (at_++ > 0) piece_ += ',';
      if (keeps_kind_) {
        piece_ += object.json;
      } else {
        piece_ += '{';
        piece_ += std::string_view(object.json).substr(object.header_size);
      }
    }
    if (at_ == objects_.size()) piece_ += "]}\n";
  }

  void next() {
    if (is_done_) return;
    fill(kPieceBytes);
    is_done_ = at_ == objects_.size();
    exchange_->writer->write(piece_);
    piece_.clear();
    if (is_done_) exchange_->writer->end();
  }

  std::shared_ptr<Exchange> exchange_;
  std::vector<store::ObjectPtr> objects_;
  bool keeps_kind_;
  std::string piece_;
  std::size_t at_ = 0;
  bool is_done_ = false;
};

}  // namespace

ApiResult<Found> find_objects(Ops& ops, const Resource& resource, const ListOptions& options,
                              std::string_view ns) {
  JOGAK_TRY(Listing listing, find(ops, resource, options, ns));
  Doc metadata = meta_of(listing, resource.type == nullptr);
  return Found{.objects = std::move(listing.page.objects), .metadata = std::move(metadata)};
}

void RestHandler::read_when_reached(const ExchangePtr& exchange, store::Revision wanted,
                                    TimeUs deadline, Read read) {
  if (ops_.store().revision() >= wanted) {
    const RequestInfo& info = exchange->info;
    const Resource* resource = ops_.registry().find(info.group, info.version, info.plural);
    if (resource == nullptr) return exchange->refuse(no_such_resource().error());
    return (this->*read)(exchange, *resource);
  }
  if (ops_.loop().now() >= deadline) {
    return exchange->refuse(too_large_version(wanted, ops_.store().revision()).error());
  }
  const std::weak_ptr<const bool> life = life_;
  ops_.loop().after(kVersionLook, [=, this] {
    if (!life.expired()) read_when_reached(exchange, wanted, deadline, read);
  });
}

void RestHandler::list(const ExchangePtr& exchange, const Resource& resource) {
  const auto options = read_list_options(exchange->info, resource, false);
  if (!options.has_value()) return exchange->refuse(options.error());
  if (!options->version.empty() && options->continue_token.empty()) {
    const auto wanted = parse_version(options->version);
    if (!wanted.has_value()) {
      return exchange->refuse(
          bad_request("invalid resource version: " + parse_complaint(options->version)).error());
    }
    if (*wanted > ops_.store().revision()) {
      const TimeUs deadline = ops_.loop().now() + kVersionWait;
      return read_when_reached(exchange, *wanted, deadline, &RestHandler::list);
    }
  }
  auto listing = find(ops_, resource, *options, exchange->info.ns);
  if (!listing.has_value()) return exchange->refuse(listing.error());
  if (exchange->takes_stored_json(resource) && !exchange->wants_pretty()) {
    std::make_shared<ListWriter>(exchange, resource, *std::move(listing))->start();
    return;
  }
  std::vector<Doc> items;
  items.reserve(listing->page.objects.size());
  for (const store::ObjectPtr& object : listing->page.objects) {
    items.push_back(ops_.in_version(ops_.parse(*object), resource));
  }
  const bool always_continue =
      resource.type == nullptr && exchange->form.as == codec::Negotiated::As::Object;
  exchange->answer_list(resource, meta_of(*listing, always_continue), std::move(items),
                        ops_.loop().now());
}

void RestHandler::get(const ExchangePtr& exchange, const Resource& resource) {
  const std::string_view version = exchange->info.parameter("resourceVersion");
  if (!version.empty()) {
    const auto wanted = parse_version(version);
    if (!wanted.has_value()) {
      return exchange->refuse(bare_error(500, parse_complaint(version)).error());
    }
    if (*wanted > ops_.store().revision()) {
      const TimeUs deadline = ops_.loop().now() + kVersionWait;
      return read_when_reached(exchange, *wanted, deadline, &RestHandler::get);
    }
  }
  const store::ObjectPtr object =
      ops_.store().get(ops_.store().table(resource.table), exchange->info.ns, exchange->info.name);
  if (object == nullptr) {
    return exchange->refuse(not_found(resource.name(), exchange->info.name).error());
  }
  if (exchange->takes_stored_json(resource) && !exchange->wants_pretty()) {
    return exchange->answer_json(200, object->json + "\n");
  }
  exchange->answer(200, ops_.in_version(ops_.parse(*object), resource), resource.type, &resource,
                   ops_.loop().now());
}

}  // namespace jogak::api
