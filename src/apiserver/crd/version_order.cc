// SPDX-License-Identifier: Apache-2.0
//
// The order of versions: stable ones before betas before alphas, each by number.
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "apiserver/crd/definition.h"

namespace jogak::api {
namespace {

// "v2beta1": {2, 1 (beta), 1}. Versions of another form come last, in order of their text.
struct KubeVersion {
  int major = 0;
  int stage = 0;  // 2 stable, 1 beta, 0 alpha
  int minor = 0;
};

bool take_number(std::string_view& text, int& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || number <= 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<KubeVersion> parse_version(std::string_view text) {
  KubeVersion out;
  if (!text.starts_with('v')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, out.major)) return std::nullopt;
  out.stage = 2;
  if (text.empty()) return out;
  out.stage = text.starts_with("beta") ? 1 : 0;
  if (out.stage == 0 && !text.starts_with("alpha")) return std::nullopt;
  text.remove_prefix(out.stage == 1 ? 4 : 5);
  if (!take_number(text, out.minor) || !text.empty()) return std::nullopt;
  return out;
}

}  // namespace

bool is_preferred_over(std::string_view a, std::string_view b) {
  const auto left = parse_version(a);
  const auto right = parse_version(b);
  if (!left && !right) return a < b;
  if (!left || !right) return left.has_value();
  // Stable ones first, then by number.
  const auto rank = [](const KubeVersion& version) {
    return std::array<int, 3>{version.stage, version.major, version.minor};
  };
  return rank(*left) > rank(*right);
}

}  // namespace jogak::api
