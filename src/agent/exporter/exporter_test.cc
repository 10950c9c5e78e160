// SPDX-License-Identifier: Apache-2.0
//
// The pages as a server of metrics gets them, without a socket.
#include "agent/exporter/exporter.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/model/testing/made_node.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::made_facts;
using testing::made_sample;
using ::testing::Not;

struct Answer {
  int status = 0;
  net::Headers headers;
  std::string body;
  std::string header(std::string_view name) const {
    return std::string(net::header(headers, name));
  }
};

class AnswerWriter : public net::ResponseWriter {
 public:
  void respond(int status, net::Headers headers, std::string body) override {
    answer = {.status = status, .headers = std::move(headers), .body = std::move(body)};
  }
  void begin(int status, net::Headers headers) override { respond(status, std::move(headers), ""); }
  void write(std::string_view bytes) override { answer.body += bytes; }
  void write_shared(std::shared_ptr<const std::string> bytes) override { answer.body += *bytes; }
  void end() override {}
  bool is_open() const override { return true; }
  std::size_t pending() const override { return 0; }
  void on_close(std::function<void()> /*callback*/) override {}
  void on_drain(std::function<void()> /*callback*/) override {}
  void abort() override {}

  Answer answer;
};

TEST(ReadJobs, FilesAreDevicesAndLinesAreJobs) {
  const TempFolder folder;
  const auto put = [&](const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(folder.path(name), text));
  };
  put("0", "41\n42\r\n\n");
  put("1.7", " job-a ");
  put("2", "\n");
  put("notes.txt", "43\n");
  put("3", "\xff\xfe\n");
  EXPECT_EQ(read_jobs(folder.path("")), (JobTable{{"0", {"41", "42"}}, {"1.7", {"job-a"}}}));
  EXPECT_EQ(read_jobs(folder.path("none")), JobTable{});
}

class ExporterTest : public ::testing::Test {
 protected:
  ExporterTest() {
    registry.counter("jogak_agent_samples_total", "Samples.").add(3);
    exporter = std::make_unique<Exporter>(ExporterOptions{}, &registry, [this] { return now; });
  }
  void publish() {
    const nvml::NodeFacts facts = made_facts({.gpus = 2});
    model.on_facts(facts, now);
    for (const nvml::GpuFacts& gpu : facts.gpus) model.on_sample(made_sample(gpu, now));
    exporter->publish(*model.snapshot(now));
  }
  Answer get(std::string target, net::Headers headers = {}, std::string method = "GET") {
    auto writer = std::make_shared<AnswerWriter>();
    exporter->handler()({.method = std::move(method),
                         .target = std::move(target),
                         .headers = std::move(headers),
                         .body = {}},
                        writer);
    return writer->answer;
  }

  TimeUs now = 1'700'000'000 * kSecondInUs;
  Registry registry;
  NodeModel model;
  std::unique_ptr<Exporter> exporter;
};

TEST_F(ExporterTest, ServesTheLastTextInBothFormats) {
  publish();
  const Answer text = get("/metrics");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(text.body, HasSubstr("\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\""));
  EXPECT_THAT(text.body, EndsWith("jogak_agent_samples_total 3\n"));
  EXPECT_THAT(text.body, Not(HasSubstr("# EOF")));
  const Answer open =
      get("/metrics?x=1", {{"Accept", "application/openmetrics-text;version=1.0.0"}});
  EXPECT_THAT(open.header("content-type"), HasSubstr("application/openmetrics-text"));
  EXPECT_THAT(open.body, EndsWith("jogak_agent_samples_total 3\n# EOF\n"));
  EXPECT_THAT(open.body, Not(HasSubstr("\n\n")));
}

TEST_F(ExporterTest, ACountersFileIsFollowedAndAWrongOneLeavesWhatWas) {
  const TempFolder folder;
  const std::string file = folder.path("counters.csv");
  ASSERT_TRUE(write_file(file, "DCGM_FI_DEV_GPU_TEMP, gauge, t\n"));
  std::vector<std::string> news;
  ExporterOptions options;
  options.render.counters = *parse_counters(file, *read_file(file));
  options.counters_file = file;
  options.on_counters = [&](const Result<Counters>& counters) {
    news.push_back(counters ? counters->specs.front().name : counters.error().what);
  };
  exporter = std::make_unique<Exporter>(options, &registry, [this] { return now; });
  const auto page = [&] {
    publish();
    return *exporter->page(ExpositionFormat::Text);
  };
  EXPECT_THAT(page(), HasSubstr("\nDCGM_FI_DEV_GPU_TEMP{"));
  EXPECT_TRUE(news.empty()) << "it is what it was";
  // The time of a change may be as coarse as a tick; the size tells, too.
  ASSERT_TRUE(write_file(file, "DCGM_FI_DEV_POWER_USAGE, gauge, in watts\n"));
  EXPECT_THAT(page(), AllOf(HasSubstr("\nDCGM_FI_DEV_POWER_USAGE{"),
                            Not(HasSubstr("\nDCGM_FI_DEV_GPU_TEMP{"))));
  ASSERT_TRUE(write_file(file, "DCGM_FI_DEV_POWER, gauge, a slip\n"));
  EXPECT_THAT(page(), HasSubstr("\nDCGM_FI_DEV_POWER_USAGE{"));
  EXPECT_THAT(exporter->counters_problem(), HasSubstr("counters.csv:1: no such field"));
  page();
  std::filesystem::remove(file);
  EXPECT_THAT(page(), HasSubstr("\nDCGM_FI_DEV_POWER_USAGE{"));
  ASSERT_TRUE(write_file(file, "DCGM_FI_DEV_POWER_USAGE, gauge, in watts\n"));
  page();
  EXPECT_EQ(exporter->counters_problem(), "");
  EXPECT_THAT(news, ElementsAre("DCGM_FI_DEV_POWER_USAGE", HasSubstr("no such field"),
                                HasSubstr("No such file"), "DCGM_FI_DEV_POWER_USAGE"));
}

TEST_F(ExporterTest, CompressesWhenAsked) {
  publish();
  const Answer plain = get("/metrics");
  const Answer packed = get("/metrics", {{"Accept-Encoding", "deflate, gzip;q=0.5"}});
  EXPECT_EQ(packed.header("content-encoding"), "gzip");
  EXPECT_LT(packed.body.size(), plain.body.size() / 4);
  EXPECT_EQ(gunzip(packed.body), plain.body);
  now += kSecondInUs;
  publish();
  EXPECT_EQ(gunzip(get("/metrics", {{"Accept-Encoding", "gzip"}}).body), get("/metrics").body)
      << "of the new text, not of the old";
}

TEST(AcceptsGzip, ReadsTheHeader) {
  for (const std::string_view yes : {"gzip", "deflate, gzip", "gzip;q=0.1", "*", " gzip ;q=1"}) {
    EXPECT_TRUE(accepts_gzip(yes)) << yes;
  }
  for (const std::string_view no : {"", "identity", "gzip;q=0", "gzip; q=0.0", "xgzip", ",,"}) {
    EXPECT_FALSE(accepts_gzip(no)) << no;
  }
}

TEST_F(ExporterTest, HealthFollowsTheSamples) {
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_THAT(get("/health").body, HasSubstr("nothing was measured yet"));
  publish();
  EXPECT_EQ(get("/health").status, 200);
  now += 61 * kSecondInUs;
  EXPECT_THAT(get("/health").body, HasSubstr("the last sample is 61 s old"));
  model.on_facts_failure({.code = Errc::Unavailable, .what = "no driver"}, now);
  exporter->publish(*model.snapshot(now));
  EXPECT_THAT(get("/health").body, HasSubstr("no driver"));
  EXPECT_EQ(get("/metrics").status, 200) << "metrics always answer";
}

TEST_F(ExporterTest, AnswersBeforeTheFirstSample) {
  EXPECT_EQ(get("/metrics").status, 200);
  EXPECT_EQ(get("/metrics", {{"Accept", "application/openmetrics-text"}}).body, "# EOF\n");
}

TEST_F(ExporterTest, OtherPagesAndMethods) {
  EXPECT_THAT(get("/").body, HasSubstr("/metrics"));
  EXPECT_EQ(get("/metric").status, 404);
  EXPECT_EQ(get("/metrics", {}, "POST").status, 405);
  EXPECT_EQ(get("/metrics", {}, "POST").header("allow"), "GET, HEAD");
  EXPECT_EQ(get("/metrics", {}, "HEAD").status, 200);
}

}  // namespace
}  // namespace jogak::agent
