// SPDX-License-Identifier: Apache-2.0
//
// Appends without a format string: this is where a second of the exporter goes.
#include "agent/exporter/text.h"

#include <array>
#include <charconv>

namespace jogak::agent {

namespace {

constexpr std::string_view kTotal = "_total";

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

}  // namespace

void append_value(std::string& out, const FieldValue& value) {
  std::array<char, 400> text;
  const auto end = value.is_integer
                       ? std::to_chars(text.data(), text.data() + text.size(), value.integer)
                       : std::to_chars(text.data(), text.data() + text.size(), value.real,
                                       std::chars_format::fixed, 6);
  out.append(text.data(), end.ptr);
}

void append_label_value(std::string& out, std::string_view text) {
  append_escaped(out, text, true);
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  if (!out.empty() && out.back() != '{') out += ',';
  out.append(name).append("=\"");
  append_label_value(out, value);
  out += '"';
}

void append_head(std::string& out, std::string_view name, bool is_counter, std::string_view help,
                 ExpositionFormat format) {
  std::string_view family = name;
  std::string_view type = is_counter ? "counter" : "gauge";
  const bool is_open = format == ExpositionFormat::OpenMetrics;
  if (is_open && is_counter) {
    if (name.ends_with(kTotal)) {
      family.remove_suffix(kTotal.size());
    } else {
      type = "unknown";
    }
  }
  const auto add_type = [&] {
    out.append("# TYPE ").append(family).append(" ").append(type) += '\n';
  };
  const auto add_help = [&] {
    out.append("# HELP ").append(family).append(" ");
    // OpenMetrics escapes quotes in help texts too; the classic format does not.
    append_escaped(out, help, is_open);
    out += '\n';
  };
  if (is_open) {
    add_type();
    add_help();
  } else {
    add_help();
    add_type();
  }
}

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view more_labels, const FieldValue& value) {
  out.append(name);
  if (!labels.empty() || !more_labels.empty()) {
    out += '{';
    out.append(labels);
    if (!labels.empty() && !more_labels.empty()) out += ',';
    out.append(more_labels);
    out += '}';
  }
  out += ' ';
  append_value(out, value);
  out += '\n';
}

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   const FieldValue& value) {
  append_sample(out, name, labels, {}, value);
}

}  // namespace jogak::agent
