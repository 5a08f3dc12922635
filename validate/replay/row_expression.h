// Small expressions over the columns of a row, with which a mapping file converts a foreign table
// to what-ifs without code.
//
//   batch / (gpus / (tp * pp) * micro_batch)     arithmetic on columns
//   tp > 1 and precision == 'fp8'                comparisons: "true" or "false"
//   clusters[gpu]                                a word of the file's list [names.clusters]
//   if(recompute == 1, 'full', 'none')           also round, floor, ceil, min, max
//
// Names are columns of the row, or names that the file defines from them. Values are text.
// Arithmetic and <, <=, >, >= read them as numbers; == and != compare numbers if both sides are
// numbers. A number within 1e-9 of a whole one is written as a whole number.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

// The values of the names and lists in an expression. Both functions throw Error for an unknown
// name.
struct RowScope {
  std::function<std::string(const std::string& name)> value;
  std::function<std::string(const std::string& list, const std::string& word)> listed;
};

class RowExpression {
 public:
  // Parses an expression. Throws Error at `where` if the text is not one.
  static RowExpression parse(std::string_view text, const Where& where);

  // Evaluates the expression. Throws Error (usage) with the reason if there is no value: text where
  // a number is needed, a word missing in a list, a division by zero.
  std::string evaluate(const RowScope& scope) const;
  double number(const RowScope& scope) const;
  bool holds(const RowScope& scope) const;  // whether the value is "true"; "false" or Error else

  // Collects every name and every list of the expression.
  void collect(std::set<std::string>& names, std::set<std::string>& lists) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

// Text with expressions in braces: "llama3-{size}", "{gpus}", "paper-eth40-v100". A doubled brace
// is printed as one brace.
class RowTemplate {
 public:
  static RowTemplate parse(std::string_view text, const Where& where);
  std::string evaluate(const RowScope& scope) const;
  void collect(std::set<std::string>& names, std::set<std::string>& lists) const;

 private:
  struct Piece {
    std::string words;  // text before the expression
    std::shared_ptr<const RowExpression> expression;
  };
  std::vector<Piece> pieces_;
};

// Returns a text as a number; throws Error naming `what` if it is not a finite number.
double number_of(const std::string& text, const std::string& what);

// Formats a number: "128" for 128 and for 127.9999999999, "12.5" for 12.5.
std::string number_text(double value);

}  // namespace lambcast
