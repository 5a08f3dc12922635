#include "models/megatron/shell_arithmetic.h"

#include <charconv>
#include <limits>
#include <vector>

#include "models/megatron/shell_lexer.h"

namespace lambcast::megatron {
namespace {

using Number = std::int64_t;

// Wraps around as the shell's 64-bit arithmetic does.
Number wrapped(char op, Number a, Number b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<Number>(op == '+' ? x + y : op == '-' ? x - y : x * y);
}

class Calculator {
 public:
  Calculator(std::string_view text, const NameValue& value_of) : text_(text), value_of_(value_of) {}

  std::optional<Number> result() {
    const Number value = binary(0);
    skip_spaces();
    if (!good_ || at_ < text_.size()) return std::nullopt;
    return value;
  }

 private:
  static constexpr int most_nested = 100;

  // Operators by precedence; longer ones come first within a level.
  static const std::vector<std::vector<std::string_view>>& levels() {
    static const std::vector<std::vector<std::string_view>> all{
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    return all;
  }

  Number binary(std::size_t level) {
    if (level == levels().size()) return unary();
    Number left = binary(level + 1);
    for (std::string_view op = taken(level); !op.empty() && good_; op = taken(level))
      left = apply(op, left, binary(level + 1));
    return left;
  }

  std::string_view taken(std::size_t level) {
    skip_spaces();
    for (const std::string_view op : levels()[level]) {
      const bool power = op == "*" && text_.substr(at_).starts_with("**");
      if (power || !text_.substr(at_).starts_with(op)) continue;
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
    if (op != "/" && op != "%") return wrapped(op.front(), a, b);
    if (b == 0 || (b == -1 && a == std::numeric_limits<Number>::min())) return failed();
    return op == "/" ? a / b : a % b;
  }

  Number unary() {
    skip_spaces();
    if (at_ == text_.size() || ++depth_ > most_nested) return failed();
    const char c = text_[at_];
    Number value = 0;
    if (c == '-' || c == '+' || c == '!') {
      ++at_;
      value = unary();
      value = c == '-' ? wrapped('-', 0, value) : c == '!' ? (value == 0 ? 1 : 0) : value;
    } else if (c == '(') {
      ++at_;
      value = binary(0);
      skip_spaces();
      if (at_ == text_.size() || text_[at_++] != ')') return failed();
    } else {
      value = operand();
    }
    --depth_;
    return value;
  }

  Number operand() {
    const std::string_view rest = text_.substr(at_);
    if (const std::size_t length = variable_length(rest); length > 0) {
      at_ += length;
      const auto value = value_of_(std::string(rest.substr(0, length)));
      return value ? *value : failed();
    }
    Number value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) return failed();
    at_ += static_cast<std::size_t>(end - rest.data());
    return value;
  }

  Number failed() {
    good_ = false;
    return 0;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\\").find(text_[at_]) != text_.npos)
      ++at_;
  }

  std::string_view text_;
  const NameValue& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool good_ = true;
};

}  // namespace

std::optional<std::int64_t> arithmetic(std::string_view text, const NameValue& value_of) {
  return Calculator(text, value_of).result();
}

}  // namespace lambcast::megatron
