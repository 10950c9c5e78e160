// SPDX-License-Identifier: Apache-2.0
//
// Device, inode, size and time of the last change.
#include "agent/exporter/watched_file.h"

#include <sys/stat.h>

#include <fmt/format.h>

namespace jogak::agent {

std::string file_fingerprint(const std::string& path) {
  struct stat found = {};
  if (path.empty()) return "";
  if (::stat(path.c_str(), &found) != 0) return "gone";
  return fmt::format("{}.{}.{}.{}.{}", found.st_dev, found.st_ino, found.st_size,
                     found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

}  // namespace jogak::agent
