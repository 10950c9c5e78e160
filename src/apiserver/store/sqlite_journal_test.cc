// SPDX-License-Identifier: Apache-2.0
//
// What a journal gives back: after an end in order, a kill, a full disk, and damage of every kind.
#include "apiserver/store/sqlite_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/core.h>

#include "base/rng.h"
#include "base/sim_loop.h"
#include "base/testing/temp_folder.h"

namespace jogak::store {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

using Content = std::map<std::string, std::string>;  // "table ns/name" to all the rest

class SqliteJournalTest : public testing::Test {
 protected:
  static Object object(std::string_view name, Revision revision, std::size_t size = 100) {
    Object made;
    made.ns = "default";
    made.name = name;
    made.uid = fmt::format("uid-{}", name);
    made.revision = revision;
    made.header_size = 33;
    made.json =
        fmt::format("{{\"revision\":{},\"text\":\"{}\"}}", revision, std::string(size, 'x'));
    return made;
  }
  static std::string line(const Object& object) {
    return fmt::format("{} {} {} {}", object.uid, object.revision, object.header_size, object.json);
  }
  static std::string key(std::string_view table, const Object& object) {
    return fmt::format("{} {}/{}", table, object.ns, object.name);
  }
  static Result<Content> content(const SqliteJournal& journal) {
    Content all;
    JOGAK_TRY_VOID(journal.restore([&](std::string_view table, Object object) -> Result<void> {
      EXPECT_TRUE(all.emplace(key(table, object), line(object)).second);
      return {};
    }));
    return all;
  }
  std::unique_ptr<SqliteJournal> open() const {
    auto journal = SqliteJournal::open(folder_);
    EXPECT_TRUE(journal.has_value()) << journal.error().what;
    return std::move(*journal);
  }
  // What opening and reading says.
  static std::string error_of(const std::string& folder) {
    const auto journal = SqliteJournal::open(folder);
    if (!journal) return journal.error().what;
    const auto read = content(**journal);
    return read ? "" : read.error().what;
  }

  // Writes `count` changes, a flush after every third.
  Content fill(SqliteJournal& journal, int count, std::size_t size = 100) const {
    Content expected;
    Rng rng(7, "fill");
    Revision revision = 1;
    for (int i = 0; i < count; ++i) {
      const Object made = object(fmt::format("pod-{}", rng.below(20)), ++revision, size);
      const std::string table = rng.chance(1, 2) ? "pods" : "jobs.batch";
      if (expected.contains(key(table, made)) && rng.chance(1, 3)) {
        journal.remove(table, made);
        expected.erase(key(table, made));
      } else {
        journal.put(table, made);
        expected[key(table, made)] = line(made);
      }
      if (i % 3 == 2) {
        EXPECT_TRUE(journal.flush().has_value());
      }
    }
    EXPECT_TRUE(journal.flush().has_value());
    return expected;
  }

  const TempFolder root_;
  const std::string folder_ = root_.path("data");
};

TEST_F(SqliteJournalTest, ANewFolderIsMadeAndEmpty) {
  const auto journal = open();
  EXPECT_EQ(journal->revision(), 0U);
  EXPECT_EQ(*content(*journal), Content{});
  EXPECT_EQ(fs::status(folder_ + "/jogak.db").permissions() & fs::perms::others_all,
            fs::perms::none);
}

TEST_F(SqliteJournalTest, GivesBackWhatWasPut) {
  Content expected;
  {
    const auto journal = open();
    expected = fill(*journal, 300);
    EXPECT_EQ(journal->revision(), 301U);
    EXPECT_TRUE(*content(*journal) == expected);
  }
  const auto journal = open();
  EXPECT_EQ(journal->revision(), 301U);
  EXPECT_TRUE(*content(*journal) == expected);
}

TEST_F(SqliteJournalTest, AStoreGoesOnWhereItWas) {
  SimLoop loop;
  Revision last = 0;
  {
    const auto journal = open();
    Store store(loop);
    store.set_journal(journal.get());
    const TableId pods = store.table("pods");
    for (const char* name : {"a", "b", "c"}) store.put(pods, object(name, store.next_revision()));
    store.remove(pods, object("b", store.next_revision()));
    last = store.revision();
    ASSERT_TRUE(journal->flush().has_value());
  }
  const auto journal = open();
  Store store(loop);
  ASSERT_TRUE(journal
                  ->restore([&](std::string_view table, Object each) -> Result<void> {
                    store.restore(store.table(table), std::move(each));
                    return {};
                  })
                  .has_value());
  store.restore_revision(journal->revision());
  EXPECT_EQ(store.revision(), last);  // that of the removal, which left no object
  EXPECT_EQ(store.count(store.table("pods")), 2U);
  EXPECT_EQ(store.get(store.table("pods"), "default", "c")->revision, 4U);
}

TEST_F(SqliteJournalTest, BytesOfAnyKindSurvive) {
  Object odd = object("odd", 2);
  odd.json = std::string("\0\xff\xfe \"\n", 6);
  odd.ns = "";
  {
    const auto journal = open();
    journal->put("nodes", odd);
    ASSERT_TRUE(journal->flush().has_value());
  }
  EXPECT_EQ(*content(*open()), (Content{{"nodes /odd", line(odd)}}));
}

TEST_F(SqliteJournalTest, WhatWasNotFlushedIsFlushedAtTheEnd) {
  {
    open()->put("pods", object("a", 2));
  }
  EXPECT_EQ(open()->revision(), 2U);
}

TEST_F(SqliteJournalTest, OneProcessAtATime) {
  const auto journal = open();
  const auto second = SqliteJournal::open(folder_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::Conflict);
  EXPECT_THAT(second.error().what, HasSubstr("another process"));
  // The database has its own lock, should somebody delete the mark.
  fs::remove(folder_ + "/jogak.mark");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto third = SqliteJournal::open(folder_);
    ::_exit(!third && third.error().code == Errc::Conflict ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SqliteJournalTest, ATakerMayRefuse) {
  const auto journal = open();
  fill(*journal, 5);
  const auto read = journal->restore([](std::string_view, const Object& each) -> Result<void> {
    return invalid("no such kind: {}", each.name);
  });
  EXPECT_THAT(read.error().what, HasSubstr("no such kind: pod-"));
}

// The change of that revision in the runs below: 50 names in turn.
Object change_at(Revision revision, std::size_t size) {
  Object made;
  made.ns = "default";
  made.name = fmt::format("pod-{}", revision % 50);
  made.revision = revision;
  made.json = fmt::format("{}{}", revision, std::string(size, 'x'));
  return made;
}

// Starts a child that writes and tells each flushed revision, and kills it at the given one.
Revision write_until_killed(const std::string& folder, Revision kill_at, std::size_t size) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const auto journal = SqliteJournal::open(folder);
    if (!journal) ::_exit(1);
    for (Revision revision = (*journal)->revision() + 1;; ++revision) {
      (*journal)->put("pods", change_at(revision, size));
      if (revision % 3 != 0) continue;
      if (!(*journal)->flush()) ::_exit(1);
      if (::write(ends[1], &revision, sizeof revision) != sizeof revision) ::_exit(1);
    }
  }
  ::close(ends[1]);
  Revision told = 0, last = 0;
  while (::read(ends[0], &told, sizeof told) == sizeof told) {
    last = told;
    if (last >= kill_at) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child gave up by itself";
  return last;
}

TEST_F(SqliteJournalTest, AKillLosesNothingThatWasAcknowledged) {
  Rng rng(1, "kill");
  Revision at = 1;
  for (int round = 0; round < 8; ++round) {
    const std::size_t size = rng.below(3) * 3000;
    const Revision told = write_until_killed(folder_, at + 1 + rng.below(400), size);
    const auto journal = open();
    ASSERT_GE(journal->revision(), told);
    Revision newest = 0;
    ASSERT_TRUE(journal
                    ->restore([&](std::string_view, const Object& each) -> Result<void> {
                      EXPECT_EQ(each.name, fmt::format("pod-{}", each.revision % 50));
                      EXPECT_EQ(each.json.substr(0, each.json.find('x')),
                                std::to_string(each.revision));
                      // 50 names in turn: each holds its latest change.
                      EXPECT_GT(each.revision + 50, journal->revision());
                      newest = std::max(newest, each.revision);
                      return {};
                    })
                    .has_value());
    EXPECT_EQ(newest, journal->revision());
    at = journal->revision();
  }
}

TEST_F(SqliteJournalTest, AFullDiskIsAClearError) {
  const pid_t child = ::fork();
  if (child == 0) {
    // A file may grow no further: the system's refusal is that of a full disk.
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    const auto journal = SqliteJournal::open(folder_);
    if (!journal) ::_exit(1);
    Revision revision = 1;
    for (; revision < 2000; ++revision) {
      (*journal)->put("pods", object(fmt::format("pod-{}", revision), revision + 1, 4000));
      if (!(*journal)->flush()) break;
    }
    if ((*journal)->revision() != revision) ::_exit(2);
    if (!(*journal)->failure()) ::_exit(3);
    if ((*journal)->failure()->what.find("make room on the disk") == std::string::npos) ::_exit(4);
    (*journal)->put("pods", object("late", revision + 2));  // does nothing
    if (!(*journal)->flush().has_value()) ::_exit(5);       // told once
    if ((*journal)->revision() != revision) ::_exit(6);
    ::_exit(revision > 10 && revision < 2000 ? 0 : 7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto journal = open();
  EXPECT_EQ(content(*journal)->size(), journal->revision() - 1);  // all that was kept
  EXPECT_FALSE(content(*journal)->contains("pods default/late"));
  journal->put("pods", object("more", journal->revision() + 1));
  EXPECT_TRUE(journal->flush().has_value());
}

TEST_F(SqliteJournalTest, ALimitOfItsOwn) {
  const auto journal = SqliteJournal::open(folder_, {.bytes_max = 1 << 20});
  ASSERT_TRUE(journal.has_value());
  Revision revision = 1;
  while ((*journal)->flush().has_value() && revision < 2000) {
    (*journal)->put("pods", object(fmt::format("pod-{}", revision), revision + 1, 4000));
    ++revision;
  }
  EXPECT_LT(revision, 400U);
  EXPECT_EQ((*journal)->failure()->code, Errc::Unavailable);
}

TEST_F(SqliteJournalTest, ForeignFilesAreLeftAlone) {
  fs::create_directories(folder_);
  const std::string path = folder_ + "/jogak.db";
  std::ofstream(path) << std::string(5000, 'n');
  EXPECT_THAT(error_of(folder_), HasSubstr("not an SQLite file"));
  EXPECT_EQ(fs::file_size(path), 5000U);

  fs::remove(path);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(other, "CREATE TABLE t(x); INSERT INTO t VALUES(1)", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(other);
  EXPECT_THAT(error_of(folder_), HasSubstr("of another program"));
}

TEST_F(SqliteJournalTest, ANewerLayoutIsNotTouched) {
  {
    fill(*open(), 10);
  }
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/jogak.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA user_version = 2", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_THAT(error_of(folder_), HasSubstr("has layout 2, and this version knows 1"));
}

TEST_F(SqliteJournalTest, NeverStartsEmptyWhereSomethingWas) {
  {
    fill(*open(), 10);
  }
  fs::resize_file(folder_ + "/jogak.db", 0);
  EXPECT_THAT(error_of(folder_), HasSubstr("missing or empty, but changes up to revision 11"));
  fs::remove(folder_ + "/jogak.db");
  EXPECT_THAT(error_of(folder_), HasSubstr("missing or empty"));
}

TEST_F(SqliteJournalTest, AMissingEndIsNoticed) {
  write_until_killed(folder_, 100, 1000);
  ASSERT_GT(fs::file_size(folder_ + "/jogak.db-wal"), 0U);
  fs::copy(folder_, root_.path("copy"));
  fs::remove(root_.path("copy/jogak.db-wal"));
  EXPECT_THAT(error_of(root_.path("copy")), HasSubstr("its end is damaged or missing"));
  // ... and may be done without, on purpose.
  fs::remove(root_.path("copy/jogak.mark"));
  EXPECT_EQ(error_of(root_.path("copy")), "");
  EXPECT_EQ(error_of(folder_), "");
}

class Damage : public SqliteJournalTest {
 protected:
  // A folder with a journal in it, its content read from a copy.
  void make(bool is_killed) {
    if (is_killed) {
      kept_ = write_until_killed(folder_, 150, kSize);
      return;
    }
    const auto journal = open();
    expected_ = fill(*journal, 90, kSize);
    kept_ = journal->revision();
  }

  // Copies the folder, lets `change` spoil one file of the copy, and opens it: an error, or all.
  // Returns whether it was an error.
  bool is_refused_or_whole(const std::string& file,
                           const std::function<void(std::string&)>& change) {
    const std::string copy = root_.path("spoilt");
    fs::remove_all(copy);
    fs::copy(folder_, copy);
    std::ifstream in(copy + "/" + file, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    in.close();
    change(bytes);
    std::ofstream(copy + "/" + file, std::ios::binary) << bytes;
    const auto journal = SqliteJournal::open(copy);
    if (!journal) return true;
    const auto read = content(**journal);
    if (!read) return true;
    const Revision revision = (*journal)->revision();
    EXPECT_GE(revision, kept_);
    if (expected_.empty()) {
      // Changes of a kill's last moments may be there or not: nobody was told of them.
      Content expected;
      for (Revision each = revision - 49; each <= revision; ++each) {
        const Object object = change_at(each, kSize);
        expected[key("pods", object)] = line(object);
      }
      EXPECT_TRUE(*read == expected);
    } else {
      EXPECT_TRUE(*read == expected_);
    }
    return false;
  }

  static constexpr std::size_t kSize = 2000;
  Content expected_;  // empty for a killed writer's
  Revision kept_ = 0;
};

TEST_F(Damage, FlippedBytesAreFoundOrHarmless) {
  make(false);
  Rng rng(3, "flip");
  const std::size_t size = fs::file_size(folder_ + "/jogak.db");
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = rng.below(size), bit = rng.below(8);
    SCOPED_TRACE(fmt::format("bit {} of byte {}", bit, at));
    refused += is_refused_or_whole("jogak.db",
                                   [&](std::string& bytes) {
                                     bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
                                   })
                   ? 1
                   : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 75);  // the rest are gaps in pages
}

TEST_F(Damage, FlippedBytesOfTheHeader) {
  make(false);
  for (std::size_t at = 0; at < 100; ++at) {
    SCOPED_TRACE(fmt::format("byte {}", at));
    is_refused_or_whole("jogak.db", [&](std::string& bytes) { bytes[at] ^= 0x15; });
    if (HasFailure()) return;
  }
}

TEST_F(Damage, FlippedBytesOfTheLogAreFoundOrHarmless) {
  make(true);
  Rng rng(4, "flip");
  const std::size_t size = fs::file_size(folder_ + "/jogak.db-wal");
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t at = rng.below(size), bit = rng.below(8);
    SCOPED_TRACE(fmt::format("bit {} of byte {}", bit, at));
    refused += is_refused_or_whole("jogak.db-wal",
                                   [&](std::string& bytes) {
                                     bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
                                   })
                   ? 1
                   : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 30);
}

TEST_F(Damage, FilesCutOffAreFound) {
  make(false);
  const std::size_t size = fs::file_size(folder_ + "/jogak.db");
  for (std::size_t at = 0; at < size; at += 997) {
    SCOPED_TRACE(fmt::format("cut at {}", at));
    EXPECT_TRUE(is_refused_or_whole("jogak.db", [&](std::string& bytes) { bytes.resize(at); }));
    if (HasFailure()) return;
  }
}

TEST_F(Damage, LogsCutOffAreFound) {
  make(true);
  const std::size_t size = fs::file_size(folder_ + "/jogak.db-wal");
  for (std::size_t at = 0; at < size; at += size / 50) {
    SCOPED_TRACE(fmt::format("cut at {}", at));
    const bool is_refused =
        is_refused_or_whole("jogak.db-wal", [&](std::string& bytes) { bytes.resize(at); });
    EXPECT_TRUE(is_refused || at > size / 2);
    if (HasFailure()) return;
  }
}

TEST_F(Damage, ADamagedMarkIsSaidToBe) {
  make(false);
  for (std::size_t at = 0; at < 49; ++at) {
    EXPECT_TRUE(is_refused_or_whole("jogak.mark", [&](std::string& bytes) { bytes[at] ^= 1; }));
  }
  fs::resize_file(folder_ + "/jogak.mark", 20);
  EXPECT_THAT(error_of(folder_), HasSubstr("jogak.mark is damaged"));
}

}  // namespace
}  // namespace jogak::store
