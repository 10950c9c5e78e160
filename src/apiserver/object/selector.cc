// SPDX-License-Identifier: Apache-2.0
//
// Label selectors go through the same lexer and grammar as upstream's (k8s.io/apimachinery
// pkg/labels), oddities included: "in" and "notin" may be values, "a in ()" holds the empty string.
#include "apiserver/object/selector.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "apiserver/object/field_errors.h"
#include "apiserver/object/names.h"

namespace jogak::api {
namespace {

using Op = LabelSelector::Op;
using Requirement = LabelSelector::Requirement;

enum class Token : std::uint8_t {
  End,
  Error,
  Word,
  In,
  NotIn,
  Close,
  Open,
  Comma,
  Not,
  Equals,
  DoubleEquals,
  NotEquals,
  Greater,
  Less
};

struct Scanned {
  Token token = Token::End;
  std::string text;
};

struct Symbol {
  std::string_view text;
  Token token;
};
constexpr Symbol kSymbols[] = {
    {")", Token::Close},         {",", Token::Comma},  {"!", Token::Not},
    {"==", Token::DoubleEquals}, {"=", Token::Equals}, {">", Token::Greater},
    {"in", Token::In},           {"<", Token::Less},   {"!=", Token::NotEquals},
    {"notin", Token::NotIn},     {"(", Token::Open}};

std::optional<Token> symbol_of(std::string_view text) {
  for (const Symbol& symbol : kSymbols) {
    if (symbol.text == text) return symbol.token;
  }
  return std::nullopt;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_special(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

std::vector<Scanned> scan(std::string_view text) {
  std::vector<Scanned> out;
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) break;
    if (!is_special(text[at])) {
      const std::size_t start = at;
      while (at < text.size() && !is_blank(text[at]) && !is_special(text[at])) ++at;
      const std::string_view word = text.substr(start, at - start);
      out.push_back({symbol_of(word).value_or(Token::Word), std::string(word)});
      continue;
    }
    // The longest symbol; every special character is one of its own.
    const std::size_t size = symbol_of(text.substr(at, 2)) ? 2 : 1;
    const std::string_view found = text.substr(at, std::min(size, text.size() - at));
    out.push_back({symbol_of(found).value_or(Token::Error), std::string(found)});
    at += found.size();
  }
  out.push_back({});
  return out;
}

std::optional<std::int64_t> to_int(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string joined(const Problems& problems) {
  std::string out;
  for (const std::string& problem : problems) out.append(out.empty() ? "" : "; ").append(problem);
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(scan(text)) {}

  Result<std::vector<Requirement>> parse() {
    std::vector<Requirement> out;
    while (true) {
      const Scanned& next = tokens_[at_];
      if (next.token == Token::End) return out;
      if (!is_word(next.token) && next.token != Token::Not) {
        return invalid("found '{}', expected: !, identifier, or 'end of string'", next.text);
      }
      auto requirement = parse_requirement();
      if (!requirement) return in_context("unable to parse requirement", requirement.error());
      out.push_back(*std::move(requirement));
      const Scanned& after = take();
      if (after.token == Token::End) return out;
      if (after.token != Token::Comma) {
        return invalid("found '{}', expected: ',' or 'end of string'", after.text);
      }
      const Scanned& following = tokens_[at_];
      if (!is_word(following.token) && following.token != Token::Not) {
        return invalid("found '{}', expected: identifier after ','", following.text);
      }
    }
  }

 private:
  // Where a value may stand, "in" and "notin" are words too.
  static bool is_word(Token token) {
    return token == Token::Word || token == Token::In || token == Token::NotIn;
  }

  // Never goes beyond the end.
  const Scanned& take() {
    const Scanned& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  Result<Requirement> parse_requirement() {
    Requirement out;
    bool is_unary = false;
    if (tokens_[at_].token == Token::Not) {
      take();
      out.op = Op::DoesNotExist;
      is_unary = true;
    }
    const Scanned& key = take();
    if (!is_word(key.token)) return invalid("found '{}', expected: identifier", key.text);
    if (const Problems problems = check_qualified_name(key.text); !problems.empty()) {
      return invalid("<nil>: Invalid value: {}: {}", quoted(key.text), joined(problems));
    }
    out.key = key.text;
    const Token next = tokens_[at_].token;
    if (!is_unary && (next == Token::End || next == Token::Comma)) {
      out.op = Op::Exists;
      is_unary = true;
    }
    if (is_unary) return out;
    JOGAK_TRY_VOID(parse_operator(out));
    if (out.is_exact || out.op == Op::Gt || out.op == Op::Lt) {
      JOGAK_TRY_VOID(parse_exact_value(out));
    } else {
      JOGAK_TRY_VOID(parse_values(out));
    }
    JOGAK_TRY_VOID(check(out));
    return out;
  }

  Result<void> parse_operator(Requirement& out) {
    const Scanned& found = take();
    switch (found.token) {
      case Token::In:
        out.op = Op::In;
        return {};
      case Token::NotIn:
        out.op = Op::NotIn;
        return {};
      case Token::Greater:
        out.op = Op::Gt;
        return {};
      case Token::Less:
        out.op = Op::Lt;
        return {};
      case Token::Equals:
      case Token::DoubleEquals:
        out.op = Op::In;
        break;
      case Token::NotEquals:
        out.op = Op::NotIn;
        break;
      default:
        return invalid("found '{}', expected: in, notin, =, ==, !=, gt, lt", found.text);
    }
    out.is_exact = true;
    return {};
  }

  Result<void> parse_exact_value(Requirement& out) {
    const Token next = tokens_[at_].token;
    if (next == Token::End || next == Token::Comma) {
      out.values.emplace_back();
      return {};
    }
    const Scanned& value = take();
    if (!is_word(value.token)) return invalid("found '{}', expected: identifier", value.text);
    out.values.push_back(value.text);
    return {};
  }

  Result<void> parse_values(Requirement& out) {
    if (const Scanned& open = take(); open.token != Token::Open) {
      return invalid("found '{}' expected: '('", open.text);
    }
    const Scanned& first = tokens_[at_];
    if (first.token == Token::Close) {
      take();
      out.values.emplace_back();
      return {};
    }
    if (!is_word(first.token) && first.token != Token::Comma) {
      return invalid("found '{}', expected: ',', ')' or identifier", first.text);
    }
    JOGAK_TRY_VOID(parse_list(out.values));
    std::sort(out.values.begin(), out.values.end());
    out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
    return {};
  }

  // Words and commas up to the closing parenthesis, which goes too. What is missing beside a comma
  // is an empty word.
  Result<void> parse_list(std::vector<std::string>& values) {
    while (true) {
      const Scanned& item = take();
      const Scanned& next = tokens_[at_];
      if (is_word(item.token)) {
        values.push_back(item.text);
        if (next.token != Token::Comma && next.token != Token::Close) {
          return invalid("found '{}', expected: ',' or ')'", next.text);
        }
      } else if (item.token == Token::Comma) {
        if (values.empty() || next.token == Token::Close || next.token == Token::Comma) {
          values.emplace_back();
        }
      } else {
        return invalid("found '{}', expected: ',', or identifier", item.text);
      }
      if (next.token == Token::Close) {
        take();
        return {};
      }
    }
  }

  static Result<void> check(const Requirement& requirement) {
    FieldErrors errors;
    const Path values("values");
    if (requirement.op == Op::Gt || requirement.op == Op::Lt) {
      if (!to_int(requirement.values.front())) {
        errors.invalid(values.index(0), requirement.values.front(),
                       "for 'Gt', 'Lt' operators, the value must be an integer");
      }
    }
    for (std::size_t i = 0; i < requirement.values.size(); ++i) {
      const std::string& value = requirement.values[i];
      if (const Problems problems = check_label_value(value); !problems.empty()) {
        errors.invalid(values.index(i).key(requirement.key), value, joined(problems));
      }
    }
    if (!errors.empty()) return invalid("{}", errors.text());
    return {};
  }

  std::vector<Scanned> tokens_;
  std::size_t at_ = 0;
};

void sort_by_key(std::vector<Requirement>& requirements) {
  std::stable_sort(requirements.begin(), requirements.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
}

Requirement equals(const std::string& key, const std::string& value) {
  return {.key = key, .op = Op::In, .values = {value}, .is_exact = true};
}

// `value` is null when the label is absent.
bool holds(const Requirement& requirement, const std::string* value) {
  const auto has_value = [&] {
    return std::binary_search(requirement.values.begin(), requirement.values.end(), *value);
  };
  switch (requirement.op) {
    case Op::In:
      return value != nullptr && has_value();
    case Op::NotIn:
      return value == nullptr || !has_value();
    case Op::Exists:
      return value != nullptr;
    case Op::DoesNotExist:
      return value == nullptr;
    case Op::Gt:
    case Op::Lt:
      break;
  }
  if (value == nullptr || requirement.values.size() != 1) return false;
  const auto left = to_int(*value);
  const auto right = to_int(requirement.values.front());
  if (!left || !right) return false;
  return requirement.op == Op::Gt ? *left > *right : *left < *right;
}

template <class Find>
bool all_hold(const std::vector<Requirement>& requirements, const Find& find) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Requirement& one) { return holds(one, find(one.key)); });
}

std::string text_of(const Requirement& requirement) {
  std::string list;
  for (const std::string& value : requirement.values) {
    if (&value != &requirement.values.front()) list += ',';
    list += value;
  }
  const std::string& key = requirement.key;
  switch (requirement.op) {
    case Op::In:
      return requirement.is_exact ? key + "=" + list : key + " in (" + list + ")";
    case Op::NotIn:
      return requirement.is_exact ? key + "!=" + list : key + " notin (" + list + ")";
    case Op::Exists:
      return key;
    case Op::DoesNotExist:
      return "!" + key;
    case Op::Gt:
      return key + ">" + list;
    case Op::Lt:
      return key + "<" + list;
  }
  return key;
}

Op op_named(std::string_view name) {
  if (name == "NotIn") return Op::NotIn;
  if (name == "Exists") return Op::Exists;
  if (name == "DoesNotExist") return Op::DoesNotExist;
  return Op::In;
}

// Commas behind a backslash do not split.
std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> out(1);
  bool is_escaped = false;
  for (const char c : text) {
    if (c == ',' && !is_escaped) {
      out.emplace_back();
      continue;
    }
    is_escaped = c == '\\' && !is_escaped;
    out.back() += c;
  }
  return out;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' || c == '=') {
      return invalid("invalid field selector: unescaped character in value: {}",
                     static_cast<int>(c));
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    const std::string_view sequence = text.substr(i, 2);
    if (sequence != "\\\\" && sequence != "\\," && sequence != "\\=") {
      return invalid("invalid field selector: invalid escape sequence: {}", sequence);
    }
    out += text[++i];
  }
  return out;
}

}  // namespace

LabelSelector LabelSelector::nothing() {
  LabelSelector out;
  out.is_nothing_ = true;
  return out;
}

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector out;
  JOGAK_TRY(out.requirements_, Parser(text).parse());
  sort_by_key(out.requirements_);
  return out;
}

LabelSelector LabelSelector::from_object(const Doc& selector) {
  if (selector.is_null()) return nothing();
  LabelSelector out;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    out.requirements_.push_back(equals(key, value.as_string()));
  }
  for (const Doc& expression : selector["matchExpressions"].items()) {
    Requirement one{.key = expression["key"].as_string(),
                    .op = op_named(expression["operator"].as_string()),
                    .values = {}};
    for (const Doc& value : expression["values"].items()) one.values.push_back(value.as_string());
    std::sort(one.values.begin(), one.values.end());
    out.requirements_.push_back(std::move(one));
  }
  sort_by_key(out.requirements_);
  return out;
}

LabelSelector LabelSelector::from_map(const Doc& labels) {
  if (labels.empty()) return nothing();
  LabelSelector out;
  for (const auto& [key, value] : labels.members()) {
    out.requirements_.push_back(equals(key, value.as_string()));
  }
  sort_by_key(out.requirements_);
  return out;
}

bool LabelSelector::matches(const Labels& labels) const {
  if (is_nothing_) return false;
  return all_hold(requirements_, [&](const std::string& key) -> const std::string* {
    const auto found = std::lower_bound(
        labels.begin(), labels.end(), key,
        [](const auto& label, const std::string& wanted) { return label.first < wanted; });
    return found != labels.end() && found->first == key ? &found->second : nullptr;
  });
}

bool LabelSelector::matches(const Doc& labels) const {
  if (is_nothing_) return false;
  return all_hold(requirements_, [&](const std::string& key) -> const std::string* {
    const Doc* value = labels.find(key);
    return value == nullptr ? nullptr : &value->as_string();
  });
}

std::string LabelSelector::text() const {
  std::string out;
  for (const Requirement& requirement : requirements_) {
    if (&requirement != &requirements_.front()) out += ',';
    out += text_of(requirement);
  }
  return out;
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector out;
  std::vector<std::string> parts = split_terms(text);
  std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    // The first operator splits; "==" is not "=" with a value that starts with "=".
    std::size_t split = part.find_first_of("=!");
    while (split != std::string::npos && part[split] == '!' &&
           (split + 1 == part.size() || part[split + 1] != '=')) {
      split = part.find_first_of("=!", split + 1);
    }
    if (split == std::string::npos) {
      return invalid("invalid selector: '{}'; can't understand '{}'", text, part);
    }
    const bool equals_value = part[split] == '=';
    const bool is_double = part.compare(split, 2, "==") == 0;
    const std::size_t size = !equals_value || is_double ? 2 : 1;
    JOGAK_TRY(std::string value, unescape(std::string_view(part).substr(split + size)));
    out.terms.push_back(
        {.path = part.substr(0, split), .equals = equals_value, .value = std::move(value)});
  }
  return out;
}

bool FieldSelector::matches(const std::function<std::string_view(std::string_view)>& field) const {
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
    return (field(term.path) == term.value) == term.equals;
  });
}

}  // namespace jogak::api
