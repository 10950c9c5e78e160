// SPDX-License-Identifier: Apache-2.0
//
// The grammar of CEL (cel-spec, doc/langdef.md), so that a broken expression is refused when the
// object is written, as a real server does. Nothing is evaluated and types are not known here.
#include <array>
#include <string>
#include <vector>

#include "apiserver/kinds/dra_rules.h"

namespace jogak::api {

namespace {

constexpr int kDepthMax = 250;

struct Token {
  enum class Kind : std::uint8_t { End, Name, Literal, Symbol, Broken };
  Kind kind = Kind::End;
  std::string_view text;
  std::size_t at = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    skip_blanks();
    const std::size_t start = at_;
    if (at_ == text_.size()) return {.kind = Token::Kind::End, .text = "<EOF>", .at = start};
    Token::Kind kind = Token::Kind::Symbol;
    if (const std::size_t size = string_size(); size != 0) {
      kind = size == std::string_view::npos ? Token::Kind::Broken : Token::Kind::Literal;
      at_ = size == std::string_view::npos ? text_.size() : at_ + size;
    } else if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) {
      kind = Token::Kind::Literal;
      read_number();
    } else if (is_name_char(peek())) {
      kind = Token::Kind::Name;
      while (is_name_char(peek())) ++at_;
    } else {
      kind = read_symbol() ? Token::Kind::Symbol : Token::Kind::Broken;
    }
    return {.kind = kind, .text = text_.substr(start, at_ - start), .at = start};
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (std::string_view(" \t\r\n\f").contains(peek())) {
        ++at_;
      } else {
        return;
      }
    }
  }

  // Of a string with its prefix and quotes; 0: none here; npos: it has no end.
  std::size_t string_size() const {
    std::size_t i = 0;
    bool is_raw = false;
    while (i < 2 && std::string_view("rRbB").contains(peek(i)) && peek(i) != '\0') {
      is_raw = is_raw || peek(i) == 'r' || peek(i) == 'R';
      ++i;
    }
    const char quote = peek(i);
    if (quote != '"' && quote != '\'') return 0;
    const bool is_long = peek(i + 1) == quote && peek(i + 2) == quote;
    i += is_long ? 3 : 1;
    for (; at_ + i < text_.size(); ++i) {
      if (peek(i) == '\\' && !is_raw) {
        ++i;
      } else if (!is_long && (peek(i) == '\n' || peek(i) == '\r')) {
        return std::string_view::npos;
      } else if (peek(i) == quote &&
                 (!is_long || (peek(i + 1) == quote && peek(i + 2) == quote))) {
        return i + (is_long ? 3 : 1);
      }
    }
    return std::string_view::npos;
  }

  void read_number() {
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      while (is_name_char(peek())) ++at_;
      return;
    }
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1))) ++at_;
    while (is_digit(peek())) ++at_;
    if (peek() == 'e' || peek() == 'E') {
      const bool is_signed = peek(1) == '+' || peek(1) == '-';
      if (is_digit(peek(is_signed ? 2 : 1))) {
        at_ += is_signed ? 2 : 1;
        while (is_digit(peek())) ++at_;
      }
    }
    if (peek() == 'u' || peek() == 'U') ++at_;
  }

  bool read_symbol() {
    static constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "&&", "||"};
    for (const std::string_view pair : kPairs) {
      if (text_.substr(at_, 2) == pair) {
        at_ += 2;
        return true;
      }
    }
    return std::string_view("()[]{}.,:?<>+-*/%!").contains(text_[at_++]);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), lexer_(text) { advance(); }

  std::string run() {
    if (!expression() || token_.kind != Token::Kind::End) fail();
    return problem_;
  }

 private:
  using Level = bool (Parser::*)();

  void advance() { token_ = lexer_.next(); }
  bool is(std::string_view symbol) const {
    return token_.kind == Token::Kind::Symbol && token_.text == symbol;
  }
  bool take(std::string_view symbol) {
    if (!is(symbol)) return false;
    advance();
    return true;
  }
  bool expect(std::string_view symbol) { return take(symbol) || fail(); }

  bool fail() {
    if (!problem_.empty()) return false;
    std::size_t line = 1;
    std::size_t column = 1;
    for (const char c : text_.substr(0, token_.at)) {
      ++column;
      if (c != '\n') continue;
      ++line;
      column = 1;
    }
    problem_ = "ERROR: <input>:" + std::to_string(line) + ":" + std::to_string(column) +
               ": Syntax error: unexpected input '" + std::string(token_.text) + "'";
    return false;
  }

  bool expression() {
    if (++depth_ > kDepthMax) {
      problem_ = "expression recursion limit exceeded: " + std::to_string(kDepthMax);
      return false;
    }
    bool is_right = any_of();
    if (is_right && take("?")) is_right = any_of() && expect(":") && expression();
    --depth_;
    return is_right;
  }

  // One or more of the next level, with these operators between.
  bool chain(Level next, std::initializer_list<std::string_view> operators) {
    if (!(this->*next)()) return false;
    while (true) {
      bool goes_on = false;
      for (const std::string_view op : operators) goes_on = goes_on || take(op);
      if (!goes_on) return true;
      if (!(this->*next)()) return false;
    }
  }

  bool any_of() { return chain(&Parser::all_of, {"||"}); }
  bool all_of() { return chain(&Parser::relation, {"&&"}); }
  bool relation() {
    if (!sum()) return false;
    while (true) {
      bool goes_on = false;
      for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
        goes_on = goes_on || take(op);
      }
      if (!goes_on && token_.kind == Token::Kind::Name && token_.text == "in") {
        advance();
        goes_on = true;
      }
      if (!goes_on) return true;
      if (!sum()) return false;
    }
  }
  bool sum() { return chain(&Parser::product, {"+", "-"}); }
  bool product() { return chain(&Parser::unary, {"*", "/", "%"}); }

  bool unary() {
    if (is("!")) {
      while (take("!")) {
      }
    } else {
      while (take("-")) {
      }
    }
    return member();
  }

  bool member() {
    if (!primary()) return false;
    while (true) {
      if (take(".")) {
        take("?");
        if (!name()) return false;
        if (take("(") && !list(")")) return false;
      } else if (take("[")) {
        take("?");
        if (!expression() || !expect("]")) return false;
      } else if (is("{") && may_be_type_) {
        advance();
        if (!pairs()) return false;
      } else {
        return true;
      }
    }
  }

  bool name() {
    if (token_.kind != Token::Kind::Name) return fail();
    advance();
    return true;
  }

  bool primary() {
    may_be_type_ = false;
    if (token_.kind == Token::Kind::Literal) {
      advance();
      return true;
    }
    if (take("(")) return expression() && expect(")");
    if (take("[")) return list("]");
    if (take("{")) return pairs();
    take(".");
    if (token_.kind == Token::Kind::Name && token_.text == "in") return fail();
    if (!name()) return false;
    if (take("(")) return list(")");
    may_be_type_ = true;
    return true;
  }

  // Expressions up to the closing symbol; a comma may end them in brackets.
  bool list(std::string_view close) {
    while (!take(close)) {
      take("?");
      if (!expression()) return false;
      if (take(close)) return true;
      if (!expect(",")) return false;
      if (close == ")" && is(close)) return fail();
    }
    may_be_type_ = false;
    return true;
  }

  // key: value, up to the brace.
  bool pairs() {
    while (!take("}")) {
      take("?");
      if (!expression() || !expect(":") || !expression()) return false;
      if (take("}")) return true;
      if (!expect(",")) return false;
    }
    may_be_type_ = false;
    return true;
  }

  std::string_view text_;
  Lexer lexer_;
  Token token_;
  std::string problem_;
  int depth_ = 0;
  bool may_be_type_ = false;  // a path of names may be followed by the fields of a message
};

}  // namespace

std::string check_cel_syntax(std::string_view expression) { return Parser(expression).run(); }

}  // namespace jogak::api
