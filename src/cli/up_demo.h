// SPDX-License-Identifier: Apache-2.0
//
// `jogak up --demo`: applies the examples one after another and says what the cluster makes of
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "playground/playground.h"

namespace jogak::cli {

// Text of the manifest examples/playground/<name>, linked into the program. CHECKs that it exists.
std::string_view example_manifest(std::string_view name);

class UpDemo {
 public:
  // Begins in the next turns of the loop; `done` is called after the last step or the first that
  // does not come about.
  UpDemo(Loop& loop, playground::Playground& playground, std::function<void()> done);
  ~UpDemo();
  UpDemo(const UpDemo&) = delete;
  UpDemo& operator=(const UpDemo&) = delete;

  bool succeeded() const { return has_succeeded_; }

 private:
  struct Step {
    std::string_view title;      // what is about to happen
    std::string_view manifest;   // applied at the start, "" for none
    std::string_view waits_for;  // what must come about, for people
    bool (UpDemo::*is_done)() const;
    std::string (UpDemo::*summary)() const;
  };
  struct Seen {
    std::string phase, node, owner, message;
    bool is_deleting = false;
  };

  void on_pod(const api::Api::Change& change);
  void begin_step();
  void check();
  void say(std::string_view text) const;
  std::size_t count(std::string_view prefix, std::string_view phase) const;
  std::string nodes_of(std::string_view prefix) const;

  bool one_runs() const;
  bool training_runs() const;
  bool service_runs() const;
  bool urgent_runs() const;
  bool refusal_is_said() const;
  bool training_is_back() const;
  std::string say_one() const;
  std::string say_training() const;
  std::string say_service() const;
  std::string say_urgent() const;
  std::string say_refusal() const;
  std::string say_back() const;

  static const std::vector<Step>& steps();

  Loop& loop_;
  playground::Playground& playground_;
  std::function<void()> done_;
  TimeUs start_;
  TimeUs step_start_ = 0;
  std::size_t step_ = 0;
  bool has_succeeded_ = false;
  std::map<std::string, Seen, std::less<>> pods_;  // of the namespace default
  std::set<std::string> preempted_;
  std::shared_ptr<void> following_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::cli
