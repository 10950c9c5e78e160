// SPDX-License-Identifier: Apache-2.0
// The scanner is one loop over bytes; strings are skipped by searching for the closing quote.
#include "kube/json_scan.h"

#include <algorithm>
#include <cstring>

namespace jogak::kube {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Position after the closing quote of the string that opens at `at`, or npos.
std::size_t skip_string(std::string_view text, std::size_t at) {
  std::size_t from = at + 1;
  for (;;) {
    const void* const hit = std::memchr(text.data() + from, '"', text.size() - from);
    if (hit == nullptr) return std::string_view::npos;
    const auto quote = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    std::size_t backslashes = 0;
    while (quote - backslashes > from && text[quote - backslashes - 1] == '\\') ++backslashes;
    from = quote + 1;
    if (backslashes % 2 == 0) return from;
  }
}

}  // namespace

std::size_t JsonScanner::line_of(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return static_cast<std::size_t>(std::count(text.begin(), end, '\n')) + 1;
}

void JsonScanner::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

bool JsonScanner::at_end() {
  skip_space();
  return at_ == text_.size();
}

bool JsonScanner::take(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

std::unexpected<Error> JsonScanner::ends_inside(std::string_view what, std::size_t from) const {
  return invalid("the text ends inside {} that began on line {}; it is not complete", what,
                 line_of(text_, from));
}

Result<void> JsonScanner::expect(char c, std::string_view what) {
  if (take(c)) return {};
  if (at_ == text_.size()) {
    return invalid("the text ends where {} should be; it is not complete", what);
  }
  return invalid("line {}: want {}, found '{}'", line_of(text_, at_), what, text_[at_]);
}

Result<std::string_view> JsonScanner::string() {
  skip_space();
  if (at_ == text_.size() || text_[at_] != '"') {
    return std::unexpected(expect('"', "the name of a field in quotes").error());
  }
  const std::size_t begin = at_;
  at_ = skip_string(text_, begin);
  if (at_ == std::string_view::npos) {
    at_ = text_.size();
    return ends_inside("a string", begin);
  }
  return text_.substr(begin + 1, at_ - begin - 2);
}

Result<std::string_view> JsonScanner::bracketed(char open) {
  const std::size_t begin = at_;
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      at_ = skip_string(text_, at_);
      if (at_ != std::string_view::npos) continue;
      at_ = text_.size();
      break;
    }
    ++at_;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return text_.substr(begin, at_ - begin);
  }
  return ends_inside(open == '{' ? "an object" : "a list", begin);
}

Result<std::string_view> JsonScanner::next_value() {
  skip_space();
  if (at_ == text_.size()) return invalid("the text ends where a value should be");
  const char c = text_[at_];
  if (c == '{' || c == '[') return bracketed(c);
  const std::size_t begin = at_;
  if (c == '"') {
    JOGAK_TRY_VOID(string());
    return text_.substr(begin, at_ - begin);
  }
  while (at_ < text_.size() && !is_space(text_[at_]) &&
         std::string_view(",:]}{[\"").find(text_[at_]) == std::string_view::npos) {
    ++at_;
  }
  if (at_ == begin) {
    return invalid("line {}: want a value, found '{}'", line_of(text_, begin), c);
  }
  return text_.substr(begin, at_ - begin);
}

}  // namespace jogak::kube
