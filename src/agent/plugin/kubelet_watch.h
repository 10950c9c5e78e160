// SPDX-License-Identifier: Apache-2.0
//
// Notices that something happened in the kubelet's folder of plugin sockets: a kubelet that starts
// removes every socket there and makes its own anew, which may get the inode number of the old one.
// So creations are what counts, and a slow look at regular intervals for what was missed.
#pragma once

#include <functional>
#include <string>

#include "base/loop.h"
#include "net/epoll_loop.h"

namespace jogak::agent {

class KubeletWatch {
 public:
  struct Change {
    bool is_kubelet_new = false;  // its socket was created, or is another one than before
  };
  using OnChange = std::function<void(Change change)>;

  // `kubelet_name` is the socket's name in the folder. The folder need not exist yet.
  KubeletWatch(net::EpollLoop& loop, std::string folder, std::string kubelet_name,
               OnChange on_change);
  ~KubeletWatch();
  KubeletWatch(const KubeletWatch&) = delete;
  KubeletWatch& operator=(const KubeletWatch&) = delete;

 private:
  struct Identity {
    unsigned long long inode = 0;
    long long changed_ns = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };

  void arm();
  void disarm();
  void on_readable();
  void look();
  Identity kubelet_identity() const;

  net::EpollLoop& loop_;
  const std::string folder_, kubelet_name_;
  const OnChange on_change_;
  int fd_ = -1;
  int watch_ = -1;
  Identity seen_;
  TimerId timer_ = 0;
};

}  // namespace jogak::agent
