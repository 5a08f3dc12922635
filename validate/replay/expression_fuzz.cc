// Evaluates expressions and templates of mapping files, one per line, over a row of a few columns.
#include "sim/base/fuzz_target.h"
#include "validate/replay/row_expression.h"

FUZZ_TARGET(expression, text) {
  using namespace lambcast;
  const RowScope scope{
      [](const std::string& name) -> std::string {
        if (name == "gpu") return "V100";
        if (name == "tp") return "8";
        if (name == "days") return "1.5";
        throw Error(Exit::usage, "no column " + name);
      },
      [](const std::string& list, const std::string& word) { return list + word; }};
  each_line(text, [&](std::string_view line) {
    std::set<std::string> names, lists;
    may_refuse([&] {
      const RowExpression expression = RowExpression::parse(line, {});
      expression.collect(names, lists);
      may_refuse([&] { expression.number(scope); });
      may_refuse([&] { expression.holds(scope); });
      expression.evaluate(scope);
    });
    const RowTemplate words = RowTemplate::parse(line, {});
    words.collect(names, lists);
    words.evaluate(scope);
  });
}
