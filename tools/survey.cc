#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_tables.h"
#include "validate/measure/launch.h"
#include "validate/measure/survey.h"
#include "validate/survey/survey_tables.h"

extern char** environ;

namespace lambcast {
namespace {

namespace fs = std::filesystem;

struct SurveyFlags {
  std::string folder, cluster, operations = "all_reduce,all_gather,reduce_scatter,all_to_all";
  std::string min_bytes = "1K", max_bytes = "16M", factor = "4", seconds_per_size = "0.2";
  double budget_s = 600;
  bool force = false;
};

// lambcast-measure as a process of its own: MPI stays out of the program that fits.
class Measuring {
 public:
  explicit Measuring(const SurveyFlags& flags) {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const std::string program = (self.parent_path() / "lambcast-measure").string();
    std::vector<std::string> words{program,
                                   "--backend",
                                   "mpi",
                                   "--survey",
                                   flags.folder,
                                   "--ops",
                                   flags.operations,
                                   "--budget",
                                   fmt::format("{}", flags.budget_s),
                                   "-b",
                                   flags.min_bytes,
                                   "-e",
                                   flags.max_bytes,
                                   "-f",
                                   flags.factor,
                                   "-n",
                                   "100",
                                   "-a",
                                   "3",
                                   "--statistic",
                                   "median",
                                   "--seconds-per-size",
                                   flags.seconds_per_size,
                                   "--format",
                                   "csv"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int status =
        posix_spawn(&id_, program.c_str(), nullptr, nullptr, arguments.data(), environ);
    if (status != 0)
      throw Error(Exit::missing, fmt::format("{}: {}", program, std::strerror(status)));
  }

  bool is_over() {
    if (!over_) over_ = waitpid(id_, &status_, WNOHANG) != 0;
    return over_;
  }

  // Waits for the end; returns the exit code.
  int code() {
    while (!over_) over_ = waitpid(id_, &status_, 0) == id_ || errno != EINTR;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : static_cast<int>(Exit::failure);
  }

 private:
  pid_t id_ = 0;
  int status_ = 0;
  bool over_ = false;
};

void check_flags(const SurveyFlags& flags) {
  std::error_code ignored;
  if (fs::exists(fs::path(flags.folder) / "plan.csv", ignored) && !flags.force)
    fail_input({"", 0, "-o"}, fmt::format("{} holds a survey", printable(flags.folder)),
               "another folder, or --force");
  load_cluster(flags.cluster, {});
}

// Keeps the forecast as soon as the plan is known, before a table is read.
void keep_forecast(const SurveyFlags& flags, Measuring& measuring) {
  const fs::path plan = fs::path(flags.folder) / "plan.csv";
  while (!fs::exists(plan) && !measuring.is_over())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!fs::exists(plan)) return;
  write_output((fs::path(flags.folder) / "forecast.csv").string(), "-o",
               survey_forecast_csv(flags.cluster, planned_tables(plan)));
}

int fit(const SurveyFlags& flags) {
  const std::vector<validate::Measurement> tables = surveyed_tables(flags.folder);
  if (tables.empty())
    throw Error(Exit::failure, fmt::format("no table was finished within {:g} s; try a larger "
                                           "--budget",
                                           flags.budget_s));
  const std::string base = cluster_description(flags.cluster);
  const std::string base_name = is_path(flags.cluster) ? flags.cluster : flags.cluster + ".toml";
  const validate::FitSummary summary =
      validate::calibrate(base, base_name, tables, Backend::mpi_host);
  const std::string after = (fs::path(flags.folder) / "cluster.toml").string();
  write_output(after, "-o",
               validate::calibrated_cluster(base, base_name, "surveyed", summary,
                                            printable(validate::sources_of(tables))));
  print_text(
      fmt::format("{}\nMedian error of the forecast, before by {}, after by {}:\n{}\n"
                  "Forecast with:\n  {}\n",
                  validate::brief_report(summary), flags.cluster, after,
                  survey_comparison(flags.cluster, after, tables),
                  validate::forecast_command(after, tables, Backend::mpi_host)));
  return 0;
}

int survey_command(const SurveyFlags& flags) {
  const bool first = validate::mpi_launch_of(validate::process_environment()).rank == 0;
  if (first) check_flags(flags);
  Measuring measuring(flags);
  if (first) keep_forecast(flags, measuring);
  const int code = measuring.code();
  return first && code == 0 ? fit(flags) : code;
}

}  // namespace

Command add_survey(CLI::App& app) {
  auto flags = std::make_shared<SurveyFlags>();
  CLI::App* command = app.add_subcommand(
      "survey", "measure a cluster in one launch: forecast, time collectives, fit, compare");
  command
      ->add_option("-o,--out", flags->folder, "folder for plan, forecast, tables and cluster.toml")
      ->type_name("DIR")
      ->required();
  command->add_option("--cluster", flags->cluster, "description to start from: a preset or a file")
      ->type_name("NAME|FILE")
      ->required();
  command->add_option("--ops", flags->operations, "operations, with commas between them")
      ->capture_default_str();
  command->add_option("-b", flags->min_bytes, "smallest size")->capture_default_str();
  command->add_option("-e", flags->max_bytes, "largest size")->capture_default_str();
  command->add_option("-f", flags->factor, "factor from one size to the next")
      ->capture_default_str();
  command
      ->add_option("--seconds-per-size", flags->seconds_per_size, "time for each size, in seconds")
      ->capture_default_str();
  command
      ->add_option("--budget", flags->budget_s,
                   "no table is begun after this time, in seconds or as 10min")
      ->type_name("TIME")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"min", 60}, {"h", 3600}},
                                CLI::AsNumberWithUnit::CASE_SENSITIVE))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--force", flags->force, "write into a folder that holds a survey");
  command->footer(
      "Start it with a launcher, one process for each rank that a node should have:\n"
      "  mpirun -n 8 --map-by node lambcast survey --cluster commodity-10gbe -o mine/\n"
      "  srun -N 8 --ntasks-per-node 1 lambcast survey --cluster commodity-10gbe -o mine/\n"
      "It runs over MPI on hosts; for NCCL on GPUs start lambcast measure. Tables that a survey\n"
      "left behind when it was stopped are fitted by\n"
      "  lambcast calibrate mine/tables/*.csv --cluster commodity-10gbe -o mine.toml");
  return [flags] { return survey_command(*flags); };
}

}  // namespace lambcast
