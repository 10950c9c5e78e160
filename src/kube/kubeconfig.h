// SPDX-License-Identifier: Apache-2.0
//
// Where the API server is and who we are to it: kubeconfig files, merged as kubectl does, or the
// service account of the pod we run in. Everything read comes in through Environment, so that a
// test says what the world looks like. Errors name the file, the field and the cure, and never hold
// a secret.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace jogak::kube {

// A program that hands out credentials (client.authentication.k8s.io).
struct ExecConfig {
  std::string command;  // absolute, or a bare word to look up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;  // ".../v1" or ".../v1beta1"
  std::string install_hint;
  bool provide_cluster_info = false;
  enum class Interactive : std::uint8_t { Never, IfAvailable, Always };
  Interactive interactive = Interactive::IfAvailable;

  friend bool operator==(const ExecConfig&, const ExecConfig&) = default;
};

// One server and one identity. Paths are absolute or as the working folder has them. A server that
// is not https has neither credentials nor TLS settings here, whatever the files say.
struct Access {
  std::string source;  // "context \"c\" of ~/.kube/config", "the cluster around this pod"
  std::string server;  // "https://10.0.0.1:6443/prefix"
  std::string namespace_name = "default";

  std::string ca_pem, ca_file;  // the first that is not empty; neither: the system's roots
  std::string tls_server_name;
  bool insecure_skip_verify = false;
  std::string proxy_url;  // empty: the environment's
  bool disable_compression = false;
  std::string exec_cluster_config;  // JSON for a credential program, "" for none

  std::string client_certificate_pem, client_key_pem;  // win over the files
  std::string client_certificate_file, client_key_file;
  std::string token, token_file;  // the file wins while it can be read
  std::string username, password;
  std::optional<ExecConfig> exec;

  std::string impersonate_user, impersonate_uid;
  std::vector<std::string> impersonate_groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> impersonate_extra;

  bool is_https() const { return server.starts_with("https://"); }
};

struct Environment {
  std::string kubeconfig = {};    // $KUBECONFIG
  std::string home = {};          // $HOME
  std::string service_host = {};  // $KUBERNETES_SERVICE_HOST
  std::string service_port = {};  // $KUBERNETES_SERVICE_PORT
  std::string service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

  // That of this process.
  static Environment of_process();
};

struct AccessWanted {
  std::string kubeconfig = {};  // this file alone; empty: $KUBECONFIG, ~/.kube/config, in cluster
  std::string context = {};     // empty: current-context
};

Result<Access> find_access(const AccessWanted& wanted, const Environment& environment);

// The service account of this pod. NotFound when this is no pod.
Result<Access> in_cluster_access(const Environment& environment);

// --- the steps of it

struct Kubeconfig {
  // Of an entry: the file it stands in, for messages.
  struct Cluster {
    std::string file;
    Access access;  // the cluster's part
  };
  struct User {
    std::string file;
    Access access;  // the user's part
    bool has_auth_provider = false;
    bool has_interactive_mode = false;
  };
  struct Context {
    std::string file;
    std::string cluster, user, namespace_name;
  };
  std::vector<std::string> files;
  std::string current_context;
  std::map<std::string, Cluster, std::less<>> clusters;
  std::map<std::string, User, std::less<>> users;
  std::map<std::string, Context, std::less<>> contexts;

  bool empty() const { return clusters.empty() && users.empty() && contexts.empty(); }
};

// One file's text; relative paths in it are taken from the folder of `path`.
Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path);
// What is in `first` stays; the rest is added, entry by entry.
void merge(Kubeconfig& first, Kubeconfig second);
Result<Access> access_of(const Kubeconfig& config, const std::string& context);

}  // namespace jogak::kube
