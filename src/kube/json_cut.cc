// SPDX-License-Identifier: Apache-2.0
//
// The scan makes bit masks of 64 bytes (quotes, backslashes, brackets), finds which bytes are
// inside strings by a prefix XOR over the quotes, and only counts the brackets that are left; it
// looks at them one by one only where the value could end. The method is simdjson's (Langdale and
// Lemire, 2019), here with a state that is carried from piece to piece.
#include "kube/json_cut.h"

#include <bit>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <simdjson.h>

#include "base/check.h"

namespace jogak::kube {

namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;  // of a buffer between values

struct Masks {
  std::uint64_t quotes = 0, backslashes = 0, opening = 0, closing = 0;
};

#ifdef __SSE2__
constexpr bool kHasBlocks = true;

Masks masks_of(const char* block) {
  Masks masks;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i case_bit = _mm_set1_epi8(0x20);  // '[' to '{' and ']' to '}'
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  const auto bits = [](__m128i equal) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(equal)));
  };
  for (unsigned i = 0; i < 4; ++i) {
    __m128i bytes;
    std::memcpy(&bytes, block + std::size_t{16} * i, sizeof bytes);
    const __m128i folded = _mm_or_si128(bytes, case_bit);
    masks.quotes |= bits(_mm_cmpeq_epi8(bytes, quote)) << (16 * i);
    masks.backslashes |= bits(_mm_cmpeq_epi8(bytes, backslash)) << (16 * i);
    masks.opening |= bits(_mm_cmpeq_epi8(folded, open)) << (16 * i);
    masks.closing |= bits(_mm_cmpeq_epi8(folded, close)) << (16 * i);
  }
  return masks;
}
#else
constexpr bool kHasBlocks = false;

Masks masks_of(const char*) { return {}; }
#endif

// Bytes that a backslash before them escapes: those after an odd number of backslashes.
std::uint64_t escaped_bytes(std::uint64_t backslashes, bool& is_next_escaped) {
  const std::uint64_t carried = is_next_escaped ? 1 : 0;
  if (backslashes == 0) {
    is_next_escaped = false;
    return carried;
  }
  constexpr std::uint64_t kEven = 0x5555555555555555ULL;
  backslashes &= ~carried;
  const std::uint64_t follows = (backslashes << 1) | carried;
  const std::uint64_t odd_starts = backslashes & ~kEven & ~follows;
  const std::uint64_t even_runs = odd_starts + backslashes;
  is_next_escaped = even_runs < odd_starts;  // the sum ran over
  return (kEven ^ (even_runs << 1)) & follows;
}

std::uint64_t prefix_xor(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

std::size_t BracketScan::find_end_in_block(const char* block) {
  const Masks masks = masks_of(block);
  const std::uint64_t quotes = masks.quotes & ~escaped_bytes(masks.backslashes, is_escaped_);
  std::uint64_t inside = is_in_string_ ? ~std::uint64_t{0} : 0;
  if (quotes != 0) {
    inside ^= prefix_xor(quotes);
    is_in_string_ = (inside >> 63) != 0;
  }
  const std::uint64_t opening = masks.opening & ~inside;
  const std::uint64_t closing = masks.closing & ~inside;
  const auto closed = static_cast<std::uint64_t>(std::popcount(closing));
  if (closed < depth_) {
    depth_ += static_cast<std::uint64_t>(std::popcount(opening)) - closed;
    return npos;
  }
  for (std::uint64_t left = opening | closing; left != 0; left &= left - 1) {
    const auto at = static_cast<std::size_t>(std::countr_zero(left));
    if ((opening >> at & 1) != 0) {
      ++depth_;
    } else if (--depth_ == 0) {
      return at + 1;
    }
  }
  return npos;
}

// The same on bytes that fill no block; also where the text is no JSON.
std::size_t BracketScan::find_end_bytewise(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char c = bytes[at];
    const bool is_escaped = std::exchange(is_escaped_, false);
    if (c == '\\') {
      is_escaped_ = !is_escaped;
    } else if (c == '"') {
      if (!is_escaped) is_in_string_ = !is_in_string_;
    } else if (is_in_string_) {
      continue;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      return at + 1;
    }
  }
  return npos;
}

std::size_t BracketScan::find_end(std::string_view bytes) {
  if (depth_ == 0 && !bytes.empty()) {
    JOGAK_CHECK(bytes.front() == '{' || bytes.front() == '[');
  }
  std::size_t at = 0;
  std::size_t end = npos;
  if constexpr (kHasBlocks) {
    for (; at + kBlock <= bytes.size() && end == npos; at += kBlock) {
      end = find_end_in_block(bytes.data() + at);
      if (end != npos) end += at;
    }
  }
  if (end == npos) {
    end = find_end_bytewise(bytes.substr(at));
    if (end != npos) end += at;
  }
  if (end != npos) start_over();
  return end;
}

Result<std::string_view> ValueCutter::take(std::string_view& bytes) {
  if (whole_.capacity() > kKeptBytes) whole_ = {};
  if (bytes.empty()) return std::string_view();
  const std::size_t end = scan_.find_end(bytes);
  const std::size_t taken = end == BracketScan::npos ? bytes.size() : end;
  if (begun_.size() + taken > value_bytes_max_) {
    return invalid("a value of more than {} bytes", value_bytes_max_);
  }
  const std::string_view piece = bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  is_inside_ = end == BracketScan::npos;
  if (is_inside_) {
    begun_.append(piece);
    return std::string_view();
  }
  if (begun_.empty()) return piece;
  begun_.append(piece);
  whole_.swap(begun_);
  begun_.clear();
  if (begun_.capacity() > kKeptBytes) begun_ = {};
  return std::string_view(whole_);
}

FieldCursor::FieldCursor(std::string_view text) : text_(text) {
  skip_space();
  if (at_ < text_.size() && text_[at_] == '{') {
    ++at_;
  } else {
    text_ = {};
    at_ = 0;
  }
}

void FieldCursor::skip_space() {
  while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
}

// Position after the quote that ends the string which opens at `at`, or the end of the text.
std::size_t FieldCursor::string_end(std::size_t at) const {
  std::size_t from = at + 1;
  for (;;) {
    const std::size_t quote = text_.find('"', from);
    if (quote == std::string_view::npos) return text_.size();
    std::size_t backslashes = 0;
    while (quote - backslashes > from && text_[quote - backslashes - 1] == '\\') ++backslashes;
    from = quote + 1;
    if (backslashes % 2 == 0) return from;
  }
}

bool FieldCursor::next() {
  if (is_value_next_) static_cast<void>(value());
  skip_space();
  if (at_ < text_.size() && text_[at_] == '}') {
    is_whole_ = true;
    ++at_;
    text_ = text_.substr(0, at_);
    return false;
  }
  if (!std::exchange(is_first_, false)) {
    if (at_ >= text_.size() || text_[at_] != ',') return false;
    ++at_;
    skip_space();
  }
  if (at_ >= text_.size() || text_[at_] != '"') return false;
  const std::size_t begin = at_ + 1;
  at_ = string_end(at_);
  if (at_ >= text_.size()) return false;
  key_ = text_.substr(begin, at_ - begin - 1);
  skip_space();
  if (at_ >= text_.size() || text_[at_] != ':') return false;
  ++at_;
  is_value_next_ = true;
  return true;
}

std::string_view FieldCursor::value() {
  is_value_next_ = false;
  skip_space();
  if (at_ >= text_.size()) return {};
  const std::size_t begin = at_;
  const char c = text_[begin];
  if (c == '{' || c == '[') {
    BracketScan scan;
    const std::size_t size = scan.find_end(text_.substr(begin));
    at_ = size == BracketScan::npos ? text_.size() : begin + size;
    return size == BracketScan::npos ? std::string_view() : text_.substr(begin, size);
  }
  if (c == '"') {
    at_ = string_end(begin);
    return text_.substr(begin, at_ - begin);
  }
  while (at_ < text_.size() && !is_json_space(text_[at_]) && text_[at_] != ',' &&
         text_[at_] != '}' && text_[at_] != ']') {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

Result<std::string_view> json_string(std::string_view text, std::string& scratch) {
  if (text.empty() || text == "null") return std::string_view();
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
    return invalid("want a string, found {}", text.substr(0, 20));
  }
  if (text.find('\\') == std::string_view::npos) return text.substr(1, text.size() - 2);
  simdjson::dom::parser parser;
  std::string_view value;
  if (parser.parse(text.data(), text.size()).get(value) != simdjson::SUCCESS) {
    return invalid("no string in JSON: {}", text.substr(0, 20));
  }
  scratch = value;
  return std::string_view(scratch);
}

}  // namespace jogak::kube
