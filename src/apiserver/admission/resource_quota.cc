// SPDX-License-Identifier: Apache-2.0
//
// Quotas: what a write would use more is held against every quota of the namespace that counts it,
// and charged at once, so that two writes cannot both take the last of something.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/admission/plugins.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/quota_usage.h"
#include "base/result.h"

namespace jogak::api {

namespace {

// "cpu=1,pods=2" of those in `names`.
std::string pretty(const ResourceList& amounts, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    const auto found = amounts.find(name);
    if (found != amounts.end()) {
      out.append(out.empty() ? "" : ",").append(name).append("=").append(found->second.text());
    }
  }
  return out;
}

// What this write adds; a smaller need gives nothing back here, the controller sees to that.
ResourceList added(const ResourceList& now, const ResourceList& before) {
  ResourceList out;
  for (const auto& [name, amount] : now) {
    Amount more = amount;
    if (const auto found = before.find(name); found != before.end()) {
      more -= found->second;
    }
    if (more > Amount()) {
      out.emplace(name, more);
    }
  }
  return out;
}

bool tracks_any(std::string_view table, const ResourceList& hard) {
  for (const auto& [name, amount] : hard) {
    if (quota_tracks(table, name)) {
      return true;
    }
  }
  return false;
}

class ResourceQuota : public AdmissionPlugin {
 public:
  explicit ResourceQuota(StatusWriter write_status) : write_status_(std::move(write_status)) {}

  ApiResult<void> validate(const Admission& admission, WriteContext& context) const override {
    if (admission.ns.empty() || admission.object == nullptr || !handles(admission)) {
      return {};
    }
    const std::vector<Doc> quotas = context.lookup.list("resourcequotas", admission.ns);
    if (quotas.empty()) {
      return {};
    }
    const std::string& table = admission.resource.table;
    const ResourceList usage = quota_usage(table, *admission.object, context.now);
    for (const auto& [name, amount] : usage) {
      if (amount.is_negative()) {
        return refuse(admission, "quota usage is negative for resource(s): " + name);
      }
    }
    std::vector<Charge> charges;
    for (const Doc& quota : quotas) {
      JOGAK_TRY_VOID(check(admission, context, quota, usage, charges));
    }
    if (context.is_dry_run || !write_status_) {
      return {};
    }
    for (const Charge& charge : charges) {
      JOGAK_TRY_VOID(write_status_("resourcequotas", admission.ns, charge.quota, [&](Doc quota) {
        quota.at("status").set("used", write_resources(charge.used));
        return ApiResult<Doc>(std::move(quota));
      }));
    }
    return {};
  }

 private:
  struct Charge {
    std::string quota;
    ResourceList used;
  };

  static bool handles(const Admission& admission) {
    const bool is_create = admission.operation == Operation::Create;
    const bool is_update = admission.operation == Operation::Update;
    if (is_for(admission, "", "pods")) {
      if (admission.subresource == "resize") {
        return is_update;
      }
      return admission.subresource.empty() && (is_create || is_terminating_pod(*admission.object) !=
                                                                is_terminating_pod(*admission.old));
    }
    if (!admission.subresource.empty()) {
      return false;
    }
    const bool may_grow =
        is_for(admission, "", "services") || is_for(admission, "", "persistentvolumeclaims");
    return is_create || (is_update && may_grow);
  }

  // Holds the write against one quota; what it would use then comes into `charges`.
  static ApiResult<void> check(const Admission& admission, const WriteContext& context,
                               const Doc& quota, const ResourceList& usage,
                               std::vector<Charge>& charges) {
    const std::string& table = admission.resource.table;
    const ResourceList hard = read_resources(quota["status"]["hard"]);
    const ResourceList used = read_resources(quota["status"]["used"]);
    if (!tracks_any(table, hard) || !quota_covers(quota["spec"], table, *admission.object)) {
      return {};
    }
    JOGAK_TRY_VOID(check_ready(admission, quota, hard, used));
    ResourceList more = usage;
    if (admission.old != nullptr && quota_covers(quota["spec"], table, *admission.old)) {
      more = added(usage, quota_usage(table, *admission.old, context.now));
    }
    std::erase_if(more, [&](const auto& entry) {
      return entry.second.is_zero() || hard.find(entry.first) == hard.end();
    });
    if (more.empty()) {
      return {};
    }
    ResourceList total = used;
    add_resources(total, more);
    std::vector<std::string> exceeded;
    for (const auto& [name, amount] : more) {
      if (total.find(name)->second > hard.find(name)->second) {
        exceeded.push_back(name);
      }
    }
    if (!exceeded.empty()) {
      return refuse(admission, "exceeded quota: " + name_of(quota) + ", requested: " +
                                   pretty(more, exceeded) + ", used: " + pretty(used, exceeded) +
                                   ", limited: " + pretty(hard, exceeded));
    }
    charges.push_back({.quota = name_of(quota), .used = std::move(total)});
    return {};
  }

  // The pod says enough to be counted, and the controller has counted what was there.
  static ApiResult<void> check_ready(const Admission& admission, const Doc& quota,
                                     const ResourceList& hard, const ResourceList& used) {
    const std::string& table = admission.resource.table;
    if (table == "pods") {
      const std::string missing = missing_requests(*admission.object, hard);
      if (!missing.empty()) {
        return refuse(admission, "failed quota: " + name_of(quota) + ": " + missing);
      }
    }
    std::string tracked;
    bool is_counted = true;
    for (const auto& [name, amount] : hard) {
      if (quota_tracks(table, name)) {
        tracked.append(tracked.empty() ? "" : ",").append(name);
        is_counted = is_counted && used.find(name) != used.end();
      }
    }
    if (!is_counted) {
      return refuse(admission,
                    "status unknown for quota: " + name_of(quota) + ", resources: " + tracked);
    }
    return {};
  }

  StatusWriter write_status_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> resource_quota(StatusWriter write_status) {
  return std::make_unique<ResourceQuota>(std::move(write_status));
}

}  // namespace jogak::api
