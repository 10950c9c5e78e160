// SPDX-License-Identifier: Apache-2.0
//
// Who may change requests, who is served first, and who asks for a certificate.
#include <string>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kWebhookColumns[] = {
    kNameColumn,
    {.name = "Webhooks", .type = "integer", .description = "Number of webhooks"},
    kAgeColumn};

void print_webhooks(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["webhooks"].size());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kParamColumn{.name = "ParamKind", .description = "Kind of its parameters"};

constexpr ColumnFact kValidatingColumns[] = {
    kNameColumn,
    {.name = "Validations", .type = "integer", .description = "Number of rules"},
    kParamColumn,
    kAgeColumn};

constexpr ColumnFact kMutatingColumns[] = {
    kNameColumn,
    {.name = "Mutations", .type = "integer", .description = "Number of rules"},
    kParamColumn,
    kAgeColumn};

void print_admission(const Doc& object, std::string_view rules, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& param = spec["paramKind"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec[rules].size());
  cells.emplace_back(param.is_null()
                         ? "<unset>"
                         : param["apiVersion"].as_string() + "/" + param["kind"].as_string());
  cells.emplace_back(age_of(object, now));
}

void print_validating(const Doc& object, TimeUs now, Doc::Items& cells) {
  print_admission(object, "validations", now, cells);
}

void print_mutating(const Doc& object, TimeUs now, Doc::Items& cells) {
  print_admission(object, "mutations", now, cells);
}

constexpr ColumnFact kBindingColumns[] = {
    kNameColumn,
    {.name = "PolicyName", .description = "Policy that is bound"},
    {.name = "ParamRef", .description = "Object with its parameters"},
    kAgeColumn};

void print_binding(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& param = object.get("spec", "paramRef");
  std::string reference = "<unset>";
  if (const std::string& name = param["name"].as_string(); !name.empty()) {
    reference = text_or(param["namespace"], "*") + "/" + name;
  } else if (const Doc* selector = param.find("selector"); selector != nullptr) {
    reference = selector_text(*selector, "<none>");
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "policyName").as_string());
  cells.emplace_back(reference);
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kFlowColumns[] = {
    kNameColumn,
    {.name = "PriorityLevel", .description = "Level that it leads to"},
    {.name = "MatchingPrecedence", .description = "The lowest is tried first"},
    {.name = "DistinguisherMethod", .description = "What makes flows of requests"},
    kAgeColumn,
    {.name = "MissingPL", .description = "Whether the level is missing"},
};

void print_flow(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  std::string missing = "?";
  for (const Doc& condition : object.get("status", "conditions").items()) {
    if (condition["type"].as_string() == "Dangling") {
      missing = condition["status"].as_string();
      break;
    }
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec.get("priorityLevelConfiguration", "name").as_string());
  cells.emplace_back(spec["matchingPrecedence"].as_int());
  cells.emplace_back(text_or(spec.get("distinguisherMethod", "type"), "<none>"));
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(missing);
}

constexpr ColumnFact kLevelColumns[] = {
    kNameColumn,
    {.name = "Type", .description = "Limited or Exempt"},
    {.name = "NominalConcurrencyShares", .description = "Its share of requests at a time"},
    {.name = "Queues", .description = "Number of queues"},
    {.name = "HandSize", .description = "Queues that a flow may use"},
    {.name = "QueueLengthLimit", .description = "Requests that may wait in a queue"},
    kAgeColumn,
};

void print_level(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& limited = object.get("spec", "limited");
  const Doc& queuing = limited.get("limitResponse", "queuing");
  const auto number = [&cells](const Doc& value) {
    if (value.is_int()) {
      cells.emplace_back(value.as_int());
    } else {
      cells.emplace_back("<none>");
    }
  };
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "type").as_string());
  number(limited["nominalConcurrencyShares"]);
  number(queuing["queues"]);
  number(queuing["handSize"]);
  number(queuing["queueLengthLimit"]);
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kRequestColumns[] = {
    kNameColumn,
    kAgeColumn,
    {.name = "SignerName", .description = "Who is asked to sign"},
    {.name = "Requestor", .description = "Who asks"},
    {.name = "RequestedDuration", .description = "How long it should be valid"},
    {.name = "Condition", .description = "What became of it"},
};

std::string request_condition(const Doc& status) {
  bool is_approved = false, is_denied = false, is_failed = false;
  for (const Doc& condition : status["conditions"].items()) {
    const std::string& type = condition["type"].as_string();
    is_approved = is_approved || type == "Approved";
    is_denied = is_denied || type == "Denied";
    is_failed = is_failed || type == "Failed";
  }
  std::string text = is_denied ? "Denied" : is_approved ? "Approved" : "Pending";
  text += is_failed ? ",Failed" : "";
  text += status["certificate"].as_string().empty() ? "" : ",Issued";
  return text;
}

void print_request(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& seconds = spec["expirationSeconds"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(text_or(spec["signerName"], "<none>"));
  cells.emplace_back(spec["username"].as_string());
  cells.emplace_back(seconds.is_int() ? human_duration(seconds.as_int() * kSecondInUs) : "<none>");
  cells.emplace_back(request_condition(object["status"]));
}

constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";

constexpr Printer kPrinters[] = {
    {kAdmission, "MutatingWebhookConfiguration", kWebhookColumns, print_webhooks},
    {kAdmission, "ValidatingWebhookConfiguration", kWebhookColumns, print_webhooks},
    {kAdmission, "ValidatingAdmissionPolicy", kValidatingColumns, print_validating},
    {kAdmission, "ValidatingAdmissionPolicyBinding", kBindingColumns, print_binding},
    {kAdmission, "MutatingAdmissionPolicy", kMutatingColumns, print_mutating},
    {kAdmission, "MutatingAdmissionPolicyBinding", kBindingColumns, print_binding},
    {kFlow, "FlowSchema", kFlowColumns, print_flow},
    {kFlow, "PriorityLevelConfiguration", kLevelColumns, print_level},
    {"certificates.k8s.io", "CertificateSigningRequest", kRequestColumns, print_request},
};

}  // namespace

std::span<const Printer> policy_printers() { return kPrinters; }

}  // namespace jogak::api
