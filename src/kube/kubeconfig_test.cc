// SPDX-License-Identifier: Apache-2.0
//
// kubeconfig files in a temporary folder, and what comes of them.
#include "kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// One cluster, one user, one context, with these lines inside.
std::string config(std::string_view cluster, std::string_view user = "{}",
                   std::string_view more = "") {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
      "clusters: [{{name: k, cluster: {}}}]\n"
      "users: [{{name: u, user: {}}}]\n"
      "contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n{}",
      cluster, user, more);
}

constexpr std::string_view kHttps = "{server: 'https://s:6443'}";

class KubeconfigTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    const std::string path = folder_.path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_TRUE(write_file(path, text).has_value());
    return path;
  }
  Result<Access> of(std::string_view text, const std::string& context = "") {
    return find_access({.kubeconfig = write("config", text), .context = context}, {});
  }
  std::string error_of(std::string_view text, const std::string& context = "") {
    const auto access = of(text, context);
    EXPECT_FALSE(access.has_value()) << text;
    return access.has_value() ? "" : access.error().what;
  }

  TempFolder folder_;
};

TEST_F(KubeconfigTest, EveryFieldOfACluster) {
  const auto access = of(
      config("{server: 'https://s:6443/p', tls-server-name: n, certificate-authority: pki/ca.crt, "
             "proxy-url: 'socks5://p:1', disable-compression: true, unknown: [1]}"));
  ASSERT_TRUE(access.has_value()) << access.error().what;
  EXPECT_EQ(access->server, "https://s:6443/p");
  EXPECT_EQ(access->tls_server_name, "n");
  EXPECT_EQ(access->ca_file, folder_.path("pki/ca.crt"));
  EXPECT_EQ(access->proxy_url, "socks5://p:1");
  EXPECT_TRUE(access->disable_compression);
  EXPECT_FALSE(access->insecure_skip_verify);
  EXPECT_EQ(access->namespace_name, "default");
  EXPECT_EQ(access->source, "context \"c\" of " + folder_.path("config"));
}

TEST_F(KubeconfigTest, EveryFieldOfAUser) {
  const std::string certificate = base64_encode("CERT"), key = base64_encode("KEY");
  const auto access = of(config(
      kHttps,
      fmt::format("{{token: t, tokenFile: ../t, client-certificate-data: {}, client-key-data: {}, "
                  "client-certificate: /abs/c.crt, client-key: c.key, as: a, as-uid: '7', "
                  "as-groups: [g, h], as-user-extra: {{scopes: [x, y]}}}}",
                  certificate, key)));
  ASSERT_TRUE(access.has_value()) << access.error().what;
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->token_file,
            (std::filesystem::path(folder_.path()).parent_path() / "t").string());
  EXPECT_EQ(access->client_certificate_pem, "CERT");
  EXPECT_EQ(access->client_key_pem, "KEY");
  EXPECT_EQ(access->client_certificate_file, "/abs/c.crt");
  EXPECT_EQ(access->client_key_file, folder_.path("c.key"));
  EXPECT_EQ(access->impersonate_user, "a");
  EXPECT_EQ(access->impersonate_uid, "7");
  EXPECT_THAT(access->impersonate_groups, ElementsAre("g", "h"));
  EXPECT_THAT(access->impersonate_extra, ElementsAre(Pair("scopes", ElementsAre("x", "y"))));

  const auto basic = of(config(kHttps, "{username: me, password: 'p:w'}"));
  EXPECT_EQ(basic->username, "me");
  EXPECT_EQ(basic->password, "p:w");
}

TEST_F(KubeconfigTest, EveryFieldOfAnExecProgram) {
  const auto access = of(config(
      "{server: 'https://s', extensions: [{name: other, extension: 1}, {name: "
      "client.authentication.k8s.io/exec, extension: {audience: a, n: 5, s: '5', f: 1.5, b: true, "
      "z: null, l: [007, -3]}}]}",
      "{exec: {command: ./bin/login, args: [get, token], env: [{name: A, value: '1'}], apiVersion: "
      "client.authentication.k8s.io/v1, installHint: get it, provideClusterInfo: true, "
      "interactiveMode: Never}}"));
  ASSERT_TRUE(access.has_value()) << access.error().what;
  const ExecConfig& exec = access->exec.value();
  EXPECT_EQ(exec.command, folder_.path("bin/login"));
  EXPECT_THAT(exec.args, ElementsAre("get", "token"));
  EXPECT_THAT(exec.env, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(exec.install_hint, "get it");
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.interactive, ExecConfig::Interactive::Never);
  EXPECT_EQ(access->exec_cluster_config,
            R"({"audience":"a","n":5,"s":"5","f":1.5,"b":true,"z":null,"l":["007",-3]})");

  const auto bare = of(
      config(kHttps, "{exec: {command: login, apiVersion: client.authentication.k8s.io/v1beta1}}"));
  EXPECT_EQ(bare->exec->command, "login") << "looked up in PATH";
  EXPECT_EQ(bare->exec->interactive, ExecConfig::Interactive::IfAvailable);
}

TEST_F(KubeconfigTest, JsonIsYaml) {
  const auto access = of(R"({"kind": "Config", "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": "https://s"}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "", "namespace": "n"}}]})");
  ASSERT_TRUE(access.has_value()) << access.error().what;
  EXPECT_EQ(access->namespace_name, "n");
}

TEST_F(KubeconfigTest, OnlyHttpsGetsCredentialsAndTls) {
  for (const std::string server : {"http://s:8080", "s:8080"}) {
    // what would be wrong with https is not looked at
    const auto access = of(config(
        fmt::format("{{server: '{}', insecure-skip-tls-verify: true, certificate-authority: a, "
                    "proxy-url: 'http://p'}}",
                    server),
        "{token: t, username: u, as: x}"));
    ASSERT_TRUE(access.has_value()) << access.error().what;
    EXPECT_EQ(access->server, "http://s:8080");
    EXPECT_EQ(access->token, "");
    EXPECT_EQ(access->ca_file, "");
    EXPECT_EQ(access->impersonate_user, "");
    EXPECT_EQ(access->proxy_url, "http://p");
    EXPECT_FALSE(access->insecure_skip_verify);
  }
}

TEST_F(KubeconfigTest, ErrorsNameFileFieldAndCure) {
  const std::string file = folder_.path("config");
  const auto user = [](std::string_view text) { return config(kHttps, text); };
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {config("{}"), ": cluster \"k\": server: missing; write it as https://HOST:PORT"},
      {config("{server: 'https://s', insecure-skip-tls-verify: true, certificate-authority: a}"),
       "remove one"},
      {config("{server: [a]}"), ": clusters[0].cluster.server: must be a text"},
      {config("{server: a, insecure-skip-tls-verify: maybe}"), "must be true or false"},
      {config("{server: a, certificate-authority-data: '%%'}"),
       "clusters[0].cluster.certificate-authority-data: not base64; encode"},
      {config("hello"), "clusters[0].cluster: must be a map of fields"},
      {user("{token: t, username: u}"), "user \"u\": token together with username"},
      {user("{client-certificate: a}"), "client-key: missing"},
      {user("{client-key-data: YQ==}"), "client-certificate: missing"},
      {user("{as-groups: [g]}"), "as: missing"},
      {user("{auth-provider: {name: gcp}}"), "auth-provider: no longer supported"},
      {user("{exec: {apiVersion: x}}"), "exec.command: missing"},
      {user("{exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}}"),
       "exec.apiVersion: \"client.authentication.k8s.io/v1alpha1\" is not known"},
      {user("{exec: {command: a, apiVersion: client.authentication.k8s.io/v1}}"),
       "exec.interactiveMode: missing"},
      {user("{exec: {command: a, interactiveMode: Sometimes}}"), "Never, IfAvailable or Always"},
      {user("{exec: {command: a, env: [{name: '', value: b}]}}"), "exec.env[0].name"},
      {user("{as: a, as-user-extra: [1]}"), "as-user-extra: must be a map of lists"},
      {"clusters: {a: b}", "clusters: must be a list"},
      {"clusters: [{name: a}, {name: a}]", "clusters[1].name: a name that an entry before it has"},
      {"kind: Pod", "kind: \"Pod\" is not Config"},
      {"[1, 2]", "file: must be a map of fields"},
      {"a: [", "not YAML: line "}};
  for (const auto& [text, part] : wrong) {
    EXPECT_THAT(error_of(text), AllOf(testing::StartsWith(file), HasSubstr(part)));
  }
}

TEST_F(KubeconfigTest, SecretsAreNotInErrors) {
  EXPECT_THAT(error_of(config(kHttps, "{client-key-data: s3cret!}")), Not(HasSubstr("s3cret")));
  EXPECT_THAT(error_of(config(kHttps, "{token: s3cret, username: u, password: s3cret}")),
              Not(HasSubstr("s3cret")));
}

TEST_F(KubeconfigTest, ContextsAreChosenByName) {
  const std::string text =
      "clusters: [{name: k, cluster: {server: 'https://s'}}, {name: l, cluster: {server: "
      "'https://t'}}]\n"
      "contexts: [{name: one, context: {cluster: k}}, {name: two, context: {cluster: l, namespace: "
      "n}}, {name: odd, context: {cluster: nowhere}}, {name: odder, context: {cluster: k, user: "
      "nobody}}]\n";
  EXPECT_EQ(of(text, "two")->server, "https://t");
  EXPECT_EQ(of(text, "two")->namespace_name, "n");
  EXPECT_EQ(of(text, "one")->server, "https://s");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("current-context: not set"),
                                    HasSubstr("there are: odd, odder, one, two")));
  EXPECT_THAT(error_of(text, "three"), HasSubstr("no context \"three\" (there are: odd"));
  // what a context names is only looked for when it is used
  EXPECT_THAT(error_of(text, "odd"), HasSubstr("no cluster \"nowhere\" (there are: k, l)"));
  EXPECT_THAT(error_of(text, "odder"), HasSubstr("no user \"nobody\" (there is none)"));
}

TEST_F(KubeconfigTest, FilesAreMergedAndTheFirstWins) {
  const std::string one = write("one/config",
                                "clusters: [{name: k, cluster: {server: 'https://first', "
                                "certificate-authority: ca.crt}}]\n");
  const std::string two = write("two/config",
                                "current-context: c\n"
                                "clusters: [{name: k, cluster: {server: 'https://second', "
                                "tls-server-name: n}}]\n"
                                "users: [{name: u, user: {tokenFile: token}}]\n"
                                "contexts: [{name: c, context: {cluster: k, user: u}}]\n");
  const std::string three = write("three/config", "current-context: other\n");
  const Environment environment{
      .kubeconfig = fmt::format(":{}::{}:{}:{}", one, folder_.path("missing"), two, three)};
  const auto access = find_access({}, environment);
  ASSERT_TRUE(access.has_value()) << access.error().what;
  EXPECT_EQ(access->server, "https://first");
  EXPECT_EQ(access->tls_server_name, "") << "an entry comes whole from one file";
  EXPECT_EQ(access->ca_file, folder_.path("one/ca.crt"));
  EXPECT_EQ(access->token_file, folder_.path("two/token"));
}

TEST_F(KubeconfigTest, TheFileOfTheHomeFolder) {
  write("home/.kube/config", config(kHttps));
  EXPECT_TRUE(find_access({}, {.home = folder_.path("home")}).has_value());
  // not when a list is given
  EXPECT_FALSE(
      find_access({}, {.kubeconfig = folder_.path("missing"), .home = folder_.path("home")})
          .has_value());
}

TEST_F(KubeconfigTest, AnExplicitFileMustBeThere) {
  const auto access = find_access({.kubeconfig = folder_.path("missing")},
                                  {.service_host = "10.0.0.1", .service_port = "443"});
  EXPECT_EQ(access.error().code, Errc::NotFound);
  EXPECT_THAT(access.error().what, HasSubstr(folder_.path("missing")));
}

TEST_F(KubeconfigTest, InCluster) {
  write("sa/token", "tok\n");
  Environment environment{.home = folder_.path("nowhere"),
                          .service_host = "10.0.0.1",
                          .service_port = "443",
                          .service_account_folder = folder_.path("sa")};
  auto access = find_access({}, environment);
  ASSERT_TRUE(access.has_value()) << access.error().what;
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->token_file, folder_.path("sa/token"));
  EXPECT_EQ(access->token, "");
  EXPECT_EQ(access->ca_file, "") << "none there: the system's roots";
  EXPECT_EQ(access->namespace_name, "default");

  write("sa/ca.crt", "ca");
  write("sa/namespace", "kube-system\n");
  environment.service_host = "fd00::1";
  access = find_access({}, environment);
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->ca_file, folder_.path("sa/ca.crt"));
  EXPECT_EQ(access->namespace_name, "kube-system");

  // a file that says something comes first
  write("nowhere/.kube/config", config(kHttps));
  EXPECT_EQ(find_access({}, environment)->server, "https://s:6443");
}

TEST_F(KubeconfigTest, InClusterWithoutItsParts) {
  const Environment half{.service_host = "10.0.0.1"};
  EXPECT_EQ(in_cluster_access(half).error().code, Errc::NotFound);
  Environment whole{.service_host = "10.0.0.1",
                    .service_port = "443",
                    .service_account_folder = folder_.path("sa")};
  EXPECT_EQ(in_cluster_access(whole).error().code, Errc::Invalid);
  EXPECT_THAT(in_cluster_access(whole).error().what, HasSubstr("automountServiceAccountToken"));
  write("sa/token", " \n");
  EXPECT_THAT(in_cluster_access(whole).error().what, HasSubstr("is empty"));
}

TEST_F(KubeconfigTest, NothingAtAll) {
  const auto access = find_access({}, {.home = folder_.path()});
  EXPECT_EQ(access.error().code, Errc::NotFound);
  EXPECT_THAT(access.error().what, AllOf(HasSubstr("no configuration of a cluster"),
                                         HasSubstr(".kube/config"), HasSubstr("--kubeconfig")));
}

TEST_F(KubeconfigTest, AliasesThatGrowAreRefused) {
  std::string text = "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n";
  for (int i = 1; i < 8; ++i) {
    text += fmt::format("x{0}: &x{0} [*x{1}, *x{1}, *x{1}, *x{1}, *x{1}, *x{1}, *x{1}, *x{1}]\n", i,
                        i - 1);
  }
  text += config(
      "{server: a, extensions: [{name: client.authentication.k8s.io/exec, extension: *x7}]}");
  EXPECT_THAT(error_of(text), HasSubstr("extension: too large or too deep"));
}

}  // namespace
}  // namespace jogak::kube
