// SPDX-License-Identifier: Apache-2.0
//
// A recursive reader of paths and a walk over values; errors are those of client-go.
#include "apiserver/tables/json_path.h"

#include <cctype>
#include <compare>
#include <cstdlib>
#include <utility>

namespace jogak::api {
namespace {

bool ends_word(char c) {
  constexpr std::string_view kEnds = " \t\r\n.,[]$@{}";
  return kEnds.find(c) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> whole_number(std::string_view text) {
  constexpr std::size_t kMostDigits = 18;
  const bool is_negative = text.starts_with('-');
  if (is_negative) {
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > kMostDigits) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c)) {
      return std::nullopt;
    }
    number = number * 10 + (c - '0');
  }
  return is_negative ? -number : number;
}

// More values than a cell could mean: several ".." in a row multiply, and one table must not stop
// the server.
constexpr std::size_t kValuesMax = 10'000;

// As Go templates compare: only like with like. nullopt: these two cannot be compared.
std::optional<std::partial_ordering> compare(const Doc& a, const Doc& b) {
  if (a.kind() != b.kind()) {
    return std::nullopt;
  }
  switch (a.kind()) {
    case Doc::Kind::Bool:
      return a.as_bool() == b.as_bool() ? std::partial_ordering::equivalent
                                        : std::partial_ordering::unordered;
    case Doc::Kind::Int:
      return a.as_int() <=> b.as_int();
    case Doc::Kind::Number:
      return std::strtod(a.number_text().c_str(), nullptr) <=>
             std::strtod(b.number_text().c_str(), nullptr);
    case Doc::Kind::String:
      return a.as_string() <=> b.as_string();
    default:
      return std::nullopt;
  }
}

std::optional<bool> holds(std::string_view comparison, const Doc& a, const Doc& b) {
  const auto order = compare(a, b);
  if (!order) {
    return std::nullopt;
  }
  if (comparison == "==") return *order == 0;
  if (comparison == "!=") return *order != 0;
  if (a.is_bool()) {
    return std::nullopt;
  }
  if (comparison == "<") return *order < 0;
  if (comparison == "<=") return *order <= 0;
  if (comparison == ">") return *order > 0;
  if (comparison == ">=") return *order >= 0;
  return std::nullopt;
}

}  // namespace

// Reads one path from front to back. Every read_ function returns false at a syntax error.
class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool read(Steps& steps) {
    while (!rest_.empty()) {
      if (!read_step(steps)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool skip(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) {
      return false;
    }
    rest_.remove_prefix(prefix.size());
    return true;
  }

  bool read_step(Steps& steps) {
    if (skip("[?(")) return read_filter(steps);
    if (skip("..")) {
      if (!steps.empty() && steps.back().kind == Step::Kind::Recursive) {
        return false;
      }
      steps.push_back({.kind = Step::Kind::Recursive});
      const bool is_named = !rest_.empty() && !ends_word(rest_.front());
      return !is_named || read_field(steps);
    }
    if (skip(" ") || skip("@") || skip("$")) return true;
    if (skip("[")) return read_brackets(steps);
    if (skip(".")) return read_field(steps);
    return read_literal(steps);
  }

  bool read_field(Steps& steps) {
    std::string name;
    std::size_t i = 0;
    for (; i < rest_.size() && !ends_word(rest_[i]); ++i) {
      if (rest_[i] == '\\' && i + 1 < rest_.size()) {
        ++i;  // an escaped character stands for itself
      }
      name += rest_[i];
    }
    rest_.remove_prefix(i);
    steps.push_back(name == "*" ? Step{.kind = Step::Kind::Wildcard} : Step{.name = name});
    return true;
  }

  bool read_brackets(Steps& steps) {
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos) {
      return false;
    }
    const std::string_view inside = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (inside.find(',') == std::string_view::npos) {
      return read_selector(inside, steps);
    }
    Step all{.kind = Step::Kind::Union};
    for (std::string_view left = inside;;) {
      const std::size_t comma = left.find(',');
      std::string_view part = left.substr(0, comma);
      while (part.starts_with(' ')) part.remove_prefix(1);
      while (part.ends_with(' ')) part.remove_suffix(1);
      if (!read_selector(part, all.parts.emplace_back())) {
        return false;
      }
      if (comma == std::string_view::npos) {
        break;
      }
      left.remove_prefix(comma + 1);
    }
    steps.push_back(std::move(all));
    return true;
  }

  // What stands between brackets or commas: *, 'name', an index or a slice.
  static bool read_selector(std::string_view text, Steps& steps) {
    if (text == "*") {
      text = ":";
    }
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
      // The real parser reads the quoted name as a path of its own: dots separate.
      Steps named;
      if (!Parser("." + std::string(text.substr(1, text.size() - 2))).read(named)) {
        return false;
      }
      for (Step& step : named) {
        steps.push_back(std::move(step));
      }
      return true;
    }
    Step slice{.kind = Step::Kind::Slice};
    std::optional<std::int64_t>* const bounds[] = {&slice.first, &slice.last, &slice.stride};
    std::size_t i = 0;
    for (std::string_view left = text;; ++i) {
      const std::size_t colon = left.find(':');
      const std::string_view number = left.substr(0, colon);
      if (i > 2 || (!number.empty() && !(*bounds[i] = whole_number(number)))) {
        return false;
      }
      if (colon == std::string_view::npos) {
        break;
      }
      left.remove_prefix(colon + 1);
    }
    slice.is_index = i == 0;
    if (slice.is_index && !slice.first) {
      return false;
    }
    steps.push_back(std::move(slice));
    return true;
  }

  bool read_filter(Steps& steps) {
    char quote = '\0';
    std::size_t end = 0;
    for (;; ++end) {
      if (end >= rest_.size()) {
        return false;
      }
      const char c = rest_[end];
      if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != '\0' && c == quote && rest_[end - 1] != '\\') {
        quote = '\0';
      } else if (quote == '\0' && c == ')') {
        break;
      }
    }
    const std::string_view inside = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!skip("]")) {
      return false;
    }
    constexpr std::string_view kSigns = "!<>=";
    auto filter = std::make_shared<Filter>();
    const std::size_t sign = inside.find_first_of(kSigns);
    std::string_view right;
    if (sign != std::string_view::npos) {
      const std::size_t sign_end = inside.find_first_not_of(kSigns, sign);
      if (sign == 0 || sign_end == std::string_view::npos) {
        return false;
      }
      filter->comparison = inside.substr(sign, sign_end - sign);
      right = inside.substr(sign_end);
    }
    if (!Parser(inside.substr(0, sign)).read(filter->left) || !Parser(right).read(filter->right)) {
      return false;
    }
    Step step{.kind = Step::Kind::Filter};
    step.filter = std::move(filter);
    steps.push_back(std::move(step));
    return true;
  }

  bool read_literal(Steps& steps) {
    Step step{.kind = Step::Kind::Literal};
    const char first = rest_.front();
    if (first == '"' || first == '\'') {
      std::string text;
      std::size_t i = 1;
      for (; i < rest_.size() && rest_[i] != first; ++i) {
        if (rest_[i] == '\\' && i + 1 < rest_.size()) {
          ++i;
        }
        text += rest_[i];
      }
      if (i >= rest_.size()) {
        return false;
      }
      rest_.remove_prefix(i + 1);
      step.literal = Doc(std::move(text));
    } else {
      std::size_t size = 1;
      const bool is_number = is_digit(first) || first == '-' || first == '+';
      while (size < rest_.size() &&
             (is_number ? is_digit(rest_[size]) || rest_[size] == '.' : !ends_word(rest_[size]))) {
        ++size;
      }
      std::string_view word = rest_.substr(0, size);
      rest_.remove_prefix(size);
      if (!is_number) {
        if (word != "true" && word != "false") {
          return false;
        }
        step.literal = Doc(word == "true");
      } else {
        word.remove_prefix(first == '+' ? 1 : 0);
        if (word.empty() || !is_digit(word.back())) {
          return false;
        }
        const auto whole = whole_number(word);
        step.literal = whole ? Doc(*whole) : Doc::number(std::string(word));
      }
    }
    steps.push_back(std::move(step));
    return true;
  }

  std::string_view rest_;
};

Result<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPath path;
  if (!Parser(text).read(path.steps_)) {
    return std::unexpected(Error{Errc::Invalid, "not a JSONPath: " + std::string(text)});
  }
  return path;
}

std::optional<std::vector<Doc>> JsonPath::find(const Doc& root) const {
  return walk(steps_, {root});
}

JsonPath::Found JsonPath::walk(const Steps& steps, std::vector<Doc> values) {
  for (const Step& next : steps) {
    Found found = step(next, values);
    if (!found) {
      return std::nullopt;
    }
    values = std::move(*found);
  }
  return values;
}

JsonPath::Found JsonPath::step(const Step& step, const std::vector<Doc>& values) {
  std::vector<Doc> found;
  if (step.kind == Step::Kind::Union) {
    for (const Steps& part : step.parts) {
      const Found some = walk(part, values);
      if (!some) {
        return std::nullopt;
      }
      found.insert(found.end(), some->begin(), some->end());
    }
    return found;
  }
  for (const Doc& value : values) {
    if (found.size() > kValuesMax) {
      return std::nullopt;
    }
    switch (step.kind) {
      case Step::Kind::Field:
        if (const Doc* member = value.find(step.name)) {
          found.push_back(*member);
        }
        break;
      case Step::Kind::Wildcard:
        add_all(value, found);
        break;
      case Step::Kind::Recursive:
        add_below(value, found);
        break;
      case Step::Kind::Slice:
        if (!value.is_null() && !add_slice(step, value, found)) {
          return std::nullopt;
        }
        break;
      case Step::Kind::Filter:
        if (!add_filtered(*step.filter, value, found)) {
          return std::nullopt;
        }
        break;
      case Step::Kind::Literal:
        found.push_back(step.literal);
        break;
      case Step::Kind::Union:
        break;
    }
  }
  return found;
}

bool JsonPath::add_slice(const Step& step, const Doc& list, std::vector<Doc>& found) {
  if (!list.is_array()) {
    return false;
  }
  const auto size = static_cast<std::int64_t>(list.size());
  std::int64_t first = step.first.value_or(0);
  first += first < 0 ? size : 0;
  std::int64_t last = step.is_index ? first + 1 : step.last.value_or(size);
  last += last < 0 ? size : 0;
  if (first == last) {
    return true;
  }
  const std::int64_t stride = step.stride.value_or(1);
  if (first < 0 || first >= size || last < 0 || last > size || first > last || stride <= 0) {
    return false;
  }
  for (std::int64_t i = first; i < last; i += stride) {
    found.push_back(list.items()[static_cast<std::size_t>(i)]);
  }
  return true;
}

bool JsonPath::add_filtered(const Filter& filter, const Doc& list, std::vector<Doc>& found) {
  if (!list.is_array()) {
    return false;
  }
  for (const Doc& item : list.items()) {
    const Found left = walk(filter.left, {item});
    if (filter.comparison.empty()) {
      if (left && !left->empty()) {
        found.push_back(item);
      }
      continue;
    }
    const Found right = walk(filter.right, {item});
    if (!left || !right || left->size() > 1 || right->size() > 1) {
      return false;
    }
    if (left->empty() || right->empty()) {
      continue;
    }
    const auto is_true = holds(filter.comparison, left->front(), right->front());
    if (!is_true) {
      return false;
    }
    if (*is_true) {
      found.push_back(item);
    }
  }
  return true;
}

void JsonPath::add_all(const Doc& value, std::vector<Doc>& found) {
  for (const Doc::Member& member : value.members()) {
    found.push_back(member.value);
  }
  for (const Doc& item : value.items()) {
    found.push_back(item);
  }
}

void JsonPath::add_below(const Doc& value, std::vector<Doc>& found) {
  std::vector<Doc> inner;
  add_all(value, inner);
  if (inner.empty()) {
    return;
  }
  found.push_back(value);
  for (const Doc& next : inner) {
    add_below(next, found);
  }
}

}  // namespace jogak::api
