#include "experiments/advice.h"

#include <fmt/format.h>

#include <memory>

#include "tools/commands.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct Options {
  WhatIf what_if;
  std::string format = "table";
};

}  // namespace

Command add_advise(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "advise", "does compression pay here: verdict, break-even bandwidth, backends, memory, cost");
  add_what_if_flags(*command, options->what_if);
  command->add_option("--format", options->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer(R"(Example
  lambcast advise --config ds.json --model bert-large --cluster commodity-10gbe --gpus 32 --steps 7500)");
  return [options] {
    Catalog catalog;
    const Advice advice = advise(options->what_if, catalog);
    fmt::print("{}", options->format == "json" ? advice_json(advice) : advice_text(advice));
    return 0;
  };
}

}  // namespace lambcast
