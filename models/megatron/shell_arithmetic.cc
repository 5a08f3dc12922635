#include "models/megatron/shell_arithmetic.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "models/megatron/shell_lexer.h"

namespace lambcast::megatron {
namespace {

using Number = std::int64_t;

// Returns the result of an operation that wraps around, as in the shell's 64-bit arithmetic.
Number wrapped(char op, Number a, Number b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<Number>(op == '+' ? x + y : op == '-' ? x - y : x * y);
}

// Operators by precedence; longer ones come first within a level.
const std::vector<std::vector<std::string_view>>& levels() {
  static const std::vector<std::vector<std::string_view>> all{
      {"||"},       {"&&"},     {"|"},           {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
      {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}, {"**"}};
  return all;
}

class Calculator {
 public:
  Calculator(std::string_view text, const ArithmeticNames& names) : text_(text), names_(names) {}

  std::optional<Number> result() {
    Number value = assignment();
    while (good_ && taken(",")) value = assignment();
    skip_spaces();
    if (!good_ || at_ < text_.size()) return std::nullopt;
    return value;
  }

 private:
  static constexpr int most_nested = 100;

  // Parses NAME OP= value, or a condition.
  Number assignment() {
    if (++depth_ > most_nested) return failed();
    skip_spaces();
    const std::size_t begin = at_;
    const std::string name = bare_name();
    skip_spaces();
    Number value = 0;
    if (const std::string_view op = name.empty() ? "" : assigning_operator(); !op.empty()) {
      at_ += op.size();
      const Number right = assignment();
      const std::string_view plain = op.substr(0, op.size() - 1);
      value = plain.empty() ? right : apply(plain, value_of(name), right);
      assign(name, value);
    } else {
      at_ = begin;
      value = conditional();
    }
    --depth_;
    return value;
  }

  std::string_view assigning_operator() const {
    constexpr std::array<std::string_view, 11> all{
        "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "="};
    const std::string_view rest = text_.substr(at_);
    const auto found =
        std::ranges::find_if(all, [&](std::string_view op) { return rest.starts_with(op); });
    return found == all.end() || rest.starts_with("==") ? std::string_view() : *found;
  }

  Number conditional() {
    const Number condition = binary(0);
    if (!good_ || !taken("?")) return condition;
    const Number first = side(condition != 0, [&] { return assignment(); });
    if (!taken(":")) return failed();
    const Number second = side(condition == 0, [&] { return assignment(); });
    return condition != 0 ? first : second;
  }

  // Reads an operand that is evaluated only if `chosen`.
  template <typename Read>
  Number side(bool chosen, Read read) {
    const bool before = quiet_;
    quiet_ = quiet_ || !chosen;
    const Number value = read();
    quiet_ = before;
    return value;
  }

  Number binary(std::size_t level) {
    if (level == levels().size()) return unary();
    Number left = binary(level + 1);
    for (std::string_view op = operator_of(level); !op.empty() && good_; op = operator_of(level)) {
      const bool needed = (op != "||" || left == 0) && (op != "&&" || left != 0);
      // Powers are evaluated from right to left.
      const bool power = op == "**";
      if (power && ++depth_ > most_nested) return failed();
      const Number right = side(needed, [&] { return binary(power ? level : level + 1); });
      if (power) --depth_;
      left = apply(op, left, right);
    }
    return left;
  }

  std::string_view operator_of(std::size_t level) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view op : levels()[level]) {
      if (!rest.starts_with(op)) continue;
      const char next = rest.size() > op.size() ? rest[op.size()] : '\0';
      const bool longer = next == op.back() && std::string_view("|&*<>").find(next) != rest.npos;
      const bool assigns = next == '=' && std::string_view("=!<>").find(op.back()) == rest.npos;
      if ((op.size() == 1 && longer) || assigns) continue;
      at_ += op.size();
      return op;
    }
    return {};
  }

  Number apply(std::string_view op, Number a, Number b) {
    if (op == "||") return a != 0 || b != 0 ? 1 : 0;
    if (op == "&&") return a != 0 && b != 0 ? 1 : 0;
    if (op == "==") return a == b ? 1 : 0;
    if (op == "!=") return a != b ? 1 : 0;
    if (op == "<=") return a <= b ? 1 : 0;
    if (op == ">=") return a >= b ? 1 : 0;
    if (op == "<") return a < b ? 1 : 0;
    if (op == ">") return a > b ? 1 : 0;
    if (op == "|") return a | b;
    if (op == "^") return a ^ b;
    if (op == "&") return a & b;
    if (op == "<<" || op == ">>") return shifted(op == "<<", a, b);
    if (op == "**") return power(a, b);
    if (op != "/" && op != "%") return wrapped(op.front(), a, b);
    if (quiet_) return 0;
    if (b == 0 || (b == -1 && a == std::numeric_limits<Number>::min())) return failed();
    return op == "/" ? a / b : a % b;
  }

  Number shifted(bool left, Number a, Number b) {
    if (b < 0 || b > 63) return failed();
    return left ? static_cast<Number>(static_cast<std::uint64_t>(a) << b) : a >> b;
  }

  Number power(Number base, Number exponent) {
    if (exponent < 0) return failed();
    Number value = 1;
    for (; exponent > 0; exponent >>= 1) {
      if (exponent % 2 == 1) value = wrapped('*', value, base);
      base = wrapped('*', base, base);
    }
    return value;
  }

  Number unary() {
    skip_spaces();
    if (at_ == text_.size() || ++depth_ > most_nested) return failed();
    const char c = text_[at_];
    Number value = 0;
    if (taken("++") || taken("--")) {
      value = stepped(bare_name(), c, true);
    } else if (std::string_view("-+!~").find(c) != text_.npos) {
      ++at_;
      value = unary();
      value = c == '-' ? wrapped('-', 0, value) : c == '!' ? (value == 0 ? 1 : 0) : value;
      if (c == '~') value = ~value;
    } else if (c == '(') {
      ++at_;
      value = assignment();
      if (!taken(")")) return failed();
    } else {
      value = operand();
    }
    --depth_;
    return value;
  }

  Number operand() {
    if (const std::string name = bare_name(); !name.empty()) {
      if (text_.substr(at_).starts_with("[")) return failed();
      if (taken("++")) return stepped(name, '+', false);
      if (taken("--")) return stepped(name, '-', false);
      return value_of(name);
    }
    const std::string_view rest = text_.substr(at_);
    Number value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<std::size_t>(end - rest.data());
    // The text is a number with another base: 010, 0x10, 2#10.
    const bool other_base = (length > 1 && rest[0] == '0') ||
                            rest.substr(length).starts_with("#") ||
                            variable_length(rest.substr(length)) > 0;
    if (error != std::errc() || other_base) return failed();
    at_ += length;
    return value;
  }

  Number stepped(const std::string& name, char op, bool before) {
    if (name.empty()) return failed();
    const Number old = value_of(name), stepped = wrapped(op, old, 1);
    assign(name, stepped);
    return before ? stepped : old;
  }

  std::string bare_name() {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    const std::size_t length = variable_length(rest);
    at_ += length;
    return std::string(rest.substr(0, length));
  }

  Number value_of(const std::string& name) {
    if (quiet_) return 0;
    const auto value = names_.value(name);
    return value ? *value : failed();
  }

  void assign(const std::string& name, Number value) {
    if (good_ && !quiet_) names_.assign(name, value);
  }

  bool taken(std::string_view op) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(op)) return false;
    at_ += op.size();
    return true;
  }

  Number failed() {
    good_ = false;
    at_ = text_.size();
    return 0;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\\").find(text_[at_]) != text_.npos)
      ++at_;
  }

  std::string_view text_;
  const ArithmeticNames& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool good_ = true, quiet_ = false;
};

}  // namespace

std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticNames& names) {
  return Calculator(text, names).result();
}

}  // namespace lambcast::megatron
