// SPDX-License-Identifier: Apache-2.0
//
// POSIX files and zlib behind file.h.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace jogak {

namespace {

constexpr std::size_t kSmallBytes = 4096;
constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

std::unexpected<Error> from_errno(std::string_view doing, const std::string& path, int code) {
  const Errc errc = code == ENOENT || code == ENOTDIR ? Errc::NotFound
                    : code == EISDIR                  ? Errc::Invalid
                                                      : Errc::Unavailable;
  return fail(errc, "{} {}: {}", doing, path, std::generic_category().message(code));
}

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }

  // Closes now and says whether that worked: the last chance of a write to fail.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

// Owns a zlib stream set up for gzip.
class Inflater {
 public:
  Inflater() : is_ok_(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK) {}
  ~Inflater() {
    if (is_ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool is_ok() const { return is_ok_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool is_ok_;
};

bool is_gzip(std::string_view data) { return data.starts_with("\x1f\x8b"); }

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return from_errno("write", path, errno);
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> write_in_place(const std::string& path, std::string_view content) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return from_errno("open", path, errno);
  return write_all(fd.get(), content, path);
}

Result<void> write_and_rename(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  ::unlink(temporary.c_str());  // of an earlier process with our number
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return from_errno("create", temporary, errno);

  Result<void> done = write_all(fd.get(), content, temporary);
  if (done && ::fsync(fd.get()) != 0) done = from_errno("sync", temporary, errno);
  if (!fd.close() && done) done = from_errno("close", temporary, errno);
  if (done && std::rename(temporary.c_str(), path.c_str()) != 0) {
    done = from_errno("rename to", path, errno);
  }
  if (!done) ::unlink(temporary.c_str());
  return done;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::int64_t bytes_max) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return from_errno("open", path, errno);

  std::string content;
  struct stat status = {};
  if (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    if (status.st_size > bytes_max) return invalid("read {}: over {} bytes", path, bytes_max);
    content.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  // Files of /proc say that they are empty and are small: they take one read, and one for the end.
  if (status.st_size == 0) content.reserve(kSmallBytes);
  std::size_t size = 0;
  for (;;) {
    const std::size_t room = content.capacity() - size;
    content.resize(size + (room > 0 ? room : kChunkBytes));
    const ssize_t n = ::read(fd.get(), content.data() + size, content.size() - size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return from_errno("read", path, errno);
    }
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
    if (static_cast<std::int64_t>(size) > bytes_max) {
      return invalid("read {}: over {} bytes", path, bytes_max);
    }
  }
  content.resize(size);
  if (!is_gzip(content)) return content;

  auto plain = gunzip(content, bytes_max);
  if (!plain) return in_context(path, std::move(plain).error());
  return plain;
}

Result<std::string> gunzip(std::string_view data, std::int64_t bytes_max) {
  Inflater inflater;
  if (!inflater.is_ok()) return fail(Errc::Unavailable, "gunzip: out of memory");
  z_stream& stream = inflater.stream();

  std::string plain;
  std::string chunk(kChunkBytes, '\0');
  int status = Z_OK;
  do {
    // zlib counts in 32 bits: feed it pieces
    if (stream.avail_in == 0 && !data.empty()) {
      const std::string_view piece = data.substr(0, std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      data.remove_prefix(piece.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR) return invalid("gunzip: the data ends early");
    if (status != Z_OK && status != Z_STREAM_END) {
      return invalid("gunzip: {}", stream.msg != nullptr ? stream.msg : "not gzip data");
    }
    plain.append(chunk, 0, chunk.size() - stream.avail_out);
    if (static_cast<std::int64_t>(plain.size()) > bytes_max) {
      return invalid("gunzip: over {} bytes", bytes_max);
    }
    const bool has_more_members = status == Z_STREAM_END && stream.avail_in + data.size() > 0;
    if (has_more_members && inflateReset(&stream) == Z_OK) status = Z_OK;
  } while (status != Z_STREAM_END);
  return plain;
}

Result<void> write_file(const std::string& path, std::string_view content) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) return from_errno("write", path, EISDIR);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return write_in_place(path, content);
  }
  std::string target = path;
  if (std::filesystem::is_symlink(path, ignored)) {
    const auto followed = std::filesystem::weakly_canonical(path, ignored);
    if (!followed.empty()) target = followed.string();
  }
  return write_and_rename(target, content);
}

}  // namespace jogak
