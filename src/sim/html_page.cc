// SPDX-License-Identifier: Apache-2.0
// The page around the charts: style for light and dark, legend, tables.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/svg_chart.h"

namespace jogak::sim {

namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #57606a;
  --grid: #e4e7eb; --axis: #8c959f; --card: #f7f8fa;
  --c0: #2563eb; --c1: #c2570c; --c2: #15803d; --c3: #c2261c;
  --c4: #7c3aed; --c5: #0e7490; --c6: #6b7280; --c7: #be185d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e8eb; --soft: #a2aab4;
  --grid: #2a2f37; --axis: #6b7480; --card: #1b1f26;
  --c0: #6ea8ff; --c1: #fb923c; --c2: #4ade80; --c3: #f87171;
  --c4: #b79cff; --c5: #22d3ee; --c6: #a3aab5; --c7: #f472b6; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 56px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 4px; }
p { margin: 4px 0 12px; color: var(--soft); max-width: 76ch; }
.charts { display: grid; gap: 18px; grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); }
.wide { grid-column: 1 / -1; }
.card { background: var(--card); border-radius: 8px; padding: 12px 14px; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
.title { font-size: 15px; font-weight: 600; fill: var(--ink); }
.tick { font-size: 12px; fill: var(--soft); } .label { font-size: 12.5px; fill: var(--soft); }
.name, .value { font-size: 13px; fill: var(--ink); } .end { font-size: 12.5px; font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; } .axis { stroke: var(--axis); stroke-width: 1; }
.guide { stroke: var(--axis); stroke-width: 1.2; stroke-dasharray: 2 4; }
.mark { stroke: var(--ink); stroke-width: 2; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 14px; padding: 0;
  list-style: none; } .legend i { display: inline-block; width: 14px; height: 4px;
  border-radius: 2px; margin-right: 7px; vertical-align: middle; }
.scroll { overflow-x: auto; margin-top: 14px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 5px 12px; text-align: right; border-bottom: 1px solid var(--grid);
  white-space: nowrap; } th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
)";

std::string colour_rules() {
  std::string rules;
  for (std::size_t i = 0; i < kChartColours; ++i) {
    rules += fmt::format(
        ".s{0} {{ stroke: var(--c{0}); }} .f{0} {{ fill: var(--c{0}); "
        "background: var(--c{0}); }}\n",
        i);
  }
  return rules;
}

// The one to look for first, then the ones it is compared with most.
constexpr std::array<std::string_view, kChartColours> kPolicies = {
    "jogak", "fgd", "best-fit", "kube", "packing", "clustering", "random", "dot-product"};

}  // namespace

std::size_t policy_colour(std::string_view policy) {
  const auto at = std::ranges::find(kPolicies, policy);
  return static_cast<std::size_t>(at - kPolicies.begin()) % kChartColours;
}

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string legend_html(std::span<const LegendEntry> entries) {
  std::string out = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    out += fmt::format("<li><i class=\"f{}\"></i>{}</li>", entry.colour % kChartColours,
                       html_escape(entry.name));
  }
  return out + "</ul>\n";
}

std::string table_html(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : header) out += "<th>" + html_escape(cell) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + html_escape(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style></head>\n<body><main>\n{}</main></body></html>\n",
      html_escape(title), kStyle, colour_rules(), body);
}

}  // namespace jogak::sim
