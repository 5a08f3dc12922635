#include <fmt/format.h>

#include <memory>
#include <tuple>

#include "experiments/compare/solve_output.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/words.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/input_findings.h"
#include "tools/patience.h"
#include "tools/result_flags.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct SolveOptions {
  SolveQuestion question;
  std::string wanted;
  std::string low, high;
  ResultFlags result;
};

// Returns the missing flags. A single missing flag of the what-if is left to its reader, whose
// error says more.
Missing missing_words_of(const SolveOptions& options) {
  Missing missing;
  if (options.question.key.empty()) missing.add("KEY", "cluster.nic.bandwidth");
  if (options.wanted.empty()) missing.add("--for", "--for speedup=1.2");
  if (missing.names.empty() || has_run_files(options.question.what_if)) return missing;
  WhatIf asked = options.question.what_if;
  asked.emplace(options.question.key, "");
  missing.add(Words(asked).missing_inputs());
  return missing;
}

int solve_command(SolveOptions options) {
  SolveQuestion& question = options.question;
  missing_words_of(options).refuse();
  std::tie(question.metric, question.target) = parse_wanted(options.wanted);
  if (!options.low.empty()) question.low = options.low;
  if (!options.high.empty()) question.high = options.high;
  const Patience patience("solving");
  Catalog catalog;
  const Solution solution = solve(question, catalog);
  print_result(options.result,
               {[&] { return solution_table(solution); }, [&] { return solution_json(solution); },
                [&] { return solution_csv(solution); }});
  const auto asked_at = [&](const SolvePoint& point) {
    WhatIf asked = question.what_if;
    asked[question.key] = point.text;
    return asked;
  };
  print_findings({asked_at(solution.points.front()), asked_at(solution.points.back())}, catalog);
  const Solution::Kind kind = solution.kind();
  return static_cast<int>(kind == Solution::Kind::never || kind == Solution::Kind::not_monotone
                              ? Exit::limit
                              : Exit::done);
}

std::string metrics_help() {
  std::string out;
  for (const Metric& metric : metrics())
    out += fmt::format("  {:<14} {}\n", metric.name, metric.help);
  return out;
}

}  // namespace

Command add_solve(CLI::App& app) {
  auto options = std::make_shared<SolveOptions>();
  CLI::App* command =
      app.add_subcommand("solve", "which value of a number gives the answer that is wanted");
  command->add_option(
      "KEY", options->question.key,
      "required: what to solve for: gpus, grad_accum, freeze_step, cluster.nic.bandwidth, any "
      "number of the run, cluster or device");
  command->add_option("--for", options->wanted, "required: what is wanted: METRIC=VALUE");
  command->add_option(
      "--from", options->low,
      "the smallest value to try, such as 8 or 1Gbit/s (default: usual for the key)");
  command->add_option(
      "--to", options->high,
      "the largest value to try (default: usual for the key), such as 512 or 400Gbit/s");
  add_what_if_flags(*command, options->question.what_if);
  add_result_flags(*command, options->result);
  command->footer("Metrics\n" + metrics_help() +
                  R"(Examples
  lambcast solve gpus --for efficiency=90% --model bert-large --cluster dgx-a100-80g --optimizer lamb \
    --micro-batch 64 --grad-accum 1
  lambcast solve cluster.nic.bandwidth --for speedup=1.2 --model bert-large --cluster commodity-10gbe \
    --gpus 32 --optimizer onebit_lamb --global-batch 4096 --micro-batch 64 --steps 5993 --freeze-step 1000
  lambcast solve freeze_step --for run_time=20h --model bert-large --cluster commodity-10gbe --gpus 32 \
    --optimizer onebit_lamb --global-batch 4096 --micro-batch 64 --steps 100000
Exit codes: 0 done, 2 bad usage or input, 3 not reached or not monotone.)");
  return [options] { return solve_command(*options); };
}

}  // namespace lambcast
