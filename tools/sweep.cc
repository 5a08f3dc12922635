#include "experiments/sweep/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "experiments/report/report.h"
#include "experiments/sweep/common_length.h"
#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep_check.h"
#include "experiments/sweep/sweep_ranks.h"
#include "experiments/sweep/sweep_table.h"
#include "sim/base/complaint.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/input_findings.h"
#include "tools/launched_ranks.h"
#include "tools/progress.h"
#include "tools/stop_signal.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

// Larger tables on a terminal would not be readable.
constexpr std::size_t most_printed = 10'000, most_shown = 64;

struct SweepFlags {
  std::string file;
  std::string out;  // empty: the table is printed, and no file is written
  std::string write_sweep;
  std::string format;
  bool resume = false;
  bool dry_run = false;
  bool no_report = false;
  std::string explain;
  int jobs = 0;
  WhatIf what_if;
  std::vector<std::string> scans, lists;
  Ranks* ranks = nullptr;  // other ranks that compute until the sweep is over
};

// Time for other ranks to receive the end of the sweep, and to act on a signal.
constexpr std::chrono::seconds end_patience{5};
constexpr std::chrono::milliseconds stop_patience{250};

// Ends the other ranks. Returns false if there are some and they do not answer.
bool end_others(SweepFlags& options, int code, std::chrono::milliseconds patience) {
  Ranks* const ranks = std::exchange(options.ranks, nullptr);
  return ranks == nullptr || end_ranks(*ranks, code, patience);
}

// Ends the program immediately: a thread may be in the middle of a point that takes minutes.
[[noreturn]] void stop(SweepFlags& options) {
  std::fflush(stderr);
  end_others(options, 128 + stop_signal(), stop_patience);
  std::_Exit(128 + stop_signal());
}

// Prints the findings after the results.
void say_findings(const SweepSummary& summary, const SweepPlan& plan, const SweepFlags& options) {
  const std::vector<Axis> axes = axes_of(plan.points);
  print_findings(
      summary.findings, [&](std::size_t point) { return point_name(plan.points[point], axes); },
      options.explain != "notes");
}

// Prints what the report lacks. Figures that these rows cannot fill are counted in one line.
void say_messages(const std::vector<std::string>& messages, const std::string& out) {
  std::size_t figures = 0;
  for (const std::string& message : messages)
    if (message.starts_with("no figure "))
      ++figures;
    else
      say(message);
  if (figures > 0)
    say(fmt::format("{} figure(s) need other rows: lambcast report {} names them", figures, out));
}

int finish(const SweepSummary& summary, const SweepFlags& options) {
  const auto print_counts = [&] {
    const std::string kept = options.resume
                                 ? fmt::format(": {} kept, {} run now",
                                               summary.points - summary.written, summary.written)
                                 : "";
    fmt::print("{} points ({} infeasible) in {}{}\n", summary.points, summary.infeasible,
               (std::filesystem::path(options.out) / "results.csv").string(), kept);
  };
  if (options.no_report) {
    print_counts();
    return 0;
  }
  const report::Results results = report::read_results(options.out);
  print_text(
      report::summary_screen(results, fmt::format("lambcast report {} --summary", options.out)) +
      "\n");
  print_counts();
  std::fflush(stdout);  // the results are printed before any picture is drawn
  const report::Paths paths =
      report::write_report(results, options.out, {.stopped = [] { return stop_signal() != 0; }});
  say_messages(paths.messages, options.out);
  if (paths.stopped) {
    say(fmt::format("stopped while drawing; lambcast report {} draws again", options.out));
    return 128 + stop_signal();
  }
  fmt::print("report: {}\n", paths.page.string());
  return 0;
}

std::vector<Axis> axes_said(const SweepFlags& options) {
  std::vector<Axis> axes;
  for (const std::string& scan : options.scans) axes.push_back(parse_scan(scan));
  for (const std::string& list : options.lists) axes.push_back(parse_list(list));
  return axes;
}

// Flags narrow a sweep file; without a file, they define the sweep.
SweepPlan plan_of(const SweepFlags& options) {
  const std::vector<Axis> axes = axes_said(options);
  if (!options.file.empty()) return plan_named_sweep(options.file, options.what_if, axes);
  if (options.what_if.empty())
    throw Error(Exit::usage,
                "FILE is missing; try: lambcast sweep bert_large, or flags: lambcast sweep --model "
                "bert-large --cluster commodity-10gbe --optimizer onebit_lamb --micro-batch 64 "
                "--global-batch 16384 --steps 5993 --freeze-step 1000 --scan gpus=8..64");
  return plan_sweep_of_flags(options.what_if, axes);
}

int jobs_of(const SweepFlags& options) {
  if (options.jobs > 0) return options.jobs;
  if (options.ranks != nullptr) return 1;  // there is already a rank for every core
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

std::string workers_of(const SweepFlags& options) {
  const std::string threads = fmt::format("{} thread(s)", jobs_of(options));
  return options.ranks == nullptr ? threads
                                  : fmt::format("{} ranks of {}", options.ranks->count(), threads);
}

// Prints the rows to stdout, without writing files.
int print_sweep(const SweepPlan& plan, SweepFlags& options,
                const std::shared_ptr<DescriptionTexts>& texts) {
  if (plan.points.size() > most_printed)
    throw Error(Exit::usage, fmt::format("{} points are too many to print (up to {}): give --out "
                                         "DIR",
                                         plan.points.size(), most_printed));
  catch_stop_signals();
  Progress progress("points");
  const SweptRows swept = sweep_in_memory(
      plan, {.jobs = jobs_of(options), .ranks = options.ranks, .progress = std::ref(progress)},
      texts);
  if (!swept.complete) {
    say("stopped");
    stop(options);
  }
  if (options.format != "csv") {
    print_text(sweep_table(plan, swept.rows, swept.findings));
    return 0;
  }
  fmt::print("{}\n", csv::row(result_columns()));
  for (const std::string& row : swept.rows) fmt::print("{}\n", row);
  return 0;
}

int sweep_plan(const SweepPlan& plan, SweepFlags& options,
               const std::shared_ptr<DescriptionTexts>& texts) {
  if (!options.write_sweep.empty()) {
    if (!options.file.empty())
      fail_input({"", 0, "--write-sweep"},
                 "writes a sweep that is given by flags; here it is given by FILE");
    write_output(options.write_sweep, "--write-sweep", plan.text);
    if (options.write_sweep == "-") return 0;
  }
  const bool prints = options.file.empty() && options.out.empty();
  if (!prints && !options.format.empty())
    fail_input({"", 0, "--format"},
               "applies to printed tables only; with --out, read "
               "results.csv");
  if (options.out.empty()) options.out = "results";
  if (options.dry_run) {
    fmt::print("{}: {} points on {}, into {}\n", plan.name, plan.points.size(), workers_of(options),
               prints ? "stdout" : options.out);
    return 0;
  }
  if (prints) return print_sweep(plan, options, texts);
  if (!options.no_report) report::refuse_foreign_page(options.out);
  catch_stop_signals();
  Progress progress("points");
  const SweepSummary summary = run_sweep(plan, {.out = options.out,
                                                .jobs = jobs_of(options),
                                                .ranks = options.ranks,
                                                .resume = options.resume,
                                                .progress = std::ref(progress),
                                                .note = say});
  if (!summary.complete) {
    complain(
        fmt::format("stopped with {} rows more on disk; go on with --resume", summary.written));
    stop(options);
  }
  end_others(options, 0, end_patience);
  // A sweep of a few points is summarised at its end.
  if (options.file.empty() && plan.points.size() <= most_shown)
    print_text(sweep_table(plan, options.out) + "\n");
  else if (plan.points.size() <= most_printed)
    print_text(keys_without_effect(plan, options.out));
  const int code = finish(summary, options);
  say_findings(summary, plan, options);
  return code;
}

int sweep(SweepFlags& options) {
  const auto texts = std::make_shared<DescriptionTexts>();
  Catalog catalog(texts);
  const SweepPlan asked = plan_of(options);
  check_values(asked.points, catalog);
  const SweepPlan plan = with_common_length(asked, catalog);
  const int code = sweep_plan(plan, options, texts);
  std::fflush(stdout);
  for (const std::string& note : plan.notes) say(note);
  return code;
}

// Reports an error of this rank and ends the others, which would wait forever. The message comes
// first: mpirun kills all ranks when one has failed.
int give_up(SweepFlags& options, const Complaint& complaint) {
  complain(complaint.text);
  std::fflush(stderr);
  const int code = static_cast<int>(complaint.code);
  Ranks* const ranks = options.ranks;
  if (!end_others(options, code, end_patience)) ranks->abort(code);
  return code;
}

// Runs the sweep on rank 0, which reads, writes and prints.
int sweep_at_rank_0(SweepFlags& options) {
  try {
    const int code = sweep(options);
    end_others(options, code, end_patience);
    return code;
  } catch (const std::exception& error) {
    if (options.ranks == nullptr) throw;
    return give_up(options, complaint_of(error));
  }
}

// Delays the end of the other ranks. After a signal to all ranks, mpirun kills them when the first
// one ends, and rank 0 must first report what is on disk.
void outlive_rank_0() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { alarm(5); });
}

int sweep_command(SweepFlags options) {
  try {
    options.ranks = launched_ranks();
  } catch (const Error& error) {
    if (speaks_for_all()) throw;
    outlive_the_first();
    return static_cast<int>(error.code());
  }
  if (options.ranks == nullptr || options.ranks->rank() == 0) return sweep_at_rank_0(options);
  outlive_rank_0();
  // Ends immediately: a thread that is still running ends with the process.
  std::_Exit(serve_sweep(*options.ranks, sweep_row));
}

}  // namespace

Command add_sweep(CLI::App& app) {
  auto options = std::make_shared<SweepFlags>();
  CLI::App* command =
      app.add_subcommand("sweep", "many what-ifs, from a sweep file or flags: table, CSV, report");
  command->add_option("FILE", options->file,
                      "a sweep file, - for stdin, or one that ships: bert_large, exchanges; "
                      "default: none, the flags say it all");
  command->add_option("--out", options->out,
                      "folder for the results (default: results; of flags alone: the table is "
                      "printed, nothing written)");
  command->add_option(
      "--write-sweep", options->write_sweep,
      "write the sweep file that the flags amount to (-: to stdout, and stop; default: none)");
  command
      ->add_option("--format", options->format,
                   "table (the default) or csv, where nothing is written")
      ->check(CLI::IsMember({"table", "csv"}));
  command->add_flag("--resume", options->resume, "go on where a stopped sweep ended");
  command
      ->add_option("--jobs", options->jobs,
                   "threads (default: all cores; of each rank under mpirun: 1)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--scan", options->scans,
                   "vary a key: KEY=FROM..TO (doubling), KEY=low:high:x2 or KEY=low:high:step; may "
                   "be repeated")
      ->allow_extra_args(false);
  command->add_option("--list", options->lists, "vary a key: KEY=a,b,c; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--explain", options->explain,
                   "notes: print each note in full after the results (default: its code)")
      ->check(CLI::IsMember({"notes"}))
      ->type_name("notes");
  command->add_flag("--dry-run", options->dry_run, "say what would run");
  command->add_flag("--no-report", options->no_report, "write results.csv and manifest.json only");
  add_what_if_flags(*command, options->what_if);
  command->footer(R"(Examples
  lambcast sweep --model bert-large --cluster commodity-10gbe --optimizer onebit_lamb --micro-batch 64 \
    --steps 5993 --freeze-step 1000 --list global_batch=4096,16384,65536 --scan gpus=8..64
  lambcast sweep bert_large --out results
  mpirun -n 64 lambcast sweep bert_large --out results
  lambcast sweep sweep.toml --out results-own --scan gpus=8:256:x2 --list optimizer=lamb,onebit_lamb)");
  return [options] { return sweep_command(*options); };
}

}  // namespace lambcast
