// SPDX-License-Identifier: Apache-2.0
// See yaml_fields.h. Nothing here throws for bad content: node types are asked before they are
// read.
#include "yaml/yaml_fields.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/edit_distance.h"
#include "base/json_writer.h"
#include "base/parse_number.h"
#include "base/quantity.h"

namespace jogak {

namespace {

constexpr std::int64_t kMilliNs = 1'000'000;
constexpr std::int64_t kSecondsMax = 1'000'000'000;  // thirty years

std::string short_text(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown;
  for (const char c : text.substr(0, kShown)) {
    shown += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return text.size() > kShown ? shown + "..." : shown;
}

struct SpanUnit {
  std::string_view name;
  TimeUs us;
};
// Longer names first: "ms" is not minutes.
constexpr std::array<SpanUnit, 5> kSpanUnits = {{{"ms", kMsInUs},
                                                 {"us", 1},
                                                 {"h", 3600 * kSecondInUs},
                                                 {"m", 60 * kSecondInUs},
                                                 {"s", kSecondInUs}}};
constexpr TimeUs kSpanMax = 100LL * 366 * 24 * 3600 * kSecondInUs;

// Only whether there is a document counts.
class NoEvents final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::Load takes the first of several documents in silence, and YAML::LoadAll (0.7) never ends on
// some broken texts, whose rest it takes for an endless row of documents.
bool has_one_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NoEvents events;
  return parser.HandleNextDocument(events) && !parser.HandleNextDocument(events);
}

int line_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? 0 : mark.line + 1;
}

}  // namespace

std::optional<TimeUs> parse_span(std::string_view text) {
  if (text == "0") return 0;
  TimeUs total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view number = text.substr(0, digits);
    text.remove_prefix(digits);
    const auto unit = std::ranges::find_if(
        kSpanUnits, [&](const SpanUnit& candidate) { return text.starts_with(candidate.name); });
    // Six digits behind the point are a microsecond of a second; more say nothing here.
    const std::size_t point = std::min(number.find('.'), number.size());
    const std::string_view fraction = point < number.size() ? number.substr(point + 1) : "";
    if (unit == kSpanUnits.end() || number.empty() || number == "." || fraction.size() > 6 ||
        fraction.find('.') != std::string_view::npos) {
      return std::nullopt;
    }
    text.remove_prefix(unit->name.size());
    const auto whole =
        parse_int(point == 0 ? "0" : number.substr(0, point), 0, kSpanMax / unit->us);
    if (!whole) return std::nullopt;
    TimeUs part = *whole * unit->us;
    TimeUs scale = unit->us;
    for (const char digit : fraction) {
      // Exact as long as the unit divides by ten; what is finer than a microsecond is dropped.
      part += scale * (digit - '0') / 10;
      scale /= 10;
    }
    total += part;
    if (total > kSpanMax) return std::nullopt;
  }
  return total;
}

std::string span_text(TimeUs span) {
  if (span == 0) return "0s";
  std::string text;
  for (const std::string_view name : {"h", "m", "s", "ms", "us"}) {
    const auto unit = std::ranges::find(kSpanUnits, name, &SpanUnit::name);
    if (span >= unit->us) text += fmt::format("{}{}", span / unit->us, name);
    span %= unit->us;
  }
  return text;
}

namespace {

// Parts of the file stand in it, and an error is one line.
std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

}  // namespace

Result<void> read_yaml_map(const std::string& file, std::string_view text,
                           std::string_view expected,
                           const std::function<void(YamlFields& fields)>& read) {
  if (!is_utf8(text)) return invalid("{}: is not UTF-8 text", file);
  YamlErrors errors(file);
  try {
    const std::string whole(text);
    const YAML::Node root = has_one_document(whole) ? YAML::Load(whole) : YAML::Node();
    if (!root.IsMap()) return invalid("{}: expected one YAML document, {}", file, expected);
    YamlFields fields(errors, root, "");
    read(fields);
  } catch (const YAML::Exception& error) {
    const std::string what = one_line(error.msg);
    if (error.mark.is_null()) return invalid("{}: {}", file, what);
    return invalid("{}:{}: {}", file, error.mark.line + 1, what);
  }
  return errors.result();
}

struct YamlFields::Field {
  std::string name;
  YAML::Node node;
  bool is_taken = false;
};

YamlFields::YamlFields(YamlFields&& other) noexcept = default;
YamlFields::~YamlFields() = default;

void YamlErrors::add(int line, std::string_view path, std::string_view what) {
  if (error_) return;
  const std::string where = line == 0 ? file_ : fmt::format("{}:{}", file_, line);
  error_ = Error{.code = Errc::Invalid,
                 .what = one_line(path.empty() ? fmt::format("{}: {}", where, what)
                                               : fmt::format("{}: {}: {}", where, path, what))};
}

Result<void> YamlErrors::result() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

YamlFields::YamlFields(YamlErrors& errors, const YAML::Node& node, std::string path)
    : errors_(&errors), path_(std::move(path)), line_(line_of(node)) {
  if (node.IsNull()) return;
  if (!node.IsMap()) {
    bad("", "expected a map of fields");
    return;
  }
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      bad("", "field names are plain words");
      return;
    }
    const std::string name = entry.first.Scalar();
    if (std::ranges::find(fields_, name, &Field::name) != fields_.end()) {
      errors.add(line_of(entry.first), path_to(name), "given twice");
    }
    fields_.push_back({name, entry.second});
  }
}

std::string YamlFields::path_to(std::string_view name) const {
  if (path_.empty() || name.empty()) return path_ + std::string(name);
  return fmt::format("{}.{}", path_, short_text(name));
}

std::string YamlFields::origin() const {
  return fmt::format("{}:{}: {}", errors_->file(), line_, path_);
}

void YamlFields::bad(std::string_view name, std::string_view what) {
  const auto at = std::ranges::find(fields_, name, &Field::name);
  errors_->add(at == fields_.end() ? line_ : line_of(at->node), path_to(name), what);
}

void YamlFields::finish() {
  for (const Field& field : fields_) {
    if (field.is_taken) continue;
    bad(field.name, "unknown field" + did_you_mean(field.name, known_));
    return;
  }
}

bool YamlFields::has(std::string_view name) const {
  return std::ranges::find(fields_, name, &Field::name) != fields_.end();
}

std::optional<YAML::Node> YamlFields::take(std::string_view name) {
  known_.emplace_back(name);
  const auto at = std::ranges::find(fields_, name, &Field::name);
  if (at == fields_.end()) return std::nullopt;
  at->is_taken = true;
  return at->node;
}

std::optional<std::string> YamlFields::scalar(std::string_view name) {
  const auto node = take(name);
  if (!node) return std::nullopt;
  if (node->IsScalar()) return node->Scalar();
  bad(name, node->IsNull() ? "has no value" : "expected one value, not a list or map");
  return std::nullopt;
}

std::string YamlFields::text(std::string_view name, std::string_view fallback) {
  return scalar(name).value_or(std::string(fallback));
}

std::string YamlFields::required_text(std::string_view name) {
  std::string value = text(name, "");
  if (value.empty()) bad(name, "is required");
  return value;
}

std::int64_t YamlFields::integer(std::string_view name, std::int64_t fallback, std::int64_t min,
                                 std::int64_t max) {
  const auto value = scalar(name);
  if (!value) return fallback;
  const auto number = parse_int(*value, min, max);
  if (number) return *number;
  bad(name, number.error().what);
  return fallback;
}

bool YamlFields::flag(std::string_view name, bool fallback) {
  const auto value = scalar(name);
  if (!value) return fallback;
  if (*value == "true") return true;
  if (*value == "false") return false;
  bad(name, fmt::format("expected true or false, got {}", short_text(*value)));
  return fallback;
}

std::int64_t YamlFields::seconds_ns(std::string_view name, std::int64_t fallback_ns) {
  const auto value = scalar(name);
  if (!value) return fallback_ns;
  const bool is_plain = value->find_first_not_of("0123456789.") == std::string::npos;
  const auto ms = parse_quantity_milli(*value);
  if (is_plain && ms && *ms <= kSecondsMax * 1000) return *ms * kMilliNs;
  bad(name, fmt::format("expected seconds like 90 or 0.5, got {}", short_text(*value)));
  return fallback_ns;
}

TimeUs YamlFields::span(std::string_view name, TimeUs fallback, TimeUs min, TimeUs max) {
  const auto value = scalar(name);
  if (!value) return fallback;
  const auto span = parse_span(*value);
  if (span && *span >= min && *span <= max) return *span;
  if (!span) {
    bad(name, fmt::format("expected a time like 15s or 1m30s, got {}", short_text(*value)));
  } else {
    bad(name, fmt::format("must be {} to {}, got {}", span_text(min), span_text(max),
                          short_text(*value)));
  }
  return fallback;
}

std::int64_t YamlFields::milli(std::string_view name, std::int64_t fallback) {
  const auto value = scalar(name);
  if (!value) return fallback;
  const auto number = parse_quantity_milli(*value);
  if (number && *number >= 0) return *number;
  bad(name, number ? "must not be negative" : number.error().what);
  return fallback;
}

std::int64_t YamlFields::quantity(std::string_view name, std::int64_t fallback) {
  const auto value = scalar(name);
  if (!value) return fallback;
  const auto number = parse_quantity(*value);
  if (number && *number >= 0) return *number;
  bad(name, number ? "must not be negative" : number.error().what);
  return fallback;
}

std::vector<std::string> YamlFields::texts(std::string_view name) {
  std::vector<std::string> values;
  const auto node = take(name);
  if (!node) return values;
  if (!node->IsSequence()) {
    bad(name, "expected a list");
    return values;
  }
  for (const YAML::Node& item : *node) {
    if (!item.IsScalar()) {
      bad(name, "expected a list of plain values");
      return {};
    }
    values.push_back(item.Scalar());
  }
  return values;
}

std::vector<std::int64_t> YamlFields::integers(std::string_view name, std::int64_t min,
                                               std::int64_t max) {
  std::vector<std::int64_t> values;
  for (const std::string& text : texts(name)) {
    const auto number = parse_int(text, min, max);
    if (!number) {
      bad(name, number.error().what);
      return {};
    }
    values.push_back(*number);
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> YamlFields::pairs(std::string_view name) {
  std::vector<std::pair<std::string, std::string>> values;
  auto fields = map(name);
  if (!fields) return values;
  for (const Field& field : fields->fields_) {
    values.emplace_back(field.name, fields->text(field.name, ""));
  }
  std::ranges::sort(values);
  return values;
}

std::vector<YamlFields> YamlFields::maps(std::string_view name) {
  std::vector<YamlFields> values;
  const auto node = take(name);
  if (!node || node->IsNull()) return values;
  if (!node->IsSequence()) {
    bad(name, "expected a list");
    return values;
  }
  for (const YAML::Node& item : *node) {
    values.emplace_back(*errors_, item, fmt::format("{}[{}]", path_to(name), values.size()));
  }
  return values;
}

std::optional<YamlFields> YamlFields::map(std::string_view name) {
  const auto node = take(name);
  if (!node) return std::nullopt;
  return YamlFields(*errors_, *node, path_to(name));
}

}  // namespace jogak
