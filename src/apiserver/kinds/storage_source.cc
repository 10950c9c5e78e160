// SPDX-License-Identifier: Apache-2.0
//
// The twenty-odd places a volume may come from: which members each needs and what it defaults to,
// as tables. Those in use today (host path, local, NFS, CSI) have rules of their own.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/storage_rules.h"

namespace jogak::api {

namespace {

struct Source {
  std::string_view member;  // of the spec
  std::string_view shown;   // in error paths of its own members
  std::array<std::string_view, 3> required;
};

// In the order they are looked at.
constexpr std::array<Source, 22> kSources = {{
    {"hostPath", "hostPath", {}},
    {"gcePersistentDisk", "persistentDisk", {"pdName"}},
    {"awsElasticBlockStore", "awsElasticBlockStore", {"volumeID"}},
    {"glusterfs", "glusterfs", {"endpoints", "path"}},
    {"flocker", "flocker", {}},
    {"nfs", "nfs", {}},
    {"rbd", "rbd", {"monitors", "image"}},
    {"quobyte", "quobyte", {"registry", "volume"}},
    {"cephfs", "cephfs", {"monitors"}},
    {"iscsi", "iscsi", {"targetPortal", "iqn"}},
    {"cinder", "cinder", {"volumeID"}},
    {"fc", "fc", {}},
    {"flexVolume", "flexVolume", {"driver"}},
    {"azureFile", "azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", "vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", "photonPersistentDisk", {"pdID"}},
    {"portworxVolume", "portworxVolume", {"volumeID"}},
    {"azureDisk", "azureDisk", {"diskName", "diskURI"}},
    {"scaleIO", "scaleIO", {"gateway", "system", "volumeName"}},
    {"local", "local", {}},
    {"storageos", "storageos", {}},
    {"csi", "csi", {}},
}};

struct Default {
  std::string_view source, member, value;
  bool is_pointer = false;  // in Go: only absent is not given, "" is
};
constexpr std::array<Default, 10> kDefaults = {{
    {"hostPath", "type", "", true},
    {"iscsi", "iscsiInterface", "default"},
    {"rbd", "pool", "rbd"},
    {"rbd", "user", "admin"},
    {"rbd", "keyring", "/etc/ceph/keyring"},
    {"azureDisk", "cachingMode", "ReadWrite", true},
    {"azureDisk", "fsType", "ext4", true},
    {"azureDisk", "kind", "Shared", true},
    {"scaleIO", "storageMode", "ThinProvisioned"},
    {"scaleIO", "fsType", "xfs"},
}};

void validate_no_backsteps(const std::string& path, const Path& at, FieldErrors& errors) {
  std::string_view rest = path;
  while (true) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, slash) == "..") {
      errors.invalid(at, path, "must not contain '..'");
      return;
    }
    if (slash == rest.size()) return;
    rest.remove_prefix(slash + 1);
  }
}

void validate_host_path(const Doc& source, const Path& at, FieldErrors& errors) {
  static const std::vector<std::string_view> kTypes = {
      "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
      "File", "FileOrCreate", "Socket"};
  const std::string& path = source["path"].as_string();
  if (path.empty()) {
    errors.required(at.child("path"));
    return;
  }
  validate_no_backsteps(path, at.child("path"), errors);
  const Doc* type = source.find("type");
  if (type != nullptr && std::ranges::find(kTypes, type->as_string()) == kTypes.end()) {
    errors.not_supported(at.child("type"), *type, kTypes);
  }
}

void validate_nfs(const Doc& source, const Path& at, FieldErrors& errors) {
  const std::string& path = source["path"].as_string();
  if (source["server"].as_string().empty()) errors.required(at.child("server"));
  if (path.empty()) errors.required(at.child("path"));
  if (!path.starts_with('/')) {
    errors.invalid(at.child("path"), path, "must be an absolute path");
  }
}

void validate_secret_reference(const Doc& reference, const Path& at, FieldErrors& errors) {
  struct Part {
    std::string_view member;
    NameCheck check;
  };
  static constexpr std::array<Part, 2> kParts = {
      {{"name", check_dns1123_subdomain}, {"namespace", check_dns1123_label}}};
  for (const auto& [member, check] : kParts) {
    const std::string& text = reference[member].as_string();
    if (text.empty()) {
      errors.required(at.child(member));
    } else {
      validate_name(text, check, at.child(member), errors);
    }
  }
}

void validate_csi(const Doc& source, const Path& at, FieldErrors& errors) {
  validate_driver_name(source["driver"].as_string(), at.child("driver"), errors);
  if (source["volumeHandle"].as_string().empty()) errors.required(at.child("volumeHandle"));
  for (const std::string_view secret : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                        "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    if (source.has(secret)) validate_secret_reference(source[secret], at.child(secret), errors);
  }
}

void validate_local(const Doc& spec, const Doc& source, const Path& at, FieldErrors& errors) {
  const std::string& path = source["path"].as_string();
  if (path.empty()) {
    errors.required(at.child("local", "path"));
  } else {
    validate_no_backsteps(path, at.child("local", "path"), errors);
  }
  if (spec["nodeAffinity"].is_null()) {
    errors.required(at.child("nodeAffinity"), "Local volume requires node affinity");
  }
}

void validate_one(const Source& kind, const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& source = spec[kind.member];
  const Path here = at.child(kind.shown);
  if (kind.member == "hostPath") validate_host_path(source, here, errors);
  if (kind.member == "nfs") validate_nfs(source, here, errors);
  if (kind.member == "local") validate_local(spec, source, at, errors);
  if (kind.member == "csi") validate_csi(source, here, errors);
  for (const std::string_view member : kind.required) {
    if (!member.empty() && source[member].as_string().empty() && source[member].empty()) {
      errors.required(here.child(member));
    }
  }
}

}  // namespace

void default_volume_sources(Doc& holder) {
  for (const auto& [source, member, value, is_pointer] : kDefaults) {
    Doc* at = holder.find(source);
    if (at == nullptr || !at->is_object()) continue;
    if (!is_pointer && (*at)[member].as_string().empty()) at->erase(member);
    at->set_default(member, value);
  }
  if (Doc* disk = holder.find("azureDisk"); disk != nullptr && disk->is_object()) {
    disk->set_default("readOnly", false);
  }
}

void default_volume_spec(Doc& spec) {
  round_resources(spec, "capacity");
  default_volume_sources(spec);
}

Doc volume_source_of(const Doc& spec) {
  Doc source = Doc::object();
  for (const Source& kind : kSources) {
    if (const Doc* value = spec.find(kind.member)) source.set(kind.member, *value);
  }
  return source;
}

void validate_volume_source(const Doc& spec, const Path& at, FieldErrors& errors) {
  int count = 0;
  for (const Source& kind : kSources) {
    if (!spec.has(kind.member)) continue;
    if (count > 0 && kind.member != "flexVolume") {
      errors.forbidden(at.child(kind.member == "cephfs" ? "cephFS" : kind.member),
                       "may not specify more than 1 volume type");
      continue;
    }
    ++count;
    validate_one(kind, spec, at, errors);
  }
  if (count == 0) errors.required(at, "must specify a volume type");
}

}  // namespace jogak::api
