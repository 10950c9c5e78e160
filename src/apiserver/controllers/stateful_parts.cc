// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/controller/statefulset of Kubernetes.
#include "apiserver/controllers/stateful_parts.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "apiserver/controllers/pod_control.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kPodIndexLabel = "apps.kubernetes.io/pod-index";

bool refers_to(const Doc& owner, std::string_view api_version, std::string_view kind,
               std::string_view name) {
  return owner["apiVersion"].as_string() == api_version && owner["kind"].as_string() == kind &&
         owner["name"].as_string() == name;
}

Doc pod_reference(const PodView& pod) {
  Doc owner = Doc::object();
  owner.set("apiVersion", "v1").set("kind", "Pod");
  owner.at("metadata").set("name", pod.name).set("uid", pod.uid);
  return controller_reference(owner);
}

}  // namespace

std::optional<std::int64_t> ordinal_of(std::string_view set_name, std::string_view pod_name) {
  if (!pod_name.starts_with(set_name)) return std::nullopt;
  pod_name.remove_prefix(set_name.size());
  if (pod_name.size() < 2 || pod_name[0] != '-') return std::nullopt;
  pod_name.remove_prefix(1);
  std::int32_t ordinal = 0;
  const char* end = pod_name.data() + pod_name.size();
  const auto [stop, error] = std::from_chars(pod_name.data(), end, ordinal);
  if (error != std::errc() || stop != end || ordinal < 0) return std::nullopt;
  return ordinal;
}

std::int64_t first_ordinal(const Doc& set) { return set.get("spec", "ordinals", "start").as_int(); }

std::string claim_name(const Doc& set, const Doc& claim_template, std::int64_t ordinal) {
  return fmt::format("{}-{}-{}", api::name_of(claim_template), api::name_of(set), ordinal);
}

Doc member_pod(const Doc& set, const Doc& revision, std::int64_t ordinal) {
  Doc pod_template = revision.get("data", "spec", "template");
  pod_template.erase("$patch");
  Doc pod = pod_from_template(pod_template, set);
  const std::string name = fmt::format("{}-{}", api::name_of(set), ordinal);
  Doc& metadata = pod.at("metadata");
  metadata.set("name", name);
  metadata.at("labels")
      .set(kPodNameLabel, name)
      .set(kPodIndexLabel, std::to_string(ordinal))
      .set(kRevisionLabel, api::name_of(revision));
  Doc& spec = pod.at("spec");
  spec.set("hostname", name);
  const std::string& service = set.get("spec", "serviceName").as_string();
  if (!service.empty()) spec.set("subdomain", service);
  const Doc::Items& claims = set.get("spec", "volumeClaimTemplates").items();
  if (claims.empty()) return pod;
  Doc volumes = Doc::array();
  for (const Doc& claim : claims) {
    Doc volume = Doc::object();
    volume.set("name", api::name_of(claim));
    volume.at("persistentVolumeClaim").set("claimName", claim_name(set, claim, ordinal));
    volumes.push(std::move(volume));
  }
  for (const Doc& volume : spec["volumes"].items()) {
    const bool is_claim = std::ranges::any_of(claims, [&](const Doc& claim) {
      return api::name_of(claim) == volume["name"].as_string();
    });
    if (!is_claim) volumes.push(volume);
  }
  spec.set("volumes", std::move(volumes));
  return pod;
}

std::vector<Doc> member_claims(const Doc& set, std::int64_t ordinal) {
  std::vector<Doc> claims;
  for (Doc claim : set.get("spec", "volumeClaimTemplates").items()) {
    claim.set("kind", "PersistentVolumeClaim").set("apiVersion", "v1");
    const std::string name = claim_name(set, claim, ordinal);
    claim.at("metadata").set("name", name).set("namespace", api::namespace_of(set));
    for (const auto& [key, value] : set.get("spec", "selector", "matchLabels").members()) {
      claim.at("metadata", "labels").set(key, value);
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

std::optional<Doc> claim_owners(const Doc& claim, const Doc& set, const PodView& pod,
                                bool is_condemned) {
  const Doc& policy = set.get("spec", "persistentVolumeClaimRetentionPolicy");
  const bool goes_with_set = policy["whenDeleted"].as_string() == "Delete";
  const bool goes_with_scale = policy["whenScaled"].as_string() == "Delete";
  Doc kept = Doc::array();
  bool has_stale = false, has_other = false;
  const Doc& owners = api::meta(claim)["ownerReferences"];
  for (const Doc& owner : owners.items()) {
    const bool is_set = refers_to(owner, "apps/v1", "StatefulSet", api::name_of(set));
    const bool is_pod = refers_to(owner, "v1", "Pod", pod.name);
    if (!is_set && !is_pod) {
      kept.push(owner);
      has_other = has_other || owner["controller"].as_bool();
    } else if (owner["uid"].as_string() != (is_set ? api::uid_of(set) : pod.uid)) {
      has_stale = true;
    }
  }
  if (has_stale) return std::nullopt;  // its garbage collection is under way
  const bool is_ours = !has_other || !(goes_with_set || goes_with_scale);
  if (is_ours && goes_with_scale && is_condemned) kept.push(pod_reference(pod));
  if (is_ours && goes_with_set && !(goes_with_scale && is_condemned)) {
    kept.push(controller_reference(set));
  }
  if (kept.items() == owners.items()) return std::nullopt;
  return kept;
}

bool is_stale_claim(const Doc& claim, std::string_view pod_name) {
  // a member that does not exist has no uid yet: whoever of its name owns the claim is another
  return std::ranges::any_of(api::meta(claim)["ownerReferences"].items(), [&](const Doc& owner) {
    return refers_to(owner, "v1", "Pod", pod_name);
  });
}

}  // namespace jogak::controllers
