// SPDX-License-Identifier: Apache-2.0
//
// Warnings about volumes that write two things to one place: a path twice, or one inside another.
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

struct Target {
  std::string path, source;

  std::string text() const { return quoted(path) + (source.empty() ? "" : " (" + source + ")"); }
};

std::string without_slashes(std::string path) {
  while (path.ends_with('/')) {
    path.pop_back();
  }
  return path;
}

bool overlap(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() &&
         ((a + "/").starts_with(b + "/") || (b + "/").starts_with(a + "/"));
}

// The paths of one volume, in the order in which they are written.
class Targets {
 public:
  Targets(std::string volume, std::string kind, std::vector<std::string>& warnings)
      : volume_(std::move(volume)), kind_(std::move(kind)), warnings_(warnings) {}

  void add(const std::string& path, std::string source) {
    const Target target{without_slashes(path), std::move(source)};
    for (const Target& before : list_) {
      if (overlap(before.path, target.path)) {
        warnings_.push_back("volume " + quoted(volume_) + " (" + kind_ +
                            "): overlapping paths: " + target.text() + " with " + before.text());
      }
    }
    list_.push_back(target);
  }

  void add_items(const Doc& items, const std::string& source) {
    for (const Doc& item : items.items()) {
      add(item["path"].as_string(), source);
    }
  }

 private:
  std::string volume_, kind_;
  std::vector<std::string>& warnings_;
  std::vector<Target> list_;
};

void add_source(const Doc& source, Targets& targets) {
  if (const Doc* map = source.find("configMap")) {
    targets.add_items((*map)["items"], "ConfigMap " + quoted((*map)["name"].as_string()));
  } else if (const Doc* secret = source.find("secret")) {
    targets.add_items((*secret)["items"], "Secret " + quoted((*secret)["name"].as_string()));
  } else if (const Doc* downward = source.find("downwardAPI")) {
    targets.add_items((*downward)["items"], "DownwardAPI");
  } else if (const Doc* token = source.find("serviceAccountToken")) {
    targets.add((*token)["path"].as_string(), "ServiceAccountToken");
  }
}

}  // namespace

void warn_about_overlaps(const Doc& volumes, std::vector<std::string>& warnings) {
  for (const Doc& volume : volumes.items()) {
    const std::string& name = volume["name"].as_string();
    if (const Doc* map = volume.find("configMap")) {
      Targets(name, "ConfigMap " + quoted((*map)["name"].as_string()), warnings)
          .add_items((*map)["items"], "");
    }
    if (const Doc* secret = volume.find("secret")) {
      Targets(name, "Secret " + quoted((*secret)["secretName"].as_string()), warnings)
          .add_items((*secret)["items"], "");
    }
    if (const Doc* downward = volume.find("downwardAPI")) {
      Targets(name, "DownwardAPI", warnings).add_items((*downward)["items"], "");
    }
    if (const Doc* projected = volume.find("projected")) {
      Targets targets(name, "Projected", warnings);
      for (const Doc& source : (*projected)["sources"].items()) {
        if (source.empty()) {
          warnings.push_back("volume " + quoted(name) + " (Projected) has no sources provided");
        } else {
          add_source(source, targets);
        }
      }
    }
  }
}

}  // namespace jogak::api
