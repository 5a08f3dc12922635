#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "experiments/compare/comparison_output.h"
#include "experiments/compare/folder_comparison.h"
#include "experiments/output/judgement.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/input_findings.h"
#include "tools/patience.h"
#include "tools/result_flags.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct CompareOptions {
  WhatIf what_if;
  ComparisonAxes axes;
  std::vector<std::string> named;
  ResultFlags result;
};

// Returns all named clusters.
ComparisonAxes axes_of(const CompareOptions& options) {
  ComparisonAxes axes = options.axes;
  axes.clusters.insert(axes.clusters.begin(), options.named.begin(), options.named.end());
  return axes;
}

// Compares folders that sweeps wrote; flags of a forecast do not apply to them.
int compare_folders_command(const CompareOptions& options) {
  if (!options.what_if.empty() || !options.axes.clusters.empty() ||
      !options.axes.optimizers.empty() || !options.axes.exchanges.empty())
    throw Error(Exit::usage,
                "results folders take no flags of a forecast: compare FOLDER FOLDER, or the "
                "clusters themselves");
  const FolderComparison comparison = compare_folders(options.named);
  print_result(options.result, {[&] { return folder_comparison_table(comparison); },
                                [&] { return folder_comparison_json(comparison); },
                                [&] { return folder_comparison_csv(comparison); }});
  const bool any =
      std::ranges::any_of(comparison.folders, [](const auto& of) { return of.ran > 0; });
  return static_cast<int>(any ? Exit::done : Exit::limit);
}

FindingTally findings_of(const Comparison& comparison) {
  FindingTally findings;
  for (std::size_t i = 0; i < comparison.ranked.size(); ++i) {
    const Contestant& of = comparison.ranked[i];
    if (of.refused.empty()) findings.add(i, judgement_of(of.scenario, of.forecast).findings);
  }
  return findings;
}

int compare_command(const CompareOptions& options) {
  if (std::ranges::any_of(options.named, is_results_folder))
    return compare_folders_command(options);
  const Patience patience("comparing");
  Catalog catalog;
  const Comparison comparison = compare(options.what_if, axes_of(options), catalog);
  print_result(options.result, {[&] { return comparison_table(comparison); },
                                [&] { return comparison_json(comparison); },
                                [&] { return comparison_csv(comparison); }});
  print_findings(findings_of(comparison),
                 [&](std::size_t place) { return comparison.ranked[place].name; });
  if (comparison.answered()) return static_cast<int>(Exit::done);
  const bool all_refused = std::ranges::none_of(
      comparison.ranked, [](const Contestant& of) { return of.refused.empty(); });
  const std::string all = counted(comparison.ranked.size(), "run");
  complain(all_refused ? fmt::format("of {} all were rejected; the table lists the reasons", all)
                       : fmt::format("of {} none fits in memory", all));
  return static_cast<int>(Exit::limit);
}

}  // namespace

Command add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare",
                                         "clusters, optimizers or exchanges of gradients side by "
                                         "side, best first; or results folders");
  add_what_if_flags(*command, options->what_if);
  command->add_option("NAMES", options->named,
                      "clusters, as --clusters; or folders that sweep wrote (default: none)");
  command
      ->add_option("--clusters", options->axes.clusters,
                   "presets or files: A,B,C (default: that of --cluster)")
      ->delimiter(',');
  command
      ->add_option("--optimizers", options->axes.optimizers,
                   "optimizers: lamb,onebit_lamb (default: that of --optimizer)")
      ->delimiter(',');
  command
      ->add_option("--exchanges", options->axes.exchanges,
                   "exchanges: all_reduce,fp8,int4,powersgd:4,topk:1%,local:16 (default: that of "
                   "--exchange)")
      ->delimiter(',');
  add_result_flags(*command, options->result);
  command->footer(
      R"(Several lists are every combination of them; ratios are against the first one named.
Examples
  lambcast compare dgx-a100-80g hgx-h100-ndr commodity-100gbe --model bert-large --gpus 64 --optimizer lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993
  lambcast compare --cluster commodity-10gbe --model bert-large --gpus 32 --optimizers lamb,onebit_lamb \
    --exchanges all_reduce,fp8,powersgd:4,topk:1%,local:16 --global-batch 65536 --micro-batch 16 --steps 5993 \
    --freeze-step 1000 --format csv
  lambcast compare results-of-lamb results-of-adam
Exit codes: 0 the best one runs and fits, 2 bad usage or input, 3 none does.)");
  return [options] { return compare_command(*options); };
}

}  // namespace lambcast
