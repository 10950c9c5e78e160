// SPDX-License-Identifier: Apache-2.0
//
// Which files count, how they are merged, and which context is taken. The parsing of one file is in
// kubeconfig_parse.cc.
#include "kube/kubeconfig.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/file.h"

namespace jogak::kube {
namespace {

constexpr std::int64_t kConfigBytesMax = std::int64_t{16} << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t colon = std::min(list.find(':', at), list.size());
    if (colon > at) items.push_back(list.substr(at, colon - at));
    at = colon + 1;
  }
  return items;
}

Result<Kubeconfig> load_file(const std::string& path) {
  JOGAK_TRY(const std::string text, read_file(path, kConfigBytesMax));
  return parse_kubeconfig(text, path);
}

// Those that are missing are skipped, as kubectl does.
Result<Kubeconfig> load_files(const std::vector<std::string>& paths) {
  Kubeconfig all;
  for (const std::string& path : paths) {
    auto one = load_file(path);
    if (!one && one.error().code == Errc::NotFound) continue;
    if (!one) return std::unexpected(std::move(one).error());
    merge(all, *std::move(one));
  }
  return all;
}

template <class Map>
std::string names_of(const Map& map) {
  if (map.empty()) return "there is none";
  std::vector<std::string> names;
  for (const auto& [name, entry] : map) names.push_back(name);
  return fmt::format("there are: {}", fmt::join(names, ", "));
}

// The parts of a file that were read.
Result<void> check_cluster(const std::string& where, const Access& access) {
  if (access.insecure_skip_verify && (!access.ca_pem.empty() || !access.ca_file.empty())) {
    return invalid(
        "{}: insecure-skip-tls-verify: true together with certificate-authority; remove one",
        where);
  }
  return {};
}

Result<void> check_exec(const std::string& where, const Kubeconfig::User& user) {
  const ExecConfig& exec = *user.access.exec;
  if (exec.command.empty()) return invalid("{}: exec.command: missing", where);
  if (exec.api_version != "client.authentication.k8s.io/v1" &&
      exec.api_version != "client.authentication.k8s.io/v1beta1") {
    return invalid(
        "{}: exec.apiVersion: \"{}\" is not known; it must be client.authentication.k8s.io/v1 or "
        "client.authentication.k8s.io/v1beta1 (update the program's entry)",
        where, exec.api_version);
  }
  if (exec.api_version.ends_with("/v1") && !user.has_interactive_mode) {
    return invalid("{}: exec.interactiveMode: missing; v1 needs it: Never, IfAvailable or Always",
                   where);
  }
  return {};
}

Result<void> check_user(const std::string& where, const Kubeconfig::User& user) {
  const Access& access = user.access;
  if (user.has_auth_provider) {
    return invalid("{}: auth-provider: no longer supported; use an exec program or a token", where);
  }
  if (!access.token.empty() && (!access.username.empty() || !access.password.empty())) {
    return invalid("{}: token together with username and password; remove one", where);
  }
  const bool has_certificate =
      !access.client_certificate_pem.empty() || !access.client_certificate_file.empty();
  const bool has_key = !access.client_key_pem.empty() || !access.client_key_file.empty();
  if (has_certificate != has_key) {
    return invalid("{}: {}: missing; a client certificate needs both", where,
                   has_key ? "client-certificate" : "client-key");
  }
  if (access.impersonate_user.empty() &&
      (!access.impersonate_uid.empty() || !access.impersonate_groups.empty() ||
       !access.impersonate_extra.empty())) {
    return invalid("{}: as: missing; as-uid, as-groups and as-user-extra need a user", where);
  }
  if (access.exec.has_value()) return check_exec(where, user);
  return {};
}

// Puts the user's part into what has the cluster's.
void take_user(Access& access, const Access& user) {
  access.client_certificate_pem = user.client_certificate_pem;
  access.client_certificate_file = user.client_certificate_file;
  access.client_key_pem = user.client_key_pem;
  access.client_key_file = user.client_key_file;
  access.token = user.token;
  access.token_file = user.token_file;
  access.username = user.username;
  access.password = user.password;
  access.exec = user.exec;
  access.impersonate_user = user.impersonate_user;
  access.impersonate_uid = user.impersonate_uid;
  access.impersonate_groups = user.impersonate_groups;
  access.impersonate_extra = user.impersonate_extra;
}

}  // namespace

Environment Environment::of_process() {
  return {.kubeconfig = variable("KUBECONFIG"),
          .home = variable("HOME"),
          .service_host = variable("KUBERNETES_SERVICE_HOST"),
          .service_port = variable("KUBERNETES_SERVICE_PORT")};
}

void merge(Kubeconfig& first, Kubeconfig second) {
  if (first.current_context.empty()) first.current_context = std::move(second.current_context);
  first.files.insert(first.files.end(), second.files.begin(), second.files.end());
  first.clusters.merge(second.clusters);
  first.users.merge(second.users);
  first.contexts.merge(second.contexts);
}

Result<Access> access_of(const Kubeconfig& config, const std::string& context) {
  const std::string files = config.files.empty() ? "no kubeconfig was found"
                                                 : fmt::format("{}", fmt::join(config.files, ":"));
  const std::string& name = context.empty() ? config.current_context : context;
  if (name.empty()) {
    return invalid("{}: current-context: not set; set it, or name a context with --context ({})",
                   files, names_of(config.contexts));
  }
  const auto found = config.contexts.find(name);
  if (found == config.contexts.end()) {
    return fail(Errc::NotFound, "{}: no context \"{}\" ({})", files, name,
                names_of(config.contexts));
  }
  const Kubeconfig::Context& chosen = found->second;
  const std::string where = fmt::format("{}: context \"{}\"", chosen.file, name);

  const auto cluster = config.clusters.find(chosen.cluster);
  if (cluster == config.clusters.end()) {
    return invalid("{}: cluster: no cluster \"{}\" ({})", where, chosen.cluster,
                   names_of(config.clusters));
  }
  Access access = cluster->second.access;
  access.source = fmt::format("context \"{}\" of {}", name, chosen.file);
  if (!chosen.namespace_name.empty()) access.namespace_name = chosen.namespace_name;
  const std::string at_cluster =
      fmt::format("{}: cluster \"{}\"", cluster->second.file, chosen.cluster);
  if (access.server.empty()) {
    return invalid("{}: server: missing; write it as https://HOST:PORT", at_cluster);
  }

  if (access.server.find("://") == std::string::npos) access.server.insert(0, "http://");
  // no user is as good as an empty one
  const auto user = config.users.find(chosen.user);
  if (user == config.users.end() && !chosen.user.empty()) {
    return invalid("{}: user: no user \"{}\" ({})", where, chosen.user, names_of(config.users));
  }
  if (!access.is_https()) {
    Access plain;
    plain.source = std::move(access.source);
    plain.server = std::move(access.server);
    plain.namespace_name = std::move(access.namespace_name);
    plain.proxy_url = std::move(access.proxy_url);
    plain.disable_compression = access.disable_compression;
    return plain;
  }
  JOGAK_TRY_VOID(check_cluster(at_cluster, access));
  if (user != config.users.end()) {
    JOGAK_TRY_VOID(
        check_user(fmt::format("{}: user \"{}\"", user->second.file, chosen.user), user->second));
    take_user(access, user->second.access);
  }
  return access;
}

Result<Access> in_cluster_access(const Environment& environment) {
  if (environment.service_host.empty() || environment.service_port.empty()) {
    return fail(
        Errc::NotFound,
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const bool is_v6 = environment.service_host.find(':') != std::string::npos;
  Access access;
  access.source = "the cluster around this pod";
  access.server = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", environment.service_host,
                              is_v6 ? "]" : "", environment.service_port);
  const std::filesystem::path folder(environment.service_account_folder);
  access.token_file = (folder / "token").string();
  auto token = read_file(access.token_file, kConfigBytesMax);
  if (!token) {
    return in_context(
        "in cluster, token of the service account",
        {.code = Errc::Invalid,
         .what = token.error().what + "; does the pod set automountServiceAccountToken: false?"});
  }
  if (trimmed(*token).empty()) {
    return invalid("in cluster, token of the service account: {} is empty", access.token_file);
  }
  std::error_code ignored;
  if (const auto ca = folder / "ca.crt"; std::filesystem::exists(ca, ignored)) {
    access.ca_file = ca.string();
  }
  if (auto name = read_file((folder / "namespace").string(), kConfigBytesMax); name) {
    if (std::string text = trimmed(*name); !text.empty()) access.namespace_name = std::move(text);
  }
  return access;
}

Result<Access> find_access(const AccessWanted& wanted, const Environment& environment) {
  if (!wanted.kubeconfig.empty()) {
    JOGAK_TRY(const Kubeconfig config, load_file(wanted.kubeconfig));
    return access_of(config, wanted.context);
  }
  std::vector<std::string> paths = split_list(environment.kubeconfig);
  if (environment.kubeconfig.empty() && !environment.home.empty()) {
    paths = {(std::filesystem::path(environment.home) / ".kube" / "config").string()};
  }
  JOGAK_TRY(const Kubeconfig config, load_files(paths));
  if (!config.empty() || !wanted.context.empty()) return access_of(config, wanted.context);
  auto inside = in_cluster_access(environment);
  if (inside || inside.error().code != Errc::NotFound) return inside;
  return fail(
      Errc::NotFound,
      "no configuration of a cluster: nothing in {}, and this is not a pod; name a file with "
      "--kubeconfig or in $KUBECONFIG",
      paths.empty() ? "$KUBECONFIG or ~/.kube/config" : fmt::format("{}", fmt::join(paths, ", ")));
}

}  // namespace jogak::kube
