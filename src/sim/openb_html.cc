// SPDX-License-Identifier: Apache-2.0
// The openb report as a page: for each variant the allocation curve, what is left at 100 %, and the
// fragmentation.
#include <algorithm>
#include <cmath>

#include "sim/openb_published.h"
#include "sim/openb_report.h"
#include "sim/svg_chart.h"

namespace jogak::sim {

namespace {

// Columns that the curves show.
constexpr std::size_t kFirst = 75;
constexpr std::size_t kLast = 130;

std::vector<LegendEntry> legend_of(std::span<const OpenbSummary> summaries) {
  std::vector<LegendEntry> entries;
  for (const OpenbSummary& s : summaries) {
    if (std::ranges::find(entries, s.policy, &LegendEntry::name) != entries.end()) continue;
    entries.push_back({s.policy, policy_colour(s.policy)});
  }
  return entries;
}

ChartSeries series_of(const OpenbSummary& s, std::size_t colour, std::size_t first,
                      const std::array<MeanDeviation, kOpenbColumns>& values) {
  ChartSeries series{.name = s.policy, .colour = colour, .points = {}};
  for (std::size_t c = first; c <= kLast; ++c) {
    if (values[c].count > 0) series.points.emplace_back(static_cast<double>(c), values[c].mean);
  }
  return series;
}

double lowest(const LineChart& chart) {
  double low = 100;
  for (const ChartSeries& s : chart.series) {
    for (const auto& [x, y] : s.points) low = std::min(low, y);
  }
  return low;
}

double highest(const LineChart& chart) {
  double high = 0;
  for (const ChartSeries& s : chart.series) {
    for (const auto& [x, y] : s.points) high = std::max(high, y);
  }
  return high;
}

std::string allocation_chart(std::span<const OpenbSummary> group) {
  LineChart chart;
  chart.title = "Allocated GPU as demand arrives";
  chart.x_label = "arrived GPU demand, % of capacity";
  chart.y_label = "allocated, % of capacity";
  chart.x_min = kFirst;
  chart.x_max = kLast;
  chart.y_places = 1;
  chart.has_diagonal = true;
  chart.is_wide = true;
  for (const OpenbSummary& s : group) {
    chart.series.push_back(series_of(s, policy_colour(s.policy), kFirst, s.allocated));
  }
  chart.y_min = std::floor(lowest(chart) / 5) * 5;
  chart.y_max = 100;
  return line_chart_svg(chart);
}

std::string fragmentation_chart(std::span<const OpenbSummary> group) {
  LineChart chart;
  chart.title = "Fragmentation: free GPU that an average pod cannot use";
  chart.x_label = "arrived GPU demand, % of capacity";
  chart.y_label = "% of all GPUs";
  chart.x_min = 0;
  chart.x_max = kLast;
  chart.y_places = 1;
  for (const OpenbSummary& s : group) {
    chart.series.push_back(series_of(s, policy_colour(s.policy), 0, s.fragmented));
  }
  chart.y_max = std::ceil(std::max(highest(chart), 1.0) / 2) * 2;
  return line_chart_svg(chart);
}

std::string left_chart(std::span<const OpenbSummary> group) {
  BarChart chart;
  chart.title = "GPUs left unallocated when 100 % has arrived";
  chart.x_label = "GPUs; less is better";
  chart.places = 1;
  for (const OpenbSummary& s : group) {
    ChartBar bar{.name = s.policy,
                 .colour = policy_colour(s.policy),
                 .value = s.unallocated_gpus(100),
                 .mark = -1};
    if (const auto published = published_allocation(s.variant, s.policy, 100)) {
      bar.mark = (100 - published->mean / 100.0) / 100 * s.capacity_gpus;
      chart.mark_name = "published mean (USENIX ATC 2023 artifact)";
    }
    chart.bars.push_back(std::move(bar));
  }
  return bar_chart_svg(chart);
}

std::string number_table(std::span<const OpenbSummary> group) {
  std::vector<std::vector<std::string>> rows;
  const auto published = [](const OpenbSummary& s, std::size_t column) {
    const auto value = published_allocation(s.variant, s.policy, column);
    if (!value) return std::string("–");
    return fmt::format("{:.2f} ± {:.2f}", value->mean / 100.0, value->deviation / 100.0);
  };
  const auto ours = [](const MeanDeviation& v) {
    if (v.count == 0) return std::string("–");
    if (v.count == 1) return fmt::format("{:.2f}", v.mean);
    return fmt::format("{:.2f} ± {:.2f}", v.mean, v.deviation);
  };
  for (const OpenbSummary& s : group) {
    rows.push_back({s.policy, std::to_string(s.runs), ours(s.allocated[90]), ours(s.allocated[95]),
                    ours(s.allocated[100]), published(s, 100), ours(s.allocated[130]),
                    published(s, 130), fmt::format("{:.2f}", s.fragmented[100].mean),
                    fmt::format("{:.0f}", s.pods_per_second)});
  }
  return table_html({"policy", "runs", "at 90 %", "at 95 %", "at 100 %", "published", "at 130 %",
                     "published", "fragmented at 100 %", "pods/s"},
                    rows);
}

}  // namespace

std::string openb_html(std::span<const OpenbSummary> summaries, bool published_orders) {
  std::string body = "<h1>Jogak: openb placement experiment</h1>\n";
  body += fmt::format(
      "<p>Pods of the trace arrive one after another at an empty cluster of {:.0f} GPUs until 130 "
      "% "
      "of its capacity has been asked for; what fits nowhere is dropped. Lines are means over the "
      "seeds, in {} submission orders. The dotted line is everything that arrived.</p>\n",
      summaries.empty() ? 0.0 : summaries.front().capacity_gpus,
      published_orders ? "the published" : "drawn");
  body += legend_html(legend_of(summaries));
  std::size_t at = 0;
  while (at < summaries.size()) {
    std::size_t end = at;
    while (end < summaries.size() && summaries[end].variant == summaries[at].variant) ++end;
    const auto group = summaries.subspan(at, end - at);
    body += fmt::format("<h2>{}</h2>\n<div class=\"charts\">\n", html_escape(group[0].variant));
    body += "<div class=\"card wide\">" + allocation_chart(group) + "</div>\n";
    body += "<div class=\"card\">" + left_chart(group) + "</div>\n";
    body += "<div class=\"card\">" + fragmentation_chart(group) + "</div>\n";
    body += "</div>\n" + number_table(group);
    at = end;
  }
  return html_page("Jogak: openb", body);
}

}  // namespace jogak::sim
