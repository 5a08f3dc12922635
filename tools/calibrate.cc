#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "experiments/output/input_ledger.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/words.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "sim/base/overrides.h"
#include "sim/base/printable.h"
#include "sim/base/shell_word.h"
#include "sim/base/table.h"
#include "tools/commands.h"
#include "tools/import_flags.h"
#include "tools/patience.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"
#include "topologies/nccl_log.h"
#include "topologies/program_level.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/kept_values.h"
#include "validate/calibrate/measured_tables.h"
#include "validate/importers/gpu_of_log.h"
#include "validate/importers/log_ledger.h"
#include "validate/program/job_trace.h"
#include "validate/program/level_fit.h"
#include "validate/program/log_against_flags.h"
#include "validate/program/metric_file.h"
#include "validate/program/trace_report.h"
#include "validate/program/training_log.h"
#include "validate/replay/measured_quantity.h"
#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

struct CalibrateOptions {
  WhatIf what_if;
  std::string output, name, source, runs, stage, explain;
  std::vector<std::string> files, measured, logs, traces;
  bool force = false;
  bool another_machine = false;
  validate::ImportHints hints;
};

std::string file_stem(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.rfind('.'));
}

// Shows progress only on a terminal: calibrating a few tables takes an instant, thousands of rows
// seconds.
void show_progress(int done, int all) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\rfitting: {} of {} searches", done, all);
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{:40}\r", "");
}

// The description to start from.
struct Base {
  std::string text, file;
};

Base base_of(const CalibrateOptions& options) {
  const std::string& name = options.what_if.at("cluster");
  return {cluster_description(name), is_path(name) ? name : name + ".toml"};
}

std::string name_inside(const CalibrateOptions& options) {
  if (!options.name.empty()) return printable(options.name);
  return printable(options.output == "-" ? "calibrated" : file_stem(options.output));
}

// Writes the description and prints `next`, a command that uses it.
void write_description(const CalibrateOptions& options, const std::string& text,
                       const std::string& report, const std::string& next) {
  write_output(options.output, "-o", text);
  if (options.output == "-")
    fmt::print(stderr, "{}", report);
  else
    print_text(
        fmt::format("{}\nWritten to {}; forecast with:\n  {}\n", report, options.output, next));
}

// Hints from the flags for tables of collectives.
struct TableHints {
  validate::ImportHints hints;
  std::optional<Backend> backend;
};

TableHints hints_of(const CalibrateOptions& options) {
  TableHints of{options.hints, {}};
  for (const auto& [key, value] : options.what_if) {
    if (key == "nodes")
      of.hints.nodes = static_cast<int>(*Words(options.what_if).whole("nodes", 1, 1'000'000));
    else if (key == "backend" && (value == "nccl" || value == "mpi"))
      of.backend = backend_of(value);
    else if (key == "backend")
      fail_input({"", 0, "--backend"}, fmt::format("'{}' has no tables", value), "nccl or mpi");
    else if (key != "cluster" && key != "topology")
      fail_input(flag(key), "describes a training run, which tables of collectives do not need",
                 "with --measured METRIC=VALUE or --runs RUNS.csv instead of FILE");
  }
  return of;
}

// Warns if a log of another GPU would fit its rates to a description.
void warn_of_other_gpu(const std::string& file, const validate::Measurement& table,
                       const Base& base) {
  const auto device = Table::parse(base.text, base.file).get_or<std::string>("device", "");
  if (const std::string other = validate::other_gpu(table, device); !other.empty())
    complain(
        fmt::format("warning: {} is a log of {}, and {} has {}: give the cluster of the log, "
                    "or --another-machine",
                    printable(file), printable(other), base.file, device));
}

// Warns of keys of a log whose effect is not known.
void warn_of_unknown_keys(const std::string& file, std::string_view text) {
  std::vector<std::string> names;
  for (const LedgerEntry& entry : validate::log_ledger(text))
    if (entry.treatment == Treatment::named) names.push_back(entry.key);
  if (!names.empty())
    complain(fmt::format("warning: {}: {}: not read, and its cost is unknown", printable(file),
                         printable(fmt::format("{}", fmt::join(names, ", ")))));
}

// Writes the settings of NCCL in a log of NCCL_DEBUG=INFO into the description to start from. What
// it states about NICs is compared with the description.
void apply_nccl_log(const std::string& file, std::string_view text, Base& base) {
  if (!is_nccl_log(text)) return;
  const NcclLog log = read_nccl_log(text);
  const Table described = Table::parse(base.text, base.file);
  std::vector<std::pair<std::string, std::string>> keys;
  std::string written, differs;
  for (const auto& [key, value] : log.keys) {
    if (says(described, key, value)) continue;
    const bool of_nccl = key.starts_with("nccl.");
    if (of_nccl) keys.emplace_back(key, value);
    std::string& list = of_nccl ? written : differs;
    list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", key, value);
  }
  if (!keys.empty()) base.text = validate::cluster_with_keys(base.text, base.file, keys);
  const auto note = [&](std::string_view what, const std::string& facts) {
    if (!facts.empty())
      complain(fmt::format("{}: {}: {}", printable(file), what, printable(facts)));
  };
  note("written to the description from its lines of NCCL_DEBUG=INFO", written);
  note(fmt::format("warning: its lines of NCCL_DEBUG=INFO differ from {}", base.file), differs);
  note("not applied", log.other);
}

// Prints the effect of each key of the logs.
int explain_logs(const CalibrateOptions& options) {
  if (options.files.empty() && options.logs.empty())
    fail_input({"", 0, "--explain"}, "'inputs' lists the keys of logs, and none is given",
               "FILE or --log FILE");
  for (const std::string& file : options.files)
    print_text(ledger_table({file, validate::log_ledger(read_file(file))}));
  for (const std::string& file : options.logs)
    print_text(ledger_table({file, validate::log_ledger(read_log_file(file))}));
  return 0;
}

int calibrate_collectives(const CalibrateOptions& options) {
  Base base = base_of(options);
  const TableHints of = hints_of(options);
  std::vector<validate::Measurement> tables;
  if (const auto log = options.what_if.find("topology"); log != options.what_if.end()) {
    const std::string text = read_file(log->second);
    if (!is_nccl_log(text))
      fail_input({"", 0, "--topology"}, log->second + " is no log of NCCL_DEBUG=INFO",
                 "such a log next to tables; other topologies with simulate");
    apply_nccl_log(log->second, text, base);
  }
  for (const std::string& file : options.files) {
    const std::string text = read_file(file);
    apply_nccl_log(file, text, base);
    for (validate::Measurement& table : validate::import_measurements(text, file, of.hints)) {
      if (!options.another_machine) warn_of_other_gpu(file, table, base);
      tables.push_back(std::move(table));
    }
    warn_of_unknown_keys(file, text);
  }
  const Backend backend = validate::backend_of_tables(tables, of.backend);
  // Progress for a run without a terminal.
  std::optional<Patience> patience;
  if (isatty(STDERR_FILENO) == 0) patience.emplace("fitting");
  validate::FitSummary summary =
      validate::calibrate(base.text, base.file, tables, backend, show_progress);
  clear_progress();
  if (summary.calibration) summary.calibration->another_machine = options.another_machine;
  const std::string source =
      printable(options.source.empty() ? validate::sources_of(tables) : options.source);
  const std::string text =
      validate::calibrated_cluster(base.text, base.file, name_inside(options), summary, source);
  write_description(options, text, validate::brief_report(summary),
                    validate::forecast_command(options.output, tables, backend));
  return 0;
}

// Measured steps, with the parts of their time and the levels of kernels according to traces.
struct MeasuredSteps {
  std::vector<SourceFigure> steps;
  std::string breakdowns;
  KindLevels kinds;
};

// Returns the measured steps. Keys in a row of --runs take precedence over those of flags.
MeasuredSteps measured_steps(const CalibrateOptions& options) {
  MeasuredSteps measured;
  std::string& breakdowns = measured.breakdowns;
  WhatIf what_if = options.what_if;
  std::vector<SourceFigure>& steps = measured.steps;
  for (const std::string& text : options.measured) steps.push_back(measured_step(text, what_if));
  if (!options.runs.empty())
    for (SourceFigure& figure :
         figures_of_runs(parse_rows(read_file(options.runs), options.runs))) {
      figure.what_if.insert(what_if.begin(), what_if.end());
      if (figure.name.empty()) figure.name = fmt::format("row {}", figure.row);
      steps.push_back(std::move(figure));
    }
  for (const std::string& file : options.logs) {
    const std::string text = read_log_file(file);
    const TrainingLog log = read_training_log(text, file);
    warn_of_unknown_keys(file, text);
    std::string filled;
    steps.push_back(figure_of(log, file, what_if, filled));
    steps.back().what_if.emplace("steps", "1000");
    check_against_log(settings_of(log), file, steps.back());
    breakdowns += filled;
  }
  std::vector<KindLevels> kinds;
  for (const std::string& file : options.traces) {
    const JobTrace trace = read_job_trace(file);
    steps.push_back(figure_of(trace, file, what_if));
    steps.back().what_if.emplace("steps", "1000");
    breakdowns += trace_report(trace, steps.back());
    kinds.push_back(kind_levels(trace, steps.back()));
  }
  measured.kinds = median_of(std::move(kinds));
  for (SourceFigure& figure : steps) {
    figure.stage = options.stage;
    figure.what_if.emplace("steps", "1000");  // the time of a step does not depend on it
  }
  return measured;
}

// Returns a command that repeats a measured run with the written description. Keys that shape a
// forecast, such as attention and fusion, are those of the run, not the defaults.
std::string command_of(const CalibrateOptions& options, const SourceFigure& run) {
  const std::string& file = options.output;
  std::string command =
      fmt::format("lambcast simulate --cluster {}", shell_word(is_path(file) ? file : "./" + file));
  std::string_view note;
  for (const auto& [key, value] : run.what_if) {
    if (key == "cluster" || key == "device") continue;  // the description holds the device
    if (key.find('.') != key.npos) {
      command += fmt::format(" --set {}", shell_word(fmt::format("{}={}", key, value)));
      continue;
    }
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    const bool inside_log = key == "model" && run.texts.contains("model " + value);
    command += fmt::format(" --{} {}", name, inside_log ? "MODEL" : shell_word(value));
    if (inside_log) note = "  # MODEL: a preset or file with the sizes of the log";
  }
  return command.append(note);
}

// Returns a line if the description contains the level of another program, which is replaced.
std::string level_replaced(const Base& base, const ProgramLevel& level) {
  const auto held = decode_program_level(Table::parse(base.text, base.file).table("program"));
  if (!held || (held->framework == level.framework && held->format == level.format)) return "";
  return fmt::format(
      "{} holds the level of {} in {} format; that of {} in {} format replaces it\n\n", base.file,
      held->framework, held->format, level.framework, level.format);
}

int calibrate_program(const CalibrateOptions& options) {
  const Base base = base_of(options);
  for (const auto& [key, value] : options.what_if)
    if (key.starts_with("cluster.") || key.starts_with("device."))
      fail_input({"", 0, "--set"},
                 fmt::format("{} changes a description that the level is written into", key),
                 "model.KEY; write the others into the file of --cluster or --device first");
  const MeasuredSteps measured = measured_steps(options);
  // For steps that set no level, the parts of their time are still printed.
  const LevelFit fit = [&] {
    try {
      return fit_level(measured.steps, measured.kinds);
    } catch (const Error&) {
      fmt::print(options.output == "-" ? stderr : stdout, "{}", measured.breakdowns);
      throw;
    }
  }();
  const auto device = options.what_if.find("device");
  const std::string text = validate::cluster_with_program(
      base.text, base.file, name_inside(options),
      device == options.what_if.end() ? "" : device->second, fit.program);
  write_description(options, text,
                    measured.breakdowns + level_replaced(base, fit.program) + level_report(fit),
                    command_of(options, measured.steps.front()));
  return 0;
}

// Returns the flags that are missing. Logs, traces and rows of runs give their own keys; a measured
// step has only those of the flags.
Missing missing_words_of(const CalibrateOptions& options, bool steps) {
  Missing missing;
  if (options.output.empty()) missing.add("--output", "-o mine.toml");
  if (!steps && options.files.empty())
    missing.add("FILE, --measured, --log, --job-trace or --runs", "all_reduce.log");
  if (!options.measured.empty() && !has_run_files(options.what_if))
    missing.add(Words(options.what_if).missing_inputs());
  else if (!options.what_if.contains("cluster"))
    missing.add("--cluster", "--cluster hgx-h100-ndr");
  return missing;
}

int calibrate_command(const CalibrateOptions& options) {
  if (!options.explain.empty()) return explain_logs(options);
  if (std::filesystem::is_regular_file(options.output) && !options.force)
    fail_input({options.output, 0, "-o"}, "exists already: --force replaces it");
  const bool steps = !options.measured.empty() || !options.runs.empty() || !options.logs.empty() ||
                     !options.traces.empty();
  if (steps && !options.files.empty())
    fail_input({"", 0, "FILE"}, "holds collectives, which are fitted before steps",
               "lambcast calibrate FILE -o network.toml, then --cluster network.toml --measured");
  for (const std::string& text : options.measured) measured_step(text, {});
  missing_words_of(options, steps).refuse();
  return steps ? calibrate_program(options) : calibrate_collectives(options);
}

}  // namespace

Command add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "fit a cluster description to measured collectives or training steps");
  command->add_option("-o,--output", options->output,
                      "required: the fitted description to write (.toml; -: to stdout, with the "
                      "report on stderr)");
  command->add_flag("--force", options->force, "replace the file of -o if there is one");
  command->add_option("FILE", options->files,
                      "tables: nccl-tests text or JSON, OSU, IMB, ds_bench, iperf3 -J, perftest, "
                      "lambcast measure, our CSV; - for stdin (default: none, if steps are given)");
  command
      ->add_option(
          "--measured", options->measured,
          fmt::format("a step of your own program, which the flags of simulate describe: "
                      "METRIC=VALUE such as step_time=5436ms; metrics: {}; may be repeated",
                      fmt::join(measured_names(), ", ")))
      ->allow_extra_args(false);
  command->add_option(
      "--runs", options->runs,
      "the same for many runs: a CSV whose columns are what-if keys and the METRICs of "
      "--measured, as validate --as runs reads it (default: none)");
  command
      ->add_option(
          "--log", options->logs,
          "the same from the log of a training program, plain or gzip: Megatron-LM and its forks, "
          "DeepSpeed, torchtitan, NeMo, MaxText, Hugging Face Trainer (or its "
          "trainer_state.json), metrics.csv of Lightning; what it states of the run stands "
          "in for flags that are not given; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--job-trace", options->traces,
          "the same from a trace of one rank, of PyTorch's profiler (JSON, plain or gzip) or "
          "Nsight Systems (SQLite export), with its parts next to those of the forecast; may "
          "be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--stage", options->stage,
                   "phase of a 1-bit optimizer that was measured (default: its first)")
      ->check(CLI::IsMember({"warmup", "compression"}));
  command
      ->add_option("--explain", options->explain,
                   "inputs: prints the treatment of each key of the logs, and fits nothing "
                   "(default: none)")
      ->check(CLI::IsMember({"inputs"}));
  command->add_option("--name", options->name, "name inside the description (default: the file's)");
  command->add_option("--source", options->source,
                      "where the tables are from, for the description (default: as they say)");
  command->add_flag("--another-machine", options->another_machine,
                    "the tables are of another machine of the same hardware: forecasts are not "
                    "called calibrated, and their intervals hold what machines differ by");
  add_import_flags_but_nodes(*command, options->hints);
  add_what_if_flags(*command, options->what_if);
  command->footer(R"(Example
  lambcast calibrate --cluster hgx-h100-ndr --nodes 4 -o mine.toml all_reduce.log
  lambcast collective --cluster mine.toml --gpus 64 --format json
  lambcast calibrate --cluster mine.toml --model llama2-70b --gpus 64 --tp 8 --framework megatron \
    --precision bf16 --micro-batch 1 --grad-accum 16 --optimizer adamw --measured step_time=21.4s \
    -o my-program.toml
  lambcast simulate --cluster my-program.toml --model llama2-70b --gpus 256 ...)");
  return [options] { return calibrate_command(*options); };
}

}  // namespace lambcast
