#include "experiments/sweep.h"

#include <fmt/format.h>
#include <cstdlib>
#include <memory>
#include <thread>

#include "experiments/report/report.h"
#include "experiments/sweep_check.h"
#include "sim/base/file.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/stop_signal.h"

namespace lambcast {
namespace {

struct Options {
  std::string file;
  std::string out = "results";
  bool resume = false;
  bool dry_run = false;
  bool no_report = false;
  int jobs = 0;
  std::vector<std::string> scans, lists;
};

std::string read_sweep(const std::string& name) {
  if (const std::string study = study_text(name); !study.empty()) return study;
  if (name != "-" && !std::filesystem::exists(name))
    fail_input({name, 0, {}}, "does not exist",
               "a sweep file, - for stdin, or the study bert_large");
  return read_file(name);
}

void say(const std::string& message) { fmt::print(stderr, "lambcast: {}\n", printable(message)); }

int finish(const SweepSummary& summary, const Options& options) {
  if (!summary.complete) {
    fmt::print(stderr, "lambcast: stopped with {} rows more on disk; go on with --resume\n",
               summary.written);
    std::fflush(stderr);
    // At once: a thread may be in the middle of a point that takes minutes.
    std::_Exit(128 + stop_signal());
  }
  const auto print_counts = [&] {
    fmt::print("{} points ({} infeasible) in {}\n", summary.points, summary.infeasible,
               (std::filesystem::path(options.out) / "results.csv").string());
  };
  if (options.no_report) {
    print_counts();
    return 0;
  }
  const report::Results results = report::read_results(options.out);
  fmt::print("{}\n", report::summary_text(results));
  print_counts();
  std::fflush(stdout);  // the results are out, whatever becomes of the pictures
  const report::Paths paths =
      report::write_report(results, options.out, {.stopped = [] { return stop_signal() != 0; }});
  for (const std::string& message : paths.messages) say(message);
  if (paths.stopped) {
    say(fmt::format("stopped while drawing; lambcast report {} draws again", options.out));
    return 128 + stop_signal();
  }
  fmt::print("report: {}\n", paths.page.string());
  return 0;
}

int sweep_command(const Options& options) {
  std::vector<Axis> axes;
  for (const std::string& scan : options.scans) axes.push_back(parse_scan(scan));
  for (const std::string& list : options.lists) axes.push_back(parse_list(list));
  const SweepPlan plan = plan_sweep(read_sweep(options.file), options.file, axes);
  for (const std::string& note : plan.notes) say(note);
  const int jobs = options.jobs > 0
                       ? options.jobs
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (options.dry_run) {
    Catalog catalog;
    check_values(plan.points, catalog);
    fmt::print("{}: {} points on {} thread(s), into {}\n", plan.name, plan.points.size(), jobs,
               options.out);
    return 0;
  }
  if (!options.no_report) report::refuse_foreign_page(options.out);
  catch_stop_signals();
  Progress progress("points");
  return finish(run_sweep(plan, {.out = options.out,
                                 .jobs = jobs,
                                 .resume = options.resume,
                                 .progress = std::ref(progress),
                                 .note = say}),
                options);
}

}  // namespace

Command add_sweep(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("sweep", "many what-ifs: CSV, plots and a report from a sweep file");
  command
      ->add_option("FILE", options->file,
                   "a sweep file, or the study that ships inside: bert_large")
      ->required();
  command->add_option("--out", options->out, "folder for the results (default: results)");
  command->add_flag("--resume", options->resume, "go on where a stopped sweep ended");
  command->add_option("--jobs", options->jobs, "threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--scan", options->scans, "vary a key: KEY=low:high:x2 or KEY=low:high:step")
      ->allow_extra_args(false);
  command->add_option("--list", options->lists, "vary a key: KEY=a,b,c")->allow_extra_args(false);
  command->add_flag("--dry-run", options->dry_run, "say what would run");
  command->add_flag("--no-report", options->no_report, "write results.csv and manifest.json only");
  command->footer(R"(Examples
  lambcast sweep bert_large --out results
  lambcast sweep sweep.toml --out results --scan gpus=8:256:x2 --list optimizer=lamb,onebit_lamb)");
  return [options] { return sweep_command(*options); };
}

}  // namespace lambcast
