// SPDX-License-Identifier: Apache-2.0
//
// A path is split first and decoded after, so that %2F in a name stays part of the name.
#include "apiserver/rest/request.h"

#include <algorithm>
#include <array>

namespace jogak::api {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// Of namespaces themselves: what stands behind /namespaces/NAME/ and is not a namespaced resource.
bool is_namespace_subresource(std::string_view word) {
  static constexpr std::array<std::string_view, 2> kWords = {"status", "finalize"};
  return std::ranges::find(kWords, word) != kWords.end();
}

void read_resource(RequestInfo& info, const std::vector<std::string>& parts, std::size_t at) {
  if (at < parts.size() && parts[at] == "watch") {
    info.is_watch_path = true;
    ++at;
  }
  if (at >= parts.size()) return;
  info.is_resource = true;
  const std::size_t left = parts.size() - at;
  if (parts[at] == "namespaces" && left >= 3 && !is_namespace_subresource(parts[at + 2])) {
    info.ns = parts[at + 1];
    at += 2;
  }
  info.plural = parts[at];
  if (at + 1 < parts.size()) info.name = parts[at + 1];
  if (at + 2 < parts.size()) info.subresource = parts[at + 2];
  for (std::size_t i = at + 3; i < parts.size(); ++i) info.rest += "/" + parts[i];
}

}  // namespace

std::optional<std::string> decode_percent(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Query parse_query(std::string_view text) {
  const auto decode = [](std::string_view part) {
    std::string plain(part);
    std::ranges::replace(plain, '+', ' ');
    return decode_percent(plain).value_or(plain);
  };
  Query query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    query.emplace_back(decode(pair.substr(0, equals)),
                       decode(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return query;
}

std::optional<RequestInfo> parse_target(std::string_view target) {
  RequestInfo info;
  const std::size_t question = std::min(target.find('?'), target.size());
  info.raw_query = target.substr(std::min(question + 1, target.size()));
  info.query = parse_query(info.raw_query);
  const std::string_view raw = target.substr(0, question);
  const auto path = decode_percent(raw);
  if (!path.has_value()) return std::nullopt;
  info.path = *path;

  std::vector<std::string> parts;  // split before decoding: %2F is not a separator
  for (const std::string& part : split_path(raw)) parts.push_back(*decode_percent(part));
  if (parts.size() >= 2 && parts[0] == "api") {
    info.version = parts[1];
    read_resource(info, parts, 2);
  } else if (parts.size() >= 3 && parts[0] == "apis") {
    info.group = parts[1];
    info.version = parts[2];
    read_resource(info, parts, 3);
  }
  return info;
}

std::string_view RequestInfo::parameter(std::string_view key) const {
  const auto it = std::ranges::find(query, key, &std::pair<std::string, std::string>::first);
  return it == query.end() ? std::string_view() : std::string_view(it->second);
}

bool RequestInfo::has(std::string_view key) const {
  return std::ranges::find(query, key, &std::pair<std::string, std::string>::first) != query.end();
}

std::vector<std::string> RequestInfo::values(std::string_view key) const {
  std::vector<std::string> found;
  for (const auto& [parameter_name, value] : query) {
    if (parameter_name == key) found.push_back(value);
  }
  return found;
}

}  // namespace jogak::api
