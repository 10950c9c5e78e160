// SPDX-License-Identifier: Apache-2.0
//
// Rules for single strings. Each is small enough to be written as a loop; the regular expressions
// stand in the messages only, because that is what users of the real server read and search for.
#include "apiserver/object/names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace jogak::api {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower_alnum(char c) { return is_lower(c) || is_digit(c); }
bool is_alnum(char c) { return is_lower_alnum(c) || is_upper(c); }

template <class Test>
bool all_are(std::string_view text, Test test) {
  return std::all_of(text.begin(), text.end(), test);
}

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool is_label(std::string_view text) {
  return !text.empty() && is_lower_alnum(text.front()) && is_lower_alnum(text.back()) &&
         all_are(text, [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool is_subdomain(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool is_label_name(std::string_view text) {
  return !text.empty() && is_alnum(text.front()) && is_alnum(text.back()) &&
         all_are(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

constexpr std::string_view kLabelRegex = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainRegex =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kNameRegex = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character";
constexpr std::string_view kNameRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

std::string rule(std::string_view text, std::string_view regex,
                 std::initializer_list<std::string_view> examples) {
  std::string out = fmt::format("{} (e.g. ", text);
  bool is_first = true;
  for (const std::string_view example : examples) {
    out += fmt::format("{}'{}', ", is_first ? "" : " or ", example);
    is_first = false;
  }
  return out + fmt::format("regex used for validation is '{}')", regex);
}

std::string too_long(std::size_t limit, std::string_view unit = "characters") {
  return fmt::format("must be no more than {} {}", limit, unit);
}

// `unit`: the part before the slash of a label key counts bytes, names of objects characters.
Problems check_subdomain(std::string_view text, std::string_view unit) {
  Problems out;
  if (text.size() > 253) out.push_back(too_long(253, unit));
  if (!is_subdomain(text)) out.push_back(rule(kSubdomainRule, kSubdomainRegex, {"example.com"}));
  return out;
}

void check_dots(std::string_view text, Problems& out) {
  if (text == ".") {
    out.emplace_back("must not be '.'");
  } else if (text == "..") {
    out.emplace_back("must not be '..'");
  } else if (text.starts_with("..")) {
    out.emplace_back("must not start with '..'");
  }
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t at = text.find(mark);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

// Four decimal octets, where leading zeros are allowed.
bool is_loose_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           if (part.empty() || !all_are(part, is_digit)) return false;
           part.remove_prefix(std::min(part.find_first_not_of('0'), part.size() - 1));
           return part.size() < 3 || (part.size() == 3 && part <= "255");
         });
}

}  // namespace

Problems check_dns1123_label(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63));
  if (is_label(text)) return out;
  if (is_subdomain(text)) {
    out.emplace_back("must not contain dots");
  } else {
    out.push_back(
        rule("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
             "'-', and must start and end with an alphanumeric character",
             kLabelRegex, {"my-name", "123-abc"}));
  }
  return out;
}

Problems check_dns1123_subdomain(std::string_view text) {
  return check_subdomain(text, "characters");
}

Problems check_dns1035_label(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63));
  if (!is_label(text) || !is_lower(text.front())) {
    out.push_back(
        rule("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
             "with an alphabetic character, and end with an alphanumeric character",
             "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return out;
}

Problems check_qualified_name(std::string_view text) {
  const auto parts = split(text, '/');
  // Made only for a name that is wrong: nearly all are right, and there are many.
  const auto name_rule = [] {
    return rule(kNameRule, kNameRegex, {"MyName", "my.name", "123-abc"});
  };
  if (parts.size() > 2) {
    return {"a valid label key " + name_rule() +
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
  }
  Problems out;
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      out.emplace_back("prefix part must be non-empty");
    } else {
      for (std::string& problem : check_subdomain(parts[0], "bytes")) {
        out.push_back("prefix part " + std::move(problem));
      }
    }
  }
  const std::string_view name = parts.back();
  if (name.empty()) {
    out.emplace_back("name part must be non-empty");
  } else if (name.size() > 63) {
    out.push_back("name part " + too_long(63, "bytes"));
  }
  if (!is_label_name(name)) out.push_back("name part " + name_rule());
  return out;
}

Problems check_label_value(std::string_view text) {
  Problems out;
  if (text.size() > 63) out.push_back(too_long(63, "bytes"));
  if (!text.empty() && !is_label_name(text)) {
    out.push_back(rule(fmt::format("a valid label must be an empty string or {}",
                                   kNameRule.substr(std::string_view("must ").size())),
                       fmt::format("({})?", kNameRegex), {"MyValue", "my_value", "12345"}));
  }
  return out;
}

Problems check_port(std::int64_t port) {
  if (port >= 1 && port <= 65535) return {};
  return {"must be between 1 and 65535, inclusive"};
}

Problems check_port_name(std::string_view text) {
  Problems out;
  if (text.size() > 15) out.push_back(too_long(15));
  if (text.empty() || !all_are(text, [](char c) { return is_lower_alnum(c) || c == '-'; })) {
    out.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::none_of(text.begin(), text.end(), is_lower)) {
    out.emplace_back("must contain at least one letter (a-z)");
  }
  if (text.find("--") != std::string_view::npos) {
    out.emplace_back("must not contain consecutive hyphens");
  }
  if (text.starts_with('-') || text.ends_with('-')) {
    out.emplace_back("must not begin or end with a hyphen");
  }
  return out;
}

// The relaxed rule, which is the only one since Kubernetes 1.34.
Problems check_env_name(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (all_are(text, [](char c) { return c >= ' ' && c <= '~' && c != '='; })) return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters "
      "other than '='"};
}

Problems check_config_key(std::string_view text) {
  Problems out;
  if (text.size() > 253) out.push_back(too_long(253));
  if (text.empty() ||
      !all_are(text, [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; })) {
    out.push_back(
        rule("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
             "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  check_dots(text, out);
  return out;
}

Problems check_percent(std::string_view text) {
  const std::string_view digits = text.substr(0, text.empty() ? 0 : text.size() - 1);
  if (text.ends_with('%') && !digits.empty() && all_are(digits, is_digit)) return {};
  return {rule("a valid percent string must be a numeric string followed by an ending '%'",
               "[0-9]+%", {"1%", "93%"})};
}

Problems check_ip(std::string_view text) {
  const std::string copy(text);
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) return {};
  if (is_loose_ipv4(text)) return {"must not have leading 0s"};
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) != 1) {
    return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
  }
  constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(kMapped.begin(), kMapped.end(), bytes.begin())) {
    return {"must not be an IPv4-mapped IPv6 address"};
  }
  return {};
}

void add_problems(FieldErrors& errors, const Path& at, const Doc& value, const Problems& problems) {
  for (const std::string& problem : problems) errors.invalid(at, value, problem);
}

}  // namespace jogak::api
