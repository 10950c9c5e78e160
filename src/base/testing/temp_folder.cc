// SPDX-License-Identifier: Apache-2.0
//
// mkdtemp(3) picks a name that nobody else has, also among tests that run at once.
#include "base/testing/temp_folder.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace jogak {

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "jogak-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::filesystem::filesystem_error("no folder for a test", pattern,
                                            std::error_code(errno, std::generic_category()));
  }
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace jogak
