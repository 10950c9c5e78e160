// SPDX-License-Identifier: Apache-2.0
//
// Service accounts, and the tokens they hand out: JSON web tokens in shape, signed by nobody, since
// this server accepts only the tokens it was started with.
#include <string>

#include "apiserver/kinds/config_data.h"
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops.h"

namespace jogak::api {

namespace {

constexpr std::string_view kIssuer = "https://kubernetes.default.svc";
constexpr std::string_view kMountable = "kubernetes.io/enforce-mountable-secrets";
constexpr std::int64_t kMinTokenSeconds = 600;
constexpr std::int64_t kMaxTokenSeconds = std::int64_t{1} << 32;
constexpr std::int64_t kDefaultTokenSeconds = 3600;

class AccountStrategy : public PlainStrategy {
 public:
  void prepare_create(Doc& account, WriteContext& context) const override {
    keep_only_names(account);
    warn(account, {}, context);
  }
  void prepare_update(Doc& account, const Doc& old, WriteContext& context) const override {
    keep_only_names(account);
    warn(account, old, context);
  }
  bool returns_deleted_object() const override { return true; }

 private:
  static void keep_only_names(Doc& account) {
    Doc* secrets = account.find("secrets");
    if (secrets == nullptr || !secrets->is_array()) return;
    for (Doc& secret : secrets->items()) {
      const std::string name = secret["name"].as_string();
      secret = Doc::object().set("name", name);
    }
  }
  static void warn(const Doc& account, const Doc& old, WriteContext& context) {
    const Doc& now = meta(account)["annotations"];
    if (!now.has(kMountable) || meta(old)["annotations"].has(kMountable)) return;
    context.warnings.push_back("metadata.annotations[" + std::string(kMountable) +
                               "]: deprecated in v1.32+; prefer separate namespaces to isolate "
                               "access to mounted secrets");
  }
};

Refusal invalid_request(std::string_view name, const FieldErrors& errors) {
  return invalid_object("TokenRequest", "authentication.k8s.io", name, errors);
}

ApiResult<void> check_meta(const Call& call) {
  FieldErrors errors;
  const std::string& name = name_of(call.body);
  const std::string& ns = namespace_of(call.body);
  if (!name.empty() && name != call.name) {
    errors.invalid(Path("metadata.name"), name, "must match the service account name if specified");
  } else if (!ns.empty() && ns != call.ns) {
    errors.invalid(Path("metadata.namespace"), ns,
                   "must match the service account namespace if specified");
  }
  if (!errors.empty()) return invalid_request(call.name, errors);
  return {};
}

ApiResult<void> check_span(std::int64_t seconds) {
  FieldErrors errors;
  const Path at("spec.expirationSeconds");
  if (seconds < kMinTokenSeconds) {
    errors.invalid(at, seconds, "may not specify a duration less than 10 minutes");
  }
  if (seconds > kMaxTokenSeconds) {
    errors.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds");
  }
  if (!errors.empty()) return invalid_request("", errors);
  return {};
}

// The object that the token is bound to, or a null Doc.
ApiResult<Doc> bound_object(const Ops& ops, const Call& call, const Doc& reference) {
  if (reference.is_null()) return Doc();
  const std::string& kind = reference["kind"].as_string();
  const bool is_core = !reference["apiVersion"].as_string().contains('/');
  const std::string& name = reference["name"].as_string();
  std::string_view plural;
  if (is_core && kind == "Pod") plural = "pods";
  if (is_core && kind == "Node") plural = "nodes";
  if (is_core && kind == "Secret") plural = "secrets";
  if (plural.empty()) return bad_request("cannot bind token to object of type " + kind);
  const auto object = ops.get(plural, kind == "Node" ? "" : call.ns, name);
  if (!object.has_value()) return not_found({plural, ""}, name);
  if (kind == "Pod" && object->get("spec", "serviceAccountName").as_string() != call.name) {
    return bad_request("cannot bind token for serviceaccount \"" + call.name +
                       "\" to pod running with different serviceaccount name.");
  }
  const std::string& uid = reference["uid"].as_string();
  if (!uid.empty() && uid != uid_of(*object)) {
    return conflict({kind, ""}, name,
                    "the UID in the bound object reference (" + uid +
                        ") does not match the UID in record. The object might have been deleted "
                        "and then recreated");
  }
  return *object;
}

std::string make_token(const Call& call, const Doc& account, const Doc& audiences, TimeUs now,
                       std::int64_t seconds, const Doc& bound, Rng& rng) {
  const std::int64_t issued = now / kSecondInUs;
  Doc owner = Doc::object();
  owner.set("namespace", call.ns);
  owner.set("serviceaccount", Doc::object().set("name", call.name).set("uid", uid_of(account)));
  if (!bound.is_null()) {
    std::string member = bound["kind"].as_string();
    if (!member.empty()) member[0] = static_cast<char>(member[0] - 'A' + 'a');
    owner.set(member, Doc::object().set("name", name_of(bound)).set("uid", uid_of(bound)));
  }
  Doc claims = Doc::object();
  claims.set("aud", audiences)
      .set("exp", issued + seconds)
      .set("iat", issued)
      .set("iss", kIssuer)
      .set("kubernetes.io", std::move(owner))
      .set("nbf", issued)
      .set("sub", "system:serviceaccount:" + call.ns + ":" + call.name);
  const Doc header = Doc::object().set("alg", "RS256").set("kid", "jogak");
  std::string signature;
  for (int i = 0; i < 32; ++i) {
    std::uint64_t word = rng.next();
    for (int j = 0; j < 8; ++j, word >>= 8) signature += static_cast<char>(word & 255);
  }
  return base64url_encode(header.json(JsonWriter::Style::Compact)) + "." +
         base64url_encode(claims.json(JsonWriter::Style::Compact)) + "." +
         base64url_encode(signature);
}

ApiResult<Answer> answer_token(Ops& ops, Call& call) {
  JOGAK_TRY_VOID(check_meta(call));
  const auto account = ops.get("serviceaccounts", call.ns, call.name);
  if (!account.has_value()) return not_found({"serviceaccounts", ""}, call.name);
  const std::string uid = uid_of(call.body);
  if (!uid.empty() && uid != uid_of(*account)) {
    return conflict({"TokenRequest", "authentication.k8s.io"}, call.name,
                    "the UID in the token request (" + uid +
                        ") does not match the UID of the service account (" + uid_of(*account) +
                        ")");
  }
  const Doc& spec = call.body["spec"];
  const std::int64_t seconds = spec["expirationSeconds"].as_int(kDefaultTokenSeconds);
  JOGAK_TRY_VOID(check_span(seconds));
  JOGAK_TRY(const Doc bound, bound_object(ops, call, spec["boundObjectRef"]));
  Doc audiences = spec["audiences"];
  if (audiences.empty()) audiences = Doc::array({kIssuer});

  const TimeUs now = ops.loop().now();
  Doc metadata = call.body["metadata"];
  metadata.set("name", call.name)
      .set("namespace", call.ns)
      .set("uid", uid_of(*account))
      .set("creationTimestamp", format_time(now));
  const std::string token = make_token(call, *account, audiences, now, seconds, bound, ops.rng());
  Doc answer = Doc::object();
  answer.set("kind", "TokenRequest")
      .set("apiVersion", "authentication.k8s.io/v1")
      .set("metadata", std::move(metadata));
  Doc& answer_spec = answer.at("spec");
  answer_spec.set("audiences", std::move(audiences)).set("expirationSeconds", seconds);
  if (spec.has("boundObjectRef")) answer_spec.set("boundObjectRef", spec["boundObjectRef"]);
  answer.at("status")
      .set("token", token)
      .set("expirationTimestamp", format_time(now + seconds * kSecondInUs));
  return created(std::move(answer), "authentication.v1.TokenRequest");
}

}  // namespace

StrategyPtr service_account_strategy() { return std::make_shared<AccountStrategy>(); }

CallHandler token_handler() { return answer_token; }

}  // namespace jogak::api
