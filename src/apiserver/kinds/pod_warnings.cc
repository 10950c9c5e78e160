// SPDX-License-Identifier: Apache-2.0
//
// What a client hears about a pod or a template that is accepted but hardly meant as it stands.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/amount.h"

namespace jogak::api {

namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kNullSelector = "a null labelSelector results in matching no pod";

struct Retired {
  std::string_view key, advice;
};
constexpr std::array<Retired, 8> kOldLabels = {{
    {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
    {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
    {"failure-domain.beta.kubernetes.io/region",
     "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
    {"failure-domain.beta.kubernetes.io/zone",
     "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
    {"beta.kubernetes.io/instance-type",
     "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods",
     "deprecated since v1.22; use Taints and Tolerations instead"},
    {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
}};
constexpr std::array<Retired, 3> kOldAnnotations = {{
    {"scheduler.alpha.kubernetes.io/critical-pod",
     "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
    {"security.alpha.kubernetes.io/sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"},
    {"security.alpha.kubernetes.io/unsafe-sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"},
}};
constexpr std::array<Retired, 9> kOldVolumes = {{
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
}};

template <std::size_t N>
std::string_view advice_for(const std::array<Retired, N>& table, std::string_view key) {
  const auto* found = std::ranges::find(table, key, &Retired::key);
  return found == table.end() ? std::string_view{} : found->advice;
}

class Warner {
 public:
  Warner(const Doc& pod_template, bool is_template, std::vector<std::string>& warnings)
      : spec_(pod_template["spec"]),
        annotations_(pod_template["metadata"]["annotations"]),
        is_template_(is_template),
        warnings_(warnings) {}

  void run(const Spot& at, const Spot& root) {
    warn_labels(at);
    warn_spread(at.child("topologySpreadConstraints"));
    for (const Retired& old : kOldAnnotations) {
      if (annotations_.has(old.key)) {
        say(root.child("metadata.annotations").key(old.key), old.advice);
      }
    }
    warn_volumes(at.child("volumes"));
    warn_about_overlaps(spec_["volumes"], warnings_);
    warn_repeats("hostAliases", "ip", at.child("hostAliases"));
    warn_repeats("imagePullSecrets", "name", at.child("imagePullSecrets"));
    warn_fraction(spec_["overhead"], at.child("overhead"));
    warn_seccomp(root);
    visit_containers(spec_, at, [&](const Doc& container, const Spot& spot) {
      warn_container(container, spot, root);
    });
    warn_ports(at);
    if (spec_["terminationGracePeriodSeconds"].as_int() < 0) {
      say(at.child("terminationGracePeriodSeconds"),
          "must be >= 0; negative values are invalid and will be treated as 1");
    }
    const Spot affinity = at.child("affinity");
    for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
      warn_pod_terms(spec_["affinity"][kind], affinity.child(kind));
    }
    warn_addresses(at);
  }

 private:
  void say(const Spot& at, std::string_view words) {
    warnings_.push_back(at.text().append(": ").append(words));
  }

  void warn_labels(const Spot& at) {
    const Spot selector = at.child("nodeSelector");
    for (const Doc::Member& label : spec_["nodeSelector"].members()) {
      if (const auto advice = advice_for(kOldLabels, label.key); !advice.empty()) {
        say(selector.key(label.key), advice);
      }
    }
    const Doc& affinity = spec_["affinity"]["nodeAffinity"];
    const Spot spot = at.child("affinity.nodeAffinity");
    const Spot required = spot.child(kRequired);
    const Spot terms = required.child("nodeSelectorTerms");
    const auto& required_terms = affinity[kRequired]["nodeSelectorTerms"].items();
    for (std::size_t i = 0; i < required_terms.size(); ++i) {
      warn_term(required_terms[i], false, terms.index(i));
    }
    const Spot preferred = spot.child(kPreferred);
    for (std::size_t i = 0; i < affinity[kPreferred].size(); ++i) {
      warn_term(affinity[kPreferred].items()[i]["preference"], true,
                preferred.index(i).child("preference"));
    }
  }

  void warn_term(const Doc& term, bool with_values, const Spot& at) {
    const Spot list = at.child("matchExpressions");
    const auto& rules = term["matchExpressions"].items();
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const std::string& key = rules[i]["key"].as_string();
      const Spot rule = list.index(i);
      if (const auto advice = advice_for(kOldLabels, key); !advice.empty()) {
        say(rule.child("key"), (key + " is ").append(advice));
      }
      const Spot values = rule.child("values");
      for (std::size_t k = 0; with_values && k < rules[i]["values"].size(); ++k) {
        const std::string& value = rules[i]["values"].items()[k].as_string();
        for (const std::string& problem : check_label_value(value)) {
          say(values.index(k), value + " is invalid, " + problem);
        }
      }
    }
  }

  void warn_spread(const Spot& at) {
    const auto& constraints = spec_["topologySpreadConstraints"].items();
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      const std::string& key = constraints[i]["topologyKey"].as_string();
      if (const auto advice = advice_for(kOldLabels, key); !advice.empty()) {
        say(at.index(i).child("topologyKey"), (key + " is ").append(advice));
      }
      if (!constraints[i].has("labelSelector")) {
        say(at.index(i).child("labelSelector"), kNullSelector);
      }
    }
  }

  void warn_volumes(const Spot& at) {
    const auto& volumes = spec_["volumes"].items();
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      for (const Doc::Member& source : volumes[i].members()) {
        if (const auto advice = advice_for(kOldVolumes, source.key); !advice.empty()) {
          const bool is_storage_os = source.key == "storageos";  // the server's spelling differs
          say(at.index(i).child(is_storage_os ? "storageOS" : std::string_view(source.key)),
              advice);
        }
      }
    }
  }

  void warn_repeats(std::string_view list, std::string_view key, const Spot& at) {
    std::set<std::string_view> seen;
    const auto& items = spec_[list].items();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string& value = items[i][key].as_string();
      if (!seen.insert(value).second) {
        say(at.index(i).child(key), "duplicate " + std::string(key) + " \"" + value + "\"");
      }
      if (value.empty() && list == "imagePullSecrets") {
        say(at.index(i).child(key), "invalid empty name \"\"");
      }
    }
  }

  void warn_fraction(const Doc& list, const Spot& at) {
    if (list.empty()) {
      return;
    }
    for (const std::string_view name : {"memory", "ephemeral-storage"}) {
      const std::string& text = list[name].as_string();
      const auto amount = Amount::parse(text);
      if (amount && !amount->is_whole()) {
        say(at.key(name), "fractional byte value \"" + text + "\" is invalid, must be an integer");
      }
    }
  }

  void warn_seccomp(const Spot& root) {
    constexpr std::string_view kKey = "seccomp.security.alpha.kubernetes.io/pod";
    if (annotations_.has(kKey) && !spec_["securityContext"].has("seccompProfile")) {
      say(root.child("metadata.annotations").key(kKey),
          "non-functional in v1.27+; use the \"seccompProfile\" field instead");
    }
  }

  void warn_container(const Doc& container, const Spot& at, const Spot& root) {
    if (!annotations_.empty()) {
      warn_profiles(container, root);
    }
    warn_fraction(container["resources"]["limits"], at.child("resources.limits"));
    warn_fraction(container["resources"]["requests"], at.child("resources.requests"));
    warn_hidden_variables(container, at.child("env"));
  }

  void warn_profiles(const Doc& container, const Spot& root) {
    const std::string& name = container["name"].as_string();
    const Spot annotations = root.child("metadata.annotations");
    const Doc& context = container["securityContext"];
    const std::string seccomp = "container.seccomp.security.alpha.kubernetes.io/" + name;
    if (!context.has("seccompProfile") && annotations_.has(seccomp)) {
      say(annotations.key(seccomp),
          "non-functional in v1.27+; use the \"seccompProfile\" field instead");
    }
    const std::string armor = "container.apparmor.security.beta.kubernetes.io/" + name;
    if (is_template_ && !context.has("appArmorProfile") && annotations_.has(armor) &&
        !spec_["securityContext"].has("appArmorProfile")) {
      say(annotations.key(armor),
          "deprecated since v1.30; use the \"appArmorProfile\" field instead");
    }
  }

  // A second definition that does not build on the first one hides it.
  void warn_hidden_variables(const Doc& container, const Spot& at) {
    std::set<std::string_view> seen;
    const auto& variables = container["env"].items();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const std::string& name = variables[i]["name"].as_string();
      if (seen.insert(name).second) {
        continue;
      }
      const std::string ref = "$(" + name + ")";
      const std::string& value = variables[i]["value"].as_string();
      if (variables[i].has("valueFrom") || value == ref || value.find(ref) == std::string::npos) {
        say(at.index(i),
            "hides previous definition of \"" + name + "\", which may be dropped when using apply");
      }
    }
  }

  struct Port {
    const Doc* port;
    std::string place;
  };

  void warn_ports(const Spot& at) {
    std::vector<Port> ports;
    visit_containers(spec_, at, [&](const Doc& container, const Spot& spot) {
      const Spot list = spot.child("ports");
      const auto& items = container["ports"].items();
      for (std::size_t i = 0; i < items.size(); ++i) {
        warn_port(items[i], ports, list.index(i));
        ports.push_back({&items[i], list.index(i).text()});
      }
    });
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const std::string& name = (*ports[i].port)["name"].as_string();
      for (std::size_t k = 0; !name.empty() && k < i; ++k) {
        if ((*ports[k].port)["name"].as_string() == name) {
          warnings_.push_back(ports[i].place + ": duplicate port name \"" + name + "\" with " +
                              ports[k].place + ", services and probes that select ports by name " +
                              "will use " + ports[k].place);
          break;
        }
      }
    }
  }

  void warn_port(const Doc& port, const std::vector<Port>& before, const Spot& at) {
    const std::string& ip = port["hostIP"].as_string();
    const std::int64_t host = port["hostPort"].as_int();
    if (!ip.empty() && host == 0) {
      say(at, "hostIP set without hostPort");
    }
    for (const Port& other : before) {
      const Doc& theirs = *other.port;
      if (theirs["containerPort"] != port["containerPort"] ||
          theirs["protocol"] != port["protocol"]) {
        continue;
      }
      const std::string& their_ip = theirs["hostIP"].as_string();
      const std::int64_t their_host = theirs["hostPort"].as_int();
      if (their_ip == ip && their_host == host) {
        say(at, "duplicate port definition with " + other.place);
      } else if (host == 0 || their_host == 0) {
        say(at, "overlapping port definition with " + other.place);
      } else if (host == their_host && ip.empty() != their_ip.empty()) {
        say(at, "dangerously ambiguous port definition with " + other.place);
      }
    }
  }

  void warn_addresses(const Spot& at) {
    const Spot servers = at.child("dnsConfig.nameservers");
    for (std::size_t i = 0; i < spec_["dnsConfig"]["nameservers"].size(); ++i) {
      warn_about_address(spec_["dnsConfig"]["nameservers"].items()[i].as_string(), servers.index(i),
                         warnings_);
    }
    const Spot aliases = at.child("hostAliases");
    for (std::size_t i = 0; i < spec_["hostAliases"].size(); ++i) {
      warn_about_address(spec_["hostAliases"].items()[i]["ip"].as_string(),
                         aliases.index(i).child("ip"), warnings_);
    }
  }

  void warn_pod_terms(const Doc& affinity, const Spot& at) {
    const Spot required = at.child(kRequired);
    for (std::size_t i = 0; i < affinity[kRequired].size(); ++i) {
      if (!affinity[kRequired].items()[i].has("labelSelector")) {
        say(required.index(i).child("labelSelector"), kNullSelector);
      }
    }
    const Spot preferred = at.child(kPreferred);
    for (std::size_t i = 0; i < affinity[kPreferred].size(); ++i) {
      if (!affinity[kPreferred].items()[i]["podAffinityTerm"].has("labelSelector")) {
        say(preferred.index(i).child("podAffinityTerm.labelSelector"), kNullSelector);
      }
    }
  }

  const Doc& spec_;
  const Doc& annotations_;
  bool is_template_;
  std::vector<std::string>& warnings_;
};

}  // namespace

// IPv6 has many spellings of one address and one that is recommended.
void warn_about_address(const std::string& text, const Spot& at,
                        std::vector<std::string>& warnings) {
  in6_addr address{};
  if (text.find(':') == std::string::npos || inet_pton(AF_INET6, text.c_str(), &address) != 1) {
    return;
  }
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  inet_ntop(AF_INET6, &address, canonical.data(), canonical.size());
  if (text != canonical.data()) {
    warnings.push_back(at.text() + ": IPv6 address \"" + text +
                       "\" should be in RFC 5952 canonical format (\"" + canonical.data() + "\")");
  }
}

void warn_about_pod_template(const Doc& pod_template, const Doc& old, const Path& at,
                             std::vector<std::string>& warnings) {
  if (!old.is_null() && pod_template == old) {
    return;
  }
  const Spot root(at);
  Warner(pod_template, !at.text().empty(), warnings).run(root.child("spec"), root);
}

}  // namespace jogak::api
