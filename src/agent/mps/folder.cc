// SPDX-License-Identifier: Apache-2.0
// Files of others are left as they are; a file that cannot be removed or made is found at its use.
#include "agent/mps/folder.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/file.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecordBytesMax = 1 << 20;
constexpr std::int64_t kLineBytesMax = 256;
constexpr std::string_view kPidFile = "nvidia-cuda-mps-control.pid";
constexpr std::string_view kProcessName = "nvidia-cuda-mps";  // as much as the kernel keeps
constexpr std::string_view kContainerLabel = "system_u:object_r:container_file_t:s0";
constexpr fs::perms kOpenFolder = static_cast<fs::perms>(0755);
constexpr fs::perms kSharedFolder = static_cast<fs::perms>(01777);
constexpr char kShmOptions[] = "mode=1777,size=65536k";

Result<void> make_folder(const std::string& path, fs::perms perms) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, perms, error);
  if (error) return fail(Errc::Unavailable, "{} cannot be made: {}", path, error.message());
  return {};
}

void put_mark(const std::string& path, bool is_there) {
  std::error_code ignored;
  if (!is_there) {
    fs::remove(path, ignored);
  } else if (!fs::exists(path, ignored)) {
    (void)write_file(path, "");
  }
}

std::string first_line(const std::string& path) {
  const auto text = read_file(path, kLineBytesMax);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

bool is_same(const std::string& a, const std::string& b) {
  struct stat first = {}, second = {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool is_mounted(const std::string& folder, const std::string& parent) {
  struct stat own = {}, above = {};
  return ::stat(folder.c_str(), &own) == 0 && ::stat(parent.c_str(), &above) == 0 &&
         own.st_dev != above.st_dev;
}

}  // namespace

MpsFolder::MpsFolder(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.ends_with('/')) root_.pop_back();
}

std::string MpsFolder::path(std::string_view resource, std::string_view name) const {
  return fmt::format("{}/{}/{}", root_, resource, name);
}

std::string MpsFolder::pipe(std::string_view resource) const { return path(resource, "pipe"); }
std::string MpsFolder::log(std::string_view resource) const { return path(resource, "log"); }

Result<void> MpsFolder::make(std::string_view resource) const {
  JOGAK_TRY_VOID(make_folder(pipe(resource), kOpenFolder));
  JOGAK_TRY_VOID(make_folder(log(resource), kOpenFolder));
  if (first_line("/sys/fs/selinux/enforce") != "1") return {};
  if (::setxattr(pipe(resource).c_str(), "security.selinux", kContainerLabel.data(),
                 kContainerLabel.size(), 0) != 0) {
    return fail(Errc::Unavailable, "{} cannot be labelled for containers: {}", pipe(resource),
                std::generic_category().message(errno));
  }
  return {};
}

Result<std::string> MpsFolder::make_shm(bool mounts) const {
  const bool is_there = is_mounted(shm(), root_) || is_same(shm(), "/dev/shm");
  if (!is_there) JOGAK_TRY_VOID(make_folder(shm(), kSharedFolder));
  if (!mounts) return std::string();
  if (!is_there) {
    constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (::mount("shm", shm().c_str(), "tmpfs", kFlags, kShmOptions) != 0) {
      // The folder itself does, if it is the daemon's /dev/shm, too.
      if (errno == EPERM || errno == EACCES) return std::string();
      return fail(Errc::Unavailable, "{} cannot be mounted: {}", shm(),
                  std::generic_category().message(errno));
    }
  }
  return is_same(shm(), "/dev/shm") ? std::string() : shm();
}

void MpsFolder::set_started(std::string_view resource, bool is_started) const {
  put_mark(path(resource, ".started"), is_started);
}

bool MpsFolder::is_started(std::string_view resource) const {
  std::error_code ignored;
  return fs::exists(path(resource, ".started"), ignored);
}

void MpsFolder::set_ready(bool is_ready) const { put_mark(root_ + "/.ready", is_ready); }

Result<MpsRecord> MpsFolder::load() const {
  const std::string file = root_ + "/.jogak";
  const auto text = read_file(file, kRecordBytesMax);
  if (!text) {
    if (text.error().code == Errc::NotFound) return MpsRecord{};
    return std::unexpected(text.error());
  }
  auto record = parse_mps_record(*text);
  if (!record) return in_context(file, std::move(record).error());
  return record;
}

Result<void> MpsFolder::save(const MpsRecord& record) const {
  const std::string file = root_ + "/.jogak";
  if (record.is_empty()) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return {};
  }
  JOGAK_TRY_VOID(make_folder(root_, kOpenFolder));
  return write_file(file, mps_record_text(record));
}

std::optional<pid_t> MpsFolder::pid(std::string_view resource) const {
  std::string text = first_line(path(resource, fmt::format("pipe/{}", kPidFile)));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.pop_back();
  const auto pid = parse_int(text, 2, 1 << 22);
  // The file stays when the daemon is killed, and numbers are used again.
  if (!pid || !first_line(fmt::format("/proc/{}/comm", *pid)).starts_with(kProcessName)) return {};
  return static_cast<pid_t>(*pid);
}

}  // namespace jogak::agent
