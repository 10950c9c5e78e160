// SPDX-License-Identifier: Apache-2.0
// Both axes are logarithmic: 100 to 100,000 nodes, 100 ns to 100 us.
// See scale_plot.h.
#include "bench/scale_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace jogak::bench {
namespace {

constexpr double kLeft = 80, kTop = 50, kWide = 560, kHigh = 300;
constexpr double kNodesLow = 2, kNodesHigh = 5;  // decades
constexpr double kTimeLow = 2, kTimeHigh = 5;    // decades of nanoseconds

double x_of(double nodes) {
  return kLeft + kWide * (std::log10(nodes) - kNodesLow) / (kNodesHigh - kNodesLow);
}

double y_of(double ns) {
  const double decade = std::min(std::max(std::log10(ns), kTimeLow), kTimeHigh);
  return kTop + kHigh * (kTimeHigh - decade) / (kTimeHigh - kTimeLow);
}

std::string curve(std::span<const ScalePoint> points, bool p99, std::string_view colour) {
  std::string line;
  std::string dots;
  for (const ScalePoint& p : points) {
    const double y = y_of(p99 ? p.p99_ns : p.mean_ns);
    line += fmt::format("{:.1f},{:.1f} ", x_of(p.nodes), y);
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>", x_of(p.nodes),
                        y, colour);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\"/>{}",
                     line, colour, dots);
}

std::string grid() {
  std::string out;
  for (int d = 2; d <= 5; ++d) {
    const double x = x_of(std::pow(10.0, d));
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>",
        x, kTop, kTop + kHigh, kTop + kHigh + 20, std::lround(std::pow(10.0, d)));
    constexpr std::string_view kNames[] = {"100 ns", "1 &#181;s", "10 &#181;s", "100 &#181;s"};
    const double y = y_of(std::pow(10.0, d));
    out += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>",
        kLeft, y, kLeft + kWide, kLeft - 8, y + 4, kNames[d - 2]);
  }
  return out;
}

}  // namespace

std::string scale_plot(std::span<const ScalePoint> points, std::string_view policy) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"430\" "
      "font-family=\"sans-serif\" font-size=\"13\"><rect width=\"700\" height=\"430\" "
      "fill=\"white\"/><text x=\"{}\" y=\"28\" font-size=\"16\">Cost of one whole-GPU decision, "
      "policy {}, one core</text>",
      kLeft, policy);
  out += grid();
  out += curve(points, false, "#1f6feb");
  out += curve(points, true, "#d1242f");
  out += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">nodes with 8 GPUs</text>"
      "<circle cx=\"{2}\" cy=\"66\" r=\"4\" fill=\"#1f6feb\"/><text x=\"{3}\" y=\"70\">mean</text>"
      "<circle cx=\"{2}\" cy=\"86\" r=\"4\" fill=\"#d1242f\"/><text x=\"{3}\" y=\"90\">99th "
      "percentile</text></svg>\n",
      kLeft + kWide / 2, kTop + kHigh + 50, kLeft + 16, kLeft + 28);
  return out;
}

}  // namespace jogak::bench
