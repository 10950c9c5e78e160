// SPDX-License-Identifier: Apache-2.0
// inotify on the folder. A folder that is removed, or is not there yet, is looked for at intervals.
#include "agent/plugin/kubelet_watch.h"

#include <array>
#include <cstring>

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace jogak::agent {

namespace {

constexpr TimeUs kLookEvery = 500 * kMsInUs;
constexpr std::uint32_t kEvents =
    IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

KubeletWatch::KubeletWatch(net::EpollLoop& loop, std::string folder, std::string kubelet_name,
                           OnChange on_change)
    : loop_(loop),
      folder_(std::move(folder)),
      kubelet_name_(std::move(kubelet_name)),
      on_change_(std::move(on_change)) {
  arm();
  // After arming: what is made from here on is heard of.
  seen_ = kubelet_identity();
  timer_ = loop_.after(kLookEvery, [this] { look(); });
}

KubeletWatch::~KubeletWatch() {
  loop_.cancel(timer_);
  disarm();
}

void KubeletWatch::arm() {
  if (fd_ < 0) {
    fd_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd_ < 0) return;  // out of watches: the slow look remains
    loop_.add_fd(fd_, EPOLLIN, [this](std::uint32_t) { on_readable(); });
  }
  watch_ = ::inotify_add_watch(fd_, folder_.c_str(), kEvents | IN_ONLYDIR);
}

void KubeletWatch::disarm() {
  if (fd_ < 0) return;
  loop_.remove_fd(fd_);
  ::close(fd_);
  fd_ = watch_ = -1;
}

void KubeletWatch::on_readable() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool is_changed = false;
  Change change;
  for (;;) {
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      is_changed = true;
      if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) watch_ = -1;
      if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0 && event.len > 0 && kubelet_name_ == name) {
        change.is_kubelet_new = true;
      }
      // Events were lost: assume the worst.
      if ((event.mask & IN_Q_OVERFLOW) != 0) change.is_kubelet_new = true;
    }
  }
  if (!is_changed) return;
  seen_ = kubelet_identity();
  on_change_(change);
}

void KubeletWatch::look() {
  timer_ = loop_.after(kLookEvery, [this] { look(); });
  if (watch_ < 0) arm();
  const Identity now = kubelet_identity();
  const bool is_new = now.inode != 0 && now != seen_;
  seen_ = now;
  on_change_({.is_kubelet_new = is_new});
}

KubeletWatch::Identity KubeletWatch::kubelet_identity() const {
  struct stat info = {};
  if (::stat((folder_ + "/" + kubelet_name_).c_str(), &info) != 0) return {};
  return {.inode = info.st_ino,
          .changed_ns = info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec};
}

}  // namespace jogak::agent
