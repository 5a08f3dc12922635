#include "experiments/compare/solve_variable.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "experiments/advise/break_even.h"
#include "experiments/compare/numeric_inputs.h"
#include "experiments/scenario/hints.h"
#include "experiments/scenario/run_length.h"
#include "experiments/scenario/words.h"
#include "sim/base/units.h"

namespace lambcast {
namespace {

// The range in which `advise` searches for a break-even.
constexpr double nic_low = 1e8 / 8, nic_high = 1e13 / 8;

// Returns the default range of a key; that of freeze_step ends at the run's steps.
UsualRange usual_range(const WhatIfKey& key, const WhatIf& what_if) {
  if (key.name == "freeze_step") {
    const auto steps = Words(what_if).whole("steps", 1, 1'000'000'000);
    return {1, static_cast<double>(steps.value_or(1'000'000))};
  }
  return key.range;
}

std::string whole_text(double x) { return fmt::format("{:.0f}", x); }
std::string number_text(double x) { return fmt::format("{:.4g}", x); }

// Returns the question without the keys that contradict another value of `key`.
WhatIf without_others(WhatIf what_if, const std::string& key) {
  const auto erase = [&](std::initializer_list<const char*> others) {
    for (const char* other : others) what_if.erase(other);
  };
  const bool two_batches = what_if.contains("global_batch") + what_if.contains("micro_batch") +
                               what_if.contains("grad_accum") - what_if.contains(key) >
                           1;
  if (key == "gpus" || key == "nodes") erase({"gpus", "nodes"});
  if (is_length(key))
    for (const char* other : length_keys) what_if.erase(other);
  if (two_batches && key == "grad_accum") erase({"global_batch"});
  if (two_batches && (key == "micro_batch" || key == "global_batch")) erase({"grad_accum"});
  return what_if;
}

// Returns a function that resolves the question with the key set to a plain number.
std::function<TrainingPlan(double)> setting(const Variable& variable, const WhatIf& asked,
                                            Catalog& catalog) {
  return [asked, key = variable.key, whole = variable.whole, &catalog](double x) {
    WhatIf what_if = asked;
    what_if.insert_or_assign(key, whole ? whole_text(x) : fmt::format("{}", x));
    return resolve(what_if, catalog).training;
  };
}

Variable of_what_if(const WhatIfKey& key, const WhatIf& asked, Catalog& catalog) {
  Variable variable;
  variable.key = key.name;
  variable.whole = key.type != ValueType::number;
  variable.words = variable.whole ? whole_text : number_text;
  const WhatIf base = without_others(asked, variable.key);
  const UsualRange range = usual_range(key, base);
  variable.low = range.low;
  variable.high = range.high;
  const Words words(base);
  if (const std::string* cluster = words.find("cluster");
      cluster != nullptr && key.name == "gpus") {
    // GPUs come in whole nodes. All nodes are alike, so one forecast covers them together.
    const int node = catalog.cluster(*cluster, words.below("cluster."))->gpus_per_node;
    variable.unit = static_cast<double>(words.whole("gpus_per_node", 1, node).value_or(node));
    variable.low = variable.unit;
  }
  if (key.name == "global_batch") {
    const auto micro = words.whole("micro_batch", 1, 1 << 20),
               gpus = words.whole("gpus", 1, 1 << 20);
    if (micro && gpus) variable.unit = static_cast<double>(*micro * *gpus);
    variable.low = variable.unit;
  }
  variable.at = setting(variable, base, catalog);
  return variable;
}

Variable of_input(const NumericInput& input, const WhatIf& asked, Catalog& catalog) {
  Variable variable;
  variable.key = input.key;
  const bool nic = input.key == "cluster.nic.bandwidth";
  variable.low = nic ? nic_low : input.number / 100;
  variable.high = nic ? nic_high : input.number * 100;
  variable.words = nic ? [](double x) { return to_text_bits(Bandwidth(x)); }
                       : std::function<std::string(double)>(input.words);
  variable.at = [asked, input, nic, &catalog](double x) {
    WhatIf what_if = nic ? at_bandwidth(asked, Bandwidth(x)) : asked;
    what_if.insert_or_assign(input.key, input.text(x));
    return resolve(what_if, catalog).training;
  };
  return variable;
}

// Returns the variable for a number of a description that is not a numeric input: a count, a price,
// a size of the model.
Variable of_description(const std::string& key, const WhatIf& asked,
                        const std::optional<std::string>& low,
                        const std::optional<std::string>& high, Catalog& catalog) {
  if (!low || !high) fail_input({"", 0, key}, "has no usual range", "with --from and --to");
  Variable variable;
  variable.key = key;
  const auto is_whole = [](const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  };
  variable.whole = is_whole(*low) && is_whole(*high);
  variable.words = variable.whole ? whole_text : number_text;
  variable.at = setting(variable, asked, catalog);
  return variable;
}

double plain_number(const std::string& text, const Where& where) {
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(number > 0) || !std::isfinite(number))
    fail_input(where, fmt::format("'{}' is not a number above zero", text));
  return number;
}

}  // namespace

Variable variable_of(const std::string& key, const WhatIf& what_if,
                     const std::optional<std::string>& low, const std::optional<std::string>& high,
                     Catalog& catalog) {
  Variable variable;
  std::optional<NumericInput> input;
  if (const WhatIfKey* row = find_key(key)) {
    if (row->type == ValueType::text || row->type == ValueType::words)
      fail_input({"", 0, key}, "is not a number", "a numeric key");
    variable = of_what_if(*row, what_if, catalog);
  } else {
    // Rejects an unknown key before other errors of the question.
    if (key.find('.') == std::string::npos) fail_unknown_key({"", 0, "KEY"}, key, what_if_keys());
    const TrainingPlan training = resolve(what_if, catalog).training;
    std::vector<std::string> known = what_if_keys();
    for (const NumericInput& candidate : numeric_inputs(training)) {
      if (candidate.parse == nullptr) continue;
      known.push_back(candidate.key);
      if (candidate.key == key) input = candidate;
    }
    if (input)
      variable = of_input(*input, what_if, catalog);
    else if (is_of_description(key))
      variable = of_description(key, what_if, low, high, catalog);
    else
      fail_unknown_key({"", 0, "KEY"}, key, known);
  }
  const auto read = [&](const std::optional<std::string>& text, const char* flag, double& value) {
    if (!text) return;
    const Where where{"", 0, flag};
    value = input ? input->parse(*text, where) : plain_number(*text, where);
  };
  read(low, "--from", variable.low);
  read(high, "--to", variable.high);
  if (!(variable.low < variable.high))
    fail_input({"", 0, "--from"}, fmt::format("{} is not below {}", variable.words(variable.low),
                                              variable.words(variable.high)));
  return variable;
}

}  // namespace lambcast
