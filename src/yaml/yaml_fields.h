// SPDX-License-Identifier: Apache-2.0
// Reading a YAML map field by field: each field is taken once, by name and kind, and what nobody
// took is an unknown field. The first error is kept in the shared YamlErrors and later reads answer
// their fallbacks, so that readers stay straight lines; whoever started the reading checks at the
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace YAML {
class Node;
}

namespace jogak {

class YamlErrors {
 public:
  explicit YamlErrors(std::string file) : file_(std::move(file)) {}
  // "FILE:LINE: path: what"; only the first is kept. Line 0: not known.
  void add(int line, std::string_view path, std::string_view what);
  bool any() const { return error_.has_value(); }
  const std::string& file() const { return file_; }
  Result<void> result() const;

 private:
  std::string file_;
  std::optional<Error> error_;
};

class YamlFields {
 public:
  // `path` is what messages call the map: "pods[3].gpu".
  YamlFields(YamlErrors& errors, const YAML::Node& node, std::string path);
  YamlFields(YamlFields&& other) noexcept;
  ~YamlFields();
  // Refuses the fields that were not taken. Called once, after the last read.
  void finish();

  bool has(std::string_view name) const;
  std::string text(std::string_view name, std::string_view fallback);
  std::string required_text(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t min,
                       std::int64_t max);
  bool flag(std::string_view name, bool fallback);
  std::int64_t seconds_ns(std::string_view name, std::int64_t fallback_ns);
  // As Kubernetes writes spans: "15s", "1m30s", "250ms"; in [min, max].
  TimeUs span(std::string_view name, TimeUs fallback, TimeUs min, TimeUs max);
  // Kubernetes quantities: in thousandths or in whole units; not negative.
  std::int64_t milli(std::string_view name, std::int64_t fallback);
  std::int64_t quantity(std::string_view name, std::int64_t fallback);
  std::vector<std::string> texts(std::string_view name);
  std::vector<std::int64_t> integers(std::string_view name, std::int64_t min, std::int64_t max);
  // A map of texts, sorted by key.
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view name);
  // A list of maps; an absent one is empty.
  std::vector<YamlFields> maps(std::string_view name);
  std::optional<YamlFields> map(std::string_view name);
  // The node itself, for fields that come in several forms.
  std::optional<YAML::Node> take(std::string_view name);

  // An error about a field, or about the whole map where the name is empty.
  void bad(std::string_view name, std::string_view what);
  const std::string& path() const { return path_; }
  // "FILE:LINE: path", for errors found after reading.
  std::string origin() const;
  bool failed() const { return errors_->any(); }

 private:
  struct Field;

  std::string path_to(std::string_view name) const;
  std::optional<std::string> scalar(std::string_view name);

  YamlErrors* errors_;
  std::string path_;
  int line_ = 0;
  std::vector<Field> fields_;
  std::vector<std::string> known_;  // names asked for, for suggestions
};

// "15s", "1h2m0.5s", "0": as Go reads durations, not negative; nullopt: not one, or beyond a
// hundred years.
std::optional<TimeUs> parse_span(std::string_view text);
// The shortest such text: "1m30s", "250ms", "0s".
std::string span_text(TimeUs span);

// Reads one YAML document, which must be a map; `expected` says so in the error ("a map with nodes
// and pods"). `read` takes the fields and calls finish(). Errors: Invalid, "FILE:LINE: path: what".
Result<void> read_yaml_map(const std::string& file, std::string_view text,
                           std::string_view expected,
                           const std::function<void(YamlFields& fields)>& read);

}  // namespace jogak
