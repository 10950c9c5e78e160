// SPDX-License-Identifier: Apache-2.0
//
// The resources around pods, with the verbs and kinds that discovery shows.
#include <utility>

#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod_strategy.h"

namespace jogak::api {

namespace {

constexpr std::uint16_t kCreate = verbs_of({Verb::Create});
constexpr std::uint16_t kConnect = verbs_of({Verb::Create, Verb::Get});

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
  Subresource log = whole_subresource("log", resource, verbs_of({Verb::Get}));
  log.handler = read_pod_log;
  constexpr std::uint16_t kProxy =
      verbs_of({Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update});
  resource.subresources = {
      called("attach", "PodAttachOptions", kConnect, nullptr, refuse_pod_stream),
      called("binding", "Binding", kCreate, &schema::get("core.v1.Binding"), bind_pod),
      whole_subresource("ephemeralcontainers", resource),
      std::move(eviction),
      called("exec", "PodExecOptions", kConnect, nullptr, refuse_pod_stream),
      std::move(log),
      called("portforward", "PodPortForwardOptions", kConnect, nullptr, refuse_pod_stream),
      called("proxy", "PodProxyOptions", kProxy, nullptr, refuse_pod_stream),
      whole_subresource("resize", resource),
      whole_subresource("status", resource),
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
