// SPDX-License-Identifier: Apache-2.0
//
// Serves the documents of OpenAPI: the index, one a group version, and all in one; hashes in URLs.
#include "apiserver/rest/openapi.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/rest/discovery_answer.h"
#include "apiserver/rest/discovery_groups.h"
#include "apiserver/rest/discovery_hash.h"
#include "apiserver/rest/openapi_paths.h"
#include "apiserver/rest/openapi_schemas.h"
#include "apiserver/rest/openapi_v2.h"
#include "apiserver/rest/request.h"

namespace jogak::api {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kProto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
// The name before RFC 6838 was heeded; old clients still ask by it.
constexpr std::string_view kOldProto = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kRootPath = "/openapi/v3/";

Doc frame(Doc paths, Components& components) {
  Doc info = Doc::object();
  info.set("title", "Kubernetes").set("version", "1.36");
  Doc token = Doc::object();
  token.set("description", "Bearer token")
      .set("type", "apiKey")
      .set("in", "header")
      .set("name", "authorization");
  Doc schemes = Doc::object();
  schemes.set("BearerToken", std::move(token));
  Doc all = Doc::object();
  all.set("schemas", components.take()).set("securitySchemes", std::move(schemes));
  Doc doc = Doc::object();
  doc.set("openapi", "3.0.0")
      .set("info", std::move(info))
      .set("paths", std::move(paths))
      .set("components", std::move(all));
  return doc;
}

Doc version_document(const Group& group, const GroupVersion& version) {
  Components components(group.name, version.version);
  Doc paths = version_paths(group, version, components);
  return frame(std::move(paths), components);
}

Doc small_document(std::string_view path, std::string_view tag, std::string_view id,
                   std::string_view component) {
  Components components("", "");
  Doc paths = document_path(path, tag, id, component, components);
  return frame(std::move(paths), components);
}

TextAnswer bare_answer(int status) {
  return {.status = status,
          .headers = {{"cache-control", "no-cache, private"}, {"vary", "Accept"}},
          .body = ""};
}

// The first alternative of the client that is among `types`; "" for none.
std::string_view choose(const net::Headers& headers,
                        std::initializer_list<std::string_view> types) {
  for (const codec::MediaType& accepted : accepted_types(headers)) {
    for (const std::string_view type : types) {
      if (covers(accepted, type)) {
        return type;
      }
    }
  }
  return "";
}

std::string query_value(std::string_view query, std::string_view key) {
  for (const auto& [name, value] : parse_query(query)) {
    if (name == key) {
      return value;
    }
  }
  return "";
}

// What a document of built-in kinds is made from; it never changes while the same is served.
std::string facts_of(const GroupVersion& version) {
  std::string facts;
  for (const Resource* resource : version.resources) {
    facts += resource->plural + ":" + std::to_string(resource->verbs) + " ";
  }
  return facts;
}

bool has_custom(const GroupVersion& version) {
  return std::ranges::any_of(version.resources,
                             [](const Resource* resource) { return resource->type == nullptr; });
}

}  // namespace

struct OpenApi::Impl {
  struct Document {
    std::string json, hash;
    std::string facts;  // "" when it is to be made anew each time
  };
  using Documents = std::map<std::string, Document, std::less<>>;
  // Gets every document there is: its name, what it is made from, and how.
  using Visit = std::function<void(const std::string& name, const std::string& facts,
                                   const std::function<Doc()>& make)>;

  explicit Impl(const Registry& all) : registry(all) {}

  void visit_documents(const Visit& visit) const {
    visit("api", "fixed",
          [] { return small_document("/api/", "core", "getCoreAPIVersions", "APIVersions"); });
    visit("apis", "fixed",
          [] { return small_document("/apis/", "apis", "getAPIVersions", "APIGroupList"); });
    visit("version", "fixed",
          [] { return small_document("/version/", "version", "getCodeVersion", "Info"); });
    for (const Group& group : discovery_groups(registry)) {
      const std::string root = group.name.empty() ? "api" : "apis/" + group.name;
      if (!group.name.empty()) {
        const std::string title = group_title(group.name);
        visit(root, "fixed", [&] {
          return small_document("/" + root + "/", title, "get" + title + "APIGroup", "APIGroup");
        });
      }
      for (const GroupVersion& version : group.versions) {
        visit(root + "/" + version.version, has_custom(version) ? "" : facts_of(version),
              [&] { return version_document(group, version); });
      }
    }
  }

  // Makes the documents that are new since the registry was last looked at. Their hashes stand in
  // the index, so that it cannot be made without them.
  void refresh() {
    if (is_fresh && generation == registry.generation()) {
      return;
    }
    Documents made;
    visit_documents([&](const std::string& name, const std::string& facts, const auto& make) {
      const auto old = documents.find(name);
      if (old != documents.end() && !facts.empty() && old->second.facts == facts) {
        made[name] = std::move(old->second);
        return;
      }
      Document& document = made[name];
      make().append_json(document.json);
      document.hash = content_hash(document.json);
      document.facts = facts;
    });
    documents = std::move(made);
    index = make_index();
    v2 = {};
    v2_proto.clear();
    generation = registry.generation();
    is_fresh = true;
  }

  // Only old clients ask for these.
  void make_v2() {
    if (!v2.json.empty()) {
      return;
    }
    Doc swagger = empty_swagger();
    visit_documents([&](const std::string&, const std::string&, const auto& make) {
      add_to_swagger(swagger, make());
    });
    swagger.append_json(v2.json);
    v2.hash = content_hash(v2.json);
    v2_proto = encode_swagger(swagger);
  }

  Document make_index() const {
    Doc paths = Doc::object();
    for (const auto& [name, document] : documents) {
      Doc entry = Doc::object();
      entry.set("serverRelativeURL", url_of(name, document));
      paths.set(name, std::move(entry));
    }
    Doc doc = Doc::object();
    doc.set("paths", std::move(paths));
    Document made;
    doc.append_json(made.json);
    made.hash = content_hash(made.json);
    return made;
  }

  static std::string url_of(std::string_view name, const Document& document) {
    return std::string(kRootPath).append(name).append("?hash=").append(document.hash);
  }

  TextAnswer answer_index(const net::Headers& headers) const {
    // Not JSON by its type, which clients have come to live with.
    return cached_answer(index.json, "text/plain; charset=utf-8", index.hash, headers);
  }

  TextAnswer answer_document(std::string_view name, std::string_view query,
                             const net::Headers& headers) const {
    if (choose(headers, {kJson}).empty()) {
      return bare_answer(406);
    }
    const auto it = documents.find(name);
    if (it == documents.end()) {
      return {.status = 404, .headers = {{"cache-control", "no-cache, private"}}, .body = ""};
    }
    const std::string hash = query_value(query, "hash");
    TextAnswer answer = cached_answer(it->second.json, kJson, it->second.hash, headers);
    if (hash.empty()) {
      return answer;
    }
    if (hash != it->second.hash) {
      answer.status = 301;
      answer.body.clear();
      answer.headers.emplace_back("location", url_of(name, it->second));
      return answer;
    }
    answer.headers.front().second = "public, immutable";  // another content has another URL
    return answer;
  }

  TextAnswer answer_v2(const net::Headers& headers) {
    const std::string_view type = choose(headers, {kJson, kOldProto, kProto});
    if (type.empty()) {
      return bare_answer(406);
    }
    make_v2();
    return type == kJson ? cached_answer(v2.json, kJson, v2.hash, headers)
                         : cached_answer(v2_proto, kProto, v2.hash, headers);
  }

  const Registry& registry;
  bool is_fresh = false;
  std::uint64_t generation = 0;
  Documents documents;
  Document index, v2;
  std::string v2_proto;
};

OpenApi::OpenApi(const Registry& registry) : impl_(std::make_unique<Impl>(registry)) {}
OpenApi::~OpenApi() = default;

std::optional<TextAnswer> OpenApi::answer(std::string_view path, std::string_view query,
                                          const net::Headers& headers) {
  impl_->refresh();
  if (path == "/openapi/v2") {
    return impl_->answer_v2(headers);
  }
  if (path == "/openapi/v3") {
    return impl_->answer_index(headers);
  }
  if (path.starts_with(kRootPath)) {
    return impl_->answer_document(path.substr(kRootPath.size()), query, headers);
  }
  return std::nullopt;
}

}  // namespace jogak::api
