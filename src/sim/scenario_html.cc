// SPDX-License-Identifier: Apache-2.0
// Several policies on one scenario as a page with charts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/scenario_report.h"
#include "sim/svg_chart.h"

namespace jogak::sim {

namespace {

constexpr std::size_t kPointsMax = 400;  // per line: more cannot be seen

enum class Value : std::uint8_t { AllocatedPercent, Waiting };

double value_of(const ScenarioResult& result, const ScenarioSample& sample, Value value) {
  if (value == Value::Waiting) return static_cast<double>(sample.waiting);
  const double capacity = static_cast<double>(std::max<std::int64_t>(result.gpu_milli, 1));
  return 100 * static_cast<double>(sample.allocated_milli) / capacity;
}

// Averages over equal stretches of time; a value holds until the next sample.
ChartSeries series_of(const ScenarioResult& result, Value value, double end_minutes) {
  ChartSeries series{.name = result.policy, .colour = policy_colour(result.policy), .points = {}};
  const double stretch = end_minutes / kPointsMax;
  std::size_t at = 0;
  double last = 0;
  for (std::size_t i = 0; i < kPointsMax && !result.samples.empty(); ++i) {
    const double from = stretch * static_cast<double>(i);
    const double to = from + stretch;
    double sum = 0;
    double time = from;
    while (at < result.samples.size()) {
      const double when = static_cast<double>(result.samples[at].at_ns) / 60e9;
      if (when >= to) break;
      sum += last * (std::max(when, time) - time);
      time = std::max(when, time);
      last = value_of(result, result.samples[at], value);
      ++at;
    }
    sum += last * (to - time);
    series.points.emplace_back(from + stretch / 2, sum / stretch);
  }
  return series;
}

double longest_minutes(std::span<const ScenarioResult> results) {
  double minutes = 1;
  for (const ScenarioResult& r : results) {
    minutes = std::max(minutes, static_cast<double>(r.end_ns) / 60e9);
  }
  return minutes;
}

std::string time_chart(std::span<const ScenarioResult> results, Value value) {
  LineChart chart;
  chart.x_label = "virtual time, minutes";
  chart.x_max = longest_minutes(results);
  chart.is_wide = true;
  double highest = 1;
  for (const ScenarioResult& r : results) {
    chart.series.push_back(series_of(r, value, chart.x_max));
    for (const auto& [x, y] : chart.series.back().points) highest = std::max(highest, y);
  }
  if (value == Value::AllocatedPercent) {
    chart.title = "Allocated GPU over time";
    chart.y_label = "% of capacity";
    chart.y_max = 100;
  } else {
    chart.title = "Pods waiting";
    chart.y_label = "pods";
    const double step = tick_step(highest, 5);
    chart.y_max = std::ceil(highest / step) * step;
  }
  chart.has_end_labels = false;
  return line_chart_svg(chart);
}

template <class Get>
std::string bars(std::string title, std::string label, int places,
                 std::span<const ScenarioResult> results, const Get& get) {
  BarChart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(label);
  chart.places = places;
  for (const ScenarioResult& r : results) {
    chart.bars.push_back({r.policy, policy_colour(r.policy), get(r), -1});
  }
  return bar_chart_svg(chart);
}

std::string number_table(std::span<const ScenarioResult> results) {
  std::vector<std::vector<std::string>> rows;
  for (const ScenarioResult& r : results) {
    const WaitSummary high = r.by_priority.empty() ? WaitSummary{} : r.by_priority.front().wait;
    rows.push_back({r.policy, fmt::format("{:.1f} %", r.allocated_percent),
                    fmt::format("{:.1f}", r.stranded_gpus),
                    fmt::format("{} ({:.0f} %)", r.hottest_node, r.hottest_percent),
                    duration_text(r.wait.mean_ns), duration_text(r.wait.p99_ns),
                    duration_text(high.mean_ns), duration_text(high.p99_ns),
                    std::to_string(r.preempted), duration_text(r.end_ns)});
  }
  return table_html({"policy", "GPU allocated", "stranded GPUs", "hottest node", "mean wait",
                     "p99 wait", "high priority, mean wait", "p99", "preempted", "all done after"},
                    rows);
}

std::string card(const std::string& chart, bool is_wide) {
  return fmt::format("<div class=\"card{}\">{}</div>\n", is_wide ? " wide" : "", chart);
}

}  // namespace

std::string comparison_html(std::string_view title, std::string_view about,
                            std::span<const ScenarioResult> results) {
  std::vector<LegendEntry> legend;
  for (const ScenarioResult& r : results) legend.push_back({r.policy, policy_colour(r.policy)});
  std::string body =
      fmt::format("<h1>{}</h1>\n<p>{}</p>\n", html_escape(title), html_escape(about));
  body += legend_html(legend) + "<div class=\"charts\">\n";
  body += card(time_chart(results, Value::AllocatedPercent), true);
  body += card(time_chart(results, Value::Waiting), true);
  body += card(bars("GPU allocated", "% of capacity while pods arrive; more is better", 1, results,
                    [](const ScenarioResult& r) { return r.allocated_percent; }),
               false);
  body += card(bars("Stranded GPUs", "free, but of no use to an average GPU pod; less is better", 1,
                    results, [](const ScenarioResult& r) { return r.stranded_gpus; }),
               false);
  body +=
      card(bars("Mean wait", "seconds, all pods; less is better", 0, results,
                [](const ScenarioResult& r) { return static_cast<double>(r.wait.mean_ns) / 1e9; }),
           false);
  body += card(bars("Pods preempted", "less is better", 0, results,
                    [](const ScenarioResult& r) { return static_cast<double>(r.preempted); }),
               false);
  return html_page(title, body + "</div>\n" + number_table(results));
}

}  // namespace jogak::sim
