// SPDX-License-Identifier: Apache-2.0
//
// Which form a client sent and which one it gets. The rules are those of the real server's three
// parts that each look at Accept: its router, which wants one exact type or "*/*"; the order of the
// clauses; and what each endpoint can be turned into.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/codec/codec.h"

namespace jogak::codec {
namespace {

struct Served {
  std::string_view type;
  Form form;
  bool has_stream;  // can be a watch
};
constexpr Served kServed[] = {
    {"application/json", Form::Json, true},
    {"application/yaml", Form::Yaml, false},
    {"application/vnd.kubernetes.protobuf", Form::Protobuf, true},
};
constexpr std::string_view kAnything = "*/*";

std::string_view trimmed(std::string_view text, std::string_view space = " ") {
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

// The piece up to the separator, which goes too.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return piece;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

double quality_of(std::string_view text) {
  double q = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), q);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && !std::isnan(q) ? q : 0;  // what cannot be read counts as 0
}

std::string_view main_type(const MediaType& type) {
  return std::string_view(type.type).substr(0, type.type.find('/'));
}
std::string_view sub_type(const MediaType& type) {
  return std::string_view(type.type).substr(type.type.find('/') + 1);
}

// Not an order in the strict sense (a lower q may still come first), which is why the way of
// sorting matters: insertion, as the real server does for short lists.
bool comes_before(const MediaType& a, const MediaType& b) {
  return a.q > b.q || (main_type(a) != "*" && main_type(b) == "*") ||
         (sub_type(a) != "*" && sub_type(b) == "*");
}

void sort_clauses(std::vector<MediaType>& clauses) {
  for (std::size_t i = 1; i < clauses.size(); ++i) {
    for (std::size_t k = i; k > 0 && comes_before(clauses[k], clauses[k - 1]); --k) {
      std::swap(clauses[k], clauses[k - 1]);
    }
  }
}

// The router looks at types alone.
bool is_routed(std::string_view accept) {
  while (!accept.empty()) {
    std::string_view clause = take(accept, ',');
    const std::string_view type = trimmed(take(clause, ';'));
    if (type == kAnything) return true;
    if (std::ranges::find(kServed, type, &Served::type) != std::end(kServed)) return true;
  }
  return false;
}

// What the parameters as, v and g ask for; nullopt when that is not served.
std::optional<Negotiated::As> transform_of(const MediaType& clause, Form form, bool allow_table) {
  using As = Negotiated::As;
  bool has_any = false;
  for (const auto& [name, value] : clause.parameters) {
    has_any = has_any || name == "as" || name == "g" || name == "v";
  }
  if (!has_any) return As::Object;
  const std::string_view version = clause.parameter("v");
  if (clause.parameter("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) {
    return std::nullopt;
  }
  const std::string_view as = clause.parameter("as");
  if (as == "Table") {
    if (!allow_table || form == Form::Protobuf) return std::nullopt;
    return As::Table;
  }
  if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") return As::Partial;
  return std::nullopt;
}

std::optional<Negotiated> accept_clause(const MediaType& clause, const Served& served,
                                        bool allow_protobuf, bool allow_table) {
  const std::string_view stream = clause.parameter("stream");
  if (!stream.empty() && (stream != "watch" || !served.has_stream)) return std::nullopt;
  const std::string_view server_version = clause.parameter("sv");
  if (!server_version.empty() && server_version != "v1") return std::nullopt;
  const auto as = transform_of(clause, served.form, allow_table);
  if (!as) return std::nullopt;
  // Custom resources have no protobuf of their own, but their metadata has.
  const bool is_object = *as == Negotiated::As::Object;
  if (served.form == Form::Protobuf && !allow_protobuf && is_object) return std::nullopt;
  return Negotiated{.form = served.form,
                    .as = *as,
                    .is_pretty = clause.parameter("pretty") == "1",
                    .content_type = std::string(served.type)};
}

bool covers(const MediaType& clause, std::string_view type) {
  const std::string_view main = main_type(clause);
  if (main == "*") return sub_type(clause) == "*";
  if (main != type.substr(0, type.find('/'))) return false;
  return sub_type(clause) == "*" || clause.type == type;
}

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

// A token or "quoted", taken from the text; nullopt when it is neither.
bool skip_value(std::string_view& text) {
  if (!text.starts_with('"')) {
    const std::size_t end = std::min(text.find_first_of("; \t"), text.size());
    const bool is_right = is_token(text.substr(0, end));
    text.remove_prefix(end);
    return is_right;
  }
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view MediaType::parameter(std::string_view name) const {
  const auto found =
      std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
  return found == parameters.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<MediaType> parse_media_types(std::string_view header) {
  std::vector<MediaType> types;
  while (!header.empty()) {
    std::string_view clause = trimmed(take(header, ','), " \t");
    std::string_view name = take(clause, ';');
    MediaType type;
    const std::string_view main = trimmed(take(name, '/'));
    const std::string_view sub = trimmed(name);
    if (sub.find('/') != std::string_view::npos) continue;
    if (sub.empty()) {
      if (main != "*") continue;
      type.type = kAnything;
    } else {
      type.type = lower(main).append("/").append(lower(sub));
    }
    while (!clause.empty()) {
      std::string_view value = take(clause, ';');
      const std::string key = lower(trimmed(take(value, '=')));
      if (value.empty() || value.find('=') != std::string_view::npos) continue;
      if (key == "q") {
        type.q = quality_of(value);
      } else {
        type.parameters.emplace_back(key, trimmed(value));
      }
    }
    types.push_back(std::move(type));
  }
  return types;
}

std::optional<Negotiated> negotiate(std::string_view accept, bool allow_protobuf,
                                    bool allow_table) {
  if (accept.empty()) return Negotiated{.content_type = std::string(kServed[0].type)};
  // Custom resources are not behind the router.
  if (allow_protobuf && !is_routed(accept)) return std::nullopt;
  std::vector<MediaType> clauses = parse_media_types(accept);
  sort_clauses(clauses);
  for (const MediaType& clause : clauses) {
    for (const Served& served : kServed) {
      if (!covers(clause, served.type)) continue;
      if (auto found = accept_clause(clause, served, allow_protobuf, allow_table)) return found;
    }
  }
  return std::nullopt;
}

std::optional<std::string> media_type_of(std::string_view content_type) {
  std::string_view rest = content_type;
  const std::string type = lower(trimmed(take(rest, ';'), " \t"));
  const std::size_t slash = type.find('/');
  const std::string_view view = type;
  if (!is_token(view.substr(0, slash))) return std::nullopt;
  if (slash != std::string::npos && !is_token(view.substr(slash + 1))) return std::nullopt;
  for (;;) {
    rest = trimmed(rest, " \t");
    if (rest.empty()) return type;
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos || !is_token(rest.substr(0, equals))) return std::nullopt;
    rest.remove_prefix(equals + 1);
    if (!skip_value(rest)) return std::nullopt;
    rest = trimmed(rest, " \t");
    if (rest.empty()) return type;
    if (!rest.starts_with(';')) return std::nullopt;
    rest.remove_prefix(1);
  }
}

std::optional<Form> form_of(std::string_view content_type) {
  if (content_type.empty()) return Form::Json;
  const auto type = media_type_of(content_type);
  if (!type) return std::nullopt;
  const auto found = std::ranges::find(kServed, std::string_view(*type), &Served::type);
  if (found == std::end(kServed)) return std::nullopt;
  return found->form;
}

}  // namespace jogak::codec
