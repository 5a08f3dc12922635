#include "experiments/sweep/rerun.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "experiments/output/commit.h"
#include "experiments/output/forecast_output.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_check.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/stop_signal.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

struct RerunOptions {
  std::string folder, out;
  int jobs = 0;
};

// Throws Error if the inputs of the recorded sweep have changed.
void refuse_changed(const Recorded& recorded, const SweepPlan& plan, const std::string& folder) {
  Catalog catalog;
  check_values(plan.points, catalog);
  const auto changed = changed_inputs(recorded, catalog.texts()->hashes());
  if (!changed.empty()) throw Error(Exit::usage, fmt::format("{}: {}", folder, changed.front()));
}

// Removes the rows of the rerun, and their folder if nothing else is in it.
void remove_rows(const fs::path& folder) {
  for (const char* name : {"results.csv", "results.sums", "manifest.json"})
    remove_file(folder / name);
  if (fs::is_empty(folder)) remove_file(folder);
}

// Returns 0 if the rows are the same byte for byte. They are then kept only once, unless --out is
// given.
int compare_rows(const RerunOptions& options, bool keep) {
  const std::string then = read_file((fs::path(options.folder) / "results.csv").string());
  const std::string now = read_file((fs::path(options.out) / "results.csv").string());
  if (then == now) {
    if (!keep) remove_rows(options.out);
    print_text(fmt::format("The same bytes: results.csv in {} and {}.\n", options.folder,
                           keep ? "in " + options.out : "made again"));
    return static_cast<int>(Exit::done);
  }
  const auto [a, b] = std::ranges::mismatch(then, now);
  print_text(fmt::format("Not the same: results.csv in {} and in {} differ from line {} on.\n",
                         options.folder, options.out, std::count(then.begin(), a, '\n') + 1));
  return static_cast<int>(Exit::limit);
}

int rerun_command(RerunOptions options) {
  while (options.folder.size() > 1 && options.folder.ends_with('/')) options.folder.pop_back();
  const bool keep = !options.out.empty();
  if (!keep) options.out = options.folder + ".again";
  const Recorded recorded = read_recorded(options.folder);
  if (!recorded.complete)
    fail_input({options.folder, 0, {}}, "holds a sweep that is not complete",
               "sweep --resume ends it");
  SweepPlan plan =
      plan_sweep(recorded.sweep, options.folder + "/manifest.json: sweep", recorded.flags);
  plan.command = recorded.command;
  refuse_changed(recorded, plan, options.folder);
  if (recorded.version != tool_version || recorded.commit != tool_commit)
    say(fmt::format("{} was made by {} ({}), this is {} ({})", options.folder, recorded.version,
                    recorded.commit, tool_version, tool_commit));
  catch_stop_signals();
  Progress progress("points");
  const SweepSummary summary = run_sweep(
      plan, {.out = options.out,
             .jobs = options.jobs > 0
                         ? options.jobs
                         : static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
             .resume = fs::exists(fs::path(options.out) / "manifest.json"),
             .progress = std::ref(progress),
             .note = say});
  if (!summary.complete) {
    say("stopped; the same command goes on");
    std::fflush(stderr);
    std::_Exit(128 + stop_signal());
  }
  return compare_rows(options, keep);
}

}  // namespace

Command add_rerun(CLI::App& app) {
  auto options = std::make_shared<RerunOptions>();
  CLI::App* command =
      app.add_subcommand("rerun", "make the rows of a results folder again, and compare them");
  command->add_option("DIR", options->folder, "folder that sweep --out wrote")->required();
  command->add_option(
      "--out", options->out,
      "folder for the new results (default: DIR.again, which goes where they are the same)");
  command->add_option("--jobs", options->jobs, "threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
  command->footer(R"(Refused where a file that the sweep named is not what it was.
Example
  lambcast sweep bert_large --out results
  lambcast rerun results
Exit codes: 0 the same bytes, 2 bad usage or input, 3 other bytes.)");
  return [options] { return rerun_command(*options); };
}

}  // namespace lambcast
