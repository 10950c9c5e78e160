// SPDX-License-Identifier: Apache-2.0
//
// The resources around pods, with the verbs and kinds that discovery shows.
#include <utility>

#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod_strategy.h"

namespace jogak::api {

namespace {

constexpr std::uint16_t verbs(std::initializer_list<Verb> list) {
  std::uint16_t bits = 0;
  for (const Verb verb : list) {
    bits = static_cast<std::uint16_t>(bits | static_cast<std::uint16_t>(verb));
  }
  return bits;
}

constexpr std::uint16_t kReadWrite = verbs({Verb::Get, Verb::Patch, Verb::Update});
constexpr std::uint16_t kCreate = verbs({Verb::Create});
constexpr std::uint16_t kConnect = verbs({Verb::Create, Verb::Get});

// A subresource that takes the whole pod.
Subresource whole_pod(std::string name, std::uint16_t allowed, CallHandler handler = {}) {
  return {.name = std::move(name),
          .group = "",
          .version = "v1",
          .kind = "Pod",
          .verbs = allowed,
          .type = &schema::get("core.v1.Pod"),
          .handler = std::move(handler),
          .projection = nullptr};
}

Subresource called(std::string name, std::string kind, std::uint16_t allowed,
                   const schema::Struct* type, CallHandler handler) {
  return {.name = std::move(name),
          .group = "",
          .version = "v1",
          .kind = std::move(kind),
          .verbs = allowed,
          .type = type,
          .handler = std::move(handler),
          .projection = nullptr};
}

Resource pods(const KindOptions& options) {
  Resource resource;
  resource.version = "v1";
  resource.plural = resource.table = "pods";
  resource.singular = "pod";
  resource.kind = "Pod";
  resource.list_kind = "PodList";
  resource.short_names = {"po"};
  resource.categories = {"all"};
  resource.type = &schema::get("core.v1.Pod");
  resource.strategy = pod_strategy(options);
  Subresource eviction =
      called("eviction", "Eviction", kCreate, &schema::get("policy.v1.Eviction"), evict_pod);
  eviction.group = "policy";
  constexpr std::uint16_t kProxy =
      verbs({Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update});
  resource.subresources = {
      called("attach", "PodAttachOptions", kConnect, nullptr, refuse_pod_stream),
      called("binding", "Binding", kCreate, &schema::get("core.v1.Binding"), bind_pod),
      whole_pod("ephemeralcontainers", kReadWrite),
      std::move(eviction),
      called("exec", "PodExecOptions", kConnect, nullptr, refuse_pod_stream),
      whole_pod("log", verbs({Verb::Get}), read_pod_log),
      called("portforward", "PodPortForwardOptions", kConnect, nullptr, refuse_pod_stream),
      called("proxy", "PodProxyOptions", kProxy, nullptr, refuse_pod_stream),
      whole_pod("resize", kReadWrite),
      whole_pod("status", kReadWrite),
  };
  return resource;
}

Resource bindings(const KindOptions& options) {
  Resource resource;
  resource.version = "v1";
  resource.plural = resource.table = "bindings";
  resource.singular = "binding";
  resource.kind = "Binding";
  resource.list_kind = "BindingList";
  resource.verbs = kCreate;
  resource.type = &schema::get("core.v1.Binding");
  resource.strategy = pod_template_strategy(options);  // never asked: nothing is stored
  resource.create_handler = bind_pod;
  return resource;
}

Resource pod_templates(const KindOptions& options) {
  Resource resource;
  resource.version = "v1";
  resource.plural = resource.table = "podtemplates";
  resource.singular = "podtemplate";
  resource.kind = "PodTemplate";
  resource.list_kind = "PodTemplateList";
  resource.type = &schema::get("core.v1.PodTemplate");
  resource.strategy = pod_template_strategy(options);
  return resource;
}

}  // namespace

void add_pod_kinds(Registry& registry, const KindOptions& options) {
  registry.add(bindings(options));
  registry.add(pods(options));
  registry.add(pod_templates(options));
}

}  // namespace jogak::api
