// SPDX-License-Identifier: Apache-2.0
//
// The functions in one table: name, kind, number of arguments.
#include "apiserver/crd/cel_functions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "apiserver/crd/cel_node.h"
#include "apiserver/crd/pattern.h"
#include "apiserver/crd/value_check.h"

namespace jogak::api::cel {
namespace {

using Args = std::vector<const Doc*>;

std::unexpected<Error> no_overload() { return invalid("no such overload"); }

// Digits that read back as the same float64.
Doc number_doc(double value) { return Doc::number(go_float(value)); }

// Strings as lists of characters: CEL counts code points.
std::vector<std::string_view> runes_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

Result<Doc> size_of(const Args& args) {
  const Doc& value = *args[0];
  if (value.is_string()) return Doc(runes_of(value.as_string()).size());
  if (value.is_array() || value.is_object()) return Doc(value.size());
  return no_overload();
}

template <class Test>
Result<Doc> test_texts(const Args& args, const Test& test) {
  if (!args[0]->is_string() || !args[1]->is_string()) return no_overload();
  return Doc(bool(test(args[0]->as_string(), args[1]->as_string())));
}

Result<Doc> starts_with(const Args& args) {
  return test_texts(args,
                    [](const std::string& a, const std::string& b) { return a.starts_with(b); });
}

Result<Doc> ends_with(const Args& args) {
  return test_texts(args,
                    [](const std::string& a, const std::string& b) { return a.ends_with(b); });
}

Result<Doc> contains(const Args& args) {
  return test_texts(args, [](const std::string& a, const std::string& b) {
    return a.find(b) != std::string::npos;
  });
}

Result<Doc> matches(const Args& args) {
  return test_texts(
      args, [](const std::string& a, const std::string& b) { return pattern_matches(b, a); });
}

Result<Doc> to_text(const Args& args) {
  const Doc& value = *args[0];
  if (value.is_string()) return value;
  if (value.is_bool()) return Doc(value.as_bool() ? "true" : "false");
  if (value.is_int()) return Doc(value.number_text());
  if (value.is_number()) return Doc(go_float(number_of(value)));
  return no_overload();
}

Result<Doc> to_int(const Args& args) {
  const Doc& value = *args[0];
  if (value.is_int()) return value;
  if (value.is_number()) {
    const double number = std::trunc(number_of(value));
    if (std::abs(number) >= 9223372036854775808.0) return invalid("integer overflow");
    return Doc(static_cast<std::int64_t>(number));
  }
  if (!value.is_string()) return no_overload();
  const std::string& text = value.as_string();
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) {
    return invalid("strconv.ParseInt: parsing \"{}\": invalid syntax", text);
  }
  return Doc(number);
}

Result<Doc> to_double(const Args& args) {
  const Doc& value = *args[0];
  if (value.is_number()) return number_doc(number_of(value));
  if (!value.is_string()) return no_overload();
  const std::string& text = value.as_string();
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) {
    return invalid("strconv.ParseFloat: parsing \"{}\": invalid syntax", text);
  }
  return number_doc(number);
}

Result<Doc> as_is(const Args& args) { return *args[0]; }

std::string with_case(std::string text, char first, char last, int shift) {
  for (char& c : text) {
    if (c >= first && c <= last) c = static_cast<char>(c + shift);
  }
  return text;
}

Result<Doc> lower_ascii(const Args& args) {
  if (!args[0]->is_string()) return no_overload();
  return Doc(with_case(args[0]->as_string(), 'A', 'Z', 'a' - 'A'));
}

Result<Doc> upper_ascii(const Args& args) {
  if (!args[0]->is_string()) return no_overload();
  return Doc(with_case(args[0]->as_string(), 'a', 'z', 'A' - 'a'));
}

Result<Doc> trim(const Args& args) {
  if (!args[0]->is_string()) return no_overload();
  const std::string& text = args[0]->as_string();
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return Doc("");
  return Doc(text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1));
}

Result<Doc> index_of(const Args& args) {
  const Doc& whole = *args[0];
  if (whole.is_array()) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (same(whole.items()[i], *args[1])) return Doc(i);
    }
    return Doc(-1);
  }
  if (!whole.is_string() || !args[1]->is_string()) return no_overload();
  const std::size_t found = whole.as_string().find(args[1]->as_string());
  if (found == std::string::npos) return Doc(-1);
  return Doc(runes_of(std::string_view(whole.as_string()).substr(0, found)).size());
}

Result<Doc> last_index_of(const Args& args) {
  const Doc& whole = *args[0];
  if (whole.is_array()) {
    for (std::size_t i = whole.size(); i-- > 0;) {
      if (same(whole.items()[i], *args[1])) return Doc(i);
    }
    return Doc(-1);
  }
  if (!whole.is_string() || !args[1]->is_string()) return no_overload();
  const std::size_t found = whole.as_string().rfind(args[1]->as_string());
  if (found == std::string::npos) return Doc(-1);
  return Doc(runes_of(std::string_view(whole.as_string()).substr(0, found)).size());
}

Result<Doc> replace(const Args& args) {
  if (!args[0]->is_string() || !args[1]->is_string() || !args[2]->is_string()) {
    return no_overload();
  }
  const std::string& text = args[0]->as_string();
  const std::string& from = args[1]->as_string();
  if (from.empty()) return *args[0];
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string::npos) return Doc(out);
    out += args[2]->as_string();
    at = found + from.size();
  }
}

Result<Doc> split(const Args& args) {
  if (!args[0]->is_string() || !args[1]->is_string()) return no_overload();
  const std::string& text = args[0]->as_string();
  const std::string& mark = args[1]->as_string();
  Doc out = Doc::array();
  if (mark.empty()) {
    for (const std::string_view rune : runes_of(text)) out.push(rune);
    return out;
  }
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(mark, at);
    out.push(text.substr(at, found - at));
    if (found == std::string::npos) return out;
    at = found + mark.size();
  }
}

Result<Doc> substring(const Args& args) {
  if (!args[0]->is_string() || !args[1]->is_int()) return no_overload();
  const auto runes = runes_of(args[0]->as_string());
  const auto size = static_cast<std::int64_t>(runes.size());
  const std::int64_t begin = args[1]->as_int();
  const std::int64_t end = args.size() == 3 ? args[2]->as_int() : size;
  if (begin < 0 || begin > size) return invalid("index out of range: {}", begin);
  if (end < begin || end > size) return invalid("index out of range: {}", end);
  std::string out;
  for (std::int64_t i = begin; i < end; ++i) out += runes[static_cast<std::size_t>(i)];
  return Doc(out);
}

Result<Doc> join(const Args& args) {
  if (!args[0]->is_array()) return no_overload();
  const std::string mark = args.size() == 2 ? args[1]->as_string() : "";
  std::string out;
  for (const Doc& item : args[0]->items()) {
    if (!item.is_string()) return no_overload();
    if (&item != &args[0]->items().front()) out += mark;
    out += item.as_string();
  }
  return Doc(out);
}

Result<Doc> is_sorted(const Args& args) {
  if (!args[0]->is_array()) return no_overload();
  const auto& items = args[0]->items();
  for (std::size_t i = 1; i < items.size(); ++i) {
    const auto order = order_of(items[i - 1], items[i]);
    if (!order) return no_overload();
    if (*order > 0) return Doc(false);
  }
  return Doc(true);
}

Result<Doc> sum(const Args& args) {
  if (!args[0]->is_array()) return no_overload();
  Doc out = 0;
  for (const Doc& item : args[0]->items()) {
    if (!item.is_number()) return no_overload();
    // A list of doubles adds up from the first of them.
    const bool is_first = &item == &args[0]->items().front();
    JOGAK_TRY(out, is_first ? Result<Doc>(item) : arithmetic('+', out, item));
  }
  return out;
}

Result<Doc> extreme(const Args& args, int sign) {
  if (!args[0]->is_array()) return no_overload();
  if (args[0]->empty()) return invalid("{} called on empty list", sign < 0 ? "min" : "max");
  const Doc* best = &args[0]->items().front();
  for (const Doc& item : args[0]->items()) {
    const auto order = order_of(item, *best);
    if (!order) return no_overload();
    if (*order * sign > 0) best = &item;
  }
  return *best;
}

Result<Doc> least(const Args& args) { return extreme(args, -1); }
Result<Doc> most(const Args& args) { return extreme(args, 1); }

struct Function {
  std::string_view name;
  bool is_method;
  std::size_t least, most;  // arguments besides the target
  Result<Doc> (*call)(const Args&);
};
constexpr std::array<Function, 24> kFunctions = {{
    {"size", false, 1, 1, size_of},
    {"size", true, 0, 0, size_of},
    {"string", false, 1, 1, to_text},
    {"int", false, 1, 1, to_int},
    {"double", false, 1, 1, to_double},
    {"dyn", false, 1, 1, as_is},
    {"startsWith", true, 1, 1, starts_with},
    {"endsWith", true, 1, 1, ends_with},
    {"contains", true, 1, 1, contains},
    {"matches", true, 1, 1, matches},
    {"matches", false, 2, 2, matches},
    {"lowerAscii", true, 0, 0, lower_ascii},
    {"upperAscii", true, 0, 0, upper_ascii},
    {"trim", true, 0, 0, trim},
    {"indexOf", true, 1, 1, index_of},
    {"lastIndexOf", true, 1, 1, last_index_of},
    {"replace", true, 2, 2, replace},
    {"split", true, 1, 1, split},
    {"substring", true, 1, 2, substring},
    {"join", true, 0, 1, join},
    {"isSorted", true, 0, 0, is_sorted},
    {"sum", true, 0, 0, sum},
    {"min", true, 0, 0, least},
    {"max", true, 0, 0, most},
}};

Result<Doc> whole_arithmetic(char symbol, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflows = false;
  switch (symbol) {
    case '+':
      overflows = __builtin_add_overflow(a, b, &out);
      break;
    case '-':
      overflows = __builtin_sub_overflow(a, b, &out);
      break;
    case '*':
      overflows = __builtin_mul_overflow(a, b, &out);
      break;
    default:
      if (b == 0) return invalid("{} by zero", symbol == '/' ? "division" : "modulus");
      overflows = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (!overflows) out = symbol == '/' ? a / b : a % b;
  }
  if (overflows) return invalid("integer overflow");
  return Doc(out);
}

}  // namespace

bool is_known_function(std::string_view name, bool is_method, std::size_t arguments) {
  return std::any_of(kFunctions.begin(), kFunctions.end(), [&](const Function& function) {
    return function.name == name && function.is_method == is_method &&
           arguments >= function.least && arguments <= function.most;
  });
}

Result<Doc> call_function(std::string_view name, const std::vector<const Doc*>& args) {
  for (const Function& function : kFunctions) {
    const std::size_t own = function.is_method ? 1 : 0;
    if (function.name == name && args.size() >= function.least + own &&
        args.size() <= function.most + own) {
      return function.call(args);
    }
  }
  return no_overload();
}

Result<Doc> arithmetic(char symbol, const Doc& a, const Doc& b) {
  if (a.is_int() && b.is_int()) return whole_arithmetic(symbol, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) {
    const double left = number_of(a);
    const double right = number_of(b);
    switch (symbol) {
      case '+':
        return number_doc(left + right);
      case '-':
        return number_doc(left - right);
      case '*':
        return number_doc(left * right);
      case '/':
        if (right != 0) return number_doc(left / right);
        return invalid("division by zero");
      default:
        return no_overload();
    }
  }
  if (symbol != '+') return no_overload();
  if (a.is_string() && b.is_string()) return Doc(a.as_string() + b.as_string());
  if (!a.is_array() || !b.is_array()) return no_overload();
  Doc out = a;
  for (const Doc& item : b.items()) out.push(item);
  return out;
}

std::optional<int> order_of(const Doc& a, const Doc& b) {
  if (a.is_string() && b.is_string()) return a.as_string().compare(b.as_string());
  if (a.is_bool() && b.is_bool()) {
    return static_cast<int>(a.as_bool()) - static_cast<int>(b.as_bool());
  }
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  if (a.is_int() && b.is_int()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
  const double left = number_of(a);
  const double right = number_of(b);
  return left < right ? -1 : left > right;
}

bool same(const Doc& a, const Doc& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_int() && b.is_int() ? a.as_int() == b.as_int() : number_of(a) == number_of(b);
  }
  if (a.is_array() && b.is_array()) {
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same);
  }
  return a == b;
}

}  // namespace jogak::api::cel
