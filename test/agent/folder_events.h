// SPDX-License-Identifier: Apache-2.0
//
// Files that appear, take a name or go in a folder, counted as they happen: the points at which a
// test kills whoever writes there.
#pragma once

#include <poll.h>
#include <sys/inotify.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "base/check.h"

namespace jogak::testing {

class FolderEvents {
 public:
  explicit FolderEvents(const std::string& folder) : fd_(::inotify_init1(IN_CLOEXEC)) {
    JOGAK_CHECK(::inotify_add_watch(fd_, folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_DELETE) >= 0);
  }
  ~FolderEvents() { ::close(fd_); }
  FolderEvents(const FolderEvents&) = delete;
  FolderEvents& operator=(const FolderEvents&) = delete;

  // How many came in at most 20 ms.
  int wait() const {
    pollfd ready = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) <= 0) return 0;
    alignas(inotify_event) char buffer[4096];
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    int count = 0;
    for (ssize_t at = 0; at < got; ++count) {
      at += static_cast<ssize_t>(sizeof(inotify_event) +
                                 reinterpret_cast<inotify_event*>(buffer + at)->len);
    }
    return count;
  }

 private:
  int fd_;
};

}  // namespace jogak::testing
