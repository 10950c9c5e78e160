// SPDX-License-Identifier: Apache-2.0
//
// What a URL asks for: group, version, resource, name, and the query parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jogak::api {

using Query = std::vector<std::pair<std::string, std::string>>;

// "a=1&b=%20" decoded; '+' is a blank. Broken escapes stay as they are.
Query parse_query(std::string_view text);
// "%2F" decoded; nullopt where an escape is broken.
std::optional<std::string> decode_percent(std::string_view text);

struct RequestInfo {
  std::string path;  // decoded, without the query
  std::string raw_query;
  Query query;
  // Below /api/VERSION or /apis/GROUP/VERSION, with something behind it.
  bool is_resource = false;
  bool is_watch_path = false;  // the old form /api/v1/watch/...
  std::string group, version, ns, plural, name, subresource;
  std::string rest;  // behind the subresource: of proxy paths

  // The first value of a parameter, "" when absent.
  std::string_view parameter(std::string_view key) const;
  bool has(std::string_view key) const;
  std::vector<std::string> values(std::string_view key) const;
};

// nullopt: the path has a broken escape.
std::optional<RequestInfo> parse_target(std::string_view target);

}  // namespace jogak::api
