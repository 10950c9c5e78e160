// SPDX-License-Identifier: Apache-2.0
//
// One row an object, in WAL mode without a sync at each commit. A row carries a digest of itself,
// as SQLite checks the structure of its pages but not the bytes in them.
#include "apiserver/store/sqlite_journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "apiserver/store/journal_mark.h"
#include "base/check.h"
#include "base/digest.h"

namespace jogak::store {
namespace {

constexpr int kApplicationId = 0x6a6f676b;  // "jogk", in the header of our files
constexpr int kSchemaVersion = 1;
constexpr int kPageBytes = 8192;        // most objects fit one
constexpr int kCheckpointPages = 8000;  // of the WAL, before it is carried over, with a sync

constexpr const char* kSchema =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER, digest INTEGER);"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, kind TEXT, ns TEXT, name TEXT, uid TEXT,"
    " revision INTEGER, header INTEGER, digest INTEGER, json TEXT, UNIQUE(kind, ns, name));";
constexpr const char* kPut =
    "INSERT INTO objects(kind, ns, name, uid, revision, header, digest, json)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(kind, ns, name) DO UPDATE SET"
    " uid = ?4, revision = ?5, header = ?6, digest = ?7, json = ?8";
constexpr const char* kRemove = "DELETE FROM objects WHERE kind = ?1 AND ns = ?2 AND name = ?3";
constexpr const char* kSetRevision =
    "INSERT INTO meta(id, revision, digest) VALUES(1, ?1, ?2)"
    " ON CONFLICT(id) DO UPDATE SET revision = ?1, digest = ?2";
constexpr const char* kList =
    "SELECT kind, ns, name, uid, revision, header, digest, json FROM objects ORDER BY id";

std::int64_t digest_of(std::string_view table, const Object& object) {
  Digest digest;
  digest.add(table).add(object.ns).add(object.name).add(object.uid).add(object.revision);
  return static_cast<std::int64_t>(digest.add(object.header_size).add(object.json).value());
}

std::int64_t digest_of(Revision revision) {
  return static_cast<std::int64_t>(Digest().add("revision").add(revision).value());
}

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

void set_text(sqlite3_stmt* statement, int at, std::string_view text) {
  // An empty view may have no address, which would be NULL.
  const char* data = text.empty() ? "" : text.data();
  sqlite3_bind_text64(statement, at, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void set_number(sqlite3_stmt* statement, int at, std::int64_t number) {
  sqlite3_bind_int64(statement, at, number);
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const int size = sqlite3_column_bytes(statement, column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

bool is_full(int code) {
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC ||
         code == SQLITE_IOERR_TRUNCATE;
}

// What to tell about a file that cannot be used as it is.
std::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return invalid(
      "{} is damaged ({}): put back a copy of the folder, or move the folder away to "
      "start empty",
      path, what);
}

// Whether the file is there with something in it; an Error when that something is not ours. Looks
// before SQLite does, which would take a foreign database for its own.
Result<bool> check_header(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    return fail(Errc::Unavailable, "opening {}: {}", path, std::strerror(errno));
  }
  std::array<unsigned char, 100> header{};
  const ssize_t got = ::pread(fd, header.data(), header.size(), 0);
  const int error = errno;
  ::close(fd);
  if (got < 0) return fail(Errc::Unavailable, "reading {}: {}", path, std::strerror(error));
  if (got == 0) return false;
  if (std::filesystem::exists(path + "-journal"))
    return true;  // made only in part: SQLite mends it
  if (got < static_cast<ssize_t>(header.size())) return damaged(path, "cut off in its header");
  if (std::memcmp(header.data(), "SQLite format 3", 16) != 0) {
    return invalid(
        "{} is not an SQLite file, or its start is damaged: put back a copy of the "
        "folder, or use another folder",
        path);
  }
  const auto byte = [&header](std::size_t at) { return static_cast<std::uint32_t>(header[at]); };
  const std::uint32_t id = byte(68) << 24 | byte(69) << 16 | byte(70) << 8 | byte(71);
  if (id != kApplicationId) {
    return invalid("{} is the SQLite file of another program: use another folder", path);
  }
  return true;
}

}  // namespace

struct SqliteJournal::Impl {
  Impl(std::string in_path, JournalMark with_mark)
      : path(std::move(in_path)), mark(std::move(with_mark)) {}

  Result<void> open(bool is_new, const JournalOptions& options);
  Result<void> make_file();
  Result<void> check();
  Result<void> run(const char* sql);
  Result<std::int64_t> number(const char* sql);
  Result<Statement> prepare(const char* sql);
  // Runs a bound statement that gives no rows, and makes it ready for the next time.
  bool step(sqlite3_stmt* statement);
  std::unexpected<Error> error(std::string_view doing);
  void give_up(std::string_view doing);
  bool begin();

  std::string path;
  JournalMark mark;
  Database database;
  Statement put, remove, set_revision;
  Revision revision = 0;  // kept
  Revision latest = 0;    // of the transaction under way
  bool is_open = false;   // a transaction is
  std::optional<Error> failure;
  bool is_told = false;  // flush() has returned the failure
};

std::unexpected<Error> SqliteJournal::Impl::error(std::string_view doing) {
  const int code = sqlite3_extended_errcode(database.get());
  const std::string text = sqlite3_errmsg(database.get());
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(Errc::Conflict, "{} is in use by another process: stop it, or use another folder",
                  path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:  // the schema is not what we made
    case SQLITE_SCHEMA:
      return damaged(path, text);
    default:
      break;
  }
  return fail(Errc::Unavailable, "{} {}: {}{}", doing, path, text,
              is_full(code) ? ": make room on the disk and start again" : "");
}

Result<void> SqliteJournal::Impl::run(const char* sql) {
  if (sqlite3_exec(database.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return error("preparing");
}

Result<Statement> SqliteJournal::Impl::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(database.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    return error("preparing");
  }
  return Statement(statement);
}

Result<std::int64_t> SqliteJournal::Impl::number(const char* sql) {
  JOGAK_TRY(const Statement statement, prepare(sql));
  if (sqlite3_step(statement.get()) != SQLITE_ROW) return error("reading");
  return sqlite3_column_int64(statement.get(), 0);
}

// The whole schema in one transaction of the old kind, so that the header says whose file this is
// from its first moment.
Result<void> SqliteJournal::Impl::make_file() {
  JOGAK_TRY_VOID(run(fmt::format("PRAGMA page_size = {}; BEGIN IMMEDIATE; PRAGMA application_id = "
                                 "{}; PRAGMA user_version = {}; {} COMMIT",
                                 kPageBytes, kApplicationId, kSchemaVersion, kSchema)
                         .c_str()));
  return {};
}

Result<void> SqliteJournal::Impl::open(bool is_new, const JournalOptions& options) {
  if (is_new) {
    // Secrets are among the objects.
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return fail(Errc::Unavailable, "making {}: {}", path, std::strerror(errno));
    ::close(fd);
  }
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  database.reset(opened);
  if (code != SQLITE_OK) return error("opening");
  sqlite3_extended_result_codes(opened, 1);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  JOGAK_TRY_VOID(run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY"));
  if (is_new) JOGAK_TRY_VOID(make_file());
  JOGAK_TRY_VOID(run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  JOGAK_TRY_VOID(run(fmt::format("PRAGMA wal_autocheckpoint = {}; PRAGMA journal_size_limit = {}",
                                 kCheckpointPages, kCheckpointPages * kPageBytes)
                         .c_str()));
  if (options.bytes_max > 0) {
    JOGAK_TRY_VOID(
        run(fmt::format("PRAGMA max_page_count = {}", options.bytes_max / kPageBytes).c_str()));
  }
  JOGAK_TRY_VOID(check());
  JOGAK_TRY(put, prepare(kPut));
  JOGAK_TRY(remove, prepare(kRemove));
  JOGAK_TRY(set_revision, prepare(kSetRevision));
  return {};
}

Result<void> SqliteJournal::Impl::check() {
  JOGAK_TRY(const std::int64_t id, number("PRAGMA application_id"));
  if (id != kApplicationId) {
    return invalid("{} is the SQLite file of another program: use another folder", path);
  }
  JOGAK_TRY(const std::int64_t version, number("PRAGMA user_version"));
  if (version != kSchemaVersion) {
    return invalid(
        "{} has layout {}, and this version knows {}: use the version that wrote it, or "
        "another folder",
        path, version, kSchemaVersion);
  }
  JOGAK_TRY(const Statement verdict, prepare("PRAGMA integrity_check(1)"));
  if (sqlite3_step(verdict.get()) != SQLITE_ROW) return error("checking");
  if (const std::string text = text_at(verdict.get(), 0); text != "ok") return damaged(path, text);

  JOGAK_TRY(const Statement meta, prepare("SELECT revision, digest FROM meta"));
  const int row = sqlite3_step(meta.get());
  if (row == SQLITE_ROW) {
    revision = static_cast<Revision>(sqlite3_column_int64(meta.get(), 0));
    if (digest_of(revision) != sqlite3_column_int64(meta.get(), 1)) {
      return damaged(path, "its revision does not match its digest");
    }
  } else if (row != SQLITE_DONE) {
    return error("reading");
  }
  if (revision < mark.revision()) {
    return invalid(
        "{} ends at revision {}, but changes up to {} were kept: its end is damaged or missing (or "
        "the machine lost power); put back a copy of the folder, or delete the file jogak.mark "
        "beside it to go on without them",
        path, revision, mark.revision());
  }
  return {};
}

bool SqliteJournal::Impl::step(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  // The error stays readable after the reset.
  sqlite3_reset(statement);
  return code == SQLITE_DONE;
}

void SqliteJournal::Impl::give_up(std::string_view doing) {
  failure = error(doing).error();
  is_open = false;
  sqlite3_exec(database.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

// False once changes are not kept any more.
bool SqliteJournal::Impl::begin() {
  if (failure) return false;
  if (is_open) return true;
  is_open = sqlite3_exec(database.get(), "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
  if (!is_open) give_up("writing");
  return is_open;
}

SqliteJournal::SqliteJournal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SqliteJournal::~SqliteJournal() {
  // Whoever cares has flushed; this is for tidy ends.
  [[maybe_unused]] const auto flushed = flush();
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(const std::string& folder,
                                                           JournalOptions options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::Unavailable, "making the folder {}: {}", folder, error.message());
  const std::string path = folder + "/jogak.db";
  JOGAK_TRY(JournalMark mark, JournalMark::open(folder + "/jogak.mark"));
  JOGAK_TRY(const bool is_there, check_header(path));
  if (!is_there && mark.revision() > 0) {
    return invalid(
        "{} is missing or empty, but changes up to revision {} were kept: put back a "
        "copy of the folder, or move the folder away to start empty",
        path, mark.revision());
  }
  auto impl = std::make_unique<Impl>(path, std::move(mark));
  JOGAK_TRY_VOID(impl->open(!is_there, options));
  return std::unique_ptr<SqliteJournal>(new SqliteJournal(std::move(impl)));
}

Revision SqliteJournal::revision() const { return impl_->revision; }

Result<void> SqliteJournal::restore(const Take& take) const {
  JOGAK_TRY(const Statement list, impl_->prepare(kList));
  for (;;) {
    const int code = sqlite3_step(list.get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return impl_->error("reading");
    const std::string table = text_at(list.get(), 0);
    Object object;
    object.ns = text_at(list.get(), 1);
    object.name = text_at(list.get(), 2);
    object.uid = text_at(list.get(), 3);
    object.revision = static_cast<Revision>(sqlite3_column_int64(list.get(), 4));
    object.header_size = static_cast<std::uint32_t>(sqlite3_column_int64(list.get(), 5));
    object.json = text_at(list.get(), 7);
    if (digest_of(table, object) != sqlite3_column_int64(list.get(), 6) ||
        object.revision > impl_->revision) {
      return damaged(impl_->path, fmt::format("{} {}/{} does not match its digest", table,
                                              object.ns, object.name));
    }
    JOGAK_TRY_VOID(take(table, std::move(object)));
  }
}

void SqliteJournal::put(std::string_view table, const Object& object) {
  if (!impl_->begin()) return;
  sqlite3_stmt* statement = impl_->put.get();
  set_text(statement, 1, table);
  set_text(statement, 2, object.ns);
  set_text(statement, 3, object.name);
  set_text(statement, 4, object.uid);
  set_number(statement, 5, static_cast<std::int64_t>(object.revision));
  set_number(statement, 6, std::int64_t{object.header_size});
  set_number(statement, 7, digest_of(table, object));
  set_text(statement, 8, object.json);
  impl_->latest = object.revision;
  if (!impl_->step(statement)) impl_->give_up("writing");
}

void SqliteJournal::remove(std::string_view table, const Object& last) {
  if (!impl_->begin()) return;
  sqlite3_stmt* statement = impl_->remove.get();
  set_text(statement, 1, table);
  set_text(statement, 2, last.ns);
  set_text(statement, 3, last.name);
  impl_->latest = last.revision;
  if (!impl_->step(statement)) impl_->give_up("writing");
}

Result<void> SqliteJournal::flush() {
  Impl& impl = *impl_;
  if (!impl.failure && impl.is_open) {
    set_number(impl.set_revision.get(), 1, static_cast<std::int64_t>(impl.latest));
    set_number(impl.set_revision.get(), 2, digest_of(impl.latest));
    const bool is_kept =
        impl.step(impl.set_revision.get()) &&
        sqlite3_exec(impl.database.get(), "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK;
    if (!is_kept) {
      impl.give_up("writing");
    } else {
      impl.is_open = false;
      impl.revision = impl.latest;
      // Only now, so that it never promises what is not there.
      if (auto marked = impl.mark.set(impl.revision); !marked) impl.failure = marked.error();
    }
  }
  if (impl.failure && !std::exchange(impl.is_told, true)) return std::unexpected(*impl.failure);
  return {};
}

const std::optional<Error>& SqliteJournal::failure() const { return impl_->failure; }

}  // namespace jogak::store
