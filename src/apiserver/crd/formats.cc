// SPDX-License-Identifier: Apache-2.0
//
// Each format with its test, by the name without dashes. What upstream checks by a regular
// expression is checked by the same one here.
#include "apiserver/crd/formats.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "apiserver/crd/pattern.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/names.h"

namespace jogak::api {
namespace {

using Text = std::string_view;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_date(Text text) {
  return text.size() == 10 && parse_time(std::string(text) + "T00:00:00Z").has_value();
}

bool is_date_time(Text text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c == 'T' || c == 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const std::size_t at = lower.find('t');
  if (at == std::string::npos || !is_date(Text(lower).substr(0, at))) return false;
  static const std::string kClock =
      "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
  return pattern_matches(kClock, Text(lower).substr(at + 1));
}

bool is_duration(Text text) {
  // As Go's time.ParseDuration reads it, else as Scala writes it ("3 days").
  static const std::string kGo =
      "^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
  static const std::string kScala =
      "(?i)[0-9]+\\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)";
  return pattern_matches(kGo, text) || pattern_matches(kScala, text);
}

bool is_hostname(Text text) {
  static const std::string kHost =
      "^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|"
      "([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}"
      "([a-zA-Z\\p{L}]){2,63})$";
  if (text.size() > 255 || !pattern_matches(kHost, text)) return false;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t dot = std::min(text.find('.', start), text.size());
    if (dot - start > 63) return false;
    start = dot + 1;
  }
  return true;
}

bool parses_as(int family, Text text) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(family, std::string(text).c_str(), bytes.data()) == 1;
}

bool is_ipv4(Text text) {
  const Problems problems = check_ip(text);
  // Leading zeros are tolerated, and so is an IPv4 address inside an IPv6 one.
  const bool is_address = problems.empty() || !problems[0].starts_with("must be a valid IP");
  return is_address && text.find('.') != Text::npos;
}

bool is_ipv6(Text text) { return text.find(':') != Text::npos && parses_as(AF_INET6, text); }

bool is_cidr(Text text) {
  const std::size_t slash = text.find('/');
  if (slash == Text::npos) return false;
  const Text length = text.substr(slash + 1);
  const bool is_v6 = is_ipv6(text.substr(0, slash));
  if (!is_v6 && !is_ipv4(text.substr(0, slash))) return false;
  if (length.empty() || length.size() > 3 || !std::all_of(length.begin(), length.end(), is_digit)) {
    return false;
  }
  int bits = 0;
  for (const char c : length) bits = bits * 10 + (c - '0');
  return bits <= (is_v6 ? 128 : 32);
}

std::string digits_of(Text text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '-') out += c;
  }
  return out;
}

bool is_isbn10(Text text) {
  const std::string digits = digits_of(text);
  static const std::string kForm = "^(?:[0-9]{9}X|[0-9]{10})$";
  if (!pattern_matches(kForm, digits)) return false;
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    const char c = digits[static_cast<std::size_t>(i)];
    sum += (i + 1) * (c == 'X' ? 10 : c - '0');
  }
  return sum % 11 == 0;
}

bool is_isbn13(Text text) {
  const std::string digits = digits_of(text);
  static const std::string kForm = "^[0-9]{13}$";
  if (!pattern_matches(kForm, digits)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < 13; ++i) sum += (digits[i] - '0') * (i % 2 == 0 ? 1 : 3);
  return sum % 10 == 0;
}

bool is_credit_card(Text text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), is_digit);
  static const std::string kForm =
      "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
      "3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\\d{3})\\d{11})$";
  if (!pattern_matches(kForm, digits)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const int digit = digits[digits.size() - 1 - i] - '0';
    sum += i % 2 == 0 ? digit : (digit * 2) / 10 + (digit * 2) % 10;
  }
  return sum % 10 == 0;
}

bool is_email(Text text) {
  static const std::string kForm =
      "^([^<>@]*<)?[^\\s@<>\"(),:;\\[\\]\\\\]+@[^\\s@<>\"(),:;\\\\]+>?$";
  return pattern_matches(kForm, text) && (text.find('<') != Text::npos) == text.ends_with('>');
}

bool is_any(Text /*text*/) { return true; }

// Tests by pattern alone: {name, pattern}.
struct Form {
  Text name, pattern;
};
constexpr Form kForms[] = {
    {"bsonobjectid", "^[0-9a-fA-F]{24}$"},
    {"uri", "^([a-zA-Z][a-zA-Z0-9+.-]*:[^\\s]*|/[^\\s]*)$"},
    {"mac",
     "^(?i)([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|"
     "[0-9a-f]{2}([:-][0-9a-f]{2}){19}|[0-9a-f]{4}(\\.[0-9a-f]{4}){2}|"
     "[0-9a-f]{4}(\\.[0-9a-f]{4}){3}|[0-9a-f]{4}(\\.[0-9a-f]{4}){9})$"},
    {"uuid", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"},
    {"uuid3", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"},
    {"uuid4", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"},
    {"uuid5", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"},
    {"ssn", "^\\d{3}[- ]?\\d{2}[- ]?\\d{4}$"},
    {"hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"},
    {"rgbcolor",
     "^rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,"
     "\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,"
     "\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*\\)$"},
    {"byte",
     "^(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|"
     "[A-Za-z0-9+\\/]{4})$"},
};

struct Test {
  Text name;
  bool (*test)(Text);
};
constexpr Test kTests[] = {
    {"email", is_email},
    {"hostname", is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"cidr", is_cidr},
    {"isbn", [](Text text) { return is_isbn10(text) || is_isbn13(text); }},
    {"isbn10", is_isbn10},
    {"isbn13", is_isbn13},
    {"creditcard", is_credit_card},
    {"password", is_any},
    {"date", is_date},
    {"duration", is_duration},
    {"datetime", is_date_time},
    {"k8sshortname",
     [](Text text) { return text.find('.') == Text::npos && check_dns1123_label(text).empty(); }},
    {"k8slongname", [](Text text) { return check_dns1123_subdomain(text).empty(); }},
};

std::string plain_name(Text format) {
  std::string out;
  std::copy_if(format.begin(), format.end(), std::back_inserter(out),
               [](char c) { return c != '-'; });
  return out;
}

const Test* find_test(Text name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

const Form* find_form(Text name) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms),
                                   [&](const Form& form) { return form.name == name; });
  return found == std::end(kForms) ? nullptr : found;
}

}  // namespace

bool is_known_format(std::string_view type, std::string_view format) {
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  if (!type.empty() && type != "string") return false;
  const std::string name = plain_name(format);
  return find_test(name) != nullptr || find_form(name) != nullptr;
}

bool has_format(std::string_view format, std::string_view text) {
  const std::string name = plain_name(format);
  if (const Test* test = find_test(name)) return test->test(text);
  if (const Form* form = find_form(name)) return pattern_matches(std::string(form->pattern), text);
  return true;
}

}  // namespace jogak::api
