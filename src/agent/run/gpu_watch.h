// SPDX-License-Identifier: Apache-2.0
//
// Keeps the model up to date with what the driver says: facts at the start and whenever they may
// have changed, a sample of every GPU each second, events several times a second. Everything is
// asked on the NVML thread and told to the model on the loop's.
//
// Events are polled rather than waited for: the thread stays free for whoever needs a quick answer
// (a container that is about to start).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/node_model.h"
#include "base/log.h"
#include "base/loop.h"
#include "nvml/worker.h"

namespace jogak::agent {

// Intervals of 0: only when look() asks for it, as simulated nodes want it that come in hundreds.
struct GpuWatchOptions {
  TimeUs sample_every = kSecondInUs;
  TimeUs event_every = 200 * kMsInUs;
  TimeUs facts_every = 60 * kSecondInUs;
  TimeUs facts_retry = kSecondInUs;  // after a failure
  // With a sample: whether somebody else changed MIG layouts.
  TimeUs layout_every = 5 * kSecondInUs;
  nvml::SampleWants wants = {};
  nvml::Worker::Options worker = {};
};

class GpuWatch {
 public:
  enum class News { Facts, NoFacts, Samples, Events };
  // Told after the model was; not after the watch has ended.
  using OnNews = std::function<void(News news)>;

  // Loop, log and model outlive it. Nothing is asked before start().
  GpuWatch(Loop& loop, Log& log, NodeModel& model, std::unique_ptr<nvml::GpuSource> source,
           GpuWatchOptions options, OnNews on_news);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  void start();
  // From the next samples on.
  void set_wants(const nvml::SampleWants& wants) { options_.wants = wants; }
  // The facts may have changed.
  void look_again();
  // The facts that were told last may be from before the last look_again(): others follow.
  bool is_behind() const { return asks_facts_again_; }
  // Facts, events and a sample of every GPU, all once; then `done` (null: nobody waits), unless the
  // watch has ended by then.
  void look(std::function<void()> done = nullptr);
  // For others that need the driver; what they run must be quick.
  nvml::Worker& worker() { return worker_; }

 private:
  struct Sampled {
    std::string uuid;
    Result<nvml::GpuSample> sample;
    bool is_recut = false;
  };

  void ask_facts();
  void on_facts(Result<nvml::NodeFacts> facts);
  void ask_samples(std::function<void()> then);
  void on_samples(const std::vector<std::string>& uuids, Result<std::vector<Sampled>> samples);
  void sample_each();
  void ask_events();
  void on_events(const Result<std::vector<nvml::GpuEvent>>& events);
  void poll_each();
  void end_looks();
  void facts_after(TimeUs delay);

  Loop& loop_;
  Log& log_;
  NodeModel& model_;
  GpuWatchOptions options_;
  const OnNews on_news_;
  std::vector<std::string> uuids_;  // of the last facts
  std::string facts_problem_;
  bool is_asking_facts_ = false, asks_facts_again_ = false;
  bool has_facts_ = false;
  TimerId facts_timer_ = 0, sample_timer_ = 0;
  TimeUs next_sample_ = 0, next_layout_look_ = 0;
  std::vector<std::function<void()>> looks_;  // wait for the facts
  nvml::Worker worker_;                       // last: its answers come to the members above
};

}  // namespace jogak::agent
