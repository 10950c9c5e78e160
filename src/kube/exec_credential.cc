// SPDX-License-Identifier: Apache-2.0
//
// JSON both ways.
#include "kube/exec_credential.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_writer.h"
#include "kube/time.h"

namespace jogak::kube {
namespace {

// The text of a member; empty where absent, null or something else.
std::string text_of(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("its output is not a JSON object");
  if (const std::string kind = text_of(json, "kind"); kind != "ExecCredential") {
    return invalid("its output is not of kind ExecCredential");
  }
  if (text_of(json, "apiVersion") != api_version) {
    return invalid(
        "its output is not of the version {} that was asked for; set exec.apiVersion to the "
        "program's",
        api_version);
  }
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object()) return invalid("its output has no status");
  ExecCredential credential{.token = text_of(*status, "token"),
                            .client_certificate_pem = text_of(*status, "clientCertificateData"),
                            .client_key_pem = text_of(*status, "clientKeyData"),
                            .expiry = std::nullopt};
  if (credential.client_certificate_pem.empty() != credential.client_key_pem.empty()) {
    return invalid("status.{} is missing; a client certificate needs both",
                   credential.client_key_pem.empty() ? "clientKeyData" : "clientCertificateData");
  }
  if (credential.token.empty() && credential.client_certificate_pem.empty()) {
    return invalid("its output has neither a token nor a client certificate");
  }
  if (const auto expiry = status->find("expirationTimestamp");
      expiry != status->end() && !expiry->is_null()) {
    const auto time =
        expiry->is_string() ? parse_time(expiry->get_ref<const std::string&>()) : std::nullopt;
    if (!time) return invalid("status.expirationTimestamp is not a time of RFC 3339");
    credential.expiry = *time / 1000;
  }
  return credential;
}

std::string exec_info(const Access& access, bool is_interactive, std::string_view ca_pem) {
  const ExecConfig& exec = *access.exec;
  JsonWriter out;
  out.begin_object()
      .field("apiVersion", exec.api_version)
      .field("kind", "ExecCredential")
      .key("spec")
      .begin_object()
      .field("interactive", is_interactive);
  if (exec.provide_cluster_info) {
    out.key("cluster").begin_object().field("server", access.server);
    if (!access.tls_server_name.empty()) out.field("tls-server-name", access.tls_server_name);
    if (access.insecure_skip_verify) out.field("insecure-skip-tls-verify", true);
    if (!ca_pem.empty()) out.field("certificate-authority-data", base64_encode(ca_pem));
    if (!access.proxy_url.empty()) out.field("proxy-url", access.proxy_url);
    if (access.disable_compression) out.field("disable-compression", true);
    if (!access.exec_cluster_config.empty()) out.key("config").raw(access.exec_cluster_config);
    out.end_object();
  }
  out.end_object().end_object();
  return out.take();
}

}  // namespace jogak::kube
