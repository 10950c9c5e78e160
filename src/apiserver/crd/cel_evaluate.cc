// SPDX-License-Identifier: Apache-2.0
//
// Evaluation: names, members, operators and macros. Functions are in cel_functions.cc.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/cel.h"
#include "apiserver/crd/cel_functions.h"
#include "apiserver/crd/cel_node.h"

namespace jogak::api::cel {
namespace {

// A value that is part of the input, or one that was made on the way.
class Value {
 public:
  explicit Value(const Doc* part) : at_(part) {}
  explicit Value(Doc made)
      : made_(std::make_shared<const Doc>(std::move(made))), at_(made_.get()) {}
  // A part of another value, which is kept alive.
  Value(const Value& whole, const Doc* part) : made_(whole.made_), at_(part) {}

  const Doc& operator*() const { return *at_; }
  const Doc* operator->() const { return at_; }

 private:
  std::shared_ptr<const Doc> made_;
  const Doc* at_;
};

struct Binding {
  std::string_view name;
  Value value;
};

std::unexpected<Error> no_overload() { return invalid("no such overload"); }

Result<Value> truth(bool flag) { return Value(Doc(flag)); }

class Evaluator {
 public:
  explicit Evaluator(const std::vector<Expression::Variable>& variables) {
    for (const auto& [name, value] : variables) bindings_.push_back({name, Value(value)});
  }

  Result<Value> run(const Node& node) {
    switch (node.kind) {
      case Node::Kind::Literal:
        return Value(&node.literal);
      case Node::Kind::Name:
        return find_name(node.text);
      case Node::Kind::Select:
        return select(node);
      case Node::Kind::Has:
        return has(node);
      case Node::Kind::Index:
        return index(node);
      case Node::Kind::Operator:
        return run_operator(node);
      case Node::Kind::Call:
      case Node::Kind::Method:
        return call(node);
      case Node::Kind::Macro:
        return macro(node);
      case Node::Kind::List:
        return list(node);
      case Node::Kind::Map:
        return map(node);
    }
    return no_overload();
  }

 private:
  Result<Value> find_name(const std::string& name) {
    for (auto binding = bindings_.rbegin(); binding != bindings_.rend(); ++binding) {
      if (binding->name == name) return binding->value;
    }
    return invalid("no such attribute: {}", name);
  }

  Result<Value> select(const Node& node) {
    JOGAK_TRY(Value target, run(*node.args[0]));
    if (!target->is_object()) return no_overload();
    const Doc* member = target->find(node.text);
    if (member == nullptr) return invalid("no such key: {}", node.text);
    return Value(target, member);
  }

  Result<Value> has(const Node& node) {
    JOGAK_TRY(Value target, run(*node.args[0]));
    if (!target->is_object()) return no_overload();
    return truth(target->has(node.text));
  }

  Result<Value> index(const Node& node) {
    JOGAK_TRY(Value target, run(*node.args[0]));
    JOGAK_TRY(Value key, run(*node.args[1]));
    if (target->is_object() && key->is_string()) {
      const Doc* member = target->find(key->as_string());
      if (member == nullptr) return invalid("no such key: {}", key->as_string());
      return Value(target, member);
    }
    if (!target->is_array() || !key->is_int()) return no_overload();
    const std::int64_t at = key->as_int();
    if (at < 0 || at >= static_cast<std::int64_t>(target->size())) {
      return invalid("index out of bounds: {}", at);
    }
    return Value(target, &target->items()[static_cast<std::size_t>(at)]);
  }

  Result<bool> flag(const Node& node) {
    JOGAK_TRY(Value value, run(node));
    if (!value->is_bool()) return no_overload();
    return value->as_bool();
  }

  // && and ||: an error on one side does not count where the other side decides.
  Result<Value> logic(const Node& node, bool deciding) {
    const auto left = flag(*node.args[0]);
    if (left && *left == deciding) return truth(deciding);
    const auto right = flag(*node.args[1]);
    if (right && *right == deciding) return truth(deciding);
    if (!left) return std::unexpected(left.error());
    if (!right) return std::unexpected(right.error());
    return truth(!deciding);
  }

  Result<Value> run_operator(const Node& node) {
    const std::string& symbol = node.text;
    if (symbol == "&&") return logic(node, false);
    if (symbol == "||") return logic(node, true);
    if (symbol == "?:") {
      JOGAK_TRY(const bool is_true, flag(*node.args[0]));
      return run(*node.args[is_true ? 1 : 2]);
    }
    JOGAK_TRY(Value left, run(*node.args[0]));
    if (node.args.size() == 1) return unary(symbol, *left);
    JOGAK_TRY(Value right, run(*node.args[1]));
    if (symbol == "==") return truth(same(*left, *right));
    if (symbol == "!=") return truth(!same(*left, *right));
    if (symbol == "in") return contains(*left, *right);
    if (symbol[0] == '<' || symbol[0] == '>') return compare(symbol, *left, *right);
    JOGAK_TRY(Doc result, arithmetic(symbol[0], *left, *right));
    return Value(std::move(result));
  }

  static Result<Value> unary(const std::string& symbol, const Doc& value) {
    if (symbol == "!") {
      if (!value.is_bool()) return no_overload();
      return truth(!value.as_bool());
    }
    JOGAK_TRY(Doc result, arithmetic('-', Doc(0), value));
    return Value(std::move(result));
  }

  static Result<Value> contains(const Doc& item, const Doc& whole) {
    if (whole.is_object()) return truth(item.is_string() && whole.has(item.as_string()));
    if (!whole.is_array()) return no_overload();
    return truth(std::any_of(whole.items().begin(), whole.items().end(),
                             [&](const Doc& one) { return same(one, item); }));
  }

  static Result<Value> compare(const std::string& symbol, const Doc& a, const Doc& b) {
    const std::optional<int> order = order_of(a, b);
    if (!order) return no_overload();
    if (symbol == "<") return truth(*order < 0);
    if (symbol == "<=") return truth(*order <= 0);
    return truth(symbol == ">" ? *order > 0 : *order >= 0);
  }

  Result<Value> call(const Node& node) {
    std::vector<Value> values;
    std::vector<const Doc*> args;
    for (const NodePtr& arg : node.args) {
      JOGAK_TRY(Value value, run(*arg));
      values.push_back(std::move(value));
    }
    for (const Value& value : values) args.push_back(&*value);
    JOGAK_TRY(Doc result, call_function(node.text, args));
    return Value(std::move(result));
  }

  // Values of a list, or keys of a map.
  static std::vector<Value> elements(const Value& target) {
    std::vector<Value> out;
    for (const Doc& item : target->items()) out.push_back(Value(target, &item));
    for (const auto& member : target->members()) out.emplace_back(Doc(member.key));
    return out;
  }

  Result<Value> macro(const Node& node) {
    JOGAK_TRY(Value target, run(*node.args[0]));
    if (!target->is_array() && !target->is_object()) return no_overload();
    const std::vector<Value> all = elements(target);
    if (node.text == "filter" || node.text == "map") return collect(node, all);
    return quantify(node, all);
  }

  Result<Value> with(const Node& node, const Value& element, const Node& body) {
    bindings_.push_back({node.variable, element});
    auto result = run(body);
    bindings_.pop_back();
    return result;
  }

  Result<Value> collect(const Node& node, const std::vector<Value>& all) {
    Doc out = Doc::array();
    const bool is_filter = node.text == "filter";
    const bool has_condition = is_filter || node.args.size() == 3;
    for (const Value& element : all) {
      if (has_condition) {
        JOGAK_TRY(Value keep, with(node, element, *node.args[1]));
        if (!keep->is_bool()) return no_overload();
        if (!keep->as_bool()) continue;
      }
      if (is_filter) {
        out.push(*element);
      } else {
        JOGAK_TRY(Value mapped, with(node, element, *node.args.back()));
        out.push(*mapped);
      }
    }
    return Value(std::move(out));
  }

  // all, exists: an error does not count where another element decides. exists_one: it does.
  Result<Value> quantify(const Node& node, const std::vector<Value>& all) {
    const bool is_all = node.text == "all";
    const bool is_one = node.text == "exists_one";
    std::size_t holding = 0;
    std::optional<Error> failed;
    for (const Value& element : all) {
      const auto result = with(node, element, *node.args[1]);
      if (!result || !(*result)->is_bool()) {
        failed = result ? no_overload().error() : result.error();
        if (is_one) break;
        continue;
      }
      if ((*result)->as_bool()) ++holding;
      if (!is_one && (*result)->as_bool() != is_all) return truth(!is_all);
    }
    if (failed) return std::unexpected(*failed);
    return truth(is_one ? holding == 1 : is_all);
  }

  Result<Value> list(const Node& node) {
    Doc out = Doc::array();
    for (const NodePtr& item : node.args) {
      JOGAK_TRY(Value value, run(*item));
      out.push(*value);
    }
    return Value(std::move(out));
  }

  Result<Value> map(const Node& node) {
    Doc out = Doc::object();
    for (std::size_t i = 0; i + 1 < node.args.size(); i += 2) {
      JOGAK_TRY(Value key, run(*node.args[i]));
      JOGAK_TRY(Value value, run(*node.args[i + 1]));
      if (!key->is_string()) return no_overload();
      out.set(key->as_string(), *value);
    }
    return Value(std::move(out));
  }

  std::vector<Binding> bindings_;
};

}  // namespace

Result<Doc> Expression::evaluate(const std::vector<Variable>& variables) const {
  JOGAK_TRY(Value value, Evaluator(variables).run(*root_));
  return *value;
}

}  // namespace jogak::api::cel
