// SPDX-License-Identifier: Apache-2.0
//
// Volumes of a pod and their sources; the mounts that use them are in pod_validate_mounts.cc.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/amount.h"

namespace jogak::api {

namespace {

using CheckSource = void (*)(const Doc& source, const Spot& at, FieldErrors& errors);

constexpr std::int64_t kMinTokenSeconds = 600;
constexpr std::int64_t kMaxTokenSeconds = std::int64_t{1} << 32;
constexpr std::int64_t kMaxLun = 255;
constexpr std::size_t kMaxPortalLength = 64;

void check_host_path(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "path", at, errors);
  check_no_backsteps(source["path"], at.child("path"), errors);
  check_one_of(source["type"],
               {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                "FileOrCreate", "Socket"},
               at.child("type"), errors);
}

void check_git_repo(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "repository", at, errors);
  check_descending_path(source["directory"], at.child("directory"), errors);
}

void check_nfs(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "server", at, errors);
  require_text(source, "path", at, errors);
  if (!source["path"].as_string().starts_with("/")) {
    errors.invalid(at.child("path"), shown(source["path"]), "must be an absolute path");
  }
}

void check_key_paths(const Doc& items, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Doc& item = items.items()[i];
    const Spot spot = at.index(i);
    require_text(item, "key", spot, errors);
    require_text(item, "path", spot, errors);
    check_local_path(item["path"], spot.child("path"), errors);
    check_file_mode(item["mode"], spot.child("mode"), errors);
  }
}

void check_secret(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "secretName", at, errors);
  check_file_mode(source["defaultMode"], at.child("defaultMode"), errors);
  check_key_paths(source["items"], at.child("items"), errors);
}

void check_config_map(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "name", at, errors);
  check_file_mode(source["defaultMode"], at.child("defaultMode"), errors);
  check_key_paths(source["items"], at.child("items"), errors);
}

void check_claim(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "claimName", at, errors);
}

void check_downward_file(const Doc& file, const Spot& at, FieldErrors& errors) {
  require_text(file, "path", at, errors);
  check_local_path(file["path"], at.child("path"), errors);
  if (file.has("fieldRef")) {
    validate_field_ref(file["fieldRef"], true, at.child("fieldRef"), errors);
    if (file.has("resourceFieldRef")) {
      errors.invalid(at, "resource",
                     "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
  } else if (file.has("resourceFieldRef")) {
    validate_resource_field_ref(file["resourceFieldRef"], true, at.child("resourceFieldRef"),
                                errors);
  } else {
    errors.required(at, "one of fieldRef and resourceFieldRef is required");
  }
  check_file_mode(file["mode"], at.child("mode"), errors);
}

void check_downward(const Doc& source, const Spot& at, FieldErrors& errors) {
  check_file_mode(source["defaultMode"], at.child("defaultMode"), errors);
  for (const Doc& file : source["items"].items()) {
    check_downward_file(file, at, errors);
  }
}

// Sources of one projected volume must not write to the same path.
class Projection {
 public:
  Projection(const Spot& at, FieldErrors& errors) : at_(at), errors_(errors) {}

  void check(const Doc& source, const Spot& spot) {
    std::size_t count = 0;
    for (const std::string_view kind : {"secret", "configMap"}) {
      if (source.has(kind)) {
        ++count;
        check_keys(source[kind], spot.child(kind));
      }
    }
    if (source.has("downwardAPI")) {
      ++count;
      const Spot inner = spot.child("downwardAPI");
      for (const Doc& file : source["downwardAPI"]["items"].items()) {
        check_downward_file(file, inner, errors_);
        claim(file["path"], file["path"]);
      }
    }
    if (source.has("serviceAccountToken")) {
      ++count;
      check_token(source["serviceAccountToken"], spot.child("serviceAccountToken"));
    }
    if (count > 1) {
      errors_.forbidden(spot, "may not specify more than 1 volume type per source");
    }
  }

 private:
  void check_keys(const Doc& source, const Spot& spot) {
    require_text(source, "name", spot, errors_);
    const Spot items = spot.child("items");
    check_key_paths(source["items"], items, errors_);
    for (const Doc& item : source["items"].items()) {
      claim(item["path"], source["name"]);
    }
  }

  void check_token(const Doc& token, const Spot& spot) {
    const std::int64_t seconds = token["expirationSeconds"].as_int();
    if (seconds < kMinTokenSeconds) {
      errors_.invalid(spot.child("expirationSeconds"), seconds,
                      "may not specify a duration less than 10 minutes");
    }
    if (seconds > kMaxTokenSeconds) {
      errors_.invalid(spot.child("expirationSeconds"), seconds,
                      "may not specify a duration larger than 2^32 seconds");
    }
    if (token["path"].as_string().empty()) {
      errors_.required(at_.child("path"));
    } else {
      check_local_path(token["path"], at_.child("path"), errors_);
    }
  }

  void claim(const Doc& path, const Doc& blamed) {
    if (!path.as_string().empty() && !paths_.insert(path.as_string()).second) {
      errors_.invalid(at_, blamed, "conflicting duplicate paths");
    }
  }

  const Spot& at_;
  FieldErrors& errors_;
  std::set<std::string, std::less<>> paths_;
};

void check_projected(const Doc& source, const Spot& at, FieldErrors& errors) {
  check_file_mode(source["defaultMode"], at.child("defaultMode"), errors);
  Projection projection(at, errors);
  const Spot sources = at.child("sources");
  const auto& items = source["sources"].items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    projection.check(items[i], sources.index(i));
  }
}

void check_iscsi(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "targetPortal", at, errors);
  const std::string& iqn = source["iqn"].as_string();
  if (iqn.empty()) {
    errors.required(at.child("iqn"));
  } else if (!iqn.starts_with("iqn") && !iqn.starts_with("eui") && !iqn.starts_with("naa")) {
    errors.invalid(at.child("iqn"), iqn, "must be valid format starting with iqn, eui, or naa");
  }
  const std::int64_t lun = source["lun"].as_int();
  if (lun < 0 || lun > kMaxLun) {
    errors.invalid(at.child("lun"), lun, "must be between 0 and 255, inclusive");
  }
  if ((source["chapAuthDiscovery"].as_bool() || source["chapAuthSession"].as_bool()) &&
      !source.has("secretRef")) {
    errors.required(at.child("secretRef"));
  }
}

void check_fc(const Doc& source, const Spot& at, FieldErrors& errors) {
  const bool has_names = !source["targetWWNs"].empty();
  const bool has_ids = !source["wwids"].empty();
  if (!has_names && !has_ids) {
    errors.required(at.child("targetWWNs"),
                    "must specify either targetWWNs or wwids, but not both");
  }
  if (has_names && has_ids) {
    errors.invalid(at.child("targetWWNs"), source["targetWWNs"],
                   "targetWWNs and wwids can not be specified simultaneously");
  }
  if (has_names && !source.has("lun")) {
    errors.required(at.child("lun"), "lun is required if targetWWNs is specified");
  } else if (has_names && (source["lun"].as_int() < 0 || source["lun"].as_int() > kMaxLun)) {
    errors.invalid(at.child("lun"), source["lun"], "must be between 0 and 255, inclusive");
  }
}

void check_flocker(const Doc& source, const Spot& at, FieldErrors& errors) {
  const std::string& name = source["datasetName"].as_string();
  const bool has_uuid = !source["datasetUUID"].as_string().empty();
  if (name.empty() && !has_uuid) {
    errors.required(at, "one of datasetName and datasetUUID is required");
  }
  if (!name.empty() && has_uuid) {
    errors.invalid(at, "resource",
                   "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.find('/') != std::string::npos) {
    errors.invalid(at.child("datasetName"), name, "must not contain '/'");
  }
}

void check_csi(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "driver", at, errors);
  if (!source["driver"].as_string().empty()) {
    check_name(source["driver"], check_dns1123_subdomain, at.child("driver"), errors);
  }
  if (source.has("nodePublishSecretRef")) {
    const Doc& name = source["nodePublishSecretRef"]["name"];
    if (name.as_string().empty()) {
      errors.required(at.child("nodePublishSecretRef.name"));
    } else {
      check_name(name, check_dns1123_subdomain, at.child("name"), errors);
    }
  }
}

void check_claim_spec(const Doc& spec, const Spot& at, FieldErrors& errors) {
  if (spec["accessModes"].empty()) {
    errors.required(at.child("accessModes"), "at least 1 access mode is required");
  }
  if (spec.has("selector")) {
    validate_label_selector(spec["selector"], at.child("selector"), errors);
  }
  bool has_single = false;
  bool has_other = false;
  for (const Doc& mode : spec["accessModes"].items()) {
    check_one_of(mode, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"},
                 at.child("accessModes"), errors);
    (mode.as_string() == "ReadWriteOncePod" ? has_single : has_other) = true;
  }
  if (has_single && has_other) {
    errors.forbidden(at.child("accessModes"),
                     "may not use ReadWriteOncePod with other access modes");
  }
  const Doc& storage = spec.get("resources", "requests", "storage");
  const auto amount = Amount::parse(storage.as_string());
  if (storage.is_null()) {
    errors.required(at.child("resources[storage]"));
  } else if (!amount || *amount <= Amount::of(0)) {
    errors.invalid(at.child("resources[storage]"), storage, "must be greater than zero");
  }
  if (!spec["storageClassName"].as_string().empty()) {
    check_name(spec["storageClassName"], check_dns1123_subdomain, at.child("storageClassName"),
               errors);
  }
  check_one_of(spec["volumeMode"], {"Block", "Filesystem"}, at.child("volumeMode"), errors);
}

void check_ephemeral(const Doc& source, const Spot& at, FieldErrors& errors) {
  const Spot spot = at.child("volumeClaimTemplate");
  if (!source.has("volumeClaimTemplate")) {
    errors.required(spot);
    return;
  }
  const Doc& claim = source["volumeClaimTemplate"];
  const Doc& metadata = claim["metadata"];
  const Spot meta_spot = spot.child("metadata");
  if (!metadata.empty()) {
    validate_annotations(metadata["annotations"], meta_spot.child("annotations"), errors);
    validate_labels(metadata["labels"], meta_spot.child("labels"), errors);
  }
  for (const Doc::Member& member : metadata.members()) {
    if (member.key != "annotations" && member.key != "labels") {
      errors.forbidden(meta_spot.child(member.key), "cannot be set");
    }
  }
  check_claim_spec(claim["spec"], spot.child("spec"), errors);
}

void check_azure_disk(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "diskName", at, errors);
  require_text(source, "diskURI", at, errors);
  check_one_of(source["cachingMode"], {"None", "ReadOnly", "ReadWrite"}, at.child("cachingMode"),
               errors);
  check_one_of(source["kind"], {"Dedicated", "Managed", "Shared"}, at.child("kind"), errors);
  const bool is_managed = source["kind"].as_string() == "Managed";
  const std::string_view prefix = is_managed ? "/subscriptions/" : "https://";
  if (source.has("kind") && !source["diskURI"].as_string().starts_with(prefix)) {
    errors.not_supported(at.child("diskURI"), shown(source["diskURI"]), {prefix});
  }
}

void check_flex(const Doc& source, const Spot& at, FieldErrors& errors) {
  require_text(source, "driver", at, errors);
  for (const Doc::Member& option : source["options"].members()) {
    const std::string space = "." + option.key.substr(0, option.key.find('/'));
    if (space.ends_with(".kubernetes.io") || space.ends_with(".k8s.io")) {
      errors.invalid(at.child("options").key(option.key), option.key,
                     "kubernetes.io and k8s.io namespaces are reserved");
    }
  }
}

// Members that sources without further rules must have.
struct Needed {
  std::string_view source, key;
};
constexpr std::array<Needed, 18> kNeeded = {{
    {"gcePersistentDisk", "pdName"},
    {"awsElasticBlockStore", "volumeID"},
    {"glusterfs", "endpoints"},
    {"glusterfs", "path"},
    {"rbd", "monitors"},
    {"rbd", "image"},
    {"cinder", "volumeID"},
    {"cephfs", "monitors"},
    {"quobyte", "registry"},
    {"quobyte", "volume"},
    {"azureFile", "secretName"},
    {"azureFile", "shareName"},
    {"vsphereVolume", "volumePath"},
    {"photonPersistentDisk", "pdID"},
    {"portworxVolume", "volumeID"},
    {"scaleIO", "gateway"},
    {"scaleIO", "system"},
    {"scaleIO", "volumeName"},
}};

void check_needed(std::string_view kind, const Doc& source, const Spot& at, FieldErrors& errors) {
  for (const Needed& needed : kNeeded) {
    if (needed.source == kind && source[needed.key].as_string().empty() &&
        source[needed.key].empty()) {
      errors.required(at.child(needed.key));
    }
  }
}

// In the order in which the server looks: the second source found is the one refused. The server's
// paths differ from the names in three places.
struct SourceKind {
  std::string_view name;
  std::string_view path;     // of errors inside
  std::string_view refused;  // of the error that there are two
  CheckSource check = nullptr;
};
constexpr SourceKind plain(std::string_view name, CheckSource check = nullptr) {
  return {.name = name, .path = name, .refused = name, .check = check};
}
const std::array<SourceKind, 30> kSources = {{
    plain("emptyDir"),
    plain("hostPath", check_host_path),
    plain("gitRepo", check_git_repo),
    {.name = "gcePersistentDisk", .path = "persistentDisk", .refused = "gcePersistentDisk"},
    plain("awsElasticBlockStore"),
    plain("secret", check_secret),
    plain("nfs", check_nfs),
    plain("iscsi", check_iscsi),
    plain("glusterfs"),
    plain("flocker", check_flocker),
    plain("persistentVolumeClaim", check_claim),
    plain("rbd"),
    plain("cinder"),
    {.name = "cephfs", .path = "cephfs", .refused = "cephFS"},
    plain("quobyte"),
    {.name = "downwardAPI",
     .path = "downwardAPI",
     .refused = "downwarAPI",
     .check = check_downward},
    plain("fc", check_fc),
    plain("flexVolume", check_flex),
    plain("configMap", check_config_map),
    plain("azureFile"),
    plain("vsphereVolume"),
    plain("photonPersistentDisk"),
    plain("portworxVolume"),
    plain("azureDisk", check_azure_disk),
    plain("storageos"),
    plain("projected", check_projected),
    plain("scaleIO"),
    plain("csi", check_csi),
    plain("ephemeral", check_ephemeral),
    plain("image"),
}};

void check_image(const PodSpecView& view, const Doc& image, const Spot& at, FieldErrors& errors) {
  if (view.is_pod) {
    require_text(image, "reference", at, errors);
  }
  check_pull_policy(image["pullPolicy"], at.child("pullPolicy"), errors);
}

void check_empty_dir(const Doc& source, const Spot& at, FieldErrors& errors) {
  const auto limit = Amount::parse(source["sizeLimit"].as_string());
  if (limit && limit->is_negative()) {
    errors.forbidden(at.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
  }
}

// The claim of an ephemeral volume is named after the pod and the volume.
void check_ephemeral_name(const PodSpecView& view, const Doc& volume, const Spot& at,
                          FieldErrors& errors) {
  const std::string& pod = view.metadata["name"].as_string();
  const std::string& name = volume["name"].as_string();
  if (!view.is_pod || pod.empty() || name.empty()) {
    return;
  }
  const std::string claim = pod + "-" + name;
  for (const std::string& problem : check_dns1123_subdomain(claim)) {
    errors.invalid(at.child("name"), name, "PVC name \"" + claim + "\": " + problem);
  }
}

void check_source(const PodSpecView& view, const Doc& volume, const Spot& at, FieldErrors& errors) {
  std::size_t count = 0;
  for (const SourceKind& kind : kSources) {
    const Doc* source = volume.find(kind.name);
    if (source == nullptr) {
      continue;
    }
    if (count > 0) {
      errors.forbidden(at.child(kind.refused), "may not specify more than 1 volume type");
      continue;
    }
    ++count;
    const Spot spot = at.child(kind.path);
    check_needed(kind.name, *source, spot, errors);
    if (kind.check != nullptr) {
      kind.check(*source, spot, errors);
    } else if (kind.name == "emptyDir") {
      check_empty_dir(*source, spot, errors);
    } else if (kind.name == "image") {
      check_image(view, *source, spot, errors);
    }
    if (kind.name == "ephemeral") {
      check_ephemeral_name(view, volume, at, errors);
    }
    if (kind.name == "iscsi" && source->has("initiatorName") &&
        volume["name"].as_string().size() + 1 + (*source)["targetPortal"].as_string().size() >
            kMaxPortalLength) {
      errors.invalid(at.child("name"), volume["name"],
                     "Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                     "characters if iscsi.initiatorName is specified.");
    }
  }
  if (count == 0) {
    errors.required(at, "must specify a volume type");
  }
}

// A claim that an ephemeral volume of this pod will make must not be mounted as somebody's own.
void check_foreign_claim(const PodSpecView& view, const Doc& volume, const Spot& at,
                         FieldErrors& errors) {
  const std::string& claim = volume["persistentVolumeClaim"]["claimName"].as_string();
  const std::string& pod = view.metadata["name"].as_string();
  if (claim.empty() || !view.is_pod || pod.empty()) {
    return;
  }
  for (const Doc& other : view.spec["volumes"].items()) {
    if (other.has("ephemeral") && claim == pod + "-" + other["name"].as_string()) {
      errors.invalid(at.child("persistentVolumeClaim.claimName"), claim,
                     "must not reference a PVC that gets created for an ephemeral volume");
    }
  }
}

}  // namespace

const Doc* PodVolumes::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      list_, [&](const Doc* volume) { return (*volume)["name"].as_string() == name; });
  return found == list_.end() ? nullptr : *found;
}

PodVolumes validate_volumes(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  PodVolumes volumes;
  const auto& items = view.spec["volumes"].items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Doc& volume = items[i];
    const Spot spot = at.index(i);
    const std::size_t before = errors.list().size();
    check_source(view, volume, spot, errors);
    const Doc& name = volume["name"];
    if (name.as_string().empty()) {
      errors.required(spot.child("name"));
    } else {
      check_name(name, check_dns1123_label, spot.child("name"), errors);
    }
    if (volumes.find(name.as_string()) != nullptr) {
      errors.duplicate(spot.child("name"), shown(name));
    }
    if (errors.list().size() == before) {
      volumes.add(volume);
    }
    check_foreign_claim(view, volume, spot, errors);
  }
  return volumes;
}

}  // namespace jogak::api
