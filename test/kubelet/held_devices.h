// SPDX-License-Identifier: Apache-2.0
//
// What running pods were told of their devices, added up: a device that two of them were given
// fails the test.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "test/kubelet/kubelet.h"

namespace jogak::kubelet {

class HeldDevices {
 public:
  void add(const std::string& pod, const StartedContainer& container) {
    std::string_view rest = container.env.at("NVIDIA_VISIBLE_DEVICES");
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const std::string id(rest.substr(0, comma));
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
      const auto [it, is_new] = owner_.emplace(id, pod);
      EXPECT_TRUE(is_new) << id << " is held by " << it->second << " and " << pod;
    }
  }
  void remove(const std::string& pod) {
    std::erase_if(owner_, [&](const auto& entry) { return entry.second == pod; });
  }

 private:
  std::map<std::string, std::string> owner_;  // by device
};

}  // namespace jogak::kubelet
