// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG and the page around them: self-contained HTML that follows the reader's
// light or dark setting. Colours are classes (s0 to s7) that the page's style defines for both.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jogak::sim {

inline constexpr std::size_t kChartColours = 8;

struct ChartSeries {
  std::string name;
  std::size_t colour = 0;
  std::vector<std::pair<double, double>> points;  // ascending x
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  double x_min = 0, x_max = 1;
  double y_min = 0, y_max = 1;
  int y_places = 0;            // digits after the point in the labels at the line ends
  bool has_diagonal = false;   // a dotted guide y = x
  bool has_end_labels = true;  // names and values at the line ends
  bool is_stepped = false;     // values hold until the next point
  bool is_wide = false;        // for a card of the page's full width
  std::vector<ChartSeries> series;
};

struct ChartBar {
  std::string name;
  std::size_t colour = 0;
  double value = 0;
  double mark = -1;  // a second value shown as a tick across the bar; negative: none
};

struct BarChart {
  std::string title;
  std::string x_label;  // what the bars measure
  int places = 0;
  std::string mark_name;  // what the ticks are, where there are any
  std::vector<ChartBar> bars;
};

std::string line_chart_svg(const LineChart& chart);
std::string bar_chart_svg(const BarChart& chart);

struct LegendEntry {
  std::string name;
  std::size_t colour = 0;
};
std::string legend_html(std::span<const LegendEntry> entries);

// Header cells, then rows; the first column is text, the others are numbers.
std::string table_html(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

// The colour that a policy of this name has in every chart; others get the ones left.
std::size_t policy_colour(std::string_view policy);

std::string html_escape(std::string_view text);
std::string html_page(std::string_view title, std::string_view body);

// A round step so that about `count` ticks cover the span: 1, 2 or 5 times a power of ten.
double tick_step(double span, int count);

}  // namespace jogak::sim
