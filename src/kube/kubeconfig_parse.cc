// SPDX-License-Identifier: Apache-2.0
//
// One kubeconfig file: YAML to entries. What is unknown is skipped, as kubectl does; what is known
// must have its type.
#include <yaml-cpp/yaml.h>

#include <filesystem>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/parse_number.h"
#include "kube/kubeconfig.h"

namespace jogak::kube {
namespace {

constexpr int kNodesMax = 10'000, kDepthMax = 50;

// A place in the file. The first thing that is wrong is remembered in `problem`; what is wrong or
// absent reads as empty.
class Field {
 public:
  Field(const YAML::Node& node, std::string path, std::string& problem)
      : node_(node), path_(std::move(path)), problem_(&problem) {}

  bool is_absent() const { return !node_.IsDefined() || node_.IsNull(); }
  const std::string& path() const { return path_; }
  const YAML::Node& node() const { return node_; }

  Field operator[](const char* key) const {
    std::string path = path_.empty() ? key : fmt::format("{}.{}", path_, key);
    if (is_absent()) return {YAML::Node(YAML::NodeType::Undefined), std::move(path), *problem_};
    if (!node_.IsMap()) {
      complain("must be a map of fields");
      return {YAML::Node(YAML::NodeType::Undefined), std::move(path), *problem_};
    }
    const YAML::Node& constant = node_;  // the other operator[] would add the key
    return {constant[key], std::move(path), *problem_};
  }

  std::string text() const {
    if (is_absent()) return "";
    if (!node_.IsScalar()) {
      complain("must be a text");
      return "";
    }
    return node_.Scalar();
  }
  bool flag() const {
    if (is_absent()) return false;
    bool value = false;
    if (!node_.IsScalar() || !YAML::convert<bool>::decode(node_, value)) {
      complain("must be true or false");
    }
    return value;
  }
  // Of base64; the text itself may be a secret.
  std::string data() const {
    auto bytes = base64_decode(text());
    if (!bytes) complain("not base64; encode the file with `base64 -w0`");
    return bytes.value_or("");
  }
  // Made absolute, from the folder of the file it stands in.
  std::string file(const std::string& folder) const {
    const std::string name = text();
    if (name.empty()) return "";
    return (std::filesystem::path(folder) / name).lexically_normal().string();
  }

  template <class Fn>
  void each(Fn fn) const {
    if (is_absent()) return;
    if (!node_.IsSequence()) return complain("must be a list");
    std::size_t index = 0;
    for (const YAML::Node& item : node_) {
      fn(Field(item, fmt::format("{}[{}]", path_, index++), *problem_));
    }
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    each([&all](const Field& item) { all.push_back(item.text()); });
    return all;
  }

  void complain(std::string_view what) const {
    if (problem_->empty()) *problem_ = fmt::format("{}: {}", path_.empty() ? "file" : path_, what);
  }

 private:
  YAML::Node node_;
  std::string path_;
  std::string* problem_;
};

bool is_number(const std::string& text) {
  if (parse_int(text).has_value()) return text != "-0" && (text[0] != '0' || text.size() == 1);
  // digits, a point, digits: what else YAML calls a number is rare, and a text serves as well
  const std::size_t point = text.find('.');
  if (point == std::string::npos || point == 0 || point + 1 == text.size()) return false;
  const std::string whole = text.substr(0, point);
  return text.find_first_not_of("0123456789", point + 1) == std::string::npos &&
         whole.find_first_not_of("0123456789") == std::string::npos &&
         (whole.size() == 1 || whole[0] != '0');
}

// False when it is too large or too deep (aliases may make a small text so).
bool write_json(const YAML::Node& node, JsonWriter& out, int& nodes, int depth) {
  if (++nodes > kNodesMax || depth > kDepthMax) return false;
  if (!node.IsDefined() || node.IsNull()) {
    out.null();
  } else if (node.IsScalar()) {
    const std::string& text = node.Scalar();
    const bool is_plain = node.Tag() != "!" && node.Tag() != "tag:yaml.org,2002:str";
    if (is_plain && (text == "true" || text == "false" || is_number(text))) {
      out.raw(text);
    } else {
      out.value(text);
    }
  } else if (node.IsSequence()) {
    out.begin_array();
    for (const YAML::Node& item : node) {
      if (!write_json(item, out, nodes, depth + 1)) return false;
    }
    out.end_array();
  } else {
    out.begin_object();
    for (const auto& member : node) {
      out.key(member.first.IsScalar() ? member.first.Scalar() : "");
      if (!write_json(member.second, out, nodes, depth + 1)) return false;
    }
    out.end_object();
  }
  return true;
}

std::string json_of(const Field& field) {
  if (field.is_absent()) return "";
  JsonWriter out;
  int nodes = 0;
  if (!write_json(field.node(), out, nodes, 0)) {
    field.complain("too large or too deep");
    return "";
  }
  return out.take();
}

void read_cluster(const Field& from, const std::string& folder, Access& to) {
  to.server = from["server"].text();
  to.tls_server_name = from["tls-server-name"].text();
  to.insecure_skip_verify = from["insecure-skip-tls-verify"].flag();
  to.ca_file = from["certificate-authority"].file(folder);
  to.ca_pem = from["certificate-authority-data"].data();
  to.proxy_url = from["proxy-url"].text();
  to.disable_compression = from["disable-compression"].flag();
  from["extensions"].each([&to](const Field& item) {
    if (item["name"].text() == "client.authentication.k8s.io/exec") {
      to.exec_cluster_config = json_of(item["extension"]);
    }
  });
}

ExecConfig read_exec(const Field& from, const std::string& folder, bool& has_interactive_mode) {
  ExecConfig exec;
  exec.command = from["command"].text();
  // with a slash it is a path; a bare word is looked up in PATH
  if (exec.command.find('/') != std::string::npos) exec.command = from["command"].file(folder);
  exec.args = from["args"].texts();
  from["env"].each([&exec](const Field& item) {
    exec.env.emplace_back(item["name"].text(), item["value"].text());
    const std::string& name = exec.env.back().first;
    if (name.empty() || name.find('=') != std::string::npos) {
      item["name"].complain("must be the name of a variable");
    }
  });
  exec.api_version = from["apiVersion"].text();
  exec.install_hint = from["installHint"].text();
  exec.provide_cluster_info = from["provideClusterInfo"].flag();
  const std::string mode = from["interactiveMode"].text();
  has_interactive_mode = !mode.empty();
  if (mode == "Never") {
    exec.interactive = ExecConfig::Interactive::Never;
  } else if (mode == "Always") {
    exec.interactive = ExecConfig::Interactive::Always;
  } else if (!mode.empty() && mode != "IfAvailable") {
    from["interactiveMode"].complain("must be Never, IfAvailable or Always");
  }
  return exec;
}

void read_user(const Field& from, const std::string& folder, Kubeconfig::User& to) {
  Access& access = to.access;
  access.client_certificate_file = from["client-certificate"].file(folder);
  access.client_certificate_pem = from["client-certificate-data"].data();
  access.client_key_file = from["client-key"].file(folder);
  access.client_key_pem = from["client-key-data"].data();
  access.token = from["token"].text();
  access.token_file = from["tokenFile"].file(folder);
  access.username = from["username"].text();
  access.password = from["password"].text();
  access.impersonate_user = from["as"].text();
  access.impersonate_uid = from["as-uid"].text();
  access.impersonate_groups = from["as-groups"].texts();
  if (const Field extra = from["as-user-extra"]; !extra.is_absent()) {
    if (!extra.node().IsMap()) return extra.complain("must be a map of lists");
    for (const auto& member : extra.node()) {
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      access.impersonate_extra.emplace_back(name, extra[name.c_str()].texts());
    }
  }
  if (const Field exec = from["exec"]; !exec.is_absent()) {
    access.exec = read_exec(exec, folder, to.has_interactive_mode);
  }
  to.has_auth_provider = !from["auth-provider"].is_absent();
}

// Calls read(entry, place) for each entry with its name; twice the same name is an error.
template <class Entry, class Read>
void read_named(const Field& list, const char* inner, const std::string& path,
                std::map<std::string, Entry, std::less<>>& to, Read read) {
  list.each([&](const Field& item) {
    const Field name = item["name"];
    const auto [entry, is_new] = to.try_emplace(name.text());
    if (!is_new) return name.complain("a name that an entry before it has; rename one of them");
    entry->second.file = path;
    read(item[inner], entry->second);
  });
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path) {
  Kubeconfig config;
  config.files.push_back(path);
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return invalid("{}: not YAML: line {}: {}", path, error.mark.line + 1, error.msg);
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::string problem;
  try {
    const Field file(root, "", problem);
    const std::string kind = file["kind"].text();
    if (!kind.empty() && kind != "Config") {
      return invalid("{}: kind: \"{}\" is not Config; is this a kubeconfig?", path, kind);
    }
    config.current_context = file["current-context"].text();
    read_named(
        file["clusters"], "cluster", path, config.clusters,
        [&](const Field& from, Kubeconfig::Cluster& to) { read_cluster(from, folder, to.access); });
    read_named(file["users"], "user", path, config.users,
               [&](const Field& from, Kubeconfig::User& to) { read_user(from, folder, to); });
    read_named(file["contexts"], "context", path, config.contexts,
               [](const Field& from, Kubeconfig::Context& to) {
                 to.cluster = from["cluster"].text();
                 to.user = from["user"].text();
                 to.namespace_name = from["namespace"].text();
               });
  } catch (const YAML::Exception& error) {
    return invalid("{}: {}", path, error.msg);
  }
  if (!problem.empty()) return invalid("{}: {}", path, problem);
  return config;
}

}  // namespace jogak::kube
