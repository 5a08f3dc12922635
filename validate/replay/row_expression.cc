#include "validate/replay/row_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace lambcast {

struct RowExpression::Node {
  // Kind of node: "text", "name", "list", "call", or an operator: "+", "==", "and", "negate", ...
  std::string kind;
  std::string word;  // text, name, list or function
  std::vector<std::shared_ptr<const Node>> of;
};

namespace {

using Node = RowExpression::Node;
using NodePtr = std::shared_ptr<const Node>;

[[noreturn]] void refuse(const std::string& what) { throw Error(Exit::usage, what); }

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent, with one function for each precedence.
class Parser {
 public:
  Parser(std::string_view text, const Where& where) : text_(text), where_(where) { next(); }

  NodePtr whole() {
    NodePtr node = disjunction();
    if (!token_.empty()) fail(fmt::format("'{}' is not expected", token_));
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    fail_input(where_, fmt::format("'{}' is not an expression: {}", text_, what));
  }

  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    const std::size_t begin = at_;
    if (at_ == text_.size()) {
      token_ = {};
      return;
    }
    if (letter(text_[at_])) {
      while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
    } else if (digit(text_[at_])) {
      while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]) || text_[at_] == '.'))
        ++at_;
    } else if (text_[at_] == '\'') {
      at_ = text_.find('\'', at_ + 1);
      if (at_ == std::string_view::npos) fail("a quote is never closed");
      ++at_;
    } else {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '=' &&
          std::string_view("=!<>").find(text_[begin]) != std::string_view::npos)
        ++at_;
    }
    token_ = text_.substr(begin, at_ - begin);
  }

  bool accept(std::string_view token) {
    if (token_ != token) return false;
    next();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("the expression has no '{}' here", token));
  }

  static NodePtr make(std::string_view kind, std::vector<NodePtr> of, std::string_view word = {}) {
    return std::make_shared<const Node>(Node{std::string(kind), std::string(word), std::move(of)});
  }

  NodePtr disjunction() {
    NodePtr node = conjunction();
    while (accept("or")) node = make("or", {node, conjunction()});
    return node;
  }
  NodePtr conjunction() {
    NodePtr node = negation();
    while (accept("and")) node = make("and", {node, negation()});
    return node;
  }
  NodePtr negation() { return accept("not") ? make("not", {negation()}) : comparison(); }
  NodePtr comparison() {
    NodePtr node = sum();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (accept(sign)) return make(sign, {node, sum()});
    return node;
  }
  NodePtr sum() {
    NodePtr node = product();
    while (token_ == "+" || token_ == "-") {
      const std::string_view sign = token_;
      next();
      node = make(sign, {node, product()});
    }
    return node;
  }
  NodePtr product() {
    NodePtr node = factor();
    while (token_ == "*" || token_ == "/") {
      const std::string_view sign = token_;
      next();
      node = make(sign, {node, factor()});
    }
    return node;
  }

  NodePtr factor() {
    if (accept("-")) return make("negate", {factor()});
    if (accept("(")) {
      NodePtr node = disjunction();
      expect(")");
      return node;
    }
    const std::string_view token = token_;
    if (token.empty()) fail("the end is missing");
    next();
    if (token.front() == '\'') return make("text", {}, token.substr(1, token.size() - 2));
    if (digit(token.front())) {
      if (!as_number(std::string(token))) fail(fmt::format("'{}' is not a number", token));
      return make("text", {}, token);
    }
    if (!letter(token.front())) fail(fmt::format("'{}' is not expected", token));
    if (accept("[")) {
      NodePtr word = disjunction();
      expect("]");
      return make("list", {word}, token);
    }
    return accept("(") ? call(token) : make("name", {}, token);
  }

  NodePtr call(std::string_view function) {
    std::vector<NodePtr> of;
    do of.push_back(disjunction());
    while (accept(","));
    expect(")");
    constexpr std::pair<std::string_view, std::size_t> known[] = {
        {"if", 3}, {"round", 1}, {"floor", 1}, {"ceil", 1}, {"min", 2}, {"max", 2}};
    for (const auto& [name, count] : known) {
      if (name != function) continue;
      if (of.size() != count) fail(fmt::format("{} takes {} values", name, count));
      return make("call", std::move(of), function);
    }
    fail(fmt::format("'{}' is not a function (allowed: if, round, floor, ceil, min, max)",
                     function));
  }

  std::string_view text_, token_;
  const Where& where_;
  std::size_t at_ = 0;
};

std::string evaluate_node(const Node& node, const RowScope& scope);

double number_node(const Node& node, const RowScope& scope) {
  return number_of(evaluate_node(node, scope), node.kind == "name" ? node.word : "a value");
}

bool truth_of(const std::string& text) {
  if (text != "true" && text != "false")
    refuse(fmt::format("'{}' is neither true nor false", text));
  return text == "true";
}

bool truth_node(const Node& node, const RowScope& scope) {
  return truth_of(evaluate_node(node, scope));
}

bool compare(const std::string& sign, const Node& left, const Node& right, const RowScope& scope) {
  if (sign == "==" || sign == "!=") {
    const std::string a = evaluate_node(left, scope), b = evaluate_node(right, scope);
    const auto x = as_number(a), y = as_number(b);
    return (x && y ? *x == *y : a == b) == (sign == "==");
  }
  const double a = number_node(left, scope), b = number_node(right, scope);
  if (sign == "<") return a < b;
  if (sign == "<=") return a <= b;
  return sign == ">" ? a > b : a >= b;
}

double arithmetic(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (b == 0) refuse("a division by zero");
  return a / b;
}

std::string call_node(const Node& node, const RowScope& scope) {
  if (node.word == "if")
    return evaluate_node(truth_node(*node.of[0], scope) ? *node.of[1] : *node.of[2], scope);
  const double first = number_node(*node.of[0], scope);
  if (node.word == "round") return number_text(std::round(first));
  if (node.word == "floor") return number_text(std::floor(first));
  if (node.word == "ceil") return number_text(std::ceil(first));
  const double second = number_node(*node.of[1], scope);
  return number_text(node.word == "min" ? std::min(first, second) : std::max(first, second));
}

std::string truth(bool value) { return value ? "true" : "false"; }

std::string evaluate_node(const Node& node, const RowScope& scope) {
  if (node.kind == "text") return node.word;
  if (node.kind == "name") return scope.value(node.word);
  if (node.kind == "list") return scope.listed(node.word, evaluate_node(*node.of[0], scope));
  if (node.kind == "call") return call_node(node, scope);
  if (node.kind == "negate") return number_text(-number_node(*node.of[0], scope));
  if (node.kind == "not") return truth(!truth_node(*node.of[0], scope));
  if (node.kind == "and")
    return truth(truth_node(*node.of[0], scope) && truth_node(*node.of[1], scope));
  if (node.kind == "or")
    return truth(truth_node(*node.of[0], scope) || truth_node(*node.of[1], scope));
  if (node.kind.find_first_of("=<>") != std::string::npos)
    return truth(compare(node.kind, *node.of[0], *node.of[1], scope));
  return number_text(
      arithmetic(node.kind, number_node(*node.of[0], scope), number_node(*node.of[1], scope)));
}

void collect_node(const Node& node, std::set<std::string>& names, std::set<std::string>& lists) {
  if (node.kind == "name") names.insert(node.word);
  if (node.kind == "list") lists.insert(node.word);
  for (const NodePtr& part : node.of) collect_node(*part, names, lists);
}

}  // namespace

double number_of(const std::string& text, const std::string& what) {
  const std::optional<double> value = as_number(text);
  if (!value) refuse(fmt::format("{}: '{}' is not a finite number", what, text));
  return *value;
}

std::string number_text(double value) {
  const double whole = std::round(value);
  if (std::abs(value - whole) <= 1e-9 * std::max(1.0, std::abs(value)) && std::abs(whole) < 1e15)
    return fmt::format("{:.0f}", whole + 0.0);
  return fmt::format("{}", value);
}

RowExpression RowExpression::parse(std::string_view text, const Where& where) {
  RowExpression expression;
  expression.root_ = Parser(text, where).whole();
  return expression;
}

std::string RowExpression::evaluate(const RowScope& scope) const {
  return evaluate_node(*root_, scope);
}

double RowExpression::number(const RowScope& scope) const { return number_node(*root_, scope); }

bool RowExpression::holds(const RowScope& scope) const { return truth_node(*root_, scope); }

void RowExpression::collect(std::set<std::string>& names, std::set<std::string>& lists) const {
  collect_node(*root_, names, lists);
}

RowTemplate RowTemplate::parse(std::string_view text, const Where& where) {
  RowTemplate parsed;
  std::string words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool twice = at + 1 < text.size() && text[at + 1] == text[at];
    if (text[at] != '{' || twice) {
      words += text[at];
      if (twice && (text[at] == '{' || text[at] == '}')) ++at;
      continue;
    }
    const std::size_t close = text.find('}', at);
    if (close == std::string_view::npos) fail_input(where, "a brace is never closed");
    parsed.pieces_.push_back(
        {std::move(words), std::make_shared<const RowExpression>(
                               RowExpression::parse(text.substr(at + 1, close - at - 1), where))});
    words.clear();
    at = close;
  }
  if (!words.empty()) parsed.pieces_.push_back({std::move(words), nullptr});
  return parsed;
}

std::string RowTemplate::evaluate(const RowScope& scope) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    text += piece.words;
    if (piece.expression) text += piece.expression->evaluate(scope);
  }
  return text;
}

void RowTemplate::collect(std::set<std::string>& names, std::set<std::string>& lists) const {
  for (const Piece& piece : pieces_)
    if (piece.expression) piece.expression->collect(names, lists);
}

}  // namespace lambcast
