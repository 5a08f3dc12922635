// Small expressions over the columns of a row, so that a mapping file reads a foreign table as
// what-ifs without code.
//
//   batch / (gpus / (tp * pp) * micro_batch)     arithmetic on columns
//   tp > 1 and precision == 'fp8'                comparisons: "true" or "false"
//   clusters[gpu]                                a word of the file's own list [names.clusters]
//   if(recompute == 1, 'full', 'none')           also round, floor, ceil, min, max
//
// Names are columns of the row or names the file defines from them. Values are text; arithmetic and
// <, <=, >, >= read it as numbers, == and != compare numbers where both sides are numbers. A number
// within 1e-9 of a whole one is written as that.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

// Values of the names in an expression. Both throw Error for an unknown name.
struct RowScope {
  std::function<std::string(const std::string& name)> value;
  std::function<std::string(const std::string& list, const std::string& word)> listed;
};

class RowExpression {
 public:
  // Throws Error at `where` for text that is no expression.
  static RowExpression parse(std::string_view text, const Where& where);

  // Throws Error (usage) that says why there is no value: text where a number is needed, a word
  // that a list does not have, a division by zero.
  std::string evaluate(const RowScope& scope) const;
  double number(const RowScope& scope) const;
  bool holds(const RowScope& scope) const;  // "true", or refuses what is neither true nor false

  // Collects every name and every list of the expression.
  void collect(std::set<std::string>& names, std::set<std::string>& lists) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

// Words with expressions in braces: "llama3-{size}", "{gpus}", "paper-eth40-v100". A brace itself
// is written twice.
class RowTemplate {
 public:
  static RowTemplate parse(std::string_view text, const Where& where);
  std::string evaluate(const RowScope& scope) const;
  void collect(std::set<std::string>& names, std::set<std::string>& lists) const;

 private:
  struct Piece {
    std::string words;  // before the expression
    std::shared_ptr<const RowExpression> expression;
  };
  std::vector<Piece> pieces_;
};

// The number that a text is; throws Error naming `what` where it is none or not finite.
double number_of(const std::string& text, const std::string& what);

// "128" for 128 and for 127.9999999999, "12.5" for 12.5.
std::string number_text(double value);

}  // namespace lambcast
