// SPDX-License-Identifier: Apache-2.0
//
// LimitRange objects of a namespace: what containers get when they ask for nothing, and the least
// and most that containers, pods and claims may ask for.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

// Fills in what is missing; the names that were set, in order.
std::string fill(Doc& resources, std::string_view side, const ResourceList& defaults) {
  std::string names;
  for (const auto& [name, amount] : defaults) {
    if (!resources[side].has(name)) {
      resources.at(side).set(name, amount.text());
      names.append(names.empty() ? "" : ", ").append(name);
    }
  }
  return names;
}

struct Defaults {
  ResourceList limits, requests;
};

Defaults defaults_of(const Doc& range) {
  Defaults defaults;
  for (const Doc& limit : range["spec"]["limits"].items()) {
    if (limit["type"].as_string() != "Container") {
      continue;
    }
    for (const auto& [name, amount] : read_resources(limit["defaultRequest"])) {
      defaults.requests[name] = amount;
    }
    for (const auto& [name, amount] : read_resources(limit["default"])) {
      defaults.limits[name] = amount;
    }
  }
  return defaults;
}

void fill_containers(Doc& spec, std::string_view list, std::string_view word,
                     const Defaults& defaults, std::vector<std::string>& notes) {
  Doc* containers = spec.find(list);
  if (containers == nullptr || containers->empty()) {
    return;
  }
  for (Doc& container : containers->items()) {
    const std::string name = container["name"].as_string();
    Doc& resources = container.at("resources");
    const std::string limits = fill(resources, "limits", defaults.limits);
    const std::string requests = fill(resources, "requests", defaults.requests);
    if (resources.is_null()) {
      resources = Doc::object();
    }
    if (!requests.empty()) {
      notes.push_back(fmt::format("{} request for {} {}", requests, word, name));
    }
    if (!limits.empty()) {
      notes.push_back(fmt::format("{} limit for {} {}", limits, word, name));
    }
  }
}

void fill_pod(Doc& pod, const Doc& range) {
  const Defaults defaults = defaults_of(range);
  if (defaults.limits.empty() && defaults.requests.empty()) {
    return;
  }
  std::vector<std::string> notes;
  Doc& spec = pod.at("spec");
  fill_containers(spec, "containers", "container", defaults, notes);
  fill_containers(spec, "initContainers", "init container", defaults, notes);
  if (notes.empty()) {
    return;
  }
  std::string text = "LimitRanger plugin set: ";
  for (std::size_t i = 0; i < notes.size(); ++i) {
    text.append(i == 0 ? "" : "; ").append(notes[i]);
  }
  pod.at("metadata", "annotations").set("kubernetes.io/limit-ranger", text);
}

const Amount* find_amount(const ResourceList& list, const std::string& name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

// Complaints of one LimitRange about one thing that asks for something.
class Judge {
 public:
  Judge(const Doc& limit, const ResourceList& requests, const ResourceList& limits)
      : limit_(limit), type_(limit["type"].as_string()), requests_(requests), limits_(limits) {}

  void run(std::vector<std::string>& complaints) const {
    for (const auto& [name, amount] : read_resources(limit_["min"])) {
      add(complaints, check_min(name, amount));
    }
    for (const auto& [name, amount] : read_resources(limit_["max"])) {
      // Claims have no limits of their own.
      add(complaints, type_ == "PersistentVolumeClaim" ? check_max_request(name, amount)
                                                       : check_max(name, amount));
    }
    for (const auto& [name, amount] : read_resources(limit_["maxLimitRequestRatio"])) {
      add(complaints, check_ratio(name, amount));
    }
  }

 private:
  static void add(std::vector<std::string>& complaints, std::string complaint) {
    if (!complaint.empty() && std::ranges::find(complaints, complaint) == complaints.end()) {
      complaints.push_back(std::move(complaint));
    }
  }

  std::string words(std::string_view bound, const std::string& name, const Amount& enforced,
                    std::string_view rest) const {
    return fmt::format("{} {} usage per {} is {}{}", bound, name, type_, enforced.text(), rest);
  }

  std::string check_min(const std::string& name, const Amount& least) const {
    const Amount* request = find_amount(requests_, name);
    const Amount* limit = find_amount(limits_, name);
    if (request == nullptr) {
      return words("minimum", name, least, ".  No request is specified");
    }
    if (*request < least) {
      return words("minimum", name, least, ", but request is " + request->text());
    }
    if (limit != nullptr && *limit < least) {
      return words("minimum", name, least, ", but limit is " + limit->text());
    }
    return "";
  }

  std::string check_max_request(const std::string& name, const Amount& most) const {
    const Amount* request = find_amount(requests_, name);
    if (request == nullptr) {
      return words("maximum", name, most, ".  No request is specified");
    }
    return *request > most ? words("maximum", name, most, ", but request is " + request->text())
                           : "";
  }

  std::string check_max(const std::string& name, const Amount& most) const {
    const Amount* request = find_amount(requests_, name);
    const Amount* limit = find_amount(limits_, name);
    if (limit == nullptr) {
      return words("maximum", name, most, ".  No limit is specified");
    }
    if (*limit > most) {
      return words("maximum", name, most, ", but limit is " + limit->text());
    }
    if (request != nullptr && *request > most) {
      return words("maximum", name, most, ", but request is " + request->text());
    }
    return "";
  }

  std::string check_ratio(const std::string& name, const Amount& most) const {
    const Amount* request = find_amount(requests_, name);
    const Amount* limit = find_amount(limits_, name);
    const std::string start =
        fmt::format("{} max limit to request ratio per {} is {}, but ", name, type_, most.text());
    if (request == nullptr || request->is_zero()) {
      return start + "no request is specified or request is 0";
    }
    if (limit == nullptr || limit->is_zero()) {
      return start + "no limit is specified or limit is 0";
    }
    const double ratio =
        static_cast<double>(limit->milli_value()) / static_cast<double>(request->milli_value());
    constexpr double kMilli = 1000.0;
    return ratio * kMilli > static_cast<double>(most.milli_value())
               ? fmt::format("{}provided ratio is {:f}", start, ratio)
               : "";
  }

  const Doc& limit_;
  const std::string& type_;
  const ResourceList& requests_;
  const ResourceList& limits_;
};

void judge_container(const Doc& limit, const Doc& container, std::vector<std::string>& complaints) {
  const ResourceList requests = read_resources(container["resources"]["requests"]);
  const ResourceList limits = read_resources(container["resources"]["limits"]);
  Judge(limit, requests, limits).run(complaints);
}

void judge_pod(const Doc& limit, const Doc& pod, std::vector<std::string>& complaints) {
  const std::string& type = limit["type"].as_string();
  if (type == "Container") {
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Doc& container : pod["spec"][list].items()) {
        judge_container(limit, container, complaints);
      }
    }
  } else if (type == "Pod") {
    constexpr PodSumOptions kOptions = {.with_overhead = false};
    const ResourceList requests = pod_requests(pod, kOptions);
    const ResourceList limits = pod_limits(pod, kOptions);
    Judge(limit, requests, limits).run(complaints);
  }
}

class LimitRanger : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    if (!is_main(admission, "", "pods") || admission.operation != Operation::Create) {
      return {};
    }
    for (const Doc& range : context.lookup.list("limitranges", admission.ns)) {
      fill_pod(*admission.object, range);
    }
    return {};
  }

  ApiResult<void> validate(const Admission& admission, WriteContext& context) const override {
    const bool is_pod = is_for(admission, "", "pods");
    if (!applies(admission, is_pod)) {
      return {};
    }
    for (const Doc& range : context.lookup.list("limitranges", admission.ns)) {
      std::vector<std::string> complaints;
      for (const Doc& limit : range["spec"]["limits"].items()) {
        if (is_pod) {
          judge_pod(limit, *admission.object, complaints);
        } else if (limit["type"].as_string() == "PersistentVolumeClaim") {
          Judge(limit, read_resources((*admission.object)["spec"]["resources"]["requests"]), {})
              .run(complaints);
        }
      }
      if (!complaints.empty()) {
        return refuse(admission, joined(complaints));
      }
    }
    return {};
  }

 private:
  // Pods when they come and when they are resized, claims always; nothing that is going.
  static bool applies(const Admission& admission, bool is_pod) {
    if (admission.object == nullptr || (admission.old != nullptr && is_deleting(*admission.old))) {
      return false;
    }
    const bool is_create = admission.operation == Operation::Create;
    if (is_pod) {
      return admission.subresource.empty() ? is_create : admission.subresource == "resize";
    }
    return is_main(admission, "", "persistentvolumeclaims");
  }

  static std::string joined(const std::vector<std::string>& complaints) {
    if (complaints.size() == 1) {
      return complaints.front();
    }
    std::string all = "[";
    for (const std::string& complaint : complaints) {
      all.append(all.size() == 1 ? "" : ", ").append(complaint);
    }
    return all + "]";
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> limit_ranger() { return std::make_unique<LimitRanger>(); }

}  // namespace jogak::api
