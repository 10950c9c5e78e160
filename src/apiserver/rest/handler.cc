// SPDX-License-Identifier: Apache-2.0
//
// From a request to the verb that answers it.
#include "apiserver/rest/handler.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace jogak::api {

namespace {

constexpr std::string_view kBearer = "Bearer ";

Refusal no_such_path() {
  ApiError error;
  error.code = 404;
  error.message = "404 page not found\n";
  error.is_plain_text = true;
  return std::unexpected(std::move(error));
}

Refusal not_acceptable() {
  ApiError error;
  error.code = 406;
  error.has_details = true;
  error.reason = "NotAcceptable";
  error.message =
      "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
      "application/vnd.kubernetes.protobuf;stream=watch";
  return std::unexpected(std::move(error));
}

bool is_write(std::string_view method) { return method != "GET" && method != "HEAD"; }

bool is_true_watch(const RequestInfo& info) {
  if (info.is_watch_path) return true;
  if (!info.has("watch")) return false;
  const std::string_view text = info.parameter("watch");
  return text != "false" && text != "0";
}

}  // namespace

ApiResult<User> RestHandler::authenticate(const net::HttpRequest& request) const {
  const std::string_view authorization = net::header(request.headers, "authorization");
  if (!authorization.starts_with(kBearer)) return unauthorized();
  const auto it = tokens_.find(authorization.substr(kBearer.size()));
  if (it == tokens_.end()) return unauthorized();
  User user = it->second;
  const std::string_view as = net::header(request.headers, "impersonate-user");
  std::vector<std::string> groups;
  for (const auto& [name, value] : request.headers) {
    if (name.size() == 17 && net::header({{name, value}}, "impersonate-group") == value) {
      groups.push_back(value);
    }
  }
  if (as.empty()) {
    if (groups.empty()) return user;
    return bad_request("requested groups without impersonating a user name");
  }
  groups.emplace_back("system:authenticated");
  return User{.name = std::string(as), .uid = "", .groups = std::move(groups)};
}

void RestHandler::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->writer = std::move(writer);
  exchange->form.content_type = "application/json";
  auto info = parse_target(exchange->request.target);
  if (!info.has_value()) {
    exchange->refuse(bad_request("the path has a broken percent escape").error());
    return;
  }
  exchange->info = *std::move(info);
  auto user = authenticate(exchange->request);
  if (!user.has_value()) {
    exchange->refuse(user.error());
    return;
  }
  exchange->user = *std::move(user);
  dispatch(exchange);
}

void RestHandler::dispatch(const ExchangePtr& exchange) {
  RequestInfo& info = exchange->info;
  const std::string& method = exchange->request.method;
  if (!info.is_resource) {
    const bool is_health = info.path.starts_with("/healthz") || info.path.starts_with("/livez") ||
                           info.path.starts_with("/readyz");
    if (is_write(method) && !is_health) {
      const bool is_api = info.path.starts_with("/api");
      exchange->refuse(is_api ? method_not_allowed().error() : no_such_path().error());
      return;
    }
    auto answer = discovery_.answer(info.path, info.raw_query, exchange->request.headers);
    if (!answer.has_value()) {
      exchange->refuse(no_such_path().error());
      return;
    }
    exchange->writer->respond(answer->status, std::move(answer->headers), std::move(answer->body));
    return;
  }
  const Resource* resource = ops_.registry().find(info.group, info.version, info.plural);
  if (resource == nullptr) {
    const bool is_known_group = std::ranges::any_of(
        ops_.registry().all(), [&](const auto& other) { return other->group == info.group; });
    exchange->refuse(is_known_group ? no_such_resource().error() : no_such_path().error());
    return;
  }
  if (!resource->is_namespaced && !info.ns.empty()) {
    exchange->refuse(no_such_resource().error());
    return;
  }
  if (method == "HEAD" || method == "OPTIONS" || method == "TRACE") {
    exchange->refuse(method_not_allowed().error());
    return;
  }
  if (!resource->deprecation.empty()) exchange->warnings.push_back(resource->deprecation);
  const Subresource* subresource = nullptr;
  if (!info.subresource.empty()) {
    subresource = resource->subresource(info.subresource);
    if (subresource == nullptr || (resource->is_namespaced && info.ns.empty())) {
      exchange->refuse(no_such_resource().error());
      return;
    }
  }
  auto form = codec::negotiate(net::header(exchange->request.headers, "accept"),
                               resource->type != nullptr, true);
  const bool is_log = info.subresource == "log" || info.subresource == "exec" ||
                      info.subresource == "attach" || info.subresource == "portforward" ||
                      info.subresource == "proxy";
  if (!form.has_value() && !is_log) {
    exchange->refuse(not_acceptable().error());
    return;
  }
  if (form.has_value()) exchange->form = *std::move(form);
  if (subresource != nullptr) {
    on_subresource(exchange, *resource, *subresource);
  } else if (info.name.empty() || (info.is_watch_path && method == "GET")) {
    on_collection(exchange, *resource);
  } else {
    on_object(exchange, *resource);
  }
}

void RestHandler::on_collection(const ExchangePtr& exchange, const Resource& resource) {
  const std::string& method = exchange->request.method;
  RequestInfo& info = exchange->info;
  ApiResult<void> result;
  if (method == "GET" && resource.can(Verb::List)) {
    if (info.is_watch_path && !info.name.empty()) {  // /watch/.../NAME is a watch of one object
      info.query.emplace_back("fieldSelector", "metadata.name=" + info.name);
    }
    if (!is_true_watch(info)) return list(exchange, resource);
    auto options = read_list_options(info, resource, true);
    if (!options.has_value()) return exchange->refuse(options.error());
    return serve_watch(ops_, event_bytes_, exchange, resource, *std::move(options));
  }
  const bool has_scope = !resource.is_namespaced || !info.ns.empty();
  if (method == "POST" && has_scope && resource.create_handler) {
    result = call(exchange, resource, nullptr, Verb::Create, resource.create_handler);
  } else if (method == "POST" && has_scope && resource.can(Verb::Create)) {
    result = create(exchange, resource);
  } else if (method == "DELETE" && has_scope && resource.can(Verb::DeleteCollection)) {
    result = remove_collection(exchange, resource);
  } else {
    result = method_not_allowed();
  }
  if (!result.has_value()) exchange->refuse(result.error());
}

void RestHandler::on_object(const ExchangePtr& exchange, const Resource& resource) {
  const std::string& method = exchange->request.method;
  ApiResult<void> result;
  if (resource.is_namespaced && exchange->info.ns.empty()) {
    result = no_such_resource();
  } else if (method == "GET" && resource.can(Verb::Get)) {
    return get(exchange, resource);
  } else if (method == "PUT" && resource.can(Verb::Update)) {
    result = update(exchange, resource, nullptr);
  } else if (method == "PATCH" && resource.can(Verb::Patch)) {
    result = patch(exchange, resource, nullptr);
  } else if (method == "DELETE" && resource.can(Verb::Delete)) {
    result = remove(exchange, resource);
  } else {
    result = method_not_allowed();
  }
  if (!result.has_value()) exchange->refuse(result.error());
}

// The name may carry a scheme and a port: "NODE", "NODE:PORT", "http:NODE:PORT".
bool RestHandler::proxy_to_node(const ExchangePtr& exchange) {
  constexpr int kKubeletPort = 10'250;
  RequestInfo& info = exchange->info;
  std::string_view name = info.name;
  for (const std::string_view scheme : {"http:", "https:"}) {
    if (!name.starts_with(scheme)) continue;
    name.remove_prefix(scheme.size());
    break;
  }
  int port = kKubeletPort;
  const std::size_t colon = std::min(name.find(':'), name.size());
  const std::string_view digits = name.substr(std::min(colon + 1, name.size()));
  name = name.substr(0, colon);
  if (!digits.empty()) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      exchange->refuse(bad_request(fmt::format("invalid node request \"{}\"", info.name)).error());
      return true;
    }
  }
  info.name = std::string(name);  // whoever refuses speaks of the node
  const bool is_there = ops_.store().get(ops_.store().table("nodes"), "", info.name) != nullptr;
  if (!is_there || exchange->request.method != "GET" || !node_proxy_) return false;
  net::HttpRequest request{.method = "GET",
                           .target = info.rest.empty() ? "/" : info.rest,
                           .headers = exchange->request.headers,
                           .body = {}};
  if (!info.raw_query.empty()) request.target += "?" + info.raw_query;
  std::erase_if(request.headers, [](const auto& header) {
    return net::header({header}, "authorization") == header.second;
  });
  return node_proxy_(info.name, port, std::move(request), exchange->writer);
}

void RestHandler::on_subresource(const ExchangePtr& exchange, const Resource& resource,
                                 const Subresource& subresource) {
  if (subresource.name == "proxy" && resource.table == "nodes" && proxy_to_node(exchange)) return;
  static constexpr std::pair<std::string_view, Verb> kVerbs[] = {
      {"GET", Verb::Get},     {"POST", Verb::Create},   {"PUT", Verb::Update},
      {"PATCH", Verb::Patch}, {"DELETE", Verb::Delete},
  };
  const auto* verb = std::ranges::find(kVerbs, exchange->request.method,
                                       &std::pair<std::string_view, Verb>::first);
  ApiResult<void> result;
  if (verb == std::end(kVerbs) ||
      (subresource.verbs & static_cast<std::uint16_t>(verb->second)) == 0) {
    result = method_not_allowed();
  } else if (subresource.handler) {
    result = call(exchange, resource, &subresource, verb->second, subresource.handler);
  } else if (verb->second == Verb::Get) {
    if (subresource.projection == nullptr) return get(exchange, resource);
    result = show_projection(exchange, resource, subresource);
  } else if (verb->second == Verb::Update) {
    result = update(exchange, resource, &subresource);
  } else if (verb->second == Verb::Patch) {
    result = patch(exchange, resource, &subresource);
  } else {
    result = method_not_allowed();
  }
  if (!result.has_value()) exchange->refuse(result.error());
}

}  // namespace jogak::api
