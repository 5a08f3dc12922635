#include "validate/replay/row_expression.h"

#include <catch2/catch.hpp>
#include <map>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

RowScope row() {
  static const std::map<std::string, std::string> values{
      {"gpus", "384"}, {"tp", "8"}, {"pp", "6"}, {"batch", "2048"}, {"gpu", "H100"}, {"none", ""}};
  return {[](const std::string& name) {
            if (!values.contains(name)) throw Error(Exit::usage, "no column " + name);
            return values.at(name);
          },
          [](const std::string& list, const std::string& word) -> std::string {
            if (list == "clusters" && word == "H100") return "hgx-h100-ndr";
            throw Error(Exit::usage, list + " has no " + word);
          }};
}

std::string value_of(const std::string& text) {
  return RowExpression::parse(text, {"map.toml", 3, "key"}).evaluate(row());
}

TEST_CASE("expressions: arithmetic has the usual precedence, and whole numbers stay whole") {
  CHECK(value_of("gpus / (tp * pp)") == "8");
  CHECK(value_of("1 + 2 * 3 - 4 / 2") == "5");
  CHECK(value_of("8 - 4 - 2") == "2");
  CHECK(value_of("64 / 4 / 2") == "8");
  CHECK(value_of("-tp + 10") == "2");
  CHECK(value_of("batch / 1.5") == "1365.3333333333333");
  CHECK(value_of("0.001 * 8") == "0.008");
  CHECK(value_of("0.1 * 3 * 10") == "3");
  CHECK(value_of("round(12.5) + floor(12.5) + ceil(12.5)") == "38");
  CHECK(value_of("min(tp, pp) * max(tp, pp)") == "48");
}

TEST_CASE("expressions: comparisons, words and lists") {
  CHECK(value_of("tp > 1 and gpu == 'H100'") == "true");
  CHECK(value_of("tp < 8 or not pp != 6") == "true");
  CHECK(value_of("tp == 8.0") == "true");
  CHECK(value_of("none == ''") == "true");
  CHECK(value_of("clusters[gpu]") == "hgx-h100-ndr");
  CHECK(value_of("if(tp >= 8, 'backward', 'none')") == "backward");
  // The other branch is not evaluated.
  CHECK(value_of("if(tp <= 7, clusters['A100'], gpu)") == "H100");
}

TEST_CASE("expressions: one without a value gives the reason") {
  CHECK_THROWS_WITH(value_of("tp / (pp - 6)"), "a division by zero");
  CHECK_THROWS_WITH(value_of("gpu * 2"), "gpu: 'H100' is not a finite number");
  CHECK_THROWS_WITH(value_of("none * 2"), "none: '' is not a finite number");
  CHECK_THROWS_WITH(value_of("clusters['V100']"), "clusters has no V100");
  CHECK_THROWS_WITH(value_of("if(tp, 1, 2)"), "'8' is neither true nor false");
}

TEST_CASE("expressions: an invalid one is refused at its place") {
  CHECK_THROWS_WITH(value_of("tp +"),
                    "map.toml:3: key: 'tp +' is not an expression: the end is missing");
  CHECK_THROWS_WITH(value_of("tp pp"), Contains("'pp' is not expected"));
  CHECK_THROWS_WITH(value_of("(tp"), Contains("the expression has no ')' here"));
  CHECK_THROWS_WITH(value_of("'tp"), Contains("a quote is never closed"));
  CHECK_THROWS_WITH(value_of("sqrt(tp)"), Contains("'sqrt' is not a function"));
  CHECK_THROWS_WITH(value_of("min(tp)"), Contains("min takes 2 values"));
  CHECK_THROWS_WITH(value_of("1.2.3"), Contains("'1.2.3' is not a number"));
  CHECK_THROWS_WITH(value_of(""), Contains("the end is missing"));
}

TEST_CASE("templates: text with expressions in braces") {
  const Where where{"map.toml", 1, "case"};
  const RowTemplate text = RowTemplate::parse("tp {tp}, {gpus / tp} nodes", where);
  CHECK(text.evaluate(row()) == "tp 8, 48 nodes");
  CHECK(RowTemplate::parse("selene-a100", where).evaluate(row()) == "selene-a100");
  CHECK(RowTemplate::parse("{{ value = {tp} }}", where).evaluate(row()) == "{ value = 8 }");
  CHECK(RowTemplate::parse("", where).evaluate(row()).empty());
  CHECK_THROWS_WITH(RowTemplate::parse("{tp", where), Contains("a brace is never closed"));
  std::set<std::string> names, lists;
  text.collect(names, lists);
  RowTemplate::parse("{if(seq > 1, clusters[gpu], 'x')}", where).collect(names, lists);
  CHECK(names == std::set<std::string>{"tp", "gpus", "seq", "gpu"});
  CHECK(lists == std::set<std::string>{"clusters"});
}

}  // namespace
}  // namespace lambcast
