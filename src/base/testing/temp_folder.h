// SPDX-License-Identifier: Apache-2.0
//
// An empty folder for one test, gone with all that is in it when the test ends, however it ends.
#pragma once

#include <filesystem>
#include <string>

namespace jogak {

class TempFolder {
 public:
  // Throws std::filesystem::filesystem_error where the system gives none.
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace jogak
