// SPDX-License-Identifier: Apache-2.0
//
// Redraws one terminal line at most ten times a second.
#include "cli/progress.h"

#include <unistd.h>

#include <fmt/core.h>

#include "base/mono_clock.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kRedrawNs = 100'000'000;
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::size_t total, std::string_view what)
    : total_(total), what_(what), is_shown_(::isatty(STDERR_FILENO) == 1 && total > 1) {
  show("");
}

Progress::~Progress() {
  if (is_shown_) fmt::print(stderr, "{}", kClearLine);
}

void Progress::done(std::string_view detail) {
  const std::lock_guard lock(mutex_);
  ++done_;
  show(detail);
}

void Progress::show(std::string_view detail) {
  const std::int64_t now_ns = mono_now_ns();
  if (!is_shown_ || (last_ns_ != 0 && now_ns - last_ns_ < kRedrawNs)) return;
  last_ns_ = now_ns;
  fmt::print(stderr, "{}{}/{} {}{}{}", kClearLine, done_, total_, what_, detail.empty() ? "" : ": ",
             detail);
  std::fflush(stderr);
}

}  // namespace jogak::cli
