// SPDX-License-Identifier: Apache-2.0
//
// Spelling, reading and comparing path elements. Their JSON is flat, so a small reader suffices.
#include "apiserver/patch/path_element.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "base/json_writer.h"

namespace jogak::patch {
namespace {

struct OwnedKey {
  std::string name;
  Doc value;
};

// JSON as Go writes it: what HTML would read as markup is escaped.
void append_value(std::string& out, const Doc& scalar) {
  std::string json;
  scalar.append_json(json);
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u00{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
}

class ScalarReader {
 public:
  explicit ScalarReader(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_space();
    return text_.empty();
  }
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> string();
  // A string, number, boolean or null.
  std::optional<Doc> scalar();

 private:
  void skip_space() {
    const std::size_t start = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(start, text_.size()));
  }
  bool take_word(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::uint32_t> hex4();
  bool append_escape(std::string& out);

  std::string_view text_;
};

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3f));
    byte(0x80 | ((code >> 6) & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

std::optional<std::uint32_t> ScalarReader::hex4() {
  std::uint32_t code = 0;
  if (text_.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + 4, code, 16);
  if (error != std::errc() || end != text_.data() + 4) return std::nullopt;
  text_.remove_prefix(4);
  return code;
}

bool ScalarReader::append_escape(std::string& out) {
  if (text_.empty()) return false;
  const char c = text_.front();
  text_.remove_prefix(1);
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const std::size_t at = kNames.find(c); at != std::string_view::npos) {
    out += kMeanings[at];
    return true;
  }
  if (c != 'u') return false;
  const auto high = hex4();
  if (!high) return false;
  std::uint32_t code = *high;
  if (code >= 0xd800 && code < 0xdc00 && take_word("\\u")) {
    const auto low = hex4();
    if (!low || *low < 0xdc00 || *low > 0xdfff) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (*low - 0xdc00);
  }
  append_utf8(out, code >= 0xd800 && code <= 0xdfff ? 0xfffd : code);
  return true;
}

std::optional<std::string> ScalarReader::string() {
  if (!take('"')) return std::nullopt;
  std::string out;
  while (!text_.empty()) {
    const std::size_t plain = std::min(text_.find_first_of("\"\\"), text_.size());
    out += text_.substr(0, plain);
    text_.remove_prefix(plain);
    if (text_.empty()) break;
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c == '"') return out;
    if (!append_escape(out)) break;
  }
  return std::nullopt;
}

std::optional<Doc> ScalarReader::scalar() {
  skip_space();
  if (text_.empty()) return std::nullopt;
  if (text_.front() == '"') {
    auto text = string();
    if (!text) return std::nullopt;
    return Doc(std::move(*text));
  }
  if (take_word("true")) return Doc(true);
  if (take_word("false")) return Doc(false);
  if (take_word("null")) return Doc();
  const std::size_t size = std::min(text_.find_first_not_of("+-.0123456789eE"), text_.size());
  const std::string digits(text_.substr(0, size));
  text_.remove_prefix(size);
  std::int64_t whole = 0;
  const char* end = digits.data() + digits.size();
  if (const auto [at, error] = std::from_chars(digits.data(), end, whole);
      error == std::errc() && at == end) {
    return Doc(whole);
  }
  double real = 0;
  const auto [at, error] = std::from_chars(digits.data(), end, real);
  if (error != std::errc() || at != end) return std::nullopt;
  return Doc::number(digits);
}

std::optional<std::vector<OwnedKey>> read_keys(std::string_view json) {
  ScalarReader reader(json);
  std::vector<OwnedKey> keys;
  if (!reader.take('{')) return std::nullopt;
  bool is_open = !reader.take('}');
  while (is_open) {
    auto name = reader.string();
    if (!name || !reader.take(':')) return std::nullopt;
    auto value = reader.scalar();
    if (!value) return std::nullopt;
    keys.push_back({.name = std::move(*name), .value = std::move(*value)});
    is_open = reader.take(',');
    if (!is_open && !reader.take('}')) return std::nullopt;
  }
  if (!reader.at_end()) return std::nullopt;
  return keys;
}

std::optional<Doc> read_value(std::string_view json) {
  ScalarReader reader(json);
  auto value = reader.scalar();
  if (!value || !reader.at_end()) return std::nullopt;
  return value;
}

int sign(auto a, auto b) { return a < b ? -1 : (b < a ? 1 : 0); }

double real_of(const Doc& number) {
  if (number.is_int()) return static_cast<double>(number.as_int());
  return std::strtod(number.number_text().c_str(), nullptr);
}

int rank(const Doc& scalar) {
  if (scalar.is_number()) return 0;
  if (scalar.is_string()) return 1;
  return scalar.is_bool() ? 2 : 3;
}

int compare_scalars(const Doc& a, const Doc& b) {
  if (rank(a) != rank(b)) return sign(rank(a), rank(b));
  if (a.is_int() && b.is_int()) return sign(a.as_int(), b.as_int());
  if (a.is_number()) return sign(real_of(a), real_of(b));
  if (a.is_string()) return a.as_string().compare(b.as_string());
  return sign(a.as_bool(), b.as_bool());
}

int compare_keys(const std::vector<OwnedKey>& a, const std::vector<OwnedKey>& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const int order = a[i].name.compare(b[i].name); order != 0) return order;
    if (const int order = compare_scalars(a[i].value, b[i].value); order != 0) return order;
  }
  return sign(a.size(), b.size());
}

std::size_t kind_rank(char kind) { return std::string_view("fkvi").find(kind); }

}  // namespace

std::string field_element(std::string_view name) {
  std::string element;
  element.reserve(name.size() + 2);
  element += "f:";
  element += name;
  return element;
}

std::string value_element(const Doc& scalar) {
  std::string element = "v:";
  append_value(element, scalar);
  return element;
}

std::string key_element(std::vector<KeyField> keys) {
  std::ranges::sort(keys, {}, &KeyField::name);
  std::string element = "k:";
  char separator = '{';
  for (const KeyField& key : keys) {
    element += separator;
    separator = ',';
    append_json_string(element, key.name);
    element += ':';
    append_value(element, *key.value);
  }
  if (keys.empty()) element += '{';
  element += '}';
  return element;
}

int compare_elements(std::string_view a, std::string_view b) {
  if (a.front() != b.front()) return sign(kind_rank(a.front()), kind_rank(b.front()));
  const char kind = a.front();
  a.remove_prefix(2);
  b.remove_prefix(2);
  if (kind == 'f' || a == b) return a.compare(b);
  if (kind == 'k') {
    const auto left = read_keys(a);
    const auto right = read_keys(b);
    return left && right ? compare_keys(*left, *right) : a.compare(b);
  }
  const auto left = read_value(a);
  const auto right = read_value(b);
  return left && right ? compare_scalars(*left, *right) : a.compare(b);
}

std::string element_text(std::string_view element) {
  const char kind = element.front();
  element.remove_prefix(2);
  if (kind == 'f') return fmt::format(".{}", element);
  if (kind == 'i') return fmt::format("[{}]", element);
  std::string text = "[";
  if (kind == 'v') {
    text += '=';
    if (const auto value = read_value(element)) value->append_json(text);
  } else if (const auto keys = read_keys(element)) {
    for (const OwnedKey& key : *keys) {
      if (text.size() > 1) text += ',';
      text += key.name + "=";
      key.value.append_json(text);
    }
  }
  return text + "]";
}

std::optional<std::string> canonical_element(std::string_view sent) {
  if (sent.size() < 2 || sent[1] != ':') return std::nullopt;
  const std::string_view rest = sent.substr(2);
  switch (sent[0]) {
    case 'f':
      return std::string(sent);
    case 'v': {
      const auto value = read_value(rest);
      if (!value) return std::nullopt;
      return value_element(*value);
    }
    case 'k': {
      const auto keys = read_keys(rest);
      if (!keys) return std::nullopt;
      std::vector<KeyField> fields;
      for (const OwnedKey& key : *keys) fields.push_back({.name = key.name, .value = &key.value});
      return key_element(std::move(fields));
    }
    case 'i': {
      const auto place = read_value(rest);
      if (!place || !place->is_int()) return std::nullopt;
      return fmt::format("i:{}", place->as_int());
    }
    default:
      return "";
  }
}

}  // namespace jogak::patch
