// SPDX-License-Identifier: Apache-2.0
//
// The small file beside a journal: whoever has it locked owns the folder, and its text says which
// revision has been flushed for certain.
#pragma once

#include <string>

#include "apiserver/store/store.h"
#include "base/result.h"

namespace jogak::store {

class JournalMark {
 public:
  // Opens (or makes) and locks it. Errc::Conflict: another process has it.
  static Result<JournalMark> open(const std::string& path);
  JournalMark(JournalMark&& other) noexcept;
  JournalMark& operator=(JournalMark&& other) noexcept;
  ~JournalMark();

  // 0 when nothing has been marked yet.
  Revision revision() const { return revision_; }
  // In place, and without a sync.
  Result<void> set(Revision revision);

 private:
  JournalMark(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> read();

  std::string path_;
  int fd_ = -1;
  Revision revision_ = 0;
};

}  // namespace jogak::store
