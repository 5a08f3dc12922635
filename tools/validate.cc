#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>

#include "experiments/output/commit.h"
#include "experiments/output/forecast_output.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "tools/commands.h"
#include "tools/import_flags.h"
#include "tools/terminal.h"
#include "validate/program/after_one_step.h"
#include "validate/program/compressed_speedups.h"
#include "validate/program/grades.h"
#include "validate/program/unseen_stacks.h"
#include "validate/replay/fabric_scores.h"
#include "validate/replay/layout_ranking.h"
#include "validate/replay/log_replay.h"
#include "validate/replay/page.h"
#include "validate/replay/registered.h"

namespace lambcast {
namespace {

struct ValidateOptions {
  std::string against, cluster, source, format = "table", backend, rows, out;
  std::string questions, registered;
  validate::ImportHints hints;
  std::optional<double> max_error;
  bool canary = false;
};

constexpr double largest_max_error = 10;  // a forecast that is eleven times too long

// Reads "15%" as 0.15.
CLI::Validator share_of_percent() {
  return {[](std::string& text) -> std::string {
            char* end = nullptr;
            const double number = std::strtod(text.c_str(), &end);
            const std::string_view behind(end);
            if (end == text.c_str() || !(behind.empty() || behind == "%"))
              return fmt::format("'{}' is not a share (allowed: such as 0.15 or 15%)", text);
            if (behind == "%") text = fmt::format("{}", number / 100);
            return {};
          },
          ""};
}

// Returns the cases of the user's log on the user's cluster.
std::vector<CollectiveCase> cases_from_log(const ValidateOptions& options) {
  std::optional<Backend> backend;
  if (!options.backend.empty()) backend = backend_of(options.backend);
  return log_cases(
      validate::import_measurements(read_file(options.against), options.against, options.hints),
      options.against, options.cluster, backend);
}

Validation validation_of(const ValidateOptions& options) {
  Validation validation;
  if (!options.cluster.empty()) {
    std::vector<CollectiveLimit> limits;
    if (options.max_error)
      limits.push_back({"*", "", Bytes(0), Bytes(std::numeric_limits<double>::infinity()),
                        *options.max_error, std::nullopt});
    validation.collectives = replay_collectives(cases_from_log(options), limits);
    return validation;
  }
  std::vector<ReplayCase> cases = options.against.empty()
                                      ? published_cases()
                                      : parse_cases(read_file(options.against), options.against);
  if (options.canary) cases.push_back(canary_case());
  validation.training = replay(cases);
  if (!options.against.empty()) return validation;
  validation.sources = replay_sources();
  std::vector<CollectiveCase> tables = carried_collectives();
  if (options.canary) tables.push_back(canary_collective());
  validation.collectives = replay_collectives(tables, carried_limits());
  return validation;
}

// Replays rows of a table of training runs, by the mapping of its source.
int replay_source(const ValidateOptions& options) {
  const SourceSummary summary =
      replay_rows(read_file(options.against), options.against, options.source);
  const std::string rows = source_results_csv(summary);
  if (!options.rows.empty()) write_output(options.rows, "--rows", rows);
  if (options.format == "csv" && options.rows != "-") fmt::print("{}", rows);
  if (options.format != "csv" && options.rows != "-") print_text(source_table(summary));
  fmt::print(stderr, "{}", source_brief(summary));
  const bool past = options.max_error && summary.all.median > *options.max_error;
  return static_cast<int>(past ? Exit::limit : Exit::done);
}

int register_questions(const std::string& file) {
  const std::string stamp = fmt::format("registered {:%F} by lambcast {} ({})",
                                        fmt::gmtime(std::time(nullptr)), tool_version, tool_commit);
  fmt::print("{}", register_forecasts(read_file(file), file, stamp));
  return static_cast<int>(Exit::done);
}

int compare_registered(const ValidateOptions& options) {
  const RegisteredScore score = score_registered(read_file(options.registered), options.registered,
                                                 read_file(options.against), options.against);
  print_text(registered_table(score));
  const bool past = options.max_error && score.score.median > *options.max_error;
  return static_cast<int>(past ? Exit::limit : Exit::done);
}

// Files are opened first: if one cannot be written, there is no result on stdout.
int validate_command(const ValidateOptions& options) {
  if (options.max_error && !(*options.max_error >= 0 && *options.max_error <= largest_max_error))
    fail_input({"", 0, "--max-error"}, "is not a limit: it is a share, not percent",
               fmt::format("a number from 0 to {:.0f}, such as 0.15 or 15%", largest_max_error));
  if (!options.questions.empty()) return register_questions(options.questions);
  if (!options.registered.empty()) return compare_registered(options);
  if (!options.source.empty()) return replay_source(options);
  if (options.max_error && options.cluster.empty())
    throw Error(Exit::usage, "--max-error requires --cluster, --as or --registered");
  const Validation validation = validation_of(options);
  const auto& [training, collectives, sources] = validation;
  if (!options.rows.empty() && collectives)
    write_output(options.rows, "--rows", collective_replay_csv(*collectives));
  std::string page;
  if (!options.out.empty()) {
    const report::Paths paths = write_validation(validation, options.out);
    for (const std::string& message : paths.messages) say(message);
    page = fmt::format("report: {}\n", paths.page.string());
  }
  const int code = static_cast<int>(within(validation) ? Exit::done : Exit::limit);
  if (options.rows == "-") return code;  // the rows are the result
  std::optional<LeftOutStacks> left_out;
  if (sources) {
    left_out = leave_out_stacks();
    print_text(grade_table(grades_of(*sources, *left_out)) + "\n");
  }
  if (training) print_text(replay_table(*training) + "\n");
  if (sources)
    print_text(source_table(*sources) + "\n" + left_out_table(*left_out) + "\n" +
               one_step_table(after_one_step(unseen_stacks()), after_one_step(unseen_stacks(), 3)) +
               "\n" + speedup_table(compressed_speedups()) +
               (training ? "\n" + each_speedup_table(speedups_in_view(training->results)) : "") +
               "\n" +
               choice_table(choice_of(layout_jobs(sources->results)),
                            choice_of(layout_jobs(results_of(*left_out)))) +
               "\n");
  if (collectives)
    print_text((options.cluster.empty() ? "" : log_replay_table(*collectives) + "\n") +
               fabric_score_table(collectives->results) + "\n" +
               collective_replay_table(*collectives));
  print_text(page);
  return code;
}

// Adds the flags for files in addition to the table, for every form of the question.
void add_outputs(CLI::App& command, ValidateOptions& options) {
  command.add_option(
      "--out", options.out,
      "folder for a page with scatter plots, the plots, and the rows as CSV (default: none)");
  command.add_option(
      "--rows", options.rows,
      "file for every measured and forecast row as CSV (-: to stdout, alone; default: none)");
}

}  // namespace

Command add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command =
      app.add_subcommand("validate", "forecast against measurement; exit code 3 past the limits");
  CLI::Option* const against = command->add_option(
      "--against", options->against,
      "figures of your own: with --cluster a log of nccl-tests, OSU or lambcast measure, else "
      "training cases as validate/replay/published/*.csv, or with --as rows of a source (default: "
      "the measurements that ship)");
  CLI::Option* const cluster =
      command
          ->add_option(
              "--cluster", options->cluster,
              "cluster of the log: a preset or a file (default: none, rows have their own)")
          ->needs(against);
  CLI::Option* const source =
      command
          ->add_option("--as", options->source,
                       "whose table of training runs the rows belong to, as "
                       "validate/replay/sources/*.toml; runs: columns are what-if keys and one "
                       "measured column (default: none)")
          ->needs(against)
          ->excludes(cluster);
  command
      ->add_option("--register", options->questions,
                   "questions (what-if keys and case) to print with their forecasts, the day and "
                   "the commit, as validate/registered/*.csv (default: none)")
      ->excludes(against);
  command
      ->add_option("--registered", options->registered,
                   "registered forecasts to compare with --against: columns case and step_time_s "
                   "(default: none)")
      ->needs(against)
      ->excludes(cluster)
      ->excludes(source);
  command
      ->add_option("--format", options->format,
                   "what --as prints: table (the default) or csv, every row")
      ->check(CLI::IsMember({"table", "csv"}))
      ->needs(source);
  std::vector<CLI::Option*> of_log = add_import_flags(*command, options->hints);
  of_log.push_back(
      command
          ->add_option(
              "--backend", options->backend,
              "whose log it is, nccl or mpi (default: as it says, else what the cluster was "
              "calibrated for)")
          ->check(CLI::IsMember({"nccl", "mpi"})));
  command
      ->add_option("--max-error", options->max_error,
                   "limit of the median error of the log or rows, as 0.1 or 10% (default: none)")
      ->transform(share_of_percent())
      ->needs(against);
  for (CLI::Option* const option : of_log) option->needs(cluster);
  add_outputs(*command, *options);
  command
      ->add_flag("--canary", options->canary,
                 "add cases that are wrong on purpose: must exit with 3")
      ->excludes(cluster)
      ->excludes(source);
  command->footer(R"(Examples
  lambcast validate --out results-validation
  lambcast validate --against all_reduce.log --cluster mine.toml --nodes 4 --max-error 0.15
  lambcast validate --against osu.log --ranks 8 --cluster mine.toml --nodes 2 --backend mpi
  lambcast validate --against more_rows.csv --as megatron_a100 --format csv
  lambcast validate --against my_runs.csv --as runs --max-error 0.1
  lambcast validate --register questions.csv > registered.csv
  lambcast validate --registered registered.csv --against published.csv)");
  return [options] { return validate_command(*options); };
}

}  // namespace lambcast
