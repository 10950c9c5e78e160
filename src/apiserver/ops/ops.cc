// SPDX-License-Identifier: Apache-2.0
//
// What the verbs share, and reading.
#include "apiserver/ops/ops.h"

#include <algorithm>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops_impl.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

namespace jogak::api {

Ops::Ops(Loop& loop, store::Store& store, Registry& registry, Rng rng)
    : impl_(std::make_unique<Impl>(Impl{.loop = loop,
                                        .store = store,
                                        .registry = registry,
                                        .rng = rng,
                                        .plugins = {},
                                        .allows_privileged = false,
                                        .write_refusal = {}})) {}

Ops::~Ops() = default;

void Ops::add_plugin(std::unique_ptr<AdmissionPlugin> plugin) {
  impl_->plugins.push_back(std::move(plugin));
}

void Ops::allow_privileged() { impl_->allows_privileged = true; }

void Ops::refuse_writes(std::string why) { impl_->write_refusal = std::move(why); }

ApiResult<void> Ops::Impl::may_write(const WriteRequest& request) const {
  if (write_refusal.empty() || request.is_dry_run) return {};
  ApiError error;
  error.code = 503;
  error.reason = "ServiceUnavailable";
  error.message = write_refusal;
  return std::unexpected(std::move(error));
}

Loop& Ops::loop() const { return impl_->loop; }
store::Store& Ops::store() const { return impl_->store; }
Registry& Ops::registry() const { return impl_->registry; }
Rng& Ops::rng() { return impl_->rng; }

Doc Ops::parse(const store::Object& object) const {
  auto parsed = codec::parse_json(object.json);
  JOGAK_CHECK(parsed.has_value(), "stored bytes of {}/{} are not JSON", object.ns, object.name);
  return std::move(parsed->doc);
}

Doc Ops::in_version(Doc object, const Resource& resource) const {
  if (resource.is_storage_version) return object;
  object = resource.strategy->from_storage(std::move(object));
  object.set("apiVersion", resource.api_version());
  return impl_->encoded(resource, std::move(object));
}

std::optional<Doc> Ops::get(std::string_view resource, std::string_view ns,
                            std::string_view name) const {
  const store::ObjectPtr object = impl_->store.get(impl_->store.table(resource), ns, name);
  if (object == nullptr) return std::nullopt;
  return parse(*object);
}

std::vector<Doc> Ops::list(std::string_view resource, std::string_view ns) const {
  store::Store::Range range;
  range.ns = ns;
  const auto page = impl_->store.list(impl_->store.table(resource), range);
  std::vector<Doc> docs;
  docs.reserve(page.objects.size());
  for (const store::ObjectPtr& object : page.objects) docs.push_back(parse(*object));
  return docs;
}

Doc Ops::Impl::encoded(const Resource& resource, Doc object) const {
  object.set("kind", resource.kind);
  object.set("apiVersion", resource.api_version());
  if (resource.type != nullptr) return schema::encode(std::move(object), *resource.type);
  Doc ordered = Doc::object();  // custom kinds: kind and apiVersion in front
  ordered.set("kind", resource.kind).set("apiVersion", resource.api_version());
  for (auto& [key, value] : object.members()) ordered.set(key, std::move(value));
  return ordered;
}

namespace {
constexpr std::size_t kUsualBytes = 8 * 1024;  // of an object as JSON, seldom more
}

store::Object Ops::Impl::stored(const Resource& resource, Doc& object,
                                store::Revision revision) const {
  object.at("metadata").set("resourceVersion", std::to_string(revision));
  object = encoded(resource, std::move(object));
  store::Object result{.ns = namespace_of(object),
                       .name = name_of(object),
                       .uid = uid_of(object),
                       .revision = revision,
                       .json = {},
                       .header_size = 0,
                       .labels = {},
                       .fields = {}};
  index_object(resource, object, result);
  // Kept for long, so in no more memory than it needs; a string that grows takes up to twice that.
  std::string json;
  json.reserve(kUsualBytes);
  object.append_json(json);
  result.json.assign(json);
  result.header_size = header_size_of(object);
  return result;
}

std::uint32_t header_size_of(const Doc& object) {
  return static_cast<std::uint32_t>(std::string_view(R"({"kind":"","apiVersion":"",)").size() +
                                    object["kind"].as_string().size() +
                                    object["apiVersion"].as_string().size());
}

void index_object(const Resource& resource, const Doc& object, store::Object& result) {
  result.labels.clear();
  result.labels.reserve(meta(object)["labels"].size());
  for (const auto& [key, value] : meta(object)["labels"].members()) {
    result.labels.emplace_back(key, value.as_string());
  }
  std::ranges::sort(result.labels);
  result.fields.clear();
  for (const std::string_view path : resource.strategy->selectable_fields()) {
    result.fields.emplace_back(path, resource.strategy->field(object, path));
  }
}

Doc Ops::Impl::write(WriteRequest& request, Doc object) {
  const Resource& resource = *request.resource;
  if (request.is_dry_run) return encoded(resource, std::move(object));
  const Resource* storage = registry.find_storage(resource.table);
  JOGAK_CHECK(storage != nullptr);
  if (storage != &resource) object = resource.strategy->to_storage(std::move(object));
  store.put(table(resource), stored(*storage, object, store.next_revision()));
  if (storage == &resource) return object;
  object = resource.strategy->from_storage(std::move(object));
  return encoded(resource, std::move(object));
}

void Ops::Impl::erase(const Resource& resource, Doc last) {
  const Resource* storage = registry.find_storage(resource.table);
  JOGAK_CHECK(storage != nullptr);
  if (storage != &resource) last = resource.strategy->to_storage(std::move(last));
  store.remove(table(resource), stored(*storage, last, store.next_revision()));
}

ApiResult<void> Ops::Impl::mutate(const Ops& ops, Admission& admission, WriteRequest& request) {
  WriteContext write = context(ops, request);
  for (const auto& plugin : plugins) JOGAK_TRY_VOID(plugin->mutate(admission, write));
  return {};
}

ApiResult<void> Ops::Impl::validate(const Ops& ops, const Admission& admission,
                                    WriteRequest& request) {
  WriteContext write = context(ops, request);
  for (const auto& plugin : plugins) JOGAK_TRY_VOID(plugin->validate(admission, write));
  return {};
}

void Ops::Impl::track(const WriteRequest& request, const Doc& old, Doc& object) const {
  if (request.is_apply) return;
  const Resource& resource = *request.resource;
  patch::track_update(old, object,
                      {.manager = request.manager,
                       .api_version = resource.api_version(),
                       .subresource = request.subresource,
                       .has_status = resource.has_status(),
                       .now = loop.now()},
                      {.builtin = resource.type, .custom = resource.custom_schema});
}

ApiResult<void> Ops::Impl::check_namespace(const WriteRequest& request, Doc& object) const {
  Doc& metadata = object.at("metadata");
  const std::string& given = metadata["namespace"].as_string();
  if (!given.empty() && given != request.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (request.resource->is_namespaced) metadata.set("namespace", request.ns);
  return {};
}

std::string Ops::Impl::new_uid() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string uid(36, '-');
  for (std::size_t i = 0; i < uid.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) continue;
    uid[i] = kHex[rng.below(16)];
  }
  uid[14] = '4';                     // version 4, random
  uid[19] = kHex[8 + rng.below(4)];  // variant of RFC 4122
  return uid;
}

std::string Ops::Impl::name_suffix() {
  // the alphabet of generated names: no vowels, no look-alikes
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kLetters[rng.below(kLetters.size())];
  return suffix;
}

void keep_metadata(Doc& object, const Doc& old, std::initializer_list<std::string_view> keys) {
  Doc& metadata = object.at("metadata");
  for (const std::string_view key : keys) {
    if (const Doc* value = meta(old).find(key)) {
      metadata.set(key, *value);
    } else {
      metadata.erase(key);
    }
  }
}

}  // namespace jogak::api
