// SPDX-License-Identifier: Apache-2.0
//
// /metrics of the agent. The text is made once per sample (publish) and handed out as it is: a
// scrape never asks NVML, never waits for a slow driver, and costs a copy.
//
//   /metrics   text 0.0.4 or OpenMetrics by Accept, gzip by Accept-Encoding
//   /health    200 while samples arrive, 503 with the reason when they do not
//   /          what there is
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/exporter/render.h"
#include "agent/model/node_model.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "net/http.h"

namespace jogak::agent {

struct ExporterOptions {
  RenderOptions render = {};
  // Samples older than this make /health say so. The text is served all the same, and
  // jogak_gpu_sample_timestamp_seconds shows its age.
  TimeUs stale_after = 60 * kSecondInUs;
  std::string program = "jogak agent";
  // Files named by GPU index ("0") or index and GPU instance ("0.7"), with the ids of the batch
  // jobs that run there, one a line; read at each publish. "": none.
  std::string job_folder = {};
  // Where render.counters came from; looked at with each publish. A change takes force with it, and
  // a file that is wrong or gone leaves the counters that were. "": none.
  std::string counters_file = {};
  // Told of other counters, and once of each problem with the file.
  std::function<void(const Result<Counters>& counters)> on_counters = nullptr;
};

class Exporter {
 public:
  // `more`, which may be null and otherwise outlives the exporter, has the agent's own series; they
  // are written behind those of the GPUs at each publish. `now` is the loop's clock.
  Exporter(ExporterOptions options, const Registry* more, std::function<TimeUs()> now);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Once per sample of the node.
  void publish(const NodeSnapshot& node);

  // What a scrape would get now.
  std::shared_ptr<const std::string> page(ExpositionFormat format) const;
  // The same, compressed; made at the first call after a publish.
  std::shared_ptr<const std::string> gzipped_page(ExpositionFormat format);

  // For net::HttpServer; the exporter outlives it.
  net::HttpHandler handler();

  // Why the counters file does not count; "": it does, or there is none.
  const std::string& counters_problem() const { return counters_problem_; }

  const RenderOptions& render_options() const { return renderer_.options(); }

 private:
  struct Page {
    std::shared_ptr<const std::string> plain;
    std::shared_ptr<const std::string> gzipped;  // null until asked for
  };
  Page& page_of(ExpositionFormat format) { return pages_[static_cast<std::size_t>(format)]; }
  void look_at_counters();
  void answer(const net::HttpRequest& request, net::ResponseWriter& writer);
  void answer_metrics(const net::HttpRequest& request, net::ResponseWriter& writer);
  std::string health_problem() const;

  ExporterOptions options_;
  const Registry* more_;
  std::function<TimeUs()> now_;
  Renderer renderer_;
  Page pages_[2];
  TimeUs published_at_ = 0;
  std::string counters_print_;  // fingerprint of the file that was read last
  std::string counters_problem_;
  std::string node_problem_ = "nothing was measured yet";
};

// What the job files say; empty when the folder cannot be read.
JobTable read_jobs(const std::string& folder);

// Whether an Accept-Encoding header asks for gzip ("gzip;q=0" does not).
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace jogak::agent
