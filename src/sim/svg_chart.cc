// SPDX-License-Identifier: Apache-2.0
// SVG by hand: axes with round ticks, lines with their names at the end, horizontal bars.
#include "sim/svg_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json_writer.h"

namespace jogak::sim {

namespace {

constexpr double kWidth = 720, kWideWidth = 1480;
constexpr double kHeight = 360;
constexpr double kLeft = 58, kRight = 150, kTop = 40, kBottom = 48;
constexpr double kLabelHeight = 15;

std::string px(double v) { return fixed_decimal(v, 1); }

// Digits after the point that tell ticks of this step apart.
int places_of(double step) {
  return step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
}

// Maps data to the plot area.
class Frame {
 public:
  explicit Frame(const LineChart& chart) : chart_(chart) {}
  double x(double v) const {
    return kLeft + (v - chart_.x_min) / span(chart_.x_min, chart_.x_max) * width();
  }
  double y(double v) const {
    return kTop + (chart_.y_max - v) / span(chart_.y_min, chart_.y_max) * height();
  }
  double total_width() const { return chart_.is_wide ? kWideWidth : kWidth; }
  double right() const { return total_width() - (chart_.has_end_labels ? kRight : 20); }
  double width() const { return right() - kLeft; }
  static double height() { return kHeight - kTop - kBottom; }

 private:
  static double span(double low, double high) { return high > low ? high - low : 1; }
  const LineChart& chart_;
};

void add_axes(std::string& out, const LineChart& chart, const Frame& frame) {
  const double y_step = tick_step(chart.y_max - chart.y_min, 6);
  for (double v = std::ceil(chart.y_min / y_step - 1e-9) * y_step; v <= chart.y_max + 1e-9;
       v += y_step) {
    out += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>)", px(kLeft),
                       px(frame.right()), px(frame.y(v)), px(frame.y(v)));
    out += fmt::format(R"(<text class="tick" text-anchor="end" x="{}" y="{}">{}</text>)",
                       px(kLeft - 8), px(frame.y(v) + 4), fixed_decimal(v, places_of(y_step)));
  }
  const double x_step = tick_step(chart.x_max - chart.x_min, chart.is_wide ? 12 : 8);
  const double base = kHeight - kBottom;
  for (double v = std::ceil(chart.x_min / x_step - 1e-9) * x_step; v <= chart.x_max + 1e-9;
       v += x_step) {
    out += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", px(frame.x(v)),
                       px(frame.x(v)), px(base), px(base + 5));
    out += fmt::format(R"(<text class="tick" text-anchor="middle" x="{}" y="{}">{}</text>)",
                       px(frame.x(v)), px(base + 19), fixed_decimal(v, places_of(x_step)));
  }
  out += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", px(kLeft),
                     px(frame.right()), px(base), px(base));
  out += fmt::format(R"(<text class="label" text-anchor="middle" x="{}" y="{}">{}</text>)",
                     px(kLeft + frame.width() / 2), px(kHeight - 8), html_escape(chart.x_label));
  out += fmt::format(
      "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(14 {}) rotate(-90)\">{}"
      "</text>",
      px(kTop + Frame::height() / 2), html_escape(chart.y_label));
}

void add_diagonal(std::string& out, const LineChart& chart, const Frame& frame) {
  const double from = std::max(chart.x_min, chart.y_min);
  const double to = std::min(chart.x_max, chart.y_max);
  if (from >= to) return;
  out += fmt::format(R"(<line class="guide" x1="{}" y1="{}" x2="{}" y2="{}"/>)", px(frame.x(from)),
                     px(frame.y(from)), px(frame.x(to)), px(frame.y(to)));
}

void add_line(std::string& out, const LineChart& chart, const ChartSeries& series,
              const Frame& frame) {
  std::string path;
  double last_y = 0;
  for (const auto& [x, y] : series.points) {
    if (x < chart.x_min || x > chart.x_max || !std::isfinite(y)) continue;
    const double at = frame.y(std::clamp(y, chart.y_min, chart.y_max));
    if (chart.is_stepped && !path.empty()) {
      path += fmt::format("L{} {}", px(frame.x(x)), px(last_y));
    }
    path += fmt::format("{}{} {}", path.empty() ? 'M' : 'L', px(frame.x(x)), px(at));
    last_y = at;
  }
  if (path.empty()) return;
  out += fmt::format(R"(<path class="line s{}" d="{}"><title>{}</title></path>)",
                     series.colour % kChartColours, path, html_escape(series.name));
}

struct EndLabel {
  const ChartSeries* series;
  double value;
  double y;
};

// Names at the right ends, moved apart where lines end close together.
void add_end_labels(std::string& out, const LineChart& chart, const Frame& frame) {
  std::vector<EndLabel> labels;
  for (const ChartSeries& series : chart.series) {
    const auto last = std::ranges::find_if(
        series.points.rbegin(), series.points.rend(), [&chart](const auto& point) {
          return point.first <= chart.x_max && std::isfinite(point.second);
        });
    if (last == series.points.rend()) continue;
    labels.push_back(
        {&series, last->second, frame.y(std::clamp(last->second, chart.y_min, chart.y_max))});
  }
  std::ranges::stable_sort(labels, {}, &EndLabel::y);
  for (std::size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kLabelHeight);
  }
  // What ran over the bottom pushes the rest back up.
  double limit = kHeight - kBottom;
  for (auto it = labels.rbegin(); it != labels.rend(); ++it) {
    it->y = std::min(it->y, limit);
    limit = it->y - kLabelHeight;
  }
  for (const EndLabel& label : labels) {
    out += fmt::format(R"(<text class="end f{}" x="{}" y="{}">{} {}</text>)",
                       label.series->colour % kChartColours, px(frame.right() + 8), px(label.y + 4),
                       html_escape(label.series->name), fixed_decimal(label.value, chart.y_places));
  }
}

}  // namespace

double tick_step(double span, int count) {
  if (!(span > 0) || count < 1) return 1;
  const double raw = span / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string line_chart_svg(const LineChart& chart) {
  const Frame frame(chart);
  std::string out = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)",
                                px(frame.total_width()), px(kHeight), html_escape(chart.title));
  out += fmt::format(R"(<text class="title" x="{}" y="20">{}</text>)", px(kLeft),
                     html_escape(chart.title));
  add_axes(out, chart, frame);
  if (chart.has_diagonal) add_diagonal(out, chart, frame);
  for (const ChartSeries& series : chart.series) add_line(out, chart, series, frame);
  if (chart.has_end_labels) add_end_labels(out, chart, frame);
  return out + "</svg>\n";
}

std::string bar_chart_svg(const BarChart& chart) {
  constexpr double kBar = 20, kGap = 10, kNames = 110, kValues = 60;
  const double base = kTop + static_cast<double>(chart.bars.size()) * (kBar + kGap);
  const double height = base + (chart.mark_name.empty() ? 28 : 44);
  double largest = 0;
  for (const ChartBar& bar : chart.bars) largest = std::max({largest, bar.value, bar.mark});
  const double scale = (kWidth - kNames - kValues) / (largest > 0 ? largest : 1);
  std::string out = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)",
                                px(kWidth), px(height), html_escape(chart.title));
  out += fmt::format(R"(<text class="title" x="0" y="20">{}</text>)", html_escape(chart.title));
  double y = kTop;
  for (const ChartBar& bar : chart.bars) {
    const double end = kNames + std::max(bar.value, 0.0) * scale;
    out += fmt::format(R"(<text class="name" text-anchor="end" x="{}" y="{}">{}</text>)",
                       px(kNames - 10), px(y + 15), html_escape(bar.name));
    out += fmt::format(R"(<rect class="f{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>)",
                       bar.colour % kChartColours, px(kNames), px(y), px(end - kNames), px(kBar));
    double text_at = end;
    if (bar.mark >= 0) {
      const double mark = kNames + bar.mark * scale;
      out += fmt::format(R"(<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>)", px(mark),
                         px(mark), px(y - 3), px(y + kBar + 3));
      text_at = std::max(end, mark);
    }
    out += fmt::format(R"(<text class="value" x="{}" y="{}">{}</text>)", px(text_at + 7),
                       px(y + 15), fixed_decimal(bar.value, chart.places));
    y += kBar + kGap;
  }
  out += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", px(kNames),
                     px(kNames), px(kTop - 6), px(base - kGap + 6));
  out += fmt::format(R"(<text class="label" x="{}" y="{}">{}</text>)", px(kNames), px(base + 14),
                     html_escape(chart.x_label));
  if (!chart.mark_name.empty()) {
    out += fmt::format(R"(<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>)",
                       px(kNames + 3), px(base + 21), px(base + 35));
    out += fmt::format(R"(<text class="label" x="{}" y="{}">{}</text>)", px(kNames + 12),
                       px(base + 32), html_escape(chart.mark_name));
  }
  return out + "</svg>\n";
}

}  // namespace jogak::sim
