// SPDX-License-Identifier: Apache-2.0
//
// Image references by the grammar of the distribution project: [registry/]path[:tag][@digest].
#include "apiserver/kinds/pod_image.h"

#include <algorithm>

namespace jogak::api {

namespace {

constexpr std::size_t kMaxTag = 128;
constexpr std::size_t kMinDigestHex = 32;
constexpr std::size_t kIdentifierHex = 64;

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_lower_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool has_upper(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// Lower-case words joined by one of "." "_" "__" or any number of "-".
bool is_path_part(std::string_view part) {
  if (part.empty() || !is_lower_alnum(part.front()) || !is_lower_alnum(part.back())) {
    return false;
  }
  for (std::size_t i = 0; i < part.size();) {
    if (is_lower_alnum(part[i])) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < part.size() && !is_lower_alnum(part[i])) {
      ++i;
    }
    const std::string_view joint = part.substr(start, i - start);
    const bool is_dashes = std::ranges::all_of(joint, [](char c) { return c == '-'; });
    if (joint != "." && joint != "_" && joint != "__" && !is_dashes) {
      return false;
    }
  }
  return true;
}

bool is_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_path_part(path.substr(0, slash))) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    path.remove_prefix(slash + 1);
  }
}

bool is_domain_char(char c) {
  return is_alnum(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']';
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxTag && (is_alnum(tag.front()) || tag.front() == '_') &&
         std::ranges::all_of(
             tag, [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view digest) {
  const std::size_t colon = digest.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return false;
  }
  const std::string_view hex = digest.substr(colon + 1);
  return hex.size() >= kMinDigestHex && std::ranges::all_of(hex, is_hex);
}

// The registry's part in front of the first slash, if it looks like one; the rest stays in `name`.
bool take_domain(std::string_view& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) {
    return true;
  }
  const std::string_view front = name.substr(0, slash);
  if (front.find_first_of(".:") == std::string_view::npos && front != "localhost" &&
      !has_upper(front)) {
    return true;
  }
  name.remove_prefix(slash + 1);
  return !front.empty() && std::ranges::all_of(front, is_domain_char);
}

}  // namespace

bool is_latest_image(std::string_view image) {
  if (image.size() == kIdentifierHex && std::ranges::all_of(image, is_lower_hex)) {
    return false;
  }
  std::string_view name = image;
  const std::size_t at = name.find('@');
  const bool has_digest = at != std::string_view::npos;
  if (has_digest) {
    if (!is_digest(name.substr(at + 1))) {
      return false;
    }
    name = name.substr(0, at);
  }
  if (!take_domain(name)) {
    return false;
  }
  const std::size_t colon = name.find(':');
  const bool has_tag = colon != std::string_view::npos;
  const std::string_view tag = has_tag ? name.substr(colon + 1) : std::string_view{};
  if (has_tag && !is_tag(tag)) {
    return false;
  }
  if (!is_path(name.substr(0, colon))) {
    return false;
  }
  return has_tag ? tag == "latest" : !has_digest;
}

}  // namespace jogak::api
