// SPDX-License-Identifier: Apache-2.0
//
// Secrets: plain text turns into data, each well known type demands its keys.
#include <array>

#include "apiserver/codec/codec.h"
#include "apiserver/kinds/config_data.h"
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";

void require_json(const Doc& data, std::string_view key, FieldErrors& errors) {
  const Path at = Path("data").key(key);
  const Doc* value = data.find(key);
  if (value == nullptr) {
    errors.required(at);
    return;
  }
  const auto bytes = base64_decode(value->as_string());
  const auto parsed = codec::parse_json(bytes.value_or(""));
  if (!parsed.has_value()) {
    errors.invalid(at, "<secret contents redacted>", parsed.error().what);
  } else if (!parsed->doc.is_object() && !parsed->doc.is_null()) {
    errors.invalid(at, "<secret contents redacted>", "must be a JSON object");
  }
}

void require_key(const Doc& data, std::string_view key, FieldErrors& errors) {
  if (!data.has(key)) errors.required(Path("data").key(key));
}

void validate_type(const Doc& secret, FieldErrors& errors) {
  const std::string& type = secret["type"].as_string();
  const Doc& data = secret["data"];
  if (type == "kubernetes.io/service-account-token") {
    if (meta(secret)["annotations"][kAccountName].as_string().empty()) {
      errors.required(Path("metadata.annotations").key(kAccountName));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    require_json(data, ".dockercfg", errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require_json(data, ".dockerconfigjson", errors);
  } else if (type == "kubernetes.io/basic-auth") {
    if (data.has("username") || data.has("password")) return;
    require_key(data, "username", errors);
    require_key(data, "password", errors);
  } else if (type == "kubernetes.io/ssh-auth") {
    if (data["ssh-privatekey"].as_string().empty()) {
      errors.required(Path("data").key("ssh-privatekey"));
    }
  } else if (type == "kubernetes.io/tls") {
    require_key(data, "tls.crt", errors);
    require_key(data, "tls.key", errors);
  }
}

void validate_secret(const Doc& secret, FieldErrors& errors) {
  std::size_t size = 0;
  for (const auto& [key, value] : secret["data"].members()) {
    add_problems(errors, Path("data").key(key), key, check_config_key(key));
    size += base64_size(value.as_string());
  }
  if (size > kConfigDataMax) errors.too_long(Path("data"), kConfigDataMax);
  validate_type(secret, errors);
}

// A pair that cannot be used is stored all the same; whether key and certificate belong together is
// not looked at here.
void warn_about_pair(const Doc& secret, WriteContext& context) {
  if (secret["type"].as_string() != "kubernetes.io/tls") return;
  static constexpr std::array<std::array<std::string_view, 3>, 2> kParts = {{
      {"tls.crt", "-----BEGIN CERTIFICATE-----", "certificate"},
      {"tls.key", "PRIVATE KEY-----", "key"},
  }};
  for (const auto& [member, mark, what] : kParts) {
    const auto bytes = base64_decode(secret["data"][member].as_string());
    if (bytes.value_or("").contains(mark)) continue;
    context.warnings.push_back("tls: failed to find any PEM data in " + std::string(what) +
                               " input");
    return;
  }
}

class SecretStrategy : public PlainStrategy {
 public:
  MetaChecks meta_checks_on_update() const override { return MetaChecks::ChangesAndWhole; }
  void set_defaults(Doc& secret) const override {
    if (const Doc* plain = secret.find("stringData")) {
      const Doc texts = *plain;
      for (const auto& [key, value] : texts.members()) {
        secret.at("data").set(key, base64_encode(value.as_string()));
      }
      secret.erase("stringData");
    }
    if (secret["type"].as_string().empty()) secret.set("type", "Opaque");
  }

  void prepare_create(Doc& secret, WriteContext& context) const override {
    warn_about_pair(secret, context);
  }
  void validate_create(const Doc& secret, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_secret(secret, errors);
  }
  void prepare_update(Doc& secret, const Doc& /*old*/, WriteContext& context) const override {
    warn_about_pair(secret, context);
  }
  void validate_update(const Doc& secret, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    require_same(secret["type"], old["type"], Path("type"), errors);
    check_immutable(secret, old, {"data"}, errors);
    validate_secret(secret, errors);
  }

  std::vector<std::string_view> selectable_fields() const override { return {"type"}; }
};

}  // namespace

StrategyPtr secret_strategy() { return std::make_shared<SecretStrategy>(); }

}  // namespace jogak::api
