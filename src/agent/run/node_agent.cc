// SPDX-License-Identifier: Apache-2.0
//
// The order of things: facts come first, then the host's files and CDI files that they imply, then
// the offer to the kubelet; nothing is offered that a container could not be given.
#include "agent/run/node_agent.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/run/wishes.h"

namespace jogak::agent {

namespace {

// A disk that was full, or a folder that could not be written, is tried again.
constexpr TimeUs kFilesRetry = 5 * kSecondInUs;

// Some readings cost much, so only those that somebody is shown are made.
nvml::SampleWants wants_of(const AgentOptions& options) {
  nvml::SampleWants wants;
  wants.gpm = options.reads_gpm;
  if (!options.listen.is_on) return wants;
  wants = sample_wants(options.render.counters);
  wants.gpm = wants.gpm || options.reads_gpm;
  return wants;
}

NodeModelOptions model_options(const AgentOptions& options) {
  return {.health = options.health,
          .xid_window = options.render.xid_window,
          .clock_event_window = options.render.clock_event_window};
}

GpuWatchOptions watch_options(const AgentOptions& options) {
  return {.sample_every = options.sample_every,
          .event_every = options.event_every,
          .facts_every = options.facts_every,
          .wants = wants_of(options),
          .worker = options.worker};
}

bool has_node_labels(const AgentOptions& options) {
  return options.labels == LabelPlace::Node || options.labels == LabelPlace::Auto;
}

}  // namespace

NodeAgent::NodeAgent(Loop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source,
                     AgentOptions options, HostView host, NodePorts ports)
    : loop_(loop),
      log_(log),
      options_(std::move(options)),
      host_view_(std::move(host)),
      ports_(std::move(ports)),
      model_(model_options(options_)),
      label_options_(label_options(options_.plugin)),
      watch_(std::make_unique<GpuWatch>(loop, log, model_, std::move(source),
                                        watch_options(options_),
                                        [this](GpuWatch::News news) { on_news(news); })) {
  label_options_.machine = host_view_.machine;
  if (!options_.plugin.gfd.no_timestamp) label_options_.timestamp = loop.now();
  if (options_.listen.is_on) {
    exporter_ = std::make_unique<Exporter>(
        ExporterOptions{.render = options_.render,
                        .job_folder = options_.job_folder,
                        .counters_file = options_.counters_file,
                        .on_counters = [this](const auto& counters) { on_counters(counters); }},
        &registry_, [this] { return loop_.now(); });
  }
  mig_ = std::make_unique<MigWork>(loop, log, watch_->worker(), host_view_.mig_journal,
                                   options_.mig, mig_ports());
}

NodeAgent::~NodeAgent() {
  loop_.cancel(files_timer_);
  // Labels of a node whose agent was taken away would stay for ever.
  if (!features_file_.empty() && !options_.is_oneshot) {
    (void)host_view_.put_labels(features_file_, {});
  }
  watch_.reset();  // answers that come to MigWork come no more
}

MigWorkPorts NodeAgent::mig_ports() {
  return {.node = [this] { return model_.snapshot(loop_.now()); },
          .publish = [this] { publish(false); },
          .read_facts = [this] { watch_->look_again(); },
          .ask_holdings = ports_.ask_holdings,
          .note = ports_.note};
}

void NodeAgent::start() { watch_->start(); }

void NodeAgent::look(std::function<void()> done) { watch_->look(std::move(done)); }

// ---- what happens ----------------------------------------------------------------------------

void NodeAgent::on_news(GpuWatch::News news) {
  using News = GpuWatch::News;
  had_facts_ = had_facts_ || news == News::Facts;
  if (news == News::NoFacts && options_.plugin.fail_on_init_error && !had_facts_) {
    if (std::exchange(has_failed_, true) || !ports_.failure) return;
    const auto node = model_.snapshot(loop_.now());
    ports_.failure({.code = Errc::Unavailable,
                    .what = fmt::format("the GPUs cannot be listed: {}; with "
                                        "--fail-on-init-error=false the agent waits for them",
                                        node->health->driver_problem)});
    return;
  }
  if (news == News::Samples && host_view_.owners) {
    const std::vector<std::int64_t> pids = model_.pids();
    if (!pids.empty() || had_pids_) model_.on_owners(host_view_.owners(pids));
    had_pids_ = !pids.empty();
  }
  publish(news == News::Facts);
  // Facts that were begun before a change ended do not show it.
  if (news == News::Facts && !watch_->is_behind()) mig_->on_facts();
}

void NodeAgent::on_counters(const Result<Counters>& counters) {
  if (!counters) {
    log_.error("the counters file cannot be read; the counters before stay in force",
               {{"error", counters.error().what}});
    return;
  }
  log_.info("the counters are those of the changed file", {{"file", options_.counters_file}});
  for (const std::string& warning : counters->warnings) {
    log_.warn("a counter", {{"problem", warning}});
  }
  options_.render.counters = *counters;
  watch_->set_wants(wants_of(options_));
}

// A node that never had a driver has nothing to complain of.
void NodeAgent::tell_faults(const NodeSnapshot& node) {
  if (!ports_.note || !had_facts_ || noted_health_ == node.health_changes) return;
  noted_health_ = node.health_changes;
  for (NodeNote& note : fault_notes_.update(*node.health)) ports_.note(std::move(note));
}

void NodeAgent::publish(bool are_facts_read) {
  const auto node = model_.snapshot(loop_.now());
  tell_faults(*node);
  if (exporter_ != nullptr) exporter_->publish(*node);
  // What somebody was killed in the middle of is not shown as what was wanted.
  if (!node->has_facts || !mig_->may_offer()) return;
  update_mps(node->facts);
  // Devices that are unhealthy for a moment, until it is known that the daemon is there, would be
  // news to the kubelet, and the end of pods that it admits just then.
  if (awaits_mps()) return;
  UnhealthyReasons unhealthy = unhealthy_reasons(*node, loop_.now());
  for (const auto& [uuid, reason] : mig_->withheld()) unhealthy.try_emplace(uuid, reason);
  withhold_shares(unhealthy);
  const bool is_new = told_facts_ != node->facts;
  // Facts are read each minute and are mostly what they were.
  bool has_changed = is_new && (told_facts_ == nullptr || !(*told_facts_ == *node->facts));
  told_facts_ = node->facts;
  if (is_new || are_facts_read) {
    // The same GPUs may have other files: nodes that were made later, a CDI file that somebody
    // removed or that could not be written.
    if (find_host(*node->facts)) has_changed = true;
    update_cdi(*node->facts);
  }
  add_without_cdi(*node->facts, unhealthy);
  const bool is_otherwise = has_changed || unhealthy != told_unhealthy_;
  if (is_otherwise) {
    told_unhealthy_ = std::move(unhealthy);
    update_offer(*node);
  }
  update_wish(*node, is_otherwise);
  const bool is_owed = are_facts_read && !features_problem_.empty();
  if (options_.labels == LabelPlace::File && (has_changed || is_owed)) write_features(*node);
  retry_files();
}

// ---- shares by MPS ---------------------------------------------------------------------------

void NodeAgent::update_mps(const std::shared_ptr<const nvml::NodeFacts>& facts) {
  if (!ports_.want_mps || !options_.device_plugin || mps_facts_ == facts) return;
  mps_facts_ = facts;
  auto daemons = mps_daemons(make_inventory(*facts, options_.plugin, {}), *facts);
  if (std::exchange(was_mps_wanted_, true) && daemons == mps_daemons_) return;
  mps_daemons_ = daemons;
  ports_.want_mps(std::move(daemons));
}

bool NodeAgent::awaits_mps() const {
  return offer_ == nullptr && std::ranges::any_of(mps_daemons_, [this](const MpsDaemon& daemon) {
           return !mps_problems_.contains(daemon.resource);
         });
}

void NodeAgent::withhold_shares(UnhealthyReasons& unhealthy) const {
  for (const MpsDaemon& daemon : mps_daemons_) {
    const auto at = mps_problems_.find(daemon.resource);
    const std::string problem =
        at == mps_problems_.end() ? "the MPS control daemon was not asked yet" : at->second;
    if (problem.empty()) continue;
    for (const MpsGpu& gpu : daemon.gpus) unhealthy.try_emplace(gpu.uuid, problem);
  }
}

void NodeAgent::on_mps(std::map<std::string, std::string> problems) {
  if (problems == mps_problems_) return;
  mps_problems_ = std::move(problems);
  publish(false);
}

bool NodeAgent::find_host(const nvml::NodeFacts& facts) {
  if (host_view_.pci_classes) label_options_.pci_class = host_view_.pci_classes(facts);
  if (!host_view_.files) return false;
  HostFiles files = host_view_.files(facts, options_.plugin);
  if (files == host_) return false;
  host_ = std::move(files);
  for (const std::string& problem : host_.problems) {
    if (told_problems_.insert(problem).second) log_.warn("a device node", {{"problem", problem}});
  }
  return true;
}

void NodeAgent::update_cdi(const nvml::NodeFacts& facts) {
  if (!host_view_.put_cdi || !options_.device_plugin) return;
  // The kubelet restarts containers of before a change of the strategy with the names that they
  // were given then. So files that are there are kept, and kept true.
  const bool is_kept = host_view_.has_cdi && host_view_.has_cdi();
  if (!options_.plugin.uses_cdi() && !is_kept) return;
  const auto put = host_view_.put_cdi(make_cdi_files(facts, options_.plugin, host_));
  const std::string problem = put ? "" : put.error().what;
  if (!problem.empty() && problem != cdi_problem_) {
    log_.error("the CDI files could not be written; trying again", {{"error", problem}});
  } else if (problem.empty() && !cdi_problem_.empty()) {
    log_.info("the CDI files are written again");
  }
  cdi_problem_ = problem;
  if (!put) return;
  in_cdi_.clear();
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (gpu.is_lost) continue;  // the files leave it out
    in_cdi_.insert(gpu.uuid);
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) in_cdi_.insert(instance.uuid);
  }
}

// The runtime refuses a container with a device that no CDI file names.
void NodeAgent::add_without_cdi(const nvml::NodeFacts& facts, UnhealthyReasons& unhealthy) const {
  if (cdi_problem_.empty() || !options_.plugin.uses_cdi()) return;
  const auto add = [&](const std::string& uuid) {
    if (!in_cdi_.contains(uuid)) unhealthy.try_emplace(uuid, "no CDI file: " + cdi_problem_);
  };
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    // What is said of a GPU counts for its instances.
    if (!gpu.mig_enabled) add(gpu.uuid);
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) add(instance.uuid);
  }
}

void NodeAgent::retry_files() {
  if (cdi_problem_.empty() && features_problem_.empty()) {
    loop_.cancel(std::exchange(files_timer_, 0));
    return;
  }
  if (files_timer_ != 0) return;
  files_timer_ = loop_.after(kFilesRetry, [this] {
    files_timer_ = 0;
    publish(true);
  });
}

void NodeAgent::update_offer(const NodeSnapshot& node) {
  if (!options_.device_plugin) return;
  offer_ = make_snapshot(*node.facts, options_.plugin, host_, told_unhealthy_);
  for (const std::string& problem : offer_->inventory.problems) {
    if (told_problems_.insert(problem).second) {
      log_.warn("a device is not offered", {{"reason", problem}});
    }
  }
  if (ports_.offer) ports_.offer(offer_);
}

void NodeAgent::update_wish(const NodeSnapshot& node, bool has_changed) {
  const bool is_wanted = has_node_labels(options_) || options_.reports || mig_->told();
  if (!ports_.wish || !is_wanted) return;
  if (!has_changed && told_health_ == node.health_changes && told_mig_ == mig_->told()) return;
  told_health_ = node.health_changes;
  told_mig_ = mig_->told();
  NodeWish wish =
      node_wish(node, told_unhealthy_, options_, label_options_, has_node_labels(options_));
  if (told_mig_) add_mig_state(*told_mig_, wish);
  ports_.wish(std::move(wish));
}

void NodeAgent::write_features(const NodeSnapshot& node) {
  if (!host_view_.put_labels) return;
  const FeatureLabels labels = feature_labels(*node.facts, label_options_);
  for (const std::string& warning : labels.warnings) {
    if (told_problems_.insert(warning).second) log_.warn("a label", {{"problem", warning}});
  }
  const std::string& file = options_.plugin.gfd.output_file;
  const auto written = host_view_.put_labels(file, labels.labels);
  if (written && features_file_ != file) {
    if (!features_file_.empty()) (void)host_view_.put_labels(features_file_, {});
    features_file_ = file;
  }
  const std::string problem = written ? "" : written.error().what;
  if (!problem.empty() && problem != features_problem_) {
    log_.error("the features file could not be written; trying again", {{"error", problem}});
  }
  features_problem_ = problem;
}

// ---- who holds what --------------------------------------------------------------------------

void NodeAgent::on_holdings(Result<std::vector<Holding>> holdings) {
  const TimeUs now = loop_.now();
  if (!holdings) {
    const Error error = std::move(holdings).error();
    if (holdings_problem_ != error.what) {
      // At the start of a node the kubelet comes when it comes.
      constexpr std::string_view kLine =
          "the kubelet cannot say which pod holds what; trying again";
      const Log::Fields fields = {{"error", error.what}};
      if (had_holdings_) {
        log_.warn(kLine, fields);
      } else {
        log_.info(kLine, fields);
      }
    }
    holdings_problem_ = error.what;
    model_.on_holdings_failure(error, now);
    return mig_->on_holdings(&error);
  }
  if (!std::exchange(holdings_problem_, "").empty()) {
    log_.info("the kubelet says again which pod holds what");
  }
  had_holdings_ = true;
  model_.on_holdings(*std::move(holdings), now);
  if (ports_.holds && options_.reports && told_facts_ != nullptr) {
    const auto node = model_.snapshot(now);
    ports_.holds(holds_annotations(*node->facts, *node->holdings));
  }
  mig_->on_holdings(nullptr);
}

// ---- what the node says ----------------------------------------------------------------------

void NodeAgent::on_node(const Labels& labels,
                        const std::map<std::string, std::string>& annotations) {
  const auto text = [](const auto& texts, std::string_view name) {
    const auto at = texts.find(std::string(name));
    return at == texts.end() ? std::string() : at->second;
  };
  mig_->on_labels({.config = text(labels, kMigConfigLabel),
                   .state = text(labels, kMigConfigStateLabel),
                   .state_of = text(annotations, kMigConfigStateOf)});
}

void NodeAgent::set_config(PluginConfig config) {
  if (config == options_.plugin) return;
  options_.plugin = std::move(config);
  LabelOptions labels = label_options(options_.plugin);
  labels.machine = label_options_.machine;
  labels.pci_class = label_options_.pci_class;
  if (!options_.plugin.gfd.no_timestamp) labels.timestamp = loop_.now();
  label_options_ = std::move(labels);
  told_facts_ = nullptr;  // all is told anew
  mps_facts_ = nullptr;
  publish(true);
}

}  // namespace jogak::agent
