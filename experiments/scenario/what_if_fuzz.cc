// Resolves a what-if given as "key = value" per line: exchanges, layouts, orders of axes,
// schedules, versions and overrides of descriptions.
#include "experiments/scenario/scenario.h"
#include "sim/base/fuzz_target.h"

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

FUZZ_TARGET(what_if, text) {
  using namespace lambcast;
  static const auto texts = std::make_shared<DescriptionTexts>();
  WhatIf what_if{{"model", "bert-base"}, {"cluster", "paper-eth40-v100"},
                 {"gpus", "8"},          {"optimizer", "onebit_lamb"},
                 {"micro_batch", "1"},   {"steps", "100"}};
  each_line(text, [&](std::string_view line) {
    const std::size_t equals = std::min(line.find('='), line.size());
    const std::string key(trimmed(line.substr(0, equals)));
    const std::string value(trimmed(line.substr(std::min(equals + 1, line.size()))));
    // The text must not name a file of this machine.
    if (value.find('/') != std::string::npos || value.ends_with(".toml") ||
        value.ends_with(".json") || value == "-")
      return;
    if (value.empty()) {
      what_if.erase(key);
    } else if (key != "config" && key != "set_var" && key != "megatron_args" &&
               key != "torchtitan" && key != "topology") {
      what_if.insert_or_assign(key, value);
    }
  });
  Catalog catalog(texts);
  resolve(what_if, catalog);
}
