// SPDX-License-Identifier: Apache-2.0
//
// The text is "jogak-mark REVISION CHECK\n" in a fixed width: one write within one sector.
#include "apiserver/store/journal_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/digest.h"

namespace jogak::store {
namespace {

std::string text_of(Revision revision) {
  return fmt::format("jogak-mark {:020} {:016x}\n", revision, Digest().add(revision).value());
}

constexpr std::size_t kTextSize = 49;

}  // namespace

JournalMark::JournalMark(JournalMark&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      revision_(other.revision_) {}

JournalMark& JournalMark::operator=(JournalMark&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(revision_, other.revision_);
  return *this;
}

JournalMark::~JournalMark() {
  if (fd_ >= 0) ::close(fd_);
}

Result<JournalMark> JournalMark::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(Errc::Unavailable, "opening {}: {}", path, std::strerror(errno));
  JournalMark mark(path, fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return fail(Errc::Unavailable, "locking {}: {}", path, std::strerror(errno));
    }
    return fail(Errc::Conflict,
                "{} is locked: another process keeps its objects here; stop it, or use another "
                "folder",
                path);
  }
  JOGAK_TRY_VOID(mark.read());
  return mark;
}

Result<void> JournalMark::read() {
  std::array<char, kTextSize + 1> buffer{};
  const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), 0);
  if (got < 0) return fail(Errc::Unavailable, "reading {}: {}", path_, std::strerror(errno));
  if (got == 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  Revision revision = 0;
  if (text.size() == kTextSize) {
    for (const char c : text.substr(11, 20)) {
      revision = revision * 10 + static_cast<Revision>(c - '0');
    }
  }
  if (text != text_of(revision)) {
    return invalid(
        "{} is damaged: it tells whether changes are missing from the journal; delete "
        "it to start with what the journal has",
        path_);
  }
  revision_ = revision;
  return {};
}

Result<void> JournalMark::set(Revision revision) {
  const std::string text = text_of(revision);
  if (::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail(Errc::Unavailable, "writing {}: {}", path_, std::strerror(errno));
  }
  revision_ = revision;
  return {};
}

}  // namespace jogak::store
