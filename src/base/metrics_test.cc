// SPDX-License-Identifier: Apache-2.0
//
// Series as Prometheus reads them, in both forms.
#include "base/metrics.h"

#include <limits>

#include <gtest/gtest.h>

namespace jogak {
namespace {

constexpr auto kText = ExpositionFormat::Text;
constexpr auto kOpen = ExpositionFormat::OpenMetrics;

TEST(Metrics, CounterGaugeAndHistogramAsText) {
  Registry registry;
  registry.counter("b_total", "Things.").add(3);
  registry.gauge("c", "Level.").set(-1.5);
  const double bounds[] = {0.5, 1, 2};
  Histogram& histogram = registry.histogram("a_seconds", "Times.", bounds);
  // 0.5 counts below its own bound, 2.5 below none.
  for (const double value : {0.5, 0.6, 2.5}) histogram.observe(value);
  EXPECT_EQ(registry.expose(kText),
            "# HELP a_seconds Times.\n"
            "# TYPE a_seconds histogram\n"
            "a_seconds_bucket{le=\"0.5\"} 1\n"
            "a_seconds_bucket{le=\"1\"} 2\n"
            "a_seconds_bucket{le=\"2\"} 2\n"
            "a_seconds_bucket{le=\"+Inf\"} 3\n"
            "a_seconds_sum 3.6\n"
            "a_seconds_count 3\n"
            "# HELP b_total Things.\n"
            "# TYPE b_total counter\n"
            "b_total 3\n"
            "# HELP c Level.\n"
            "# TYPE c gauge\n"
            "c -1.5\n");
}

TEST(Metrics, TheSameAsOpenMetrics) {
  Registry registry;
  registry.counter("b_seconds_total", "Things.").add(3);
  const double bounds[] = {0.5, 1};
  registry.histogram("a_seconds", "Times.", bounds).observe(1);
  EXPECT_EQ(registry.expose(kOpen),
            "# TYPE a_seconds histogram\n"
            "# UNIT a_seconds seconds\n"
            "# HELP a_seconds Times.\n"
            "a_seconds_bucket{le=\"0.5\"} 0\n"
            "a_seconds_bucket{le=\"1.0\"} 1\n"
            "a_seconds_bucket{le=\"+Inf\"} 1\n"
            "a_seconds_sum 1\n"
            "a_seconds_count 1\n"
            "# TYPE b_seconds counter\n"
            "# UNIT b_seconds seconds\n"
            "# HELP b_seconds Things.\n"
            "b_seconds_total 3\n"
            "# EOF\n");
}

TEST(Metrics, ChildrenComeInTheOrderOfTheirValues) {
  Registry registry;
  Family<Counter>& family = registry.counters("x_total", "", {"queue", "event"});
  family.with({"b", "1"}).add();
  family.with({"a", "2"}).add(2);
  Counter& same = family.with({"b", "1"});
  same.add();
  EXPECT_EQ(&same, &family.with({"b", "1"}));
  EXPECT_EQ(registry.expose(kText),
            "# HELP x_total \n"
            "# TYPE x_total counter\n"
            "x_total{queue=\"a\",event=\"2\"} 2\n"
            "x_total{queue=\"b\",event=\"1\"} 2\n");
}

TEST(Metrics, EscapesWhatWouldBreakALine) {
  Registry registry;
  registry.gauges("x", "a \\ b\n\"c\"", {"l"}).with({"q\"\\\nz"}).set(1);
  EXPECT_EQ(registry.expose(kText),
            "# HELP x a \\\\ b\\n\"c\"\n# TYPE x gauge\nx{l=\"q\\\"\\\\\\nz\"} 1\n");
  EXPECT_EQ(registry.expose(kOpen),
            "# TYPE x gauge\n# HELP x a \\\\ b\\n\\\"c\\\"\nx{l=\"q\\\"\\\\\\nz\"} 1\n# EOF\n");
}

TEST(Metrics, SampledSeriesAreAskedForAtEachScrape) {
  Registry registry;
  double level = 1;
  registry.sampled_gauge("a", "", [&] { return level; });
  registry.sampled_counters("b_total", "", {"m"}, [] {
    return std::vector<Sample>{{.labels = {"z"}, .value = 1}, {.labels = {"y"}, .value = 2}};
  });
  EXPECT_NE(registry.expose(kText).find("\na 1\n"), std::string::npos);
  level = 2;
  const std::string text = registry.expose(kText);
  EXPECT_NE(text.find("\na 2\n"), std::string::npos);
  EXPECT_NE(text.find("b_total{m=\"y\"} 2\nb_total{m=\"z\"} 1\n"), std::string::npos);
}

TEST(Metrics, NumbersReadBackTheSame) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e21), "1e+21");
  EXPECT_EQ(number_text(5), "5");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-Inf");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Metrics, WhatIsNotANumberFallsBeyondAllBounds) {
  const double bounds[] = {1};
  Histogram histogram(bounds);
  histogram.observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(histogram.counts()[0], 0U);
  EXPECT_EQ(histogram.counts()[1], 1U);
}

TEST(Metrics, ExponentialBounds) {
  EXPECT_EQ(exponential_bounds(0.001, 2, 4), (std::vector<double>{0.001, 0.002, 0.004, 0.008}));
}

TEST(Metrics, FormatByAccept) {
  EXPECT_EQ(exposition_format(""), kText);
  EXPECT_EQ(exposition_format("*/*"), kText);
  EXPECT_EQ(exposition_format("application/json"), kText);
  EXPECT_EQ(exposition_format("text/plain;version=0.0.4"), kText);
  EXPECT_EQ(exposition_format("application/openmetrics-text"), kOpen);
  // As Prometheus asks.
  EXPECT_EQ(exposition_format("application/openmetrics-text;version=1.0.0;"
                              "escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
                              "version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            kOpen);
  EXPECT_EQ(exposition_format("application/openmetrics-text; version=1.0.0; q=0.3, "
                              "text/plain; q=0.4"),
            kText);
  EXPECT_EQ(exposition_format("application/openmetrics-text;q=0"), kText);
  EXPECT_EQ(exposition_format("application/openmetrics-text;q=nonsense, text/plain;q="), kText);
  EXPECT_EQ(exposition_format("application/openmetrics-text;version=0.0.1"), kText);
}

TEST(MetricsDeath, NamesAreCheckedWhereTheyAreMade) {
  Registry registry;
  registry.gauge("twice", "");
  EXPECT_DEATH(registry.gauge("twice", ""), "metric twice twice");
  EXPECT_DEATH(registry.gauge("9x", ""), "9x is no metric name");
  EXPECT_DEATH(registry.gauge("a-b", ""), "a-b is no metric name");
  EXPECT_DEATH(registry.counter("x", ""), "counter x is to end in _total");
  EXPECT_DEATH(registry.gauges("x", "", {"le"}), "le of x is no label name");
  EXPECT_DEATH(registry.gauges("y", "", {"a", "b"}).with({"1"}), "1 label values for 2 labels");
}

}  // namespace
}  // namespace jogak
