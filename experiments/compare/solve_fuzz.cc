// Questions to `solve`, "KEY METRIC VALUE FROM TO" per line; "-" stands for a word that is not
// given.
#include <cmath>

#include "experiments/compare/solve_variable.h"
#include "experiments/output/metric.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(solve, text) {
  using namespace lambcast;
  static Catalog catalog;
  static const WhatIf what_if{{"model", "bert-base"}, {"cluster", "paper-eth40-v100"},
                              {"gpus", "8"},          {"optimizer", "onebit_lamb"},
                              {"micro_batch", "1"},   {"steps", "100"}};
  each_line(text, [](std::string_view line) {
    std::string words[5];
    for (std::string& word : words) {
      const std::size_t end = std::min(line.find(' '), line.size());
      word = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    may_refuse([&] {
      if (!std::isfinite(find_metric(words[1], {}).parse(words[2], {})))
        throw std::logic_error("a target without end");
    });
    const auto given = [](const std::string& word) {
      return word == "-" ? std::nullopt : std::optional(word);
    };
    const Variable variable =
        variable_of(words[0], what_if, given(words[3]), given(words[4]), catalog);
    if (!std::isfinite(variable.low) || !std::isfinite(variable.high) || !(variable.low > 0))
      throw std::logic_error("a range without end");
    may_refuse([&] { variable.at(variable.low); });
  });
}
