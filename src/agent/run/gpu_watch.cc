// SPDX-License-Identifier: Apache-2.0
//
// Each of the three questions asks itself again when its answer came, so none piles up behind a
// driver that is slow.
#include "agent/run/gpu_watch.h"

#include <algorithm>
#include <utility>

namespace jogak::agent {

GpuWatch::GpuWatch(Loop& loop, Log& log, NodeModel& model, std::unique_ptr<nvml::GpuSource> source,
                   GpuWatchOptions options, OnNews on_news)
    : loop_(loop),
      log_(log),
      model_(model),
      options_(options),
      on_news_(std::move(on_news)),
      worker_(loop, std::move(source), options.worker) {}

GpuWatch::~GpuWatch() {
  for (const TimerId timer : {facts_timer_, sample_timer_}) loop_.cancel(timer);
}

void GpuWatch::start() {
  ask_facts();
  next_sample_ = loop_.now();
  poll_each();
}

void GpuWatch::look(std::function<void()> done) {
  looks_.push_back(std::move(done));
  look_again();
}

// What look() wants besides the facts, which are there now or cannot be had.
void GpuWatch::end_looks() {
  if (looks_.empty() || asks_facts_again_) return;
  const auto tell = [looks = std::exchange(looks_, {})] {
    for (const auto& done : looks) {
      if (done) done();
    }
  };
  if (!facts_problem_.empty()) return tell();
  ask_events();
  ask_samples(tell);
}

// ---- facts -----------------------------------------------------------------------------------

void GpuWatch::look_again() {
  if (is_asking_facts_) {
    asks_facts_again_ = true;
  } else {
    ask_facts();
  }
}

void GpuWatch::facts_after(TimeUs delay) {
  loop_.cancel(facts_timer_);
  facts_timer_ = 0;
  if (delay > 0) facts_timer_ = loop_.after(delay, [this] { look_again(); });
}

void GpuWatch::ask_facts() {
  is_asking_facts_ = true;
  worker_.run<nvml::NodeFacts>(
      [](nvml::GpuSource& source) { return source.facts(); },
      [this](Result<nvml::NodeFacts> facts) { on_facts(std::move(facts)); });
}

void GpuWatch::on_facts(Result<nvml::NodeFacts> facts) {
  is_asking_facts_ = false;
  const TimeUs now = loop_.now();
  if (!facts) {
    if (facts_problem_ != facts.error().what) {
      log_.warn("the GPUs cannot be listed; trying again", {{"error", facts.error().what}});
    }
    facts_problem_ = facts.error().what;
    model_.on_facts_failure(facts.error(), now);
    facts_after(options_.facts_retry);
    on_news_(News::NoFacts);
    asks_facts_again_ = false;  // they are asked again anyhow
    end_looks();
    return;
  }
  if (!std::exchange(facts_problem_, "").empty()) {
    log_.info("the GPUs are listed again", {{"gpus", facts->gpus.size()}});
  }
  uuids_.clear();
  for (const nvml::GpuFacts& gpu : facts->gpus) {
    if (!gpu.uuid.empty()) uuids_.push_back(gpu.uuid);
  }
  model_.on_facts(*std::move(facts), now);
  const bool is_first = !std::exchange(has_facts_, true);
  facts_after(options_.facts_every);
  on_news_(News::Facts);
  end_looks();
  if (std::exchange(asks_facts_again_, false)) ask_facts();
  if (is_first) sample_each();
}

// ---- samples ---------------------------------------------------------------------------------

void GpuWatch::sample_each() {
  ask_samples([this] {
    if (options_.sample_every == 0) return;
    // The beat is kept; one that was missed is left out.
    next_sample_ = std::max(next_sample_ + options_.sample_every, loop_.now());
    sample_timer_ = loop_.at(next_sample_, [this] { sample_each(); });
  });
}

void GpuWatch::ask_samples(std::function<void()> then) {
  const bool looks_at_layout = loop_.now() >= next_layout_look_;
  if (looks_at_layout) next_layout_look_ = loop_.now() + options_.layout_every;
  worker_.run<std::vector<Sampled>>(
      [uuids = uuids_, wants = options_.wants, looks_at_layout](nvml::GpuSource& source) {
        std::vector<Sampled> samples;
        samples.reserve(uuids.size());
        for (const std::string& uuid : uuids) {
          samples.push_back({.uuid = uuid, .sample = source.sample(uuid, wants)});
          if (looks_at_layout) samples.back().is_recut = source.is_recut(uuid).value_or(false);
        }
        return Result<std::vector<Sampled>>(std::move(samples));
      },
      [this, uuids = uuids_, then = std::move(then)](Result<std::vector<Sampled>> samples) {
        on_samples(uuids, std::move(samples));
        if (then) then();
      });
}

void GpuWatch::on_samples(const std::vector<std::string>& uuids,
                          Result<std::vector<Sampled>> samples) {
  const TimeUs now = loop_.now();
  bool is_stale = false;
  if (samples) {
    for (Sampled& sampled : *samples) {
      is_stale |= sampled.is_recut;
      if (sampled.sample) {
        model_.on_sample(*std::move(sampled.sample));
        continue;
      }
      const Error& error = sampled.sample.error();
      is_stale |= error.code == Errc::NotFound || error.code == Errc::Unavailable;
      model_.on_sample_failure(sampled.uuid, error, now);
    }
  } else {
    is_stale = true;
    for (const std::string& uuid : uuids) model_.on_sample_failure(uuid, samples.error(), now);
  }
  model_.on_tick(now);
  if (is_stale && facts_problem_.empty()) look_again();
  on_news_(News::Samples);
}

// ---- events ----------------------------------------------------------------------------------

// Mostly there is nothing: then nobody but the NVML thread wakes up.
void GpuWatch::poll_each() {
  if (options_.event_every == 0) return;
  worker_.each(options_.event_every, [this](nvml::GpuSource& source) -> std::function<void()> {
    auto events = source.poll_events(0);
    if (events && events->empty()) return nullptr;
    return [this, events = std::move(events)] { on_events(events); };
  });
}

void GpuWatch::ask_events() {
  worker_.run<std::vector<nvml::GpuEvent>>(
      [](nvml::GpuSource& source) { return source.poll_events(0); },
      [this](const Result<std::vector<nvml::GpuEvent>>& events) { on_events(events); });
}

void GpuWatch::on_events(const Result<std::vector<nvml::GpuEvent>>& events) {
  if (!events || events->empty()) {
    if (!events && has_facts_ && facts_problem_.empty()) look_again();
    return;
  }
  bool has_changed = false;
  for (const nvml::GpuEvent& event : *events) {
    using Kind = nvml::GpuEventKind;
    log_.warn("a GPU tells", {{"gpu", event.uuid},
                              {"event", nvml::event_kind_text(event.kind)},
                              {"code", event.code},
                              {"instance", event.gi_id}});
    has_changed |= event.kind == Kind::MigChange || event.kind == Kind::GpuLost ||
                   event.kind == Kind::GpuRecovered || event.kind == Kind::DriverReload;
    model_.on_event(event);
  }
  if (has_changed) look_again();
  on_news_(News::Events);
}

}  // namespace jogak::agent
