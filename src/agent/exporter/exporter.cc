// SPDX-License-Identifier: Apache-2.0
//
// Texts are shared with whoever reads them, so that a publish in between disturbs nobody.
#include "agent/exporter/exporter.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "agent/exporter/watched_file.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json_writer.h"

namespace jogak::agent {

namespace {

std::string gzipped(std::string_view text) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for gzip's header
  JOGAK_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) ==
              Z_OK);
  std::string out;
  out.resize(deflateBound(&stream, static_cast<uLong>(text.size())));
  // zlib does not write there, whatever its type says.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  JOGAK_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  constexpr std::string_view kBlanks = " \t\r";
  while (!text.empty() && kBlanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

// ";q=0", ";q=0.0": not wanted at all.
bool is_refused(std::string_view parameters) {
  const std::size_t at = parameters.find("q=");
  if (at == std::string_view::npos) return false;
  const std::string_view value = trimmed(parameters.substr(at + 2));
  return !value.empty() && value.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::size_t end = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view item = accept_encoding.substr(0, end);
    const std::size_t mark = std::min(item.find(';'), item.size());
    const std::string_view name = trimmed(item.substr(0, mark));
    if ((name == "gzip" || name == "*") && !is_refused(item.substr(mark))) return true;
    accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
  }
  return false;
}

Exporter::Exporter(ExporterOptions options, const Registry* more, std::function<TimeUs()> now)
    : options_(std::move(options)), more_(more), now_(std::move(now)), renderer_(options_.render) {
  pages_[0].plain = std::make_shared<const std::string>();
  pages_[1].plain = std::make_shared<const std::string>("# EOF\n");
}

Exporter::~Exporter() = default;

JobTable read_jobs(const std::string& folder) {
  constexpr std::size_t kFilesMax = 1024;
  constexpr std::int64_t kFileBytesMax = 64 * 1024;
  constexpr std::size_t kJobsMax = 64;
  JobTable jobs;
  std::error_code error;
  std::size_t files = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_device = !name.empty() && name.find_first_not_of("0123456789.") == name.npos;
    if (!is_device || ++files > kFilesMax) continue;
    const auto text = read_file(at->path().string(), kFileBytesMax);
    if (!text) continue;  // the job has just ended, or has no name yet
    std::vector<std::string> ids;
    std::string_view rest = *text;
    while (!rest.empty() && ids.size() < kJobsMax) {
      const std::size_t line = std::min(rest.find('\n'), rest.size());
      const std::string_view id = trimmed(rest.substr(0, line));
      if (!id.empty() && is_utf8(id)) ids.emplace_back(id);
      rest.remove_prefix(std::min(line + 1, rest.size()));
    }
    if (!ids.empty()) jobs.emplace(name, std::move(ids));
  }
  return jobs;
}

void Exporter::look_at_counters() {
  const std::string& file = options_.counters_file;
  if (file.empty()) return;
  std::string print = file_fingerprint(file);
  if (print == counters_print_) return;
  // Taken before the file is read: one that changes in between is read again.
  counters_print_ = std::move(print);
  const auto text = read_file(file, kCountersBytesMax);
  auto counters =
      text ? parse_counters(file, *text) : Result<Counters>(std::unexpected(text.error()));
  if (!counters) {
    if (counters.error().what == counters_problem_) return;
    counters_problem_ = counters.error().what;
  } else {
    const bool was_wrong = !std::exchange(counters_problem_, "").empty();
    const bool is_same = counters->specs == renderer_.options().counters.specs;
    if (!is_same) renderer_.set_counters(*counters);
    if (is_same && !was_wrong) return;
  }
  if (options_.on_counters) options_.on_counters(counters);
}

void Exporter::publish(const NodeSnapshot& node) {
  look_at_counters();
  if (!options_.job_folder.empty()) renderer_.set_jobs(read_jobs(options_.job_folder));
  for (const ExpositionFormat format : {ExpositionFormat::Text, ExpositionFormat::OpenMetrics}) {
    std::string text = renderer_.render(node, format);
    if (more_ != nullptr) {
      text += more_->expose(format);  // brings the end of OpenMetrics
    } else if (format == ExpositionFormat::OpenMetrics) {
      text += "# EOF\n";
    }
    page_of(format) = {.plain = std::make_shared<const std::string>(std::move(text)),
                       .gzipped = nullptr};
  }
  published_at_ = node.time;
  node_problem_ = node.health->driver_problem;
  if (node_problem_.empty() && !node.has_facts) node_problem_ = "the gpus are not listed yet";
}

std::shared_ptr<const std::string> Exporter::page(ExpositionFormat format) const {
  return pages_[static_cast<std::size_t>(format)].plain;
}

std::shared_ptr<const std::string> Exporter::gzipped_page(ExpositionFormat format) {
  Page& page = page_of(format);
  if (page.gzipped == nullptr) {
    page.gzipped = std::make_shared<const std::string>(gzipped(*page.plain));
  }
  return page.gzipped;
}

std::string Exporter::health_problem() const {
  if (!node_problem_.empty()) return node_problem_;
  const TimeUs age = now_() - published_at_;
  if (age <= options_.stale_after) return {};
  return fmt::format("the last sample is {} s old", age / kSecondInUs);
}

void Exporter::answer_metrics(const net::HttpRequest& request, net::ResponseWriter& writer) {
  const ExpositionFormat format = exposition_format(net::header(request.headers, "accept"));
  net::Headers headers = {{"Content-Type", std::string(content_type(format))},
                          {"Cache-Control", "no-store"},
                          {"Vary", "Accept, Accept-Encoding"},
                          {"X-Content-Type-Options", "nosniff"}};
  if (accepts_gzip(net::header(request.headers, "accept-encoding"))) {
    headers.emplace_back("Content-Encoding", "gzip");
    writer.respond(200, std::move(headers), *gzipped_page(format));
  } else {
    writer.respond(200, std::move(headers), *page(format));
  }
}

void Exporter::answer(const net::HttpRequest& request, net::ResponseWriter& writer) {
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  net::Headers headers = {{"Content-Type", "text/plain; charset=utf-8"},
                          {"X-Content-Type-Options", "nosniff"}};
  if (request.method != "GET" && request.method != "HEAD") {
    headers.emplace_back("Allow", "GET, HEAD");
    writer.respond(405, std::move(headers), "only GET and HEAD\n");
  } else if (path == "/metrics") {
    answer_metrics(request, writer);
  } else if (path == "/health" || path == "/healthz") {
    const std::string problem = health_problem();
    writer.respond(problem.empty() ? 200 : 503, std::move(headers),
                   problem.empty() ? "OK\n" : problem + "\n");
  } else if (path == "/") {
    writer.respond(200, std::move(headers),
                   options_.program +
                       "\n\n/metrics  series of the GPUs for Prometheus\n"
                       "/health   whether they are being measured\n");
  } else {
    writer.respond(404, std::move(headers), "no such page; / lists them\n");
  }
}

net::HttpHandler Exporter::handler() {
  return [this](const net::HttpRequest& request,
                const std::shared_ptr<net::ResponseWriter>& writer) { answer(request, *writer); };
}

}  // namespace jogak::agent
