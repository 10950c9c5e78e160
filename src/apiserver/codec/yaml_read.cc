// SPDX-License-Identifier: Apache-2.0
//
// YAML text to a Doc as the real server's converter has it: YAML 1.1 scalars, keys sorted, merge
// keys, anchors within limits, and the first document only. JSON sent as YAML takes the short way.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "apiserver/codec/codec.h"
#include "apiserver/codec/yaml_scalar.h"
#include "apiserver/schema/go_text.h"
#include "apiserver/schema/normalise.h"

namespace jogak::codec {
namespace {

// Go's decoder lets aliases make 99 % of a small document and 10 % of a huge one; its texts are
// shared, ours are copied, so those have a limit too.
constexpr std::size_t kAliasesMin = 100;
constexpr std::size_t kNodesMin = 1000;
constexpr double kRatioLow = 400'000;
constexpr double kRatioHigh = 4'000'000;
constexpr std::size_t kAliasBytesMax = 16U << 20;

struct Size {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
};

Size size_of(const Doc& doc) {
  Size size{.nodes = 1, .bytes = sizeof(Doc) + doc.as_string().size()};
  const auto add = [&](const Doc& inner) {
    const Size more = size_of(inner);
    size.nodes += more.nodes;
    size.bytes += more.bytes;
  };
  for (const Doc& item : doc.items()) add(item);
  for (const Doc::Member& member : doc.members()) {
    size.bytes += sizeof(Doc::Member) + member.key.size();
    add(member.value);
  }
  return size;
}

// A refusal on its way through yaml-cpp, which knows only exceptions.
struct Refused {
  std::string what;
};

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  Doc take() { return std::move(root_); }

  std::vector<std::string> duplicates() {
    if (repeated_.empty()) return {};
    std::ranges::stable_sort(repeated_, {}, [](const auto& entry) { return entry.first.position; });
    std::string text = "yaml: unmarshal errors:";
    for (const auto& [origin, key] : repeated_) {
      text += fmt::format("\n  line {}: key {} already set in map", origin.line + 1, key);
    }
    return {text};
  }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count();
    check_colon();
    add(Doc(), mark, anchor, false);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{"yaml: anchor contains itself"};
    const auto& [doc, size] = found->second;
    nodes_ += size.nodes;
    alias_nodes_ += size.nodes;
    alias_bytes_ += size.bytes;
    check_aliases();
    add(doc, mark, 0, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    count();
    if (tag == "!") check_closed(mark);
    auto doc = resolve_scalar(tag, value);
    if (!doc) throw Refused{doc.error().what};
    if (!levels_.empty() && !levels_.back().has_key) {
      levels_.back().plain_key = tag == "?" ? KeyText{mark, value} : KeyText{};
    }
    add(*std::move(doc), mark, anchor, tag == "?" && value == "<<");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(Doc::array(), mark, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(Doc::object(), mark, anchor, style);
  }
  void OnMapEnd() override { close(); }

  bool is_block() const { return is_block_; }

 private:
  // Where the value of a member stands, and whether its key was no string ("true").
  struct Origin {
    int position = 0;
    int line = 0;
    bool has_word_key = false;
  };
  struct KeyText {
    YAML::Mark mark = YAML::Mark::null_mark();
    std::string text;
  };
  struct Level {
    Doc doc;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool is_block = false;
    // of a map
    bool has_key = false;
    bool is_merge = false;  // the key is "<<"
    Doc key;
    KeyText plain_key;            // where it is one word without quotes
    std::vector<Origin> origins;  // of each member
  };

  void count() { ++nodes_; }

  // yaml-cpp takes the end of the text for the closing quote: a body that was cut off would pass.
  void check_closed(const YAML::Mark& mark) const {
    const auto start = static_cast<std::size_t>(mark.pos);
    if (start >= text_.size()) return;
    const char quote = text_[start];
    if (quote != '"' && quote != '\'') return;  // a block
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
      if (text_[i] == quote) return;  // or the first half of '', which is closed later or not
      if (quote == '"' && text_[i] == '\\') ++i;
    }
    throw Refused{fmt::format("yaml: line {}: found unexpected end of stream", mark.line + 1)};
  }

  void check_aliases() const {
    const auto nodes = static_cast<double>(nodes_);
    const double step = std::clamp((nodes - kRatioLow) / (kRatioHigh - kRatioLow), 0.0, 1.0);
    const double allowed = 0.99 - 0.89 * step;
    const bool is_much = alias_nodes_ > kAliasesMin && nodes_ > kNodesMin &&
                         static_cast<double>(alias_nodes_) > allowed * nodes;
    if (is_much || alias_bytes_ > kAliasBytesMax) {
      throw Refused{"yaml: document contains excessive aliasing"};
    }
  }

  // yaml-cpp takes "kind Pod" without a colon for a key without a value.
  void check_colon() const {
    if (levels_.empty() || !levels_.back().has_key || !levels_.back().is_block) return;
    const auto& [mark, text] = levels_.back().plain_key;
    if (mark.is_null() || text.empty()) return;
    const auto start = static_cast<std::size_t>(mark.pos);
    if (text_.substr(std::min(start, text_.size()), text.size()) != text) return;  // several lines
    const std::size_t before = text_.substr(0, start).find_last_not_of(" \t");
    if (before != std::string_view::npos && text_[before] == '?') return;
    const std::size_t behind = text_.find_first_not_of(" \t", start + text.size());
    if (behind != std::string_view::npos && text_[behind] == ':') return;
    throw Refused{fmt::format("yaml: line {}: could not find expected ':'", mark.line + 2)};
  }

  void open(Doc doc, const YAML::Mark& mark, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    count();
    const bool is_block = style == YAML::EmitterStyle::Block;
    if (levels_.empty()) is_block_ = is_block;
    Level& level = levels_.emplace_back();
    level.doc = std::move(doc);
    level.mark = mark;
    level.anchor = anchor;
    level.is_block = is_block;
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.doc.is_object()) settle(level);
    add(std::move(level.doc), level.mark, level.anchor, false);
  }

  void add(Doc doc, const YAML::Mark& mark, YAML::anchor_t anchor, bool is_merge) {
    if (anchor != 0) {
      const Size size = size_of(doc);
      alias_bytes_ += size.bytes;  // the copy kept here
      check_aliases();
      anchors_.insert_or_assign(anchor, std::pair(doc, size));
    }
    if (levels_.empty()) {
      root_ = std::move(doc);
      return;
    }
    Level& level = levels_.back();
    if (level.doc.is_array()) {
      level.doc.items().push_back(std::move(doc));
    } else if (!level.has_key) {
      level.has_key = true;
      level.is_merge = is_merge;
      level.key = std::move(doc);
    } else {
      level.has_key = false;
      const Origin origin{mark.pos, mark.line, !level.key.is_string()};
      if (level.is_merge) {
        merge(level, std::move(doc), origin);
      } else {
        put(level, key_of(level.key), std::move(doc), origin);
      }
    }
  }

  static void put(Level& level, std::string key, Doc value, Origin origin) {
    Doc::Member& member = level.doc.members().emplace_back();
    member.key = std::move(key);
    member.value = std::move(value);
    level.origins.push_back(origin);
  }

  static void merge(Level& level, Doc value, Origin origin) {
    constexpr std::string_view kWantMap =
        "yaml: map merge requires map or sequence of maps as the value";
    if (value.is_object()) {
      for (Doc::Member& member : value.members()) {
        put(level, std::move(member.key), std::move(member.value), origin);
      }
      return;
    }
    if (!value.is_array()) throw Refused{std::string(kWantMap)};
    // Earlier maps count more, so they come last.
    Doc::Items& items = value.items();
    for (std::size_t i = items.size(); i-- > 0;) {
      if (!items[i].is_object()) throw Refused{std::string(kWantMap)};
      merge(level, std::move(items[i]), origin);
    }
  }

  static std::string key_of(const Doc& key) {
    switch (key.kind()) {
      case Doc::Kind::String:
        return key.as_string();
      case Doc::Kind::Bool:
        return key.as_bool() ? "true" : "false";
      case Doc::Kind::Int:
      case Doc::Kind::Number:
        return key.number_text();
      case Doc::Kind::Null:
        throw Refused{"unsupported map key of type: null"};
      case Doc::Kind::Array:
      case Doc::Kind::Object:
        break;
    }
    throw Refused{"yaml: invalid map key: " + key.json(JsonWriter::Style::Compact)};
  }

  // Sorts the members; of equal keys the last one stays.
  void settle(Level& level) {
    Doc::Members& members = level.doc.members();
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) -> const std::string& { return members[i].key; });
    Doc::Members sorted;
    sorted.reserve(members.size());
    for (const std::size_t i : order) {
      if (!sorted.empty() && sorted.back().key == members[i].key) {
        const Origin& origin = level.origins[i];
        const std::string& key = members[i].key;
        repeated_.emplace_back(origin, origin.has_word_key ? key : schema::quoted(key));
        sorted.back().value = std::move(members[i].value);
      } else {
        sorted.push_back(std::move(members[i]));
      }
    }
    members = std::move(sorted);
  }

  std::string_view text_;
  Doc root_;
  bool is_block_ = false;  // the root is a map or list in block style
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, std::pair<Doc, Size>> anchors_;
  std::vector<std::pair<Origin, std::string>> repeated_;  // with the key as shown
  std::size_t nodes_ = 0;
  std::size_t alias_nodes_ = 0;
  std::size_t alias_bytes_ = 0;
};

// What libyaml refuses before it looks at any syntax.
Result<void> check_characters(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = schema::utf8_length(text);
    if (length == 0) return invalid("yaml: invalid leading UTF-8 octet");
    const auto c = static_cast<unsigned char>(text.front());
    const auto next = static_cast<unsigned char>(length > 1 ? text[1] : '\0');
    const bool is_c1 = c == 0xc2 && next < 0xa0 && next != 0x85;
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f || is_c1) {
      return invalid("yaml: control characters are not allowed");
    }
    text.remove_prefix(length);
  }
  return {};
}

// Whether a second document may begin: a line "---" or "..." behind the start.
bool has_document_end(std::string_view text) {
  return text.find("\n---") != std::string_view::npos ||
         text.find("\n...") != std::string_view::npos;
}

// Escapes of half characters, which YAML refuses and JSON does not.
bool has_surrogates(std::string_view text) {
  for (std::size_t at = 0; (at = text.find("\\u", at)) != std::string_view::npos; at += 2) {
    if (text.size() > at + 2 && (text[at + 2] == 'd' || text[at + 2] == 'D')) return true;
  }
  return false;
}

}  // namespace

Result<Parsed> parse_yaml(std::string_view text) {
  if (text.starts_with('{') && !has_surrogates(text)) {
    auto parsed = parse_json(text);
    if (parsed && parsed->duplicates.empty() && schema::settle(parsed->doc)) return parsed;
  }
  JOGAK_TRY_VOID(check_characters(text));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(text);
    parser.HandleNextDocument(builder);
    // yaml-cpp begins a new document where the first one cannot go on.
    Parsed parsed;
    parsed.doc = builder.take();
    const bool may_go_on = builder.is_block() || parsed.doc.is_null();
    if (may_go_on && parser && !has_document_end(text)) {
      return invalid("yaml: did not find expected node content");
    }
    parsed.duplicates = builder.duplicates();
    return parsed;
  } catch (const Refused& refused) {
    return invalid("{}", refused.what);
  } catch (const YAML::Exception& problem) {
    return invalid("yaml: line {}: {}", problem.mark.line + 1, problem.msg);
  }
}

}  // namespace jogak::codec
