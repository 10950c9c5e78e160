// SPDX-License-Identifier: Apache-2.0
//
// The embedded API server on a loop of its own.
#include "test/agent/test_cluster.h"

#include <utility>

#include "base/check.h"
#include "playground/access.h"

namespace jogak::agent {

namespace {

constexpr auto kToken = "0123456789abcdef0123456789abcdef";

Doc made(const std::string& kind, const std::string& name) {
  Doc object = Doc().set("apiVersion", "v1").set("kind", kind);
  object.at("metadata").set("name", name);
  return object;
}

}  // namespace

TestCluster::TestCluster(const std::string& kubeconfig) {
  thread_.call([&] {
    api::User user;
    user.name = "agent";
    user.groups = {"system:masters"};
    api::ServerOptions options;
    options.tokens = {{kToken, user}};
    auto server = api::Server::make(thread_.loop(), std::move(options));
    JOGAK_CHECK(server.has_value());
    server_ = *std::move(server);
    api_ = server_->api("test");
    // A client sends its token over TLS alone.
    const auto identity = net::make_self_signed({"127.0.0.1"});
    JOGAK_CHECK(identity.has_value());
    net::HttpServerOptions listen;
    listen.tls = *net::TlsContext::make(*identity);
    listen.before_write = [this] { return server_->flush().has_value(); };
    auto http = net::HttpServer::listen(
        thread_.loop(), std::move(listen),
        [this](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
          server_->handle(std::move(request), std::move(writer));
        });
    JOGAK_CHECK(http.has_value());
    http_ = *std::move(http);
    JOGAK_CHECK(playground::write_kubeconfig(
        kubeconfig, {.url = http_->url(), .token = kToken, .ca_pem = identity->certificate_pem}));
    JOGAK_CHECK(api_->create("nodes", "", made("Node", "n1")).has_value());
    JOGAK_CHECK(api_->create("namespaces", "", made("Namespace", "ml")).has_value());
  });
}

TestCluster::~TestCluster() {
  thread_.call([&] {
    http_.reset();
    api_.reset();
    server_.reset();
  });
}

void TestCluster::label(const std::string& name, const std::string& value) {
  Doc patch;
  patch.at("metadata", "labels").set(name, value.empty() ? Doc() : Doc(value));
  thread_.call([&] {
    const auto done = api_->patch("nodes", "", "n1", api::PatchType::Merge, patch);
    JOGAK_CHECK(done.has_value(), "{}", done.error().message);
  });
}

std::string TestCluster::text(const std::string& field, const std::string& name) {
  return thread_.call([&] {
    const Doc node = api_->get("nodes", "", "n1").value_or(Doc());
    return node.get("metadata", field)[name].as_string();
  });
}

std::string TestCluster::label(const std::string& name) { return text("labels", name); }

std::string TestCluster::annotation(const std::string& name) { return text("annotations", name); }

void TestCluster::bind_pod(const std::string& name,
                           const std::map<std::string, std::string>& annotations) {
  Doc pod = made("Pod", name);
  pod.at("metadata").set("namespace", "ml");
  for (const auto& [key, value] : annotations) pod.at("metadata", "annotations").set(key, value);
  pod.at("spec").set("nodeName", "n1");
  pod.at("spec").at("containers").push(Doc().set("name", "main").set("image", "example/train"));
  thread_.call([&] {
    const auto done = api_->create("pods", "ml", std::move(pod));
    JOGAK_CHECK(done.has_value(), "{}", done.error().message);
  });
}

void TestCluster::remove_pod(const std::string& name) {
  thread_.call([&] {
    const auto done = api_->remove("pods", "ml", name, Doc().set("gracePeriodSeconds", 0));
    JOGAK_CHECK(done.has_value(), "{}", done.error().message);
  });
}

}  // namespace jogak::agent
