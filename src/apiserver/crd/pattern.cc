// SPDX-License-Identifier: Apache-2.0
//
// RE2 behind two functions, so that its headers stay here.
#include "apiserver/crd/pattern.h"

#include <re2/re2.h>

#include <functional>
#include <map>
#include <memory>

namespace jogak::api {
namespace {

constexpr std::size_t kCacheMax = 1000;  // beyond it all are forgotten: patterns come from users

std::unique_ptr<RE2> compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  return std::make_unique<RE2>(pattern, options);
}

const RE2& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::unique_ptr<RE2>, std::less<>> cache;
  const auto found = cache.find(pattern);
  if (found != cache.end()) return *found->second;
  if (cache.size() >= kCacheMax) cache.clear();
  return *cache.emplace(pattern, compile(pattern)).first->second;
}

}  // namespace

bool pattern_matches(const std::string& pattern, std::string_view text) {
  const RE2& regex = compiled(pattern);
  return regex.ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), regex);
}

std::string pattern_error(const std::string& pattern) {
  const RE2& regex = compiled(pattern);
  return regex.ok() ? "" : "error parsing regexp: " + regex.error();
}

}  // namespace jogak::api
