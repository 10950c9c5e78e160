// SPDX-License-Identifier: Apache-2.0
//
// Security contexts of pods and containers, profiles of the kernel, and what an operating system
// allows.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMaxId = 2147483647;
constexpr std::size_t kMaxProfile = 4095;
constexpr std::size_t kMaxSysctl = 253;
constexpr std::size_t kMaxCredentialSpec = 64 * 1024;

void check_id(const Doc& holder, std::string_view key, const Spot& at, FieldErrors& errors) {
  const Doc& id = holder[key];
  if (!id.is_null() && (id.as_int() < 0 || id.as_int() > kMaxId)) {
    errors.invalid(at.child(key), id, "must be between 0 and 2147483647, inclusive");
  }
}

void check_profile_type(const Doc& type, std::string_view member, const Spot& at,
                        FieldErrors& errors) {
  if (type.as_string().empty()) {
    errors.required(at, "type is required when " + std::string(member) + " is set");
  } else {
    check_one_of(type, {"Localhost", "RuntimeDefault", "Unconfined"}, at, errors);
  }
}

void check_seccomp(const Doc& profile, const Spot& at, FieldErrors& errors) {
  if (profile.is_null()) {
    return;
  }
  check_profile_type(profile["type"], "seccompProfile", at.child("type"), errors);
  const Doc& local = profile["localhostProfile"];
  if (profile["type"].as_string() != "Localhost") {
    if (!local.is_null()) {
      errors.invalid(at.child("localhostProfile"), local,
                     "can only be set when seccomp type is Localhost");
    }
  } else if (local.is_null()) {
    errors.required(at.child("localhostProfile"), "must be set when seccomp type is Localhost");
  } else {
    check_descending_path(local, at.child("localhostProfile"), errors);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

void check_app_armor(const Doc& profile, const Spot& at, FieldErrors& errors) {
  if (profile.is_null()) {
    return;
  }
  const Doc& local = profile["localhostProfile"];
  const Spot spot = at.child("localhostProfile");
  const std::string& type = profile["type"].as_string();
  if (type != "Localhost") {
    if (!local.is_null() && is_any_of(type, {"RuntimeDefault", "Unconfined"})) {
      errors.invalid(spot, local, "can only be set when AppArmor type is Localhost");
    }
    check_profile_type(profile["type"], "appArmorProfile", at.child("type"), errors);
    return;
  }
  if (local.is_null() || local.as_string().empty()) {
    errors.required(spot, "must be set when AppArmor type is Localhost");
  } else if (trimmed(local.as_string()) != local.as_string()) {
    errors.invalid(spot, local, "must not be padded with whitespace");
  }
  if (local.as_string().size() > kMaxProfile) {
    errors.too_long(spot, kMaxProfile);
  }
}

void check_windows_options(const Doc& options, const Spot& at, FieldErrors& errors) {
  if (options.is_null()) {
    return;
  }
  if (options.has("gmsaCredentialSpecName")) {
    check_name(options["gmsaCredentialSpecName"], check_dns1123_subdomain,
               at.child("gmsaCredentialSpecName"), errors);
  }
  if (const Doc& spec = options["gmsaCredentialSpec"]; !spec.is_null()) {
    if (spec.as_string().empty()) {
      errors.invalid(at.child("gmsaCredentialSpec"), spec,
                     "gmsaCredentialSpec cannot be an empty string");
    } else if (spec.as_string().size() > kMaxCredentialSpec) {
      errors.invalid(at.child("gmsaCredentialSpec"), spec,
                     "gmsaCredentialSpec size must be under 64 KiB");
    }
  }
  if (const Doc& user = options["runAsUserName"]; !user.is_null()) {
    const std::string& text = user.as_string();
    if (text.empty()) {
      errors.invalid(at.child("runAsUserName"), user, "runAsUserName cannot be an empty string");
    } else if (std::ranges::count(text, '\\') > 1) {
      errors.invalid(at.child("runAsUserName"), user,
                     "runAsUserName cannot contain more than one backslash");
    } else if (text.find_first_of("\"/:;|=,+*?<>@[]") != std::string::npos) {
      errors.invalid(at.child("runAsUserName"), user,
                     "runAsUserName's User cannot contain the following characters: "
                     "\"/\\:;|=,+*?<>@[]");
    }
  }
}

// Segments of [a-z0-9] with "-" and "_" inside, joined by "." or "/".
bool is_sysctl_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxSysctl) {
    return false;
  }
  const auto is_edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  char before = '.';
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '.';
    const bool is_joint = c == '.' || c == '/';
    const bool was_joint = before == '.' || before == '/';
    if (!is_joint && !is_edge(c) && c != '-' && c != '_') {
      return false;
    }
    if ((was_joint && !is_edge(c)) || (is_joint && !is_edge(before))) {
      return false;
    }
    before = c;
  }
  return true;
}

// Kernel settings that belong to a namespace which the pod shares with its host.
void check_host_sysctl(const Doc& spec, const Doc& name, const Spot& at, FieldErrors& errors) {
  std::string dotted = name.as_string();
  std::ranges::replace(dotted, '/', '.');
  const auto starts = [&](std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](auto prefix) { return dotted.starts_with(prefix); });
  };
  if (spec["hostNetwork"].as_bool() && starts({"net."})) {
    errors.invalid(at, name, "may not be specified when 'hostNetwork' is true");
  } else if (spec["hostIPC"].as_bool() &&
             (starts({"kernel.shm", "kernel.msg", "fs.mqueue."}) || dotted == "kernel.sem")) {
    errors.invalid(at, name, "may not be specified when 'hostIPC' is true");
  }
}

void check_sysctls(const Doc& spec, const Spot& at, FieldErrors& errors) {
  std::vector<std::string_view> seen;
  const auto& sysctls = spec["securityContext"]["sysctls"].items();
  for (std::size_t i = 0; i < sysctls.size(); ++i) {
    const Doc& name = sysctls[i]["name"];
    const Spot spot = at.index(i);
    if (name.as_string().empty()) {
      errors.required(spot.child("name"));
    } else if (!is_sysctl_name(name.as_string())) {
      errors.invalid(spot.child("name"), name,
                     "must have at most 253 characters and match regex "
                     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (std::ranges::find(seen, name.as_string()) != seen.end()) {
      errors.duplicate(spot.child("name"), name);
    }
    check_host_sysctl(spec, name, spot.child("name"), errors);
    seen.push_back(name.as_string());
  }
}

// What a Windows pod may not have: members of the spec or of its security context, in the order in
// which the server complains.
struct LinuxMember {
  bool in_context;
  std::string_view key;
};
constexpr std::array<LinuxMember, 15> kLinuxMembers = {{
    {true, "appArmorProfile"},
    {true, "seLinuxOptions"},
    {false, "hostUsers"},
    {false, "hostPID"},
    {false, "hostIPC"},
    {true, "seccompProfile"},
    {true, "fsGroup"},
    {true, "fsGroupChangePolicy"},
    {true, "sysctls"},
    {false, "shareProcessNamespace"},
    {true, "runAsUser"},
    {true, "runAsGroup"},
    {true, "supplementalGroups"},
    {true, "supplementalGroupsPolicy"},
    {true, "seLinuxChangePolicy"},
}};
constexpr std::array<std::string_view, 10> kLinuxContainerContext = {"appArmorProfile",
                                                                     "seLinuxOptions",
                                                                     "seccompProfile",
                                                                     "capabilities",
                                                                     "readOnlyRootFilesystem",
                                                                     "privileged",
                                                                     "allowPrivilegeEscalation",
                                                                     "procMount",
                                                                     "runAsUser",
                                                                     "runAsGroup"};

void check_windows(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Spot context = at.child("securityContext");
  for (const LinuxMember& member : kLinuxMembers) {
    const Doc& holder = member.in_context ? view.spec["securityContext"] : view.spec;
    const Doc& value = holder[member.key];
    // The two plain flags are absent when they are false.
    const bool is_off = is_any_of(member.key, {"hostPID", "hostIPC"}) && !value.as_bool();
    if (!value.is_null() && !is_off) {
      errors.forbidden((member.in_context ? context : at).child(member.key),
                       "cannot be set for a windows pod");
    }
  }
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    const Spot inner = spot.child("securityContext");
    for (const std::string_view key : kLinuxContainerContext) {
      if (container["securityContext"].has(key)) {
        errors.forbidden(inner.child(key), "cannot be set for a windows pod");
      }
    }
  });
}

void check_linux(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  constexpr std::string_view kWhy = "windows options cannot be set for a linux pod";
  if (view.spec["securityContext"].has("windowsOptions")) {
    errors.forbidden(at.child("securityContext.windowsOptions"), kWhy);
  }
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    if (container["securityContext"].has("windowsOptions")) {
      errors.forbidden(spot.child("securityContext.windowsOptions"), kWhy);
    }
  });
}

}  // namespace

void validate_container_security(const PodSpecView& view, const Doc& context, const Spot& at,
                                 FieldErrors& errors) {
  if (context.empty()) {
    return;
  }
  // A server without --allow-privileged refuses it.
  if (context["privileged"].as_bool()) errors.forbidden_by_policy(at.child("privileged"));
  check_id(context, "runAsUser", at, errors);
  check_id(context, "runAsGroup", at, errors);
  if (const Doc& mount = context["procMount"]; !mount.is_null()) {
    check_one_of(mount, {"Default", "Unmasked"}, at.child("procMount"), errors);
    if (view.uses_host_users() && mount.as_string() == "Unmasked") {
      errors.invalid(at.child("procMount"), mount, "`hostUsers` must be false to use `Unmasked`");
    }
  }
  check_seccomp(context["seccompProfile"], at.child("seccompProfile"), errors);
  if (!context["allowPrivilegeEscalation"].as_bool(true)) {
    if (context["privileged"].as_bool()) {
      errors.invalid(at, context,
                     "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for (const Doc& capability : context["capabilities"]["add"].items()) {
      if (capability.as_string() == "CAP_SYS_ADMIN") {
        errors.invalid(at, context,
                       "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                       "CAP_SYS_ADMIN");
      }
    }
  }
  check_windows_options(context["windowsOptions"], at.child("windowsOptions"), errors);
  check_app_armor(context["appArmorProfile"], at.child("appArmorProfile"), errors);
}

void validate_pod_security(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& context = view.spec["securityContext"];
  if (view.spec["shareProcessNamespace"].as_bool() && view.spec["hostPID"].as_bool()) {
    errors.invalid(at.child("shareProcessNamespace"), true,
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  if (context.empty()) {
    return;
  }
  check_id(context, "fsGroup", at, errors);
  check_id(context, "runAsUser", at, errors);
  check_id(context, "runAsGroup", at, errors);
  const Spot groups = at.child("supplementalGroups");
  for (std::size_t i = 0; i < context["supplementalGroups"].size(); ++i) {
    const Doc& group = context["supplementalGroups"].items()[i];
    if (group.as_int() < 0 || group.as_int() > kMaxId) {
      errors.invalid(groups.index(i), group, "must be between 0 and 2147483647, inclusive");
    }
  }
  check_sysctls(view.spec, at.child("sysctls"), errors);
  check_one_of(context["fsGroupChangePolicy"], {"Always", "OnRootMismatch"},
               at.child("fsGroupChangePolicy"), errors);
  check_seccomp(context["seccompProfile"], at.child("seccompProfile"), errors);
  check_windows_options(context["windowsOptions"], at.child("windowsOptions"), errors);
  check_app_armor(context["appArmorProfile"], at.child("appArmorProfile"), errors);
  check_one_of(context["supplementalGroupsPolicy"], {"Merge", "Strict"},
               at.child("supplementalGroupsPolicy"), errors);
  check_one_of(context["seLinuxChangePolicy"], {"MountOption", "Recursive"},
               at.child("seLinuxChangePolicy"), errors);
}

void validate_host_processes(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& of_pod = view.spec.get("securityContext", "windowsOptions", "hostProcess");
  std::size_t count = 0;
  std::size_t host_count = 0;
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    ++count;
    const Doc& own = container.get("securityContext", "windowsOptions", "hostProcess");
    if (!own.is_null() && !of_pod.is_null() && own != of_pod) {
      errors.invalid(spot.child("securityContext.windowsOptions.hostProcess"), own,
                     "pod hostProcess value must be identical if both are specified");
    }
    if (own.is_null() ? of_pod.as_bool() : own.as_bool()) {
      ++host_count;
    }
  });
  if (host_count == 0) {
    return;
  }
  if (host_count != count) {
    errors.invalid(at, "",
                   "If pod contains any hostProcess containers then all containers must be "
                   "HostProcess containers");
  }
  if (!view.spec["hostNetwork"].as_bool()) {
    errors.invalid(at.child("hostNetwork"), false,
                   "hostNetwork must be true if pod contains any hostProcess containers");
  }
  errors.forbidden(at, "hostProcess containers are disallowed by cluster policy");
}

void validate_host_users(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  if (view.uses_host_users()) {
    return;
  }
  // The server's own spelling of the three paths.
  struct HostNamespace {
    std::string_view key, shown;
  };
  for (const HostNamespace& host :
       {HostNamespace{"hostNetwork", "hostNetwork"}, HostNamespace{"hostPID", "HostPID"},
        HostNamespace{"hostIPC", "HostIPC"}}) {
    if (view.spec[host.key].as_bool()) {
      errors.forbidden(at.child(host.shown), "when `hostUsers` is false");
    }
  }
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    if (!container["volumeDevices"].empty()) {
      errors.forbidden(spot.child("volumeDevices"), "when `hostUsers` is false");
    }
  });
}

void validate_os(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc* os = view.spec.find("os");
  if (os == nullptr) {
    return;
  }
  const std::string& name = (*os)["name"].as_string();
  if (name.empty()) {
    errors.required(at.child("os.name"));
  } else if (name == "linux") {
    check_linux(view, at, errors);
  } else if (name == "windows") {
    check_windows(view, at, errors);
  } else {
    errors.not_supported(at.child("os"), name, {"linux", "windows"});
  }
}

}  // namespace jogak::api
