// SPDX-License-Identifier: Apache-2.0
//
// From stored definitions to served resources, and the work of the controllers around definitions
// (apiextensions-apiserver pkg/controller: status, establish, finalizer). Each step is one write of
// the status; the write comes back as a change and brings the next step.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/crd/crd.h"
#include "apiserver/crd/custom_strategy.h"
#include "apiserver/crd/definition.h"
#include "apiserver/object/meta.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {
namespace {

constexpr TimeUs kRecheckAfter = 5 * kSecondInUs;

std::vector<std::string> texts(const Doc& list) {
  std::vector<std::string> out;
  for (const Doc& item : list.items()) out.push_back(item.as_string());
  return out;
}

// What a definition says of its resources, without what changes with every write of its status.
Doc served_form(const Doc& crd) {
  Doc form = Doc::object();
  form.set("spec", crd["spec"]).set("names", crd.get("status", "acceptedNames"));
  form.set("isTerminating", condition_is(crd, "Terminating", "True"));
  return form;
}

std::string table_of(const Doc& crd) {
  return fmt::format("{}.{}", crd.get("spec", "names", "plural").as_string(),
                     crd.get("spec", "group").as_string());
}

// Eight bytes by which clients see that the storage version changed.
std::string storage_hash(const Doc& crd) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c :
       fmt::format("{}/{}/{}", crd.get("spec", "group").as_string(), storage_version_of(crd),
                   crd.get("spec", "names", "kind").as_string())) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (int i = 0; i < 10; ++i, hash <<= 6) out += kDigits[(hash >> 58) & 63];
  out += kDigits[(hash >> 58) & 60];
  return out + "=";
}

ApiResult<Answer> refuse_while_terminating(Ops& /*ops*/, Call& call) {
  return forbidden(call.resource->name(), name_of(call.body),
                   "create not allowed while custom resource definition is terminating");
}

Resource resource_of(const Doc& crd, const Doc& version) {
  const Doc& names = crd.get("status", "acceptedNames");
  Resource out;
  out.group = crd.get("spec", "group").as_string();
  out.version = version["name"].as_string();
  out.plural = names["plural"].as_string();
  out.singular = names["singular"].as_string();
  out.kind = names["kind"].as_string();
  out.list_kind = names["listKind"].as_string();
  out.is_namespaced = crd.get("spec", "scope").as_string() == "Namespaced";
  out.short_names = texts(names["shortNames"]);
  out.categories = texts(names["categories"]);
  out.table = table_of(crd);
  out.is_storage_version = version["storage"].as_bool();
  out.storage_version_hash = storage_hash(crd);
  out.printer_columns = version["additionalPrinterColumns"];
  Doc storage_schema;
  for (const Doc& other : crd.get("spec", "versions").items()) {
    if (other["storage"].as_bool()) storage_schema = other.get("schema", "openAPIV3Schema");
  }
  auto strategy = std::make_shared<const CustomStrategy>(version, std::move(storage_schema));
  out.custom_schema = &strategy->schema();
  const Doc* status = version["subresources"].find("status");
  if (status != nullptr && !status->is_null()) {
    out.subresources.push_back(whole_subresource("status", out));
  }
  if (strategy->scale()) {
    Subresource subresource;
    subresource.name = "scale";
    subresource.group = "autoscaling";
    subresource.version = "v1";
    subresource.kind = "Scale";
    subresource.verbs = kReadAndChange;
    subresource.type = &schema::get("autoscaling.v1.Scale");
    subresource.projection = scale_projection(out.kind, out.group, *strategy->scale());
    out.subresources.push_back(std::move(subresource));
  }
  if (condition_is(crd, "Terminating", "True")) out.create_handler = refuse_while_terminating;
  out.strategy = std::move(strategy);
  return out;
}

// The best one first.
std::vector<const Doc*> served_versions(const Doc& crd) {
  std::vector<const Doc*> out;
  for (const Doc& version : crd.get("spec", "versions").items()) {
    if (version["served"].as_bool()) out.push_back(&version);
  }
  std::stable_sort(out.begin(), out.end(), [](const Doc* a, const Doc* b) {
    return is_preferred_over((*a)["name"].as_string(), (*b)["name"].as_string());
  });
  return out;
}

// What the other definitions of a group hold already.
struct TakenNames {
  std::set<std::string> resources, kinds;
};

TakenNames taken_names(const std::vector<Doc>& crds, const Doc& crd) {
  TakenNames out;
  for (const Doc& other : crds) {
    if (other.get("spec", "group") != crd.get("spec", "group")) continue;
    const Doc& names = other.get("status", "acceptedNames");
    out.resources.insert(names["plural"].as_string());
    out.resources.insert(names["singular"].as_string());
    for (const std::string& name : texts(names["shortNames"])) out.resources.insert(name);
    out.kinds.insert(names["kind"].as_string());
    out.kinds.insert(names["listKind"].as_string());
  }
  return out;
}

struct Conflict {
  std::string reason, message;
};

// Takes over each name that is free or was accepted before; the last conflict is what is told.
std::optional<Conflict> claim_names(const Doc& wanted, const TakenNames& taken, Doc& accepted) {
  std::optional<Conflict> conflict;
  const auto claim = [&](std::string_view key, const std::set<std::string>& names,
                         std::string_view reason) {
    const std::string& name = wanted[key].as_string();
    if (name != accepted[key].as_string() && names.contains(name)) {
      conflict = {std::string(reason), quoted(name) + " is already in use"};
    } else {
      accepted.set(key, name);
    }
  };
  claim("plural", taken.resources, "PluralConflict");
  claim("singular", taken.resources, "SingularConflict");
  if (wanted["shortNames"] != accepted["shortNames"]) {
    const std::vector<std::string> own = texts(accepted["shortNames"]);
    std::vector<std::string> problems;
    for (const std::string& name : texts(wanted["shortNames"])) {
      const bool is_own = std::find(own.begin(), own.end(), name) != own.end();
      if (!is_own && taken.resources.contains(name)) {
        problems.push_back(quoted(name) + " is already in use");
      }
    }
    if (problems.empty()) {
      accepted.set("shortNames", wanted["shortNames"]);
    } else {
      std::string all;
      for (const std::string& one : problems) all.append(all.empty() ? "" : ", ").append(one);
      conflict = {"ShortNamesConflict", problems.size() == 1 ? all : "[" + all + "]"};
    }
  }
  claim("kind", taken.kinds, "KindConflict");
  claim("listKind", taken.kinds, "ListKindConflict");
  accepted.set("categories", wanted["categories"]);
  for (const std::string_view key : {"shortNames", "categories"}) {
    if (accepted[key].empty()) accepted.erase(key);
  }
  return conflict;
}

bool remove_finalizer(Doc& object, std::string_view name) {
  Doc* metadata = object.find("metadata");
  Doc* finalizers = metadata == nullptr ? nullptr : metadata->find("finalizers");
  if (finalizers == nullptr || !finalizers->is_array()) return false;
  return std::erase_if(finalizers->items(),
                       [&](const Doc& one) { return one.as_string() == name; }) > 0;
}

}  // namespace

void add_custom_resources(Registry& registry, const Doc& crd) {
  if (!condition_is(crd, "Established", "True")) return;
  const std::vector<const Doc*> versions = served_versions(crd);
  for (const Doc* version : versions) {
    Resource resource = resource_of(crd, *version);
    resource.is_preferred = version == versions.front();
    registry.add(std::move(resource));
  }
}

struct CustomKinds::Served {
  Doc form;
  std::string group, plural;
  std::vector<std::string> versions;
};

CustomKinds::CustomKinds(Registry& registry, Api& api) : registry_(registry), api_(api) {
  following_ = api_.follow(kCrdTable, [this](const Api::Change& change) {
    if (change.type == store::EventType::Deleted) {
      crd_removed(*change.object);
    } else {
      crd_changed(*change.object);
    }
  });
}

CustomKinds::~CustomKinds() {
  following_.reset();
  for (const auto& [name, timer] : rechecks_) api_.loop().cancel(timer);
}

void CustomKinds::crd_changed(const Doc& crd) {
  // What was written since counts, and the follower's object lacks the owners of fields.
  const auto current = api_.get(kCrdTable, "", name_of(crd));
  if (!current) return;
  if (condition_is(*current, "Established", "True")) {
    serve(*current);
  } else {
    withdraw(name_of(crd));
  }
  if (is_deleting(*current) && has_finalizer(*current, kCleanupFinalizer)) {
    finalise(*current);
  } else if (!accept_names(*current)) {
    establish(*current);
  }
}

void CustomKinds::crd_removed(const Doc& crd) {
  withdraw(name_of(crd));
  // Its names are free now.
  check_again(crd.get("spec", "group").as_string(), name_of(crd));
}

void CustomKinds::serve(const Doc& crd) {
  Doc form = served_form(crd);
  const auto before = served_.find(name_of(crd));
  if (before != served_.end() && before->second->form == form) return;
  withdraw(name_of(crd));
  auto made = std::make_unique<Served>();
  made->form = std::move(form);
  for (const Doc* version : served_versions(crd)) {
    made->group = crd.get("spec", "group").as_string();
    made->plural = crd.get("status", "acceptedNames", "plural").as_string();
    made->versions.push_back((*version)["name"].as_string());
  }
  add_custom_resources(registry_, crd);
  served_[name_of(crd)] = std::move(made);
}

void CustomKinds::withdraw(const std::string& crd_name) {
  const auto found = served_.find(crd_name);
  if (found == served_.end()) return;
  const Served& served = *found->second;
  for (const std::string& version : served.versions) {
    registry_.remove(served.group, version, served.plural);
  }
  served_.erase(found);
}

bool CustomKinds::accept_names(const Doc& crd) {
  const Doc& wanted = crd.get("spec", "names");
  Doc accepted = crd.get("status", "acceptedNames");
  if (accepted == wanted) return false;
  const std::vector<Doc> crds = api_.list(kCrdTable);
  const auto conflict = claim_names(wanted, taken_names(crds, crd), accepted);
  Doc changed = crd;
  changed.at("status").set("acceptedNames", std::move(accepted));
  const TimeUs now = api_.now();
  if (conflict) {
    set_condition(changed, "NamesAccepted", "False", conflict->reason, conflict->message, now);
  } else {
    set_condition(changed, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
  }
  if (!condition_is(crd, "Established", "True")) {
    if (!conflict) {
      set_condition(changed, "Established", "False", "Installing",
                    "the initial names have been accepted", now);
    } else if (condition_of(crd, "Established").is_null()) {
      set_condition(changed, "Established", "False", "NotAccepted", "not all names are accepted",
                    now);
    }
  }
  if (changed == crd) return false;
  const bool is_written = api_.update(kCrdTable, std::move(changed), "status").has_value();
  if (is_written) check_again(crd.get("spec", "group").as_string(), name_of(crd));
  return is_written;
}

bool CustomKinds::establish(const Doc& crd) {
  if (!condition_is(crd, "NamesAccepted", "True") || condition_is(crd, "Established", "True")) {
    return false;
  }
  Doc changed = crd;
  set_condition(changed, "Established", "True", "InitialNamesAccepted",
                "the initial names have been accepted", api_.now());
  return api_.update(kCrdTable, std::move(changed), "status").has_value();
}

// Definitions of the same group that did not get their names may get them now.
void CustomKinds::check_again(std::string_view group, std::string_view but) {
  for (const Doc& crd : api_.list(kCrdTable)) {
    if (crd.get("spec", "group").as_string() != group || name_of(crd) == but) continue;
    if (condition_is(crd, "NamesAccepted", "True")) continue;
    recheck(name_of(crd));
  }
}

void CustomKinds::recheck(const std::string& name) {
  api_.loop().post([this, name, alive = std::weak_ptr<void>(following_)] {
    if (alive.expired()) return;
    if (const auto crd = api_.get(kCrdTable, "", name)) crd_changed(*crd);
  });
}

void CustomKinds::finalise(const Doc& crd) {
  const std::string name = name_of(crd);
  constexpr std::string_view kInProgress = "InstanceDeletionInProgress";
  Doc changed = crd;
  const bool is_new = condition_of(crd, "Terminating")["reason"].as_string() != kInProgress;
  if (is_new) {
    set_condition(changed, "Terminating", "True", kInProgress,
                  "CustomResource deletion is in progress", api_.now());
    auto written = api_.update(kCrdTable, std::move(changed), "status");
    if (!written) return;
    changed = *std::move(written);
  }
  if (condition_is(crd, "Established", "True")) {
    const std::string table = table_of(crd);
    for (const Doc& object : api_.list(table)) {
      if (is_deleting(object)) continue;
      (void)api_.remove(table, namespace_of(object), name_of(object));
    }
    if (!api_.list(table).empty()) {
      // Finalizers of the objects have to be done first.
      TimerId& timer = rechecks_[name];
      api_.loop().cancel(timer);
      timer = api_.loop().after(kRecheckAfter, [this, name] {
        rechecks_.erase(name);
        recheck(name);
      });
      return;
    }
    set_condition(changed, "Terminating", "False", "InstanceDeletionCompleted",
                  "removed all instances", api_.now());
  } else {
    set_condition(changed, "Terminating", "False", "NeverEstablished",
                  "resource was never established", api_.now());
  }
  remove_finalizer(changed, kCleanupFinalizer);
  (void)api_.update(kCrdTable, std::move(changed), "status");
}

}  // namespace jogak::api
