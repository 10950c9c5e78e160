// SPDX-License-Identifier: Apache-2.0
//
// A driver on a scripted cluster under virtual time, for the tests beside the driver's files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "live/scheduler_driver.h"
#include "live/testing/scripted_cluster.h"

namespace jogak::live::testing {

class DriverTest : public ::testing::Test {
 protected:
  void start(DriverOptions options = {}) {
    auto made = SchedulerDriver::make(cluster_, std::move(options));
    ASSERT_TRUE(made.has_value()) << made.error().what;
    driver_ = *std::move(made);
    loop_.run_ready();
  }
  void add(Doc object) { cluster_.put("pods", std::move(object)); }
  void settle() { loop_.run_ready(); }
  void wait(TimeUs span) { loop_.run_for(span); }
  // A pod that somebody put on a node.
  static Doc placed(std::string_view name, int cpu, std::string_view node, int priority = 0) {
    Doc object = pod(name, cpu, priority);
    object.at("spec").set("nodeName", node);
    object.at("status").set("phase", "Running");
    return object;
  }
  void TearDown() override {
    if (driver_ == nullptr) return;
    EXPECT_EQ(driver_->counts().invalid_plans, 0U) << driver_->last_fault();
    EXPECT_EQ(driver_->counts().unreadable, unreadable_) << driver_->last_fault();
  }

  SimLoop loop_;
  ScriptedCluster cluster_{loop_};
  std::unique_ptr<SchedulerDriver> driver_;
  std::uint64_t unreadable_ = 0;
};

}  // namespace jogak::live::testing
