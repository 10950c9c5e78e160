// SPDX-License-Identifier: Apache-2.0
//
// A line on stderr that says how far a long job is, for people at a terminal; silent when stderr is
// anything else. Threads may share one.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

namespace jogak::cli {

class Progress {
 public:
  // "what" reads well after a count: "runs".
  Progress(std::size_t total, std::string_view what);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more is done; `detail` is the last thing done.
  void done(std::string_view detail);

 private:
  void show(std::string_view detail);

  const std::size_t total_;
  const std::string_view what_;
  const bool is_shown_;
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace jogak::cli
