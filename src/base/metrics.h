// SPDX-License-Identifier: Apache-2.0
//
// A registry of Prometheus series: counters, gauges and histograms, each once alone or as a family
// whose children differ in label values. Whoever counts looks a child up once and keeps the
// reference; counting is then an addition. What others know already is asked for at the scrape, by
// callback. One thread owns a registry and all that came from it.
//
//   Registry registry;
//   Family<Counter>& attempts = registry.counters("x_attempts_total", "Attempts.", {"result"});
//   Counter& good = attempts.with({"good"});
//   good.add();
//   registry.expose(ExpositionFormat::Text);
//
// Names and labels are the caller's own words: one that Prometheus would refuse is a bug and fails
// a check, as does the same name twice. Label values may be anything.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jogak {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_ += n; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

class Gauge {
 public:
  void set(double value) { value_ = value; }
  void add(double delta) { value_ += delta; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

// Counts what was observed by upper bounds, which ascend; the last bucket, without a bound, is
// there by itself.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}

  void observe(double value);
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  std::span<const double> bounds() const { return bounds_; }
  // Per bucket, not added up.
  std::span<const std::uint64_t> counts() const { return counts_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// `count` bounds from `start`, each `factor` times the one before.
std::vector<double> exponential_bounds(double start, double factor, int count);

using LabelValues = std::vector<std::string>;

// CHECKs that as many values were given as there are labels.
void check_values(std::size_t given, std::size_t wanted);

// The children of one name. They live as long as the registry and never move.
template <class Child>
class Family {
 public:
  using Make = std::function<std::unique_ptr<Child>()>;
  Family(std::size_t labels, Make make) : labels_(labels), make_(std::move(make)) {}

  // The child of these values, in the order of the family's labels; made when it is not there yet.
  Child& with(const LabelValues& values) {
    check_values(values.size(), labels_);
    std::unique_ptr<Child>& child = children_[values];
    if (child == nullptr) child = make_();
    return *child;
  }
  const std::map<LabelValues, std::unique_ptr<Child>>& children() const { return children_; }

 private:
  std::size_t labels_;
  Make make_;
  std::map<LabelValues, std::unique_ptr<Child>> children_;
};

// One value of a family that is asked for at the scrape.
struct Sample {
  LabelValues labels;
  double value = 0;
};

enum class ExpositionFormat : std::uint8_t { Text, OpenMetrics };
// Which of the two an Accept header prefers, by its q-values; Text when it says nothing of use.
ExpositionFormat exposition_format(std::string_view accept);
std::string_view content_type(ExpositionFormat format);

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Counters are named *_total.
  Family<Counter>& counters(std::string_view name, std::string_view help,
                            std::vector<std::string> labels);
  Family<Gauge>& gauges(std::string_view name, std::string_view help,
                        std::vector<std::string> labels);
  Family<Histogram>& histograms(std::string_view name, std::string_view help,
                                std::vector<std::string> labels, std::span<const double> bounds);
  Counter& counter(std::string_view name, std::string_view help);
  Gauge& gauge(std::string_view name, std::string_view help);
  Histogram& histogram(std::string_view name, std::string_view help,
                       std::span<const double> bounds);

  // Asked at each scrape; the values are sorted by label before they are written. What a callback
  // refers to outlives the registry.
  using Sampler = std::function<std::vector<Sample>()>;
  void sampled_gauges(std::string_view name, std::string_view help, std::vector<std::string> labels,
                      Sampler sampler);
  void sampled_counters(std::string_view name, std::string_view help,
                        std::vector<std::string> labels, Sampler sampler);
  void sampled_gauge(std::string_view name, std::string_view help, std::function<double()> value);
  void sampled_counter(std::string_view name, std::string_view help, std::function<double()> value);

  // All series, families sorted by name, children by their values: equal numbers give equal text.
  std::string expose(ExpositionFormat format) const;

 private:
  struct Entry;
  Entry& add(std::string_view name, std::string_view help, std::vector<std::string> labels);

  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
};

// Numbers as Prometheus reads them: the shortest text that gives the same double again, "NaN",
// "+Inf", "-Inf".
std::string number_text(double value);

}  // namespace jogak
