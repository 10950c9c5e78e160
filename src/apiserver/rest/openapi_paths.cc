// SPDX-License-Identifier: Apache-2.0
//
// Which operations a resource has follows from its verbs and subresources; the names of operations
// follow from both, as clients generated from these documents expect.
#include "apiserver/rest/openapi_paths.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "apiserver/rest/openapi_operation.h"

namespace jogak::api {
namespace {

std::string upper_first(std::string_view text) {
  std::string word(text);
  if (!word.empty()) {
    word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  }
  return word;
}

bool is_custom(const Resource& resource) { return resource.type == nullptr; }

// Writes the operations of one group version.
class PathWriter {
 public:
  PathWriter(const Group& group, const GroupVersion& version, Components& components)
      : group_(group),
        version_(version),
        components_(components),
        root_((group.name.empty() ? "/api/" : "/apis/" + group.name + "/") + version.version),
        title_(group_title(group.name) + upper_first(version.version)) {
    tag_ = group_title(group.name);
    tag_[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(tag_[0])));
    tag_ += "_" + version.version;
  }

  Doc write() {
    add(root_ + "/", read_list_of_resources());
    for (const Resource* resource : version_.resources) {
      write_collection(*resource);
      write_object(*resource);
      for (const Subresource& subresource : resource->subresources) {
        write_subresource(*resource, subresource);
      }
      if (resource->can(Verb::Watch)) {
        write_watches(*resource);
      }
    }
    Doc paths = Doc::object();
    for (auto& [path, operations] : paths_) {
      paths.set(path, path_item(operations));
    }
    return paths;
  }

 private:
  using Names = std::vector<std::string_view>;

  void add(const std::string& path, ApiOperation operation) {
    paths_[path].push_back(std::move(operation));
  }

  static Doc kind_doc(std::string_view group, std::string_view version, std::string_view kind) {
    Doc doc = Doc::object();
    doc.set("group", group).set("version", version).set("kind", kind);
    return doc;
  }

  std::string collection_path(const Resource& resource, std::string_view prefix = "") const {
    return root_ + std::string(prefix) +
           (resource.is_namespaced ? "/namespaces/{namespace}/" : "/") + resource.plural;
  }

  // "NamespacedPod", "Node"
  static std::string scoped_kind(const Resource& resource) {
    return (resource.is_namespaced ? "Namespaced" : "") + resource.kind;
  }

  // An operation on a resource: verb and what follows it make the id.
  ApiOperation operation(const Resource& resource, std::string method, std::string_view verb,
                         std::string_view rest, std::string_view action,
                         std::string description) const {
    ApiOperation made;
    made.method = std::move(method);
    made.id = std::string(verb) + title_ + std::string(rest);
    made.action = action;
    made.description = std::move(description);
    made.tag = tag_;
    made.kind = kind_doc(resource.group, resource.version, resource.kind);
    made.is_custom = is_custom(resource);
    made.parameters.emplace_back("pretty");
    if (resource.is_namespaced) {
      made.parameters.emplace_back("namespace");
    }
    return made;
  }

  static void take(ApiOperation& operation, std::span<const std::string_view> names) {
    operation.parameters.insert(operation.parameters.end(), names.begin(), names.end());
  }

  ApiOperation read_list_of_resources() {
    ApiOperation made;
    made.method = "get";
    made.id = "get" + title_ + "APIResources";
    made.description = "list the resources of this version";
    made.tag = tag_;
    made.result = components_.ref_fixed("APIResourceList");
    return made;
  }

  void write_collection(const Resource& resource) {
    const std::string path = collection_path(resource);
    const std::string scoped = scoped_kind(resource);
    if (resource.can(Verb::List)) {
      ApiOperation list = list_operation(resource, "list", scoped);
      add(path, list);
      if (resource.is_namespaced) {
        ApiOperation all = list_operation(resource, "list", resource.kind + "ForAllNamespaces");
        std::erase(all.parameters, "namespace");
        add(root_ + "/" + resource.plural, std::move(all));
      }
    }
    if (resource.can(Verb::Create)) {
      ApiOperation create =
          operation(resource, "post", "create", scoped, "post", "create " + resource.kind);
      take(create, kWriteParameters);
      create.body = components_.ref_object(resource);
      create.result = create.body;
      create.codes = {200, 201, 202};
      add(path, std::move(create));
    }
    if (resource.can(Verb::DeleteCollection)) {
      ApiOperation all = operation(resource, "delete", "delete", "Collection" + scoped,
                                   "deletecollection", "delete all matching " + resource.kind);
      take(all, kCollectionParameters);
      set_delete_body(all);
      all.result = components_.ref(schema::get("meta.v1.Status"));
      add(path, std::move(all));
    }
  }

  ApiOperation list_operation(const Resource& resource, std::string_view verb,
                              std::string_view rest) {
    ApiOperation list =
        operation(resource, "get", verb, rest, "list", "list or watch " + resource.kind);
    take(list, kListParameters);
    list.content = Content::Stream;
    list.result = components_.ref_list(resource);
    return list;
  }

  void set_delete_body(ApiOperation& made) {
    made.body = components_.ref(schema::get("meta.v1.DeleteOptions"));
    made.is_body_required = false;
  }

  void write_object(const Resource& resource) {
    const std::string path = collection_path(resource) + "/{name}";
    write_reads_and_writes(resource, path, resource.verbs, "", resource.kind,
                           [&] { return components_.ref_object(resource); });
    if (resource.can(Verb::Delete)) {
      ApiOperation remove = operation(resource, "delete", "delete", scoped_kind(resource), "delete",
                                      "delete one " + resource.kind);
      remove.parameters.emplace_back("name");
      take(remove, kDeleteParameters);
      set_delete_body(remove);
      // Namespaces answer with themselves, too, but their document never said so.
      const bool shows_object = resource.strategy && resource.strategy->returns_deleted_object() &&
                                resource.plural != "namespaces";
      remove.result = shows_object ? components_.ref_object(resource)
                                   : components_.ref(schema::get("meta.v1.Status"));
      remove.codes = {200, 202};
      add(path, std::move(remove));
    }
  }

  // get, put and patch, of an object or of a subresource ("Status").
  template <class MakeRef>
  void write_reads_and_writes(const Resource& resource, const std::string& path,
                              std::uint16_t verbs, const std::string& suffix,
                              const std::string& kind, const MakeRef& make_ref) {
    const auto can = [&](Verb verb) { return (verbs & static_cast<std::uint16_t>(verb)) != 0; };
    const std::string rest = scoped_kind(resource) + suffix;
    const std::string what = suffix.empty() ? kind : kind + " (" + suffix + ")";
    if (can(Verb::Get)) {
      ApiOperation get = operation(resource, "get", "read", rest, "get", "read one " + what);
      get.parameters.emplace_back("name");
      get.result = make_ref();
      add(path, std::move(get));
    }
    if (can(Verb::Update)) {
      ApiOperation put = operation(resource, "put", "replace", rest, "put", "replace one " + what);
      put.parameters.emplace_back("name");
      take(put, kWriteParameters);
      put.body = make_ref();
      put.result = put.body;
      put.codes = {200, 201};
      add(path, std::move(put));
    }
    if (can(Verb::Patch)) {
      ApiOperation patch =
          operation(resource, "patch", "patch", rest, "patch", "change parts of one " + what);
      patch.parameters.emplace_back("name");
      take(patch, kPatchParameters);
      patch.is_patch = true;
      patch.body = components_.ref_fixed("Patch");
      patch.result = make_ref();
      patch.codes = {200, 201};
      add(path, std::move(patch));
    }
  }

  void write_subresource(const Resource& resource, const Subresource& subresource) {
    const std::string path = collection_path(resource) + "/{name}/" + subresource.name;
    if (subresource.name == "log") {
      write_log(resource, path);
    } else if (subresource.kind.ends_with("Options")) {
      write_connection(resource, subresource, path, false);
      if (subresource.name == "proxy") {
        write_connection(resource, subresource, path + "/{path}", true);
        set_kind(resource, subresource, path + "/{path}");
      }
    } else {
      write_object_subresource(resource, subresource, path);
    }
    set_kind(resource, subresource, path);
  }

  void write_object_subresource(const Resource& resource, const Subresource& subresource,
                                const std::string& path) {
    const std::string suffix = upper_first(subresource.name);
    const auto make_ref = [&] {
      return subresource.type == nullptr ? components_.ref_object(resource)
                                         : components_.ref(*subresource.type);
    };
    write_reads_and_writes(resource, path, subresource.verbs, suffix, resource.kind, make_ref);
    if ((subresource.verbs & static_cast<std::uint16_t>(Verb::Create)) == 0) {
      return;
    }
    ApiOperation create =
        operation(resource, "post", "create", scoped_kind(resource) + suffix, "post",
                  "create " + subresource.name + " of one " + resource.kind);
    create.parameters.emplace_back("name");
    take(create, kWriteParameters);
    create.body = make_ref();
    create.result = create.body;
    create.codes = {200, 201, 202};
    add(path, std::move(create));
  }

  // The kind that a subresource takes, where it is not the object's.
  void set_kind(const Resource& resource, const Subresource& subresource, const std::string& path) {
    const auto it = paths_.find(path);
    if (it == paths_.end() || subresource.kind.empty()) {
      return;
    }
    const bool is_own = subresource.version.empty();
    for (ApiOperation& made : it->second) {
      made.kind = kind_doc(is_own ? resource.group : subresource.group,
                           is_own ? resource.version : subresource.version, subresource.kind);
    }
  }

  void write_log(const Resource& resource, const std::string& path) {
    ApiOperation log = operation(resource, "get", "read", scoped_kind(resource) + "Log", "get",
                                 "read the log of one " + resource.kind);
    log.parameters.emplace_back("name");
    take(log, kLogParameters);
    log.content = Content::Log;
    log.result.set("type", "string");
    add(path, std::move(log));
  }

  // What becomes a connection: commands, ports, proxies.
  void write_connection(const Resource& resource, const Subresource& subresource,
                        const std::string& path, bool has_path) {
    const bool is_proxy = subresource.name == "proxy";
    const std::string rest =
        scoped_kind(resource) + upper_first(subresource.name) + (has_path ? "WithPath" : "");
    const auto add_method = [&](const std::string& method) {
      ApiOperation made = operation(resource, method, "connect", "", "connect",
                                    "connect to " + subresource.name + " of one " + resource.kind);
      made.id += upper_first(method) + rest;
      std::erase(made.parameters, "pretty");
      made.parameters.emplace_back("name");
      take(made, connection_parameters(subresource.name));
      if (has_path) {
        made.parameters.emplace_back("{path}");
      }
      made.content = Content::Connection;
      made.result.set("type", "string");
      add(path, std::move(made));
    };
    for (const auto& [verb, method] :
         {std::pair(Verb::Get, "get"), std::pair(Verb::Create, "post"),
          std::pair(Verb::Update, "put"), std::pair(Verb::Patch, "patch"),
          std::pair(Verb::Delete, "delete")}) {
      if ((subresource.verbs & static_cast<std::uint16_t>(verb)) != 0) {
        add_method(method);
      }
    }
    if (is_proxy) {  // these have no verb
      add_method("head");
      add_method("options");
    }
  }

  static std::span<const std::string_view> connection_parameters(std::string_view name) {
    if (name == "exec") {
      return kExecParameters;
    }
    if (name == "attach") {
      return kAttachParameters;
    }
    return name == "portforward" ? std::span<const std::string_view>(kPortParameters)
                                 : std::span<const std::string_view>(kProxyParameters);
  }

  void write_watches(const Resource& resource) {
    const std::string path = collection_path(resource, "/watch");
    const std::string scoped = scoped_kind(resource);
    add(path, watch_operation(resource, scoped + "List", "watchlist"));
    ApiOperation one = watch_operation(resource, scoped, "watch");
    one.parameters.emplace_back("name");
    add(path + "/{name}", std::move(one));
    if (resource.is_namespaced) {
      ApiOperation all =
          watch_operation(resource, resource.kind + "ListForAllNamespaces", "watchlist");
      std::erase(all.parameters, "namespace");
      add(root_ + "/watch/" + resource.plural, std::move(all));
    }
  }

  ApiOperation watch_operation(const Resource& resource, std::string_view rest,
                               std::string_view action) {
    ApiOperation watch = operation(resource, "get", "watch", rest, action,
                                   "watch " + resource.kind + "; use list with watch=true");
    take(watch, kListParameters);
    watch.content = Content::Stream;
    watch.result = components_.ref_fixed("WatchEvent");
    return watch;
  }

  const Group& group_;
  const GroupVersion& version_;
  Components& components_;
  std::string root_, title_, tag_;
  std::map<std::string, std::vector<ApiOperation>> paths_;
};

}  // namespace

std::string group_title(std::string_view group) {
  if (group.empty()) {
    return "Core";
  }
  constexpr std::string_view kCommon = ".k8s.io";
  if (group.ends_with(kCommon)) {
    group.remove_suffix(kCommon.size());
  }
  std::string title;
  bool is_start = true;
  for (const char c : group) {
    if (c == '.' || c == '-') {
      is_start = true;
      continue;
    }
    title += is_start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    is_start = false;
  }
  return title;
}

Doc version_paths(const Group& group, const GroupVersion& version, Components& components) {
  return PathWriter(group, version, components).write();
}

Doc document_path(std::string_view path, std::string_view tag, std::string_view operation_id,
                  std::string_view component, Components& components) {
  ApiOperation made;
  made.method = "get";
  made.id = operation_id;
  made.description = "read " + std::string(component);
  made.tag = tag;
  made.result = components.ref_fixed(component);
  Doc paths = Doc::object();
  paths.set(path, path_item({made}));
  return paths;
}

}  // namespace jogak::api
