// SPDX-License-Identifier: Apache-2.0
//
// Texts that many printers share.
#include "apiserver/tables/printer.h"

#include <algorithm>

#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {

std::string text_or(const Doc& value, std::string_view absent) {
  return value.as_string().empty() ? std::string(absent) : value.as_string();
}

std::string age_since(const Doc& time, TimeUs now) {
  const auto then = parse_time(time.as_string());
  return then ? human_duration(now - *then) : "<unknown>";
}

std::string age_of(const Doc& object, TimeUs now) {
  return age_since(meta(object)["creationTimestamp"], now);
}

std::string amount_or(const Doc& quantity, std::string_view absent) {
  if (quantity.is_number()) {
    return quantity.number_text();
  }
  return text_or(quantity, absent);
}

std::string int_or_string(const Doc& value) {
  return value.is_number() ? value.number_text() : value.as_string();
}

std::string flag_text(const Doc& flag) {
  if (!flag.is_bool()) {
    return "<unset>";
  }
  return flag.as_bool() ? "True" : "False";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

std::string labels_text(const Doc& labels) {
  std::vector<std::string> parts;
  for (const Doc::Member& label : labels.members()) {
    parts.push_back(label.key + "=" + label.value.as_string());
  }
  std::ranges::sort(parts);
  return parts.empty() ? "<none>" : join(parts, ",");
}

std::string selector_text(const Doc& selector, std::string_view empty) {
  const std::string text = LabelSelector::from_object(selector).text();
  return text.empty() ? std::string(empty) : text;
}

std::string containers_text(const Doc& containers, std::string_view member) {
  std::vector<std::string> parts;
  for (const Doc& container : containers.items()) {
    parts.push_back(container[member].as_string());
  }
  return join(parts, ",");
}

std::string shortened(const std::vector<std::string>& parts, std::size_t shown,
                      std::string_view empty) {
  if (parts.size() > shown) {
    const std::vector<std::string> head(parts.begin(),
                                        parts.begin() + static_cast<std::ptrdiff_t>(shown));
    return join(head, ",") + " + " + std::to_string(parts.size() - shown) + " more...";
  }
  const std::string text = join(parts, ",");
  return text.empty() ? std::string(empty) : text;
}

}  // namespace jogak::api
