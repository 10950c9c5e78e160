// SPDX-License-Identifier: Apache-2.0
//
// Kinds that a cluster's manifests contain and that nothing here acts on: webhooks and admission
// policies, network policies and ingresses, certificate requests, flow control, API services. They
// are decoded, kept and shown; their specs are not validated beyond their types.
#include <array>

#include "apiserver/kinds/kinds.h"

namespace jogak::api {

namespace {

struct Stored {
  std::string_view group, types, plural, singular, kind, short_name, category;
  bool is_namespaced = false, has_status = false;
};

constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::string_view kAdmissionTypes = "admissionregistration.v1";
constexpr std::string_view kNetworking = "networking.k8s.io";
constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";
constexpr std::string_view kExtensions = "api-extensions";

constexpr std::array<Stored, 16> kStored = {{
    {"apiregistration.k8s.io", "apiregistration.v1", "apiservices", "apiservice", "APIService", "",
     kExtensions, false, true},
    {"certificates.k8s.io", "certificates.v1", "certificatesigningrequests",
     "certificatesigningrequest", "CertificateSigningRequest", "csr", "", false, true},
    {kNetworking, "networking.v1", "ingressclasses", "ingressclass", "IngressClass", "", "", false,
     false},
    {kNetworking, "networking.v1", "ingresses", "ingress", "Ingress", "ing", "", true, true},
    {kNetworking, "networking.v1", "ipaddresses", "ipaddress", "IPAddress", "ip", "", false, false},
    {kNetworking, "networking.v1", "networkpolicies", "networkpolicy", "NetworkPolicy", "netpol",
     "", true, false},
    {kNetworking, "networking.v1", "servicecidrs", "servicecidr", "ServiceCIDR", "", "", false,
     true},
    {"storage.k8s.io", "storage.v1", "volumeattributesclasses", "volumeattributesclass",
     "VolumeAttributesClass", "vac", "", false, false},
    {kAdmission, kAdmissionTypes, "mutatingadmissionpolicies", "mutatingadmissionpolicy",
     "MutatingAdmissionPolicy", "", kExtensions, false, false},
    {kAdmission, kAdmissionTypes, "mutatingadmissionpolicybindings",
     "mutatingadmissionpolicybinding", "MutatingAdmissionPolicyBinding", "", kExtensions, false,
     false},
    {kAdmission, kAdmissionTypes, "mutatingwebhookconfigurations", "mutatingwebhookconfiguration",
     "MutatingWebhookConfiguration", "", kExtensions, false, false},
    {kAdmission, kAdmissionTypes, "validatingadmissionpolicies", "validatingadmissionpolicy",
     "ValidatingAdmissionPolicy", "", kExtensions, false, true},
    {kAdmission, kAdmissionTypes, "validatingadmissionpolicybindings",
     "validatingadmissionpolicybinding", "ValidatingAdmissionPolicyBinding", "", kExtensions, false,
     false},
    {kAdmission, kAdmissionTypes, "validatingwebhookconfigurations",
     "validatingwebhookconfiguration", "ValidatingWebhookConfiguration", "", kExtensions, false,
     false},
    {kFlow, "flowcontrol.v1", "flowschemas", "flowschema", "FlowSchema", "", "", false, true},
    {kFlow, "flowcontrol.v1", "prioritylevelconfigurations", "prioritylevelconfiguration",
     "PriorityLevelConfiguration", "", "", false, true},
}};

// What its specs gain when somebody leaves out what the API fills in.
class WebhookStrategy : public Strategy {
 public:
  explicit WebhookStrategy(bool is_mutating) : is_mutating_(is_mutating) {}

  void set_defaults(Doc& object) const override {
    Doc* hooks = object.find("webhooks");
    if (hooks == nullptr) return;
    for (Doc& hook : hooks->items()) {
      hook.set_default("failurePolicy", "Fail");
      hook.set_default("matchPolicy", "Equivalent");
      hook.set_default("namespaceSelector", Doc::object());
      hook.set_default("objectSelector", Doc::object());
      hook.set_default("timeoutSeconds", 10);
      if (is_mutating_) hook.set_default("reinvocationPolicy", "Never");
      if (Doc* service = hook.at("clientConfig").find("service")) service->set_default("port", 443);
      if (Doc* rules = hook.find("rules")) {
        for (Doc& rule : rules->items()) rule.set_default("scope", "*");
      }
    }
  }

 private:
  bool is_mutating_;
};

std::shared_ptr<const Strategy> strategy_of(const Stored& stored) {
  if (stored.kind == "MutatingWebhookConfiguration") {
    return std::make_shared<WebhookStrategy>(true);
  }
  if (stored.kind == "ValidatingWebhookConfiguration") {
    return std::make_shared<WebhookStrategy>(false);
  }
  return std::make_shared<Strategy>();
}

}  // namespace

void add_stored_kinds(Registry& registry, const KindOptions& /*options*/) {
  for (const Stored& stored : kStored) {
    Resource resource;
    resource.group = stored.group;
    resource.version = "v1";
    resource.plural = stored.plural;
    resource.singular = stored.singular;
    resource.kind = stored.kind;
    resource.list_kind = std::string(stored.kind) + "List";
    resource.is_namespaced = stored.is_namespaced;
    if (!stored.short_name.empty()) resource.short_names.emplace_back(stored.short_name);
    if (!stored.category.empty()) resource.categories.emplace_back(stored.category);
    std::string type(stored.types);
    type.append(".").append(stored.kind);
    resource.type = &schema::get(type);
    resource.strategy = strategy_of(stored);
    resource.table = std::string(stored.plural) + "." + std::string(stored.group);
    if (stored.kind == "CertificateSigningRequest") {
      resource.subresources.push_back(whole_subresource("approval", resource));
    }
    if (stored.has_status) resource.subresources.push_back(whole_subresource("status", resource));
    registry.add(std::move(resource));
  }
}

}  // namespace jogak::api
