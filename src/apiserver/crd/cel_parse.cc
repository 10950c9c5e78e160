// SPDX-License-Identifier: Apache-2.0
//
// The grammar of CEL, by recursive descent.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "apiserver/crd/cel.h"
#include "apiserver/crd/cel_node.h"

namespace jogak::api::cel {
namespace {

constexpr int kDepthMax = 200;
constexpr std::array<std::string_view, 5> kMacros = {"all", "exists", "exists_one", "filter",
                                                     "map"};

enum class Token : std::uint8_t { End, Name, Int, Float, Text, Symbol };

struct Scanned {
  Token token = Token::End;
  std::string text;
  std::size_t at = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

void append_utf8(std::uint32_t rune, std::string& out) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (rune < 0x80) {
    byte(rune);
  } else if (rune < 0x800) {
    byte(0xC0 | (rune >> 6));
    byte(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    byte(0xE0 | (rune >> 12));
    byte(0x80 | ((rune >> 6) & 0x3F));
    byte(0x80 | (rune & 0x3F));
  } else {
    byte(0xF0 | (rune >> 18));
    byte(0x80 | ((rune >> 12) & 0x3F));
    byte(0x80 | ((rune >> 6) & 0x3F));
    byte(0x80 | (rune & 0x3F));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Scanned>> scan() {
    std::vector<Scanned> out;
    while (true) {
      skip_blanks();
      JOGAK_TRY(Scanned token, next());
      out.push_back(token);
      if (token.token == Token::End) return out;
    }
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (rest().starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n\f").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Result<Scanned> next() {
    if (at_ == text_.size()) return Scanned{Token::End, "<EOF>", at_};
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    const bool is_raw = c == 'r' || c == 'R';
    if (c == '"' || c == '\'' || (is_raw && (peek(1) == '"' || peek(1) == '\''))) {
      return text_literal(is_raw);
    }
    const std::size_t start = at_;
    if (is_name_start(c)) {
      while (is_name_part(peek())) ++at_;
      return Scanned{Token::Name, std::string(text_.substr(start, at_ - start)), start};
    }
    for (const std::string_view symbol : {"&&", "||", "==", "!=", "<=", ">="}) {
      if (!rest().starts_with(symbol)) continue;
      at_ += 2;
      return Scanned{Token::Symbol, std::string(symbol), start};
    }
    if (std::string_view("+-*/%<>!?:.,()[]{}").find(c) == std::string_view::npos) {
      return invalid("Syntax error: token recognition error at: '{}'", c);
    }
    ++at_;
    return Scanned{Token::Symbol, std::string(1, c), start};
  }

  Result<Scanned> number() {
    const std::size_t start = at_;
    bool is_float = false;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      while (std::string_view("0123456789abcdefABCDEF").find(peek()) != std::string_view::npos &&
             peek() != '\0') {
        ++at_;
      }
    } else {
      while (is_digit(peek())) ++at_;
      if (peek() == '.' && is_digit(peek(1))) {
        is_float = true;
        ++at_;
        while (is_digit(peek())) ++at_;
      }
      if (peek() == 'e' || peek() == 'E') {
        is_float = true;
        ++at_;
        if (peek() == '+' || peek() == '-') ++at_;
        while (is_digit(peek())) ++at_;
      }
    }
    std::string digits(text_.substr(start, at_ - start));
    if (peek() == 'u' || peek() == 'U') ++at_;  // unsigned ones are numbers like all
    return Scanned{is_float ? Token::Float : Token::Int, std::move(digits), start};
  }

  Result<Scanned> text_literal(bool is_raw) {
    const std::size_t start = at_;
    if (is_raw) ++at_;
    const std::string_view quote = rest().starts_with("\"\"\"") || rest().starts_with("'''")
                                       ? rest().substr(0, 3)
                                       : rest().substr(0, 1);
    at_ += quote.size();
    Scanned out{Token::Text, "", start};
    while (!rest().starts_with(quote)) {
      if (at_ == text_.size() || (quote.size() == 1 && peek() == '\n')) {
        return invalid("Syntax error: a string does not end");
      }
      if (is_raw || peek() != '\\') {
        out.text += text_[at_++];
      } else {
        JOGAK_TRY_VOID(escape(out.text));
      }
    }
    at_ += quote.size();
    return out;
  }

  Result<void> escape(std::string& out) {
    constexpr std::string_view kFrom = "abfnrtv\\?\"'`";
    constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\?\"'`";
    const char c = peek(1);
    at_ = std::min(at_ + 2, text_.size());
    const std::size_t simple = kFrom.find(c);
    if (simple != std::string_view::npos && c != '\0') {
      out += kTo[simple];
      return {};
    }
    std::size_t size = 0;
    int base = 16;
    if (c == 'x' || c == 'X') size = 2;
    if (c == 'u') size = 4;
    if (c == 'U') size = 8;
    if (c >= '0' && c <= '3') {
      size = 3;
      base = 8;
      --at_;
    }
    std::uint32_t rune = 0;
    const std::string_view digits = rest().substr(0, size);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), rune, base);
    if (size == 0 || code != std::errc() || end != digits.data() + size) {
      return invalid("Syntax error: an escape in a string is not one");
    }
    at_ += size;
    append_utf8(rune, out);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::vector<Scanned> tokens) : tokens_(std::move(tokens)) {}

  Result<NodePtr> parse() {
    JOGAK_TRY(NodePtr root, expression());
    if (now().token != Token::End) return unexpected();
    return root;
  }

  std::set<std::string> names;  // of variables that are not bound by a macro
  bool is_supported = true;

 private:
  const Scanned& now() const { return tokens_[at_]; }
  bool is_symbol(std::string_view symbol) const {
    return now().token == Token::Symbol && now().text == symbol;
  }
  bool take(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    ++at_;
    return true;
  }
  std::unexpected<Error> unexpected() const {
    return invalid("Syntax error: mismatched input '{}' at offset {}", now().text, now().at);
  }
  Result<void> need(std::string_view symbol) {
    if (!take(symbol)) return unexpected();
    return {};
  }

  static NodePtr make(Node::Kind kind, std::string text, std::vector<NodePtr> args) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->text = std::move(text);
    node->args = std::move(args);
    return node;
  }
  static NodePtr literal(Doc value) {
    auto node = std::make_shared<Node>();
    node->literal = std::move(value);
    return node;
  }
  static NodePtr op(std::string text, std::vector<NodePtr> args) {
    return make(Node::Kind::Operator, std::move(text), std::move(args));
  }

  Result<NodePtr> expression() {
    if (++depth_ > kDepthMax) return invalid("expression recursion limit exceeded");
    JOGAK_TRY(NodePtr condition, binary(0));
    if (take("?")) {
      JOGAK_TRY(NodePtr yes, binary(0));
      JOGAK_TRY_VOID(need(":"));
      JOGAK_TRY(NodePtr no, expression());
      condition = op("?:", {std::move(condition), std::move(yes), std::move(no)});
    }
    --depth_;
    return condition;
  }

  // The operator of that level at hand; "" when there is none. Levels bind ever tighter.
  std::string operator_of(int level) const {
    static const std::array<std::vector<std::string_view>, 5> kLevels = {
        {{"||"}, {"&&"}, {"<", "<=", ">", ">=", "==", "!=", "in"}, {"+", "-"}, {"*", "/", "%"}}};
    if (now().token != Token::Symbol && !(now().token == Token::Name && now().text == "in")) {
      return "";
    }
    const auto& symbols = kLevels[static_cast<std::size_t>(level)];
    return std::find(symbols.begin(), symbols.end(), now().text) != symbols.end() ? now().text : "";
  }

  Result<NodePtr> binary(int level) {
    if (level == 5) return unary();
    JOGAK_TRY(NodePtr left, binary(level + 1));
    for (std::string symbol = operator_of(level); !symbol.empty(); symbol = operator_of(level)) {
      ++at_;
      JOGAK_TRY(NodePtr right, binary(level + 1));
      left = op(symbol, {std::move(left), std::move(right)});
    }
    return left;
  }

  Result<NodePtr> unary() {
    if (++depth_ > kDepthMax) return invalid("expression recursion limit exceeded");
    Result<NodePtr> out;
    for (const char* symbol : {"!", "-"}) {
      if (!take(symbol)) continue;
      JOGAK_TRY(NodePtr inner, unary());
      --depth_;
      return op(symbol, {std::move(inner)});
    }
    out = member();
    --depth_;
    return out;
  }

  Result<NodePtr> member() {
    JOGAK_TRY(NodePtr out, primary());
    while (true) {
      if (take(".")) {
        if (take("?")) is_supported = false;  // optional values
        if (now().token != Token::Name) return unexpected();
        const std::string name = tokens_[at_++].text;
        if (take("(")) {
          JOGAK_TRY(out, method(std::move(out), name));
        } else {
          out = make(Node::Kind::Select, unescaped_member(name), {std::move(out)});
        }
      } else if (take("[")) {
        if (take("?")) is_supported = false;
        JOGAK_TRY(NodePtr key, expression());
        JOGAK_TRY_VOID(need("]"));
        out = make(Node::Kind::Index, "", {std::move(out), std::move(key)});
      } else {
        return out;
      }
    }
  }

  Result<NodePtr> method(NodePtr target, const std::string& name) {
    if (std::find(kMacros.begin(), kMacros.end(), name) != kMacros.end()) {
      return macro(std::move(target), name);
    }
    std::vector<NodePtr> args = {std::move(target)};
    JOGAK_TRY_VOID(list_until(")", args));
    is_supported &= is_known_function(name, true, args.size() - 1);
    return make(Node::Kind::Method, name, std::move(args));
  }

  Result<NodePtr> macro(NodePtr target, const std::string& name) {
    if (now().token != Token::Name) return unexpected();
    const std::string variable = tokens_[at_++].text;
    bound_.push_back(variable);
    std::vector<NodePtr> args = {std::move(target)};
    if (!take(",")) return unexpected();
    JOGAK_TRY_VOID(list_until(")", args));
    bound_.pop_back();
    const std::size_t most = name == "map" ? 3 : 2;
    // Two variables (index and value) are beyond what is known here.
    if (args.size() < 2 || args.size() > most) is_supported = false;
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::Macro;
    node->text = name;
    node->variable = variable;
    node->args = std::move(args);
    return NodePtr(std::move(node));
  }

  Result<void> list_until(std::string_view close, std::vector<NodePtr>& args) {
    while (!take(close)) {
      JOGAK_TRY(NodePtr arg, expression());
      args.push_back(std::move(arg));
      if (!is_symbol(close)) JOGAK_TRY_VOID(need(","));
    }
    return {};
  }

  Result<NodePtr> primary() {
    const Scanned token = now();
    switch (token.token) {
      case Token::Int:
        ++at_;
        return integer(token.text);
      case Token::Float:
        ++at_;
        return literal(Doc::number(token.text));
      case Token::Text:
        ++at_;
        return literal(Doc(token.text));
      case Token::Name:
        ++at_;
        return named(token.text);
      default:
        break;
    }
    if (take("(")) {
      JOGAK_TRY(NodePtr inner, expression());
      JOGAK_TRY_VOID(need(")"));
      return inner;
    }
    if (take("[")) {
      std::vector<NodePtr> items;
      JOGAK_TRY_VOID(list_until("]", items));
      return make(Node::Kind::List, "", std::move(items));
    }
    if (take("{")) return map();
    return unexpected();
  }

  Result<NodePtr> integer(const std::string& text) {
    std::int64_t value = 0;
    const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string digits = is_hex ? text.substr(2) : text;
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
    if (code != std::errc()) return invalid("Syntax error: invalid int literal");
    return literal(Doc(value));
  }

  Result<NodePtr> map() {
    std::vector<NodePtr> entries;
    while (!take("}")) {
      JOGAK_TRY(NodePtr key, expression());
      JOGAK_TRY_VOID(need(":"));
      JOGAK_TRY(NodePtr value, expression());
      entries.push_back(std::move(key));
      entries.push_back(std::move(value));
      if (!is_symbol("}")) JOGAK_TRY_VOID(need(","));
    }
    return make(Node::Kind::Map, "", std::move(entries));
  }

  Result<NodePtr> named(const std::string& name) {
    if (name == "true" || name == "false") return literal(Doc(name == "true"));
    if (name == "null") return literal(Doc());
    if (!take("(")) {
      if (std::find(bound_.begin(), bound_.end(), name) == bound_.end()) names.insert(name);
      return make(Node::Kind::Name, name, {});
    }
    std::vector<NodePtr> args;
    JOGAK_TRY_VOID(list_until(")", args));
    if (name == "has") {
      if (args.size() != 1 || args[0]->kind != Node::Kind::Select) {
        return invalid("invalid argument to has() macro");
      }
      return make(Node::Kind::Has, args[0]->text, args[0]->args);
    }
    is_supported &= is_known_function(name, false, args.size());
    return make(Node::Kind::Call, name, std::move(args));
  }

  std::vector<Scanned> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string> bound_;
};

}  // namespace

std::string unescaped_member(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEscapes = {
      {{"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}}};
  constexpr std::array<std::string_view, 20> kReserved = {
      "true",     "false",   "null",      "in",       "as",  "break",  "const",
      "continue", "else",    "for",       "function", "if",  "import", "let",
      "loop",     "package", "namespace", "return",   "var", "while"};
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) {
    const std::string_view inner = name.substr(2, name.size() - 4);
    if (std::find(kReserved.begin(), kReserved.end(), inner) != kReserved.end()) {
      return std::string(inner);
    }
  }
  std::string out;
  while (!name.empty()) {
    const auto* found = std::find_if(kEscapes.begin(), kEscapes.end(), [&](const auto& escape) {
      return name.starts_with(escape.first);
    });
    if (found == kEscapes.end()) {
      out += name.front();
      name.remove_prefix(1);
    } else {
      out += found->second;
      name.remove_prefix(found->first.size());
    }
  }
  return out;
}

Result<Expression> Expression::parse(std::string_view text) {
  JOGAK_TRY(std::vector<Scanned> tokens, Lexer(text).scan());
  Parser parser(std::move(tokens));
  Expression out;
  JOGAK_TRY(out.root_, parser.parse());
  out.names_.assign(parser.names.begin(), parser.names.end());
  out.is_supported_ = parser.is_supported;
  for (const std::string& name : out.names_) {
    out.is_supported_ &= name == "self" || name == "oldSelf";
  }
  return out;
}

bool Expression::uses(std::string_view variable) const {
  return std::find(names_.begin(), names_.end(), variable) != names_.end();
}

std::string syntax_error(std::string_view text) {
  const auto parsed = Expression::parse(text);
  return parsed ? "" : "ERROR: <input>: " + parsed.error().what;
}

}  // namespace jogak::api::cel
