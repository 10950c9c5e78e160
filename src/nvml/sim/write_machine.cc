// SPDX-License-Identifier: Apache-2.0
//
// A machine as the text of a simulation file: the fields of machine_fields.h put into a document.
#include <type_traits>

#include <fmt/format.h>

#include "base/doc.h"
#include "nvml/sim/machine_fields.h"

namespace jogak::nvml::sim {

namespace {

class Writer {
 public:
  Doc take() { return std::move(doc_); }

  void text(std::string_view name, const std::string& value) {
    if (!value.empty()) doc_.set(name, value);
  }
  template <class Int>
  void integer(std::string_view name, Int value, std::int64_t, std::int64_t) {
    doc_.set(name, static_cast<std::int64_t>(value));
  }
  void flag(std::string_view name, bool value) { doc_.set(name, value); }
  void span(std::string_view name, TimeUs value, TimeUs) {
    if (value != 0) doc_.set(name, span_text(value));
  }
  void hex(std::string_view name, std::uint32_t value) {
    doc_.set(name, fmt::format("0x{:08X}", value));
  }
  template <class E>
  void choice(std::string_view name, E value, std::span<const std::string_view> words) {
    doc_.set(name, words[static_cast<std::size_t>(value)]);
  }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) doc_.set(name, Doc::strings(values));
  }
  void integers(std::string_view name, const std::vector<int>& values, int, int) {
    if (values.empty()) return;
    Doc list = Doc::array();
    for (const int value : values) list.push(value);
    doc_.set(name, std::move(list));
  }
  void numbers(std::string_view name,
               const std::map<std::string, std::int64_t, std::less<>>& values) {
    if (values.empty()) return;
    Doc map = Doc::object();
    for (const auto& [key, value] : values) map.set(key, value);
    doc_.set(name, std::move(map));
  }
  template <class T>
  void object(std::string_view name, T& value) {
    if (value == T{}) return;
    Writer inner;
    visit(inner, value);
    doc_.set(name, inner.take());
  }
  // Empty lists are written: they may stand against the model's.
  template <class T>
  void list(std::string_view name, std::vector<T>& values) {
    Doc items = Doc::array();
    for (T& value : values) {
      Writer inner;
      visit(inner, value);
      items.push(inner.take());
    }
    doc_.set(name, std::move(items));
  }

 private:
  static std::string span_text(TimeUs span);

  Doc doc_ = Doc::object();
};

std::string Writer::span_text(TimeUs span) { return fmt::format("{}us", span); }

}  // namespace

std::string write_machine(const MachineSpec& machine, std::string_view comment) {
  MachineSpec copy = machine;  // visitors take references
  Doc doc = Doc::object();
  doc.set("apiVersion", "jogak.io/v1").set("kind", "NvmlSimulation");
  if (!machine.state_file.empty()) doc.set("stateFile", machine.state_file);
  Writer driver;
  visit_driver(driver, copy);
  doc.set("driver", driver.take());
  Doc gpus = Doc::array();
  for (GpuSpec& gpu : copy.gpus) {
    Writer writer;
    writer.text("model", gpu.model);
    visit_identity(writer, gpu);
    visit_place(writer, gpu);
    visit_board(writer, gpu);
    visit_state(writer, gpu);
    gpus.push(writer.take());
  }
  doc.set("gpus", std::move(gpus));
  Writer faults;
  faults.list("faults", copy.faults);
  doc.set("faults", faults.take()["faults"]);
  std::string text = "# SPDX-License-Identifier: Apache-2.0\n";
  if (!comment.empty()) text.append("# ").append(comment).append("\n");
  return text + doc.yaml();
}

}  // namespace jogak::nvml::sim
