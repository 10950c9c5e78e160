// SPDX-License-Identifier: Apache-2.0
//
// JSON text to a Doc, in one pass and with Go's eyes: bad UTF-8 becomes U+FFFD instead of an error,
// numbers keep their digits whatever their size, keys that stand twice are counted, and what is
// wrong is said in the words of encoding/json. A general parser would give none of the four.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apiserver/codec/codec.h"
#include "apiserver/schema/go_text.h"

namespace jogak::codec {
namespace {

// Deeper than any object; the real server's limit (10000) would cost its stack in every consumer.
constexpr int kDepthMax = 1000;
constexpr std::size_t kMembersUsual = 4;  // an object has that many or more, mostly
constexpr std::size_t kDuplicatesMax = 100;
// Objects with more members than this look their keys up in a table.
constexpr std::size_t kLinearMax = 24;

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

// A high bit for each byte that ends a run of plain ASCII: '"', '\\', a control character, and
// anything beyond ASCII. Bits above the first one may be wrong; only the first counts.
std::uint64_t special_bytes(std::uint64_t word) {
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  return (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
          ((word - kOnes * 0x20) & ~word) | word) &
         kHighs;
}

// The keys of one object: finds an earlier member of the same key.
class KeySet {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // The position of the latest member with that key; the new one, at `position`, takes its place.
  std::size_t replace(const Doc::Members& members, std::string_view key, std::size_t position) {
    if (position < kLinearMax) {
      for (std::size_t i = position; i-- > 0;) {
        if (members[i].key == key) return i;
      }
      return kNone;
    }
    if (slots_.size() < position * 2) rebuild(members, position);
    std::uint32_t& slot = slot_of(members, key);
    const std::size_t found = slot == 0 ? kNone : slot - 1;
    slot = static_cast<std::uint32_t>(position + 1);
    return found;
  }

 private:
  void rebuild(const Doc::Members& members, std::size_t count) {
    slots_.assign(std::bit_ceil(count * 4), 0);
    for (std::size_t i = 0; i < count; ++i) {
      slot_of(members, members[i].key) = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::uint32_t& slot_of(const Doc::Members& members, std::string_view key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::hash<std::string_view>()(key) & mask;
    while (slots_[at] != 0 && members[slots_[at] - 1].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  std::vector<std::uint32_t> slots_;  // position + 1
};

class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  Result<Parsed> read() {
    Parsed parsed;
    skip_space();
    if (!value(parsed.doc, 0)) return error();
    skip_space();
    if (at_ != end_) {
      bad("after top-level value");
      return error();
    }
    for (const std::string& path : duplicates_) {
      std::string complaint = "duplicate field " + schema::quoted(path);
      if (std::ranges::find(parsed.duplicates, complaint) == parsed.duplicates.end()) {
        parsed.duplicates.push_back(std::move(complaint));
      }
    }
    return parsed;
  }

 private:
  std::unexpected<Error> error() const {
    return invalid("couldn't get version/kind; json parse error: {}", error_);
  }

  // Notes what is wrong at the cursor; always false.
  bool bad(std::string_view where) {
    if (at_ == end_) {
      error_ = "unexpected end of JSON input";
      return false;
    }
    return bad_token(where);
  }

  // The same inside a word, a number or an escape, where Go takes the end for a space.
  bool bad_token(std::string_view where) {
    error_ = fmt::format("invalid character '{}' {}", shown(at_ == end_ ? ' ' : *at_), where);
    return false;
  }

  // One byte, as Go shows it: as if it were a character of Latin-1.
  static std::string shown(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'') return "\\'";
    if (c == '"') return "\"";
    if (byte >= 0x80 && (byte < 0xa0 || byte == 0xad)) return fmt::format("\\u{:04x}", byte);
    std::string text;
    schema::append_utf8(text, byte);
    const std::string quoted = schema::quoted(text);
    return quoted.substr(1, quoted.size() - 2);
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool value(Doc& out, int depth) {
    if (at_ == end_) return bad("");
    switch (*at_) {
      case '{':
        return object(out, depth + 1);
      case '[':
        return array(out, depth + 1);
      case '"': {
        std::string text;
        if (!string(text)) return false;
        out = Doc(std::move(text));
        return true;
      }
      case 't':
        out = Doc(true);
        return literal("true");
      case 'f':
        out = Doc(false);
        return literal("false");
      case 'n':
        out = Doc();
        return literal("null");
      default:
        return number(out);
    }
  }

  bool literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
      if (at_ == end_ || *at_ != word[i]) {
        return bad_token(fmt::format("in literal {} (expecting '{}')", word, word[i]));
      }
    }
    return true;
  }

  bool digits(std::string_view where) {
    if (at_ == end_ || !is_digit(*at_)) return bad_token(where);
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return true;
  }

  bool number(Doc& out) {
    const char* const start = at_;
    if (*at_ == '-') {
      ++at_;
      if (at_ == end_ || !is_digit(*at_)) return bad_token("in numeric literal");
    } else if (!is_digit(*at_)) {
      return bad("looking for beginning of value");
    }
    if (*at_ == '0') {
      ++at_;
    } else if (!digits("in numeric literal")) {
      return false;
    }
    bool is_whole = true;
    if (at_ != end_ && *at_ == '.') {
      is_whole = false;
      ++at_;
      if (!digits("after decimal point in numeric literal")) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      is_whole = false;
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits("in exponent of numeric literal")) return false;
    }
    std::int64_t whole = 0;
    if (is_whole && std::from_chars(start, at_, whole).ec == std::errc()) {
      out = Doc(whole);
    } else {
      out = Doc::number(std::string(start, at_));
    }
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // At the quote; leaves the cursor behind the closing one.
  bool string(std::string& out) {
    const char* const start = ++at_;
    skip_plain();
    if (at_ != end_ && *at_ == '"') {
      out.assign(start, at_);
      ++at_;
      return true;
    }
    out.assign(start, at_);
    while (at_ != end_ && *at_ != '"') {
      if (!string_part(out)) return false;
    }
    if (at_ == end_) return bad("");
    ++at_;
    return true;
  }

  void skip_plain() {
    while (end_ - at_ >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at_, 8);
      if (const std::uint64_t special = special_bytes(word); special != 0) {
        at_ += std::countr_zero(special) / 8;
        return;
      }
      at_ += 8;
    }
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<signed char>(*at_) >= 0x20) {
      ++at_;
    }
  }

  // What stopped skip_plain(), and the plain text behind it.
  bool string_part(std::string& out) {
    if (*at_ == '\\') {
      if (!escape(out)) return false;
    } else if (static_cast<unsigned char>(*at_) < 0x20) {
      return bad("in string literal");
    } else {
      const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
      const std::size_t length = schema::utf8_length(rest);
      if (length == 0) {
        schema::append_utf8(out, kReplacement);
        ++at_;
      } else {
        out += rest.substr(0, length);
        at_ += length;
      }
    }
    const char* const start = at_;
    skip_plain();
    out.append(start, at_);
    return true;
  }

  bool escape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const std::size_t i = at_ == end_ ? std::string_view::npos : kLetters.find(*at_);
    if (i != std::string_view::npos) {
      out += kMeanings[i];
      ++at_;
      return true;
    }
    if (at_ == end_ || *at_ != 'u') return bad_token("in string escape code");
    ++at_;
    std::uint32_t code = 0;
    if (!hex(code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
      const char* const behind = at_;
      at_ += 2;
      std::uint32_t low = 0;
      if (!hex(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else {
        at_ = behind;
      }
    }
    schema::append_utf8(out, code >= 0xd800 && code < 0xe000 ? kReplacement : code);
    return true;
  }

  bool hex(std::uint32_t& code) {
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ == end_ ? ' ' : *at_;
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return bad_token("in \\u hexadecimal character escape");
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return true;
  }

  bool enter(int depth) {
    if (depth <= kDepthMax) return true;
    error_ = "exceeded max depth";
    return false;
  }

  bool array(Doc& out, int depth) {
    if (!enter(depth)) return false;
    out = Doc::array();
    Doc::Items& items = out.items();
    ++at_;
    skip_space();
    if (at_ != end_ && *at_ == ']') {
      ++at_;
      return true;
    }
    for (;;) {
      const std::size_t known = duplicates_.size();
      if (!value(items.emplace_back(), depth)) return false;
      if (duplicates_.size() > known) prefix(known, fmt::format("[{}]", items.size() - 1));
      skip_space();
      if (at_ == end_ || (*at_ != ',' && *at_ != ']')) return bad("after array element");
      if (*at_++ == ']') return true;
      skip_space();
    }
  }

  bool object(Doc& out, int depth) {
    if (!enter(depth)) return false;
    out = Doc::object();
    Doc::Members& members = out.members();
    KeySet keys;
    std::vector<std::size_t> replaced;
    ++at_;
    skip_space();
    if (at_ != end_ && *at_ == '}') {
      ++at_;
      return true;
    }
    members.reserve(kMembersUsual);
    for (;;) {
      const std::size_t known = duplicates_.size();
      if (!member(members, keys, replaced, depth)) return false;
      // A path in here starts with its own key, or with an index behind it.
      if (duplicates_.size() > known) prefix(known, members.back().key);
      skip_space();
      if (at_ == end_ || (*at_ != ',' && *at_ != '}')) return bad("after object key:value pair");
      if (*at_++ == '}') break;
      skip_space();
    }
    if (!replaced.empty()) remove(members, replaced);
    return true;
  }

  bool member(Doc::Members& members, KeySet& keys, std::vector<std::size_t>& replaced, int depth) {
    if (at_ == end_ || *at_ != '"') return bad("looking for beginning of object key string");
    std::string key;
    if (!string(key)) return false;
    const std::size_t earlier = keys.replace(members, key, members.size());
    if (earlier != KeySet::kNone) {
      replaced.push_back(earlier);
      // object() puts the key in front, as for those inside the value.
      if (duplicates_.size() < kDuplicatesMax) duplicates_.emplace_back();
    }
    skip_space();
    if (at_ == end_ || *at_ != ':') return bad("after object key");
    ++at_;
    skip_space();
    Doc::Member& added = members.emplace_back();
    added.key = std::move(key);
    return value(added.value, depth);
  }

  // Puts a step in front of the paths that were found since.
  void prefix(std::size_t from, std::string_view step) {
    for (std::size_t i = from; i < duplicates_.size(); ++i) {
      std::string& path = duplicates_[i];
      if (!path.empty() && path.front() != '[') path.insert(path.begin(), '.');
      path.insert(0, step);
    }
  }

  // The last one counts. Ascending: a member is replaced only by a later one, but not in order.
  static void remove(Doc::Members& members, std::vector<std::size_t>& replaced) {
    std::vector<bool> is_replaced(members.size());
    for (const std::size_t i : replaced) is_replaced[i] = true;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (is_replaced[i]) continue;
      if (kept != i) members[kept] = std::move(members[i]);
      ++kept;
    }
    members.resize(kept);
  }

  static constexpr std::uint32_t kReplacement = 0xfffd;

  const char* at_;
  const char* end_;
  std::string error_;
  std::vector<std::string> duplicates_;  // paths, as far as they are known
};

}  // namespace

Result<Parsed> parse_json(std::string_view text) { return Reader(text).read(); }

}  // namespace jogak::codec
