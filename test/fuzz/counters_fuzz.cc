// SPDX-License-Identifier: Apache-2.0
//
// Any text as a counters file: an error of one line that names the file, or counters whose text
// reads the same again, and a page that a server would take.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "agent/exporter/counters.h"
#include "agent/exporter/render.h"
#include "agent/model/node_model.h"
#include "agent/model/testing/made_node.h"
#include "base/check.h"

namespace {

using jogak::agent::Counters;
using jogak::agent::CounterType;

std::string_view type_text(CounterType type) {
  switch (type) {
    case CounterType::Gauge:
      return "gauge";
    case CounterType::Counter:
      return "counter";
    case CounterType::Label:
      break;
  }
  return "label";
}

std::string written(const Counters& counters) {
  std::string text;
  for (const auto& spec : counters.specs) {
    text.append(spec.name).append(",").append(type_text(spec.type)).append(",\"");
    for (const char c : spec.help) text.append(c == '"' ? 2 : 1, c);
    text += "\"\n";
  }
  return text;
}

void check_page(Counters counters) {
  static const std::shared_ptr<const jogak::agent::NodeSnapshot> node = [] {
    jogak::agent::NodeModel model;
    const auto facts = jogak::agent::testing::made_facts({.gpus = 2, .instances = 1});
    model.on_facts(facts, 1'000'000);
    for (const auto& gpu : facts.gpus) {
      model.on_sample(jogak::agent::testing::made_sample(gpu, 1'000'000));
    }
    return model.snapshot(1'000'000);
  }();
  jogak::agent::RenderOptions options;
  options.counters = std::move(counters);
  std::string_view text;
  const std::string page =
      jogak::agent::Renderer(std::move(options)).render(*node, jogak::ExpositionFormat::Text);
  text = page;
  std::set<std::string_view> heads;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    JOGAK_CHECK(end != std::string_view::npos && end > 0);
    const std::string_view line = text.substr(0, end);
    if (line.starts_with("# TYPE ")) JOGAK_CHECK(heads.insert(line).second, "{}", line);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto counters = jogak::agent::parse_counters("input", text);
  if (!counters) {
    JOGAK_CHECK(counters.error().what.starts_with("input:"));
    JOGAK_CHECK(counters.error().what.size() < 500);
    return 0;
  }
  const auto again = jogak::agent::parse_counters("input", written(*counters));
  JOGAK_CHECK(again.has_value(), "{}", again ? "" : again.error().what);
  JOGAK_CHECK(again->specs.size() == counters->specs.size());
  for (std::size_t i = 0; i < again->specs.size(); ++i) {
    JOGAK_CHECK(again->specs[i].name == counters->specs[i].name);
    JOGAK_CHECK(again->specs[i].help == counters->specs[i].help);
  }
  check_page(*std::move(counters));
  return 0;
}
