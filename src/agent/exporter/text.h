// SPDX-License-Identifier: Apache-2.0
//
// The lines of an exposition, for both formats: metadata of a family, a sample. Plain appends to
// one string, because a second's text has a thousand of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/exporter/fields.h"
#include "base/metrics.h"

namespace jogak::agent {

// Integers in decimal, others with six digits behind the point.
void append_value(std::string& out, const FieldValue& value);
// `text` with backslash, line end and quote escaped, as a label value has it.
void append_label_value(std::string& out, std::string_view text);
// ,name="value" (without the comma when `out` is empty or ends in '{').
void append_label(std::string& out, std::string_view name, std::string_view value);

// HELP and TYPE, in the order that the format wants. In OpenMetrics a counter has to end in _total;
// one that does not (dcgm-exporter's) is of unknown type there, so that its series keep their names
// whatever a server asks for.
void append_head(std::string& out, std::string_view name, bool is_counter, std::string_view help,
                 ExpositionFormat format);

// name{labels} value
void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   const FieldValue& value);
void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view more_labels, const FieldValue& value);

}  // namespace jogak::agent
