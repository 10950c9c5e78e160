// SPDX-License-Identifier: Apache-2.0
//
// The end of a namespace, and what a living one has (pkg/controller/namespace, serviceaccount and
// certificates/rootcacertpublisher of Kubernetes are the models).
#include <map>
#include <set>

#include <fmt/format.h>

#include "apiserver/controllers/object_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kRootCaNote =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

// "configmaps. has 2 resource instances, pods. has ..." : what is left, in the words that clients
// show; `counts` by plural and group, or by finalizer.
std::string listing(const std::map<std::string, std::size_t>& counts, std::string_view verb) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text +=
        fmt::format("{}{} {} {} resource instances", text.empty() ? "" : ", ", name, verb, count);
  }
  return text;
}

class NamespaceController : public Controller {
 public:
  explicit NamespaceController(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& name) { return sync(name); }) {
    following_ = api_->follow("namespaces", [this](const api::Api::Change& change) {
      const bool is_ending =
          change.type != store::EventType::Deleted && api::is_deleting(*change.object);
      if (is_ending) queue_.add(api::name_of(*change.object));
    });
  }

 private:
  struct Remains {
    std::map<std::string, std::size_t> objects, finalizers;
  };

  Outcome sync(const std::string& name) {
    auto space = api_->get("namespaces", "", name);
    if (!space.has_value() || !api::is_deleting(*space)) return Outcome::Done;
    if (space->get("spec", "finalizers").empty()) return Outcome::Done;
    const Remains remains = empty(name);
    if (!remains.objects.empty()) {
      report(*std::move(space), remains);
      return Outcome::Retry;  // looks again, ever more rarely
    }
    Doc kept = Doc::array();
    for (const Doc& finalizer : space->get("spec", "finalizers").items()) {
      if (finalizer.as_string() != "kubernetes") kept.push(finalizer);
    }
    space->at("spec").set("finalizers", std::move(kept));
    const auto ended = api_->update("namespaces", *std::move(space), "finalize");
    return ended.has_value() || ended.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  // Deletes all that is in it; says what is left.
  Remains empty(const std::string& ns) {
    for (const api::Api::Table& table : api_->tables()) {
      if (!table.is_namespaced) continue;
      for (const Doc& object : api_->list(table.name, ns)) {
        if (api::is_deleting(object)) continue;
        // refusals (a finalizer, a race) show as what is left
        static_cast<void>(api_->remove(table.name, ns, api::name_of(object),
                                       Doc::object().set("propagationPolicy", "Background")));
      }
    }
    Remains remains;
    for (const api::Api::Table& table : api_->tables()) {
      if (!table.is_namespaced) continue;
      for (const Doc& object : api_->list(table.name, ns)) {
        const std::size_t dot = std::min(table.name.find('.'), table.name.size());
        const std::string group = table.name.substr(std::min(dot + 1, table.name.size()));
        ++remains.objects[table.name.substr(0, dot) + "." + group];
        for (const Doc& finalizer : api::meta(object)["finalizers"].items()) {
          ++remains.finalizers[finalizer.as_string()];
        }
      }
    }
    return remains;
  }

  void report(Doc space, const Remains& remains) {
    const TimeUs now = api_->now();
    bool has_changed = false;
    const auto say = [&](std::string_view type, bool is_true, std::string_view reason,
                         std::string_view message) {
      has_changed |=
          api::set_condition(space, type, is_true ? "True" : "False", reason, message, now);
    };
    say("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
        "All resources successfully discovered");
    say("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
        "All legacy kube types successfully parsed");
    say("NamespaceDeletionContentFailure", false, "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization");
    say("NamespaceContentRemaining", true, "SomeResourcesRemain",
        "Some resources are remaining: " + listing(remains.objects, "has"));
    if (remains.finalizers.empty()) {
      say("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
          "All content-preserving finalizers finished");
    } else {
      say("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
          "Some content in the namespace has finalizers remaining: " +
              listing(remains.finalizers, "in"));
    }
    if (has_changed) static_cast<void>(api_->update("namespaces", std::move(space), "status"));
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  std::shared_ptr<void> following_;
};

class NamespaceContents : public Controller {
 public:
  explicit NamespaceContents(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        root_ca_(context.options.root_ca),
        queue_(api_->loop(), [this](const std::string& name) { return sync(name); }) {
    spaces_ = api_->follow("namespaces", [this](const api::Api::Change& change) {
      if (change.type != store::EventType::Deleted) queue_.add(api::name_of(*change.object));
    });
    accounts_ = follow_one("serviceaccounts", "default");
    maps_ = follow_one("configmaps", kRootCa);
  }

 private:
  std::shared_ptr<void> follow_one(std::string_view resource, std::string_view name) {
    return api_->follow(resource, [this, name](const api::Api::Change& change) {
      const bool is_it = api::name_of(*change.object) == name;
      if (is_it && change.type != store::EventType::Added) {
        queue_.add(api::namespace_of(*change.object));
      }
    });
  }

  Outcome sync(const std::string& ns) {
    const auto space = api_->get("namespaces", "", ns);
    if (!space.has_value() || api::is_deleting(*space)) return Outcome::Done;
    if (!api_->get("serviceaccounts", ns, "default").has_value()) {
      Doc account = Doc::object();
      account.at("metadata").set("name", "default").set("namespace", ns);
      if (!api_->create("serviceaccounts", ns, std::move(account)).has_value()) {
        return Outcome::Retry;
      }
    }
    return keep_root_ca(ns);
  }

  Outcome keep_root_ca(const std::string& ns) {
    auto map = api_->get("configmaps", ns, kRootCa);
    const Doc data = Doc::object().set("ca.crt", root_ca_);
    if (map.has_value()) {
      if ((*map)["data"] == data) return Outcome::Done;
      map->set("data", data);
      return api_->update("configmaps", *std::move(map)).has_value() ? Outcome::Done
                                                                     : Outcome::Retry;
    }
    Doc made = Doc::object();
    made.at("metadata").set("name", kRootCa).set("namespace", ns);
    made.at("metadata", "annotations").set("kubernetes.io/description", kRootCaNote);
    made.set("data", data);
    return api_->create("configmaps", ns, std::move(made)).has_value() ? Outcome::Done
                                                                       : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  std::string root_ca_;
  WorkQueue queue_;
  std::shared_ptr<void> spaces_, accounts_, maps_;
};

}  // namespace

std::unique_ptr<Controller> namespace_controller(const ControllerContext& context) {
  return std::make_unique<NamespaceController>(context);
}

std::unique_ptr<Controller> namespace_contents_controller(const ControllerContext& context) {
  return std::make_unique<NamespaceContents>(context);
}

}  // namespace jogak::controllers
