// SPDX-License-Identifier: Apache-2.0
//
// The objects in one SQLite file, so that they survive the process. Changes gather in a transaction
// until flush(): a server that flushes before its answers leave has lost nothing it acknowledged,
// however the process ends. A machine that loses power may lose the last moments; a sync at each
// flush would hold up everything for longer than a playground's objects are worth.
//
// Two files in the folder: jogak.db (with SQLite's jogak.db-wal beside it) and jogak.mark, which
// locks the folder and says up to which revision changes were flushed, so that a missing end is
// noticed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/store/store.h"
#include "base/result.h"

namespace jogak::store {

struct JournalOptions {
  std::int64_t bytes_max = 0;  // of jogak.db; 0: what the disk has
};

class SqliteJournal : public Journal {
 public:
  // Opens the folder, makes it when it is new, and checks all that is in it. Errors say what to do,
  // and leave the files as they are: Conflict when another process has it open, Invalid when the
  // files are damaged, foreign or of a newer version, Unavailable when the system refuses.
  static Result<std::unique_ptr<SqliteJournal>> open(const std::string& folder,
                                                     JournalOptions options = {});
  // Flushes, too.
  ~SqliteJournal() override;

  // Of the latest change that is kept; 0 in a new folder.
  Revision revision() const;

  // Gives every object: labels and fields are empty, as only the caller knows what they are.
  using Take = std::function<Result<void>(std::string_view table, Object object)>;
  Result<void> restore(const Take& take) const;

  void put(std::string_view table, const Object& object) override;
  void remove(std::string_view table, const Object& last) override;

  // Makes all changes so far survive the process. Quick when there are none. An Error: they are not
  // kept, and answers that tell of them must not leave. It is given once, by the flush that finds
  // it: from then on the journal keeps nothing, and a flush has nothing to do.
  Result<void> flush();
  // Why changes are not kept any more (a full disk, usually); writes should be refused with it.
  // What the store holds beyond revision() is lost with the process.
  const std::optional<Error>& failure() const;

 private:
  struct Impl;
  explicit SqliteJournal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::store
