// SPDX-License-Identifier: Apache-2.0
//
// Both text forms from one walk: they differ in how a counter's family is named, in the metadata,
// and in how bounds are written.
#include "base/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"

namespace jogak {

namespace {

constexpr std::string_view kTotal = "_total";

bool is_name(std::string_view name, bool colon) {
  const auto is_word = [colon](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (colon && c == ':');
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, is_word);
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

// OpenMetrics wants 1.0 where a bound is whole.
std::string bound_text(double bound, ExpositionFormat format) {
  std::string text = number_text(bound);
  const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  if (format == ExpositionFormat::OpenMetrics && is_whole) text += ".0";
  return text;
}

// "application/openmetrics-text; version=1.0.0; q=0.8" in parts, trimmed.
std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find(at), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    parts.push_back(part);
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// In thousandths; what is not a number counts as 0.
int quality(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  return static_cast<int>(std::clamp(value, 0.0, 1.0) * 1000);
}

}  // namespace

void check_values(std::size_t given, std::size_t wanted) {
  JOGAK_CHECK(given == wanted, "{} label values for {} labels", given, wanted);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  JOGAK_CHECK(error == std::errc(), "a double in {} characters", text.size());
  return {text.data(), end};
}

void Histogram::observe(double value) {
  // Few bounds, and most of what is observed falls among the first.
  std::size_t bucket = 0;
  while (bucket < bounds_.size() && !(value <= bounds_[bucket])) ++bucket;
  ++counts_[bucket];
  ++count_;
  sum_ += value;
}

std::vector<double> exponential_bounds(double start, double factor, int count) {
  std::vector<double> bounds;
  double bound = start;
  for (int i = 0; i < count; ++i, bound *= factor) bounds.push_back(bound);
  return bounds;
}

ExpositionFormat exposition_format(std::string_view accept) {
  int best_text = 0;
  int best_open = 0;
  for (const std::string_view offer : split(accept, ',')) {
    const auto parts = split(offer, ';');
    int q = 1000;
    bool has_other_version = false;
    for (const std::string_view part : std::span(parts).subspan(1)) {
      if (part.starts_with("q=")) q = quality(part.substr(2));
      if (part.starts_with("version=")) {
        has_other_version = part != "version=1.0.0" && part != "version=0.0.4";
      }
    }
    if (has_other_version) continue;
    if (parts[0] == "application/openmetrics-text") best_open = std::max(best_open, q);
    if (parts[0] == "text/plain" || parts[0] == "text/*" || parts[0] == "*/*") {
      best_text = std::max(best_text, q);
    }
  }
  return best_open > 0 && best_open >= best_text ? ExpositionFormat::OpenMetrics
                                                 : ExpositionFormat::Text;
}

std::string_view content_type(ExpositionFormat format) {
  return format == ExpositionFormat::OpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

// ---- entries --------------------------------------------------------------------------------

struct Registry::Entry {
  struct Sampled {
    bool is_counter = false;
    Sampler sampler;
  };

  std::string name, help;
  std::vector<std::string> labels;
  std::variant<std::monostate, Family<Counter>, Family<Gauge>, Family<Histogram>, Sampled> what;

  std::string_view type() const {
    if (const auto* sampled = std::get_if<Sampled>(&what)) {
      return sampled->is_counter ? "counter" : "gauge";
    }
    constexpr std::array<std::string_view, 4> kTypes = {"", "counter", "gauge", "histogram"};
    return kTypes[what.index()];
  }
  void write(std::string& out, ExpositionFormat format) const;

 private:
  void write_head(std::string& out, ExpositionFormat format) const;
  // `bound`: of a bucket, or "".
  void write_line(std::string& out, std::string_view suffix, const LabelValues& values,
                  std::string_view bound, std::string_view value) const;
  void write_histogram(std::string& out, ExpositionFormat format, const LabelValues& values,
                       const Histogram& histogram) const;
};

void Registry::Entry::write_head(std::string& out, ExpositionFormat format) const {
  std::string_view family = name;
  const bool is_open = format == ExpositionFormat::OpenMetrics;
  if (is_open && type() == "counter") family.remove_suffix(kTotal.size());
  const auto line = [&](std::string_view key) -> std::string& {
    return out.append("# ").append(key).append(" ").append(family).append(" ");
  };
  const auto write_help = [&] {
    append_escaped(line("HELP"), help, is_open);
    out += '\n';
  };
  if (!is_open) write_help();
  line("TYPE").append(type()).append("\n");
  if (!is_open) return;
  for (const std::string_view unit : {"seconds", "bytes"}) {
    if (family.ends_with(unit) && family.size() > unit.size() + 1 &&
        family[family.size() - unit.size() - 1] == '_') {
      line("UNIT").append(unit).append("\n");
    }
  }
  write_help();
}

void Registry::Entry::write_line(std::string& out, std::string_view suffix,
                                 const LabelValues& values, std::string_view bound,
                                 std::string_view value) const {
  out.append(name).append(suffix);
  if (!labels.empty() || !bound.empty()) {
    char opener = '{';
    for (std::size_t i = 0; i < labels.size(); ++i, opener = ',') {
      out += opener;
      append_escaped(out.append(labels[i]).append("=\""), values[i], true);
      out += '"';
    }
    if (!bound.empty()) {
      out += opener;
      out.append("le=\"").append(bound).append("\"");
    }
    out += '}';
  }
  out.append(" ").append(value).append("\n");
}

void Registry::Entry::write_histogram(std::string& out, ExpositionFormat format,
                                      const LabelValues& values, const Histogram& histogram) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    below += histogram.counts()[i];
    write_line(out, "_bucket", values, bound_text(histogram.bounds()[i], format),
               std::to_string(below));
  }
  write_line(out, "_bucket", values, "+Inf", std::to_string(histogram.count()));
  write_line(out, "_sum", values, "", number_text(histogram.sum()));
  write_line(out, "_count", values, "", std::to_string(histogram.count()));
}

void Registry::Entry::write(std::string& out, ExpositionFormat format) const {
  write_head(out, format);
  if (const auto* counters = std::get_if<Family<Counter>>(&what)) {
    for (const auto& [values, child] : counters->children()) {
      write_line(out, "", values, "", std::to_string(child->value()));
    }
  } else if (const auto* gauges = std::get_if<Family<Gauge>>(&what)) {
    for (const auto& [values, child] : gauges->children()) {
      write_line(out, "", values, "", number_text(child->value()));
    }
  } else if (const auto* histograms = std::get_if<Family<Histogram>>(&what)) {
    for (const auto& [values, child] : histograms->children()) {
      write_histogram(out, format, values, *child);
    }
  } else if (const auto* sampled = std::get_if<Sampled>(&what)) {
    std::vector<Sample> samples = sampled->sampler();
    std::ranges::sort(samples, {}, &Sample::labels);
    for (const Sample& sample : samples) {
      check_values(sample.labels.size(), labels.size());
      write_line(out, "", sample.labels, "", number_text(sample.value));
    }
  }
}

// ---- registry -------------------------------------------------------------------------------

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Entry& Registry::add(std::string_view name, std::string_view help,
                               std::vector<std::string> labels) {
  JOGAK_CHECK(is_name(name, true), "{} is no metric name", name);
  for (const std::string& label : labels) {
    JOGAK_CHECK(is_name(label, false) && !label.starts_with("__") && label != "le",
                "{} of {} is no label name", label, name);
  }
  auto entry = std::make_unique<Entry>();
  entry->name = name;
  entry->help = help;
  entry->labels = std::move(labels);
  const auto [at, is_new] = entries_.emplace(std::string(name), std::move(entry));
  JOGAK_CHECK(is_new, "metric {} twice", name);
  return *at->second;
}

Family<Counter>& Registry::counters(std::string_view name, std::string_view help,
                                    std::vector<std::string> labels) {
  JOGAK_CHECK(name.ends_with(kTotal), "counter {} is to end in _total", name);
  Entry& entry = add(name, help, std::move(labels));
  return entry.what.emplace<Family<Counter>>(entry.labels.size(),
                                             [] { return std::make_unique<Counter>(); });
}

Family<Gauge>& Registry::gauges(std::string_view name, std::string_view help,
                                std::vector<std::string> labels) {
  Entry& entry = add(name, help, std::move(labels));
  return entry.what.emplace<Family<Gauge>>(entry.labels.size(),
                                           [] { return std::make_unique<Gauge>(); });
}

Family<Histogram>& Registry::histograms(std::string_view name, std::string_view help,
                                        std::vector<std::string> labels,
                                        std::span<const double> bounds) {
  JOGAK_CHECK(std::ranges::is_sorted(bounds), "bounds of {} do not ascend", name);
  Entry& entry = add(name, help, std::move(labels));
  return entry.what.emplace<Family<Histogram>>(
      entry.labels.size(), [kept = std::vector<double>(bounds.begin(), bounds.end())] {
        return std::make_unique<Histogram>(kept);
      });
}

Counter& Registry::counter(std::string_view name, std::string_view help) {
  return counters(name, help, {}).with({});
}

Gauge& Registry::gauge(std::string_view name, std::string_view help) {
  return gauges(name, help, {}).with({});
}

Histogram& Registry::histogram(std::string_view name, std::string_view help,
                               std::span<const double> bounds) {
  return histograms(name, help, {}, bounds).with({});
}

void Registry::sampled_gauges(std::string_view name, std::string_view help,
                              std::vector<std::string> labels, Sampler sampler) {
  add(name, help, std::move(labels)).what = Entry::Sampled{false, std::move(sampler)};
}

void Registry::sampled_counters(std::string_view name, std::string_view help,
                                std::vector<std::string> labels, Sampler sampler) {
  JOGAK_CHECK(name.ends_with(kTotal), "counter {} is to end in _total", name);
  add(name, help, std::move(labels)).what = Entry::Sampled{true, std::move(sampler)};
}

void Registry::sampled_gauge(std::string_view name, std::string_view help,
                             std::function<double()> value) {
  sampled_gauges(name, help, {}, [value = std::move(value)] {
    return std::vector<Sample>{{.labels = {}, .value = value()}};
  });
}

void Registry::sampled_counter(std::string_view name, std::string_view help,
                               std::function<double()> value) {
  sampled_counters(name, help, {}, [value = std::move(value)] {
    return std::vector<Sample>{{.labels = {}, .value = value()}};
  });
}

std::string Registry::expose(ExpositionFormat format) const {
  std::string out;
  for (const auto& [name, entry] : entries_) entry->write(out, format);
  if (format == ExpositionFormat::OpenMetrics) out += "# EOF\n";
  return out;
}

}  // namespace jogak
