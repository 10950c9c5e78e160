// SPDX-License-Identifier: Apache-2.0
//
// See config_choice.h.
#include "agent/run/config_choice.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace jogak::agent {

namespace {

constexpr std::int64_t kConfigBytesMax = 1 << 20;

// A mounted ConfigMap has links of the files' names, and folders and links that begin with "..".
Result<std::vector<std::string>> files_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with("..") && entry->is_regular_file(ignored)) names.push_back(name);
  }
  if (error) {
    return fail(Errc::NotFound, "the folder of configurations {}: {}", folder, error.message());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<ConfigFallback>> parse_config_fallbacks(std::string_view text) {
  std::vector<ConfigFallback> fallbacks;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    ConfigFallback fallback = ConfigFallback::Empty;
    if (word == "named") {
      fallback = ConfigFallback::Named;
    } else if (word == "single") {
      fallback = ConfigFallback::Single;
    } else if (word != "empty") {
      return invalid("\"{}\" is not one of named, single, empty", word);
    }
    if (std::ranges::find(fallbacks, fallback) != fallbacks.end()) {
      return invalid("\"{}\" is there twice", word);
    }
    fallbacks.push_back(fallback);
  }
  return fallbacks;
}

Result<ConfigPlace> find_config_place(PluginFlags flags, EnvLookup env, const std::string& flag) {
  ConfigPlace place;
  const auto text = [&env](std::string_view name) {
    return env ? env(name).value_or("") : std::string();
  };
  place.folder = flag.empty() ? text("CONFIG_FILE_SRCDIR") : flag;
  place.default_config = text("DEFAULT_CONFIG");
  if (const std::string words = text("FALLBACK_STRATEGIES"); !words.empty()) {
    auto fallbacks = parse_config_fallbacks(words);
    if (!fallbacks) return in_context("FALLBACK_STRATEGIES", std::move(fallbacks).error());
    place.fallbacks = *std::move(fallbacks);
  }
  place.flags = std::move(flags);
  place.env = std::move(env);
  return place;
}

Result<ReadConfig> read_config(const ConfigPlace& place, const std::optional<std::string>& label) {
  std::string path;
  if (place.folder.empty()) {
    path = config_file_path(place.flags, place.env);
  } else {
    ConfigChoice choice = {
        .label = label, .default_config = place.default_config, .fallbacks = place.fallbacks};
    JOGAK_TRY(choice.files, files_in(place.folder));
    JOGAK_TRY(const std::string name, choose_config(choice));
    if (!name.empty()) path = place.folder + "/" + name;
  }
  ConfigSources sources = {.flags = place.flags, .env = place.env, .file = {}};
  if (!path.empty()) {
    JOGAK_TRY(sources.file, read_file(path, kConfigBytesMax));
    sources.file_name = path;
  }
  return read_plugin_config(sources);
}

}  // namespace jogak::agent
