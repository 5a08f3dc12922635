#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"
#include "sim/base/units.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_tables.h"
#include "validate/measure/launch.h"
#include "validate/measure/survey.h"
#include "validate/survey/gpu_spread.h"
#include "validate/survey/survey_tables.h"

extern char** environ;

namespace lambcast {
namespace {

namespace fs = std::filesystem;

struct SurveyFlags {
  std::string folder, cluster, operations = "all_reduce,all_gather,reduce_scatter,all_to_all";
  std::string min_bytes = "1K", max_bytes = "16M", factor = "4", seconds_per_size = "0.2";
  double budget_s = 600;
  bool profile = false, force = false;
};

fs::path next_to_this_program(const char* name) {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / name;
}

class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int status =
        posix_spawn(&id_, words.front().c_str(), nullptr, nullptr, arguments.data(), environ);
    if (status != 0)
      throw Error(Exit::missing, fmt::format("{}: {}", words.front(), std::strerror(status)));
  }

  bool is_over() {
    if (!over_) over_ = waitpid(id_, &status_, WNOHANG) != 0;
    return over_;
  }

  // Waits for the process to end; returns the exit code.
  int code() {
    while (!over_) over_ = waitpid(id_, &status_, 0) == id_ || errno != EINTR;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : static_cast<int>(Exit::failure);
  }

 private:
  pid_t id_ = 0;
  int status_ = 0;
  bool over_ = false;
};

// Returns the command of lambcast-measure, which runs as a separate process: MPI stays out of the
// program that fits.
std::vector<std::string> measuring(const SurveyFlags& flags) {
  return {next_to_this_program("lambcast-measure").string(),
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
}

// Returns one of the GPUs that CUDA shows to this process.
std::string gpu_of_rank(int local_rank) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return std::to_string(local_rank);
  if (*visible == 0) return "";  // no GPU is visible
  std::vector<std::string> gpus;
  for (const char* c = visible; *c != 0; ++c)
    if (c == visible || *c == ',')
      gpus.emplace_back(c + (*c == ','), std::strcspn(c + (*c == ','), ","));
  return gpus[static_cast<std::size_t>(local_rank) % gpus.size()];
}

// Profiles the GPU of each rank. If that fails, the reason is printed, and the survey continues.
void profile_own_gpu(const SurveyFlags& flags, const validate::MpiLaunch& launch) {
  const fs::path folder = fs::path(flags.folder) / "gpus";
  std::error_code ignored;  // the error names the file that cannot be written
  fs::create_directories(folder, ignored);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  setenv("CUDA_VISIBLE_DEVICES", gpu_of_rank(launch.local_rank).c_str(), 1);
  ChildProcess({next_to_this_program("lambcast").string(), "profile", "-b", "256M", "-e", "256M",
                "-o",
                (folder / fmt::format("rank-{:05}-{}.toml", launch.rank, host.data())).string()})
      .code();
}

void check_flags(const SurveyFlags& flags) {
  std::error_code ignored;
  if (fs::exists(fs::path(flags.folder) / "plan.csv", ignored) && !flags.force)
    fail_input({"", 0, "-o"}, fmt::format("{} holds a survey", printable(flags.folder)),
               "another folder, or --force");
  load_cluster(flags.cluster, {});
}

// Saves the forecast when the plan is known, before a table is read.
void keep_forecast(const SurveyFlags& flags, ChildProcess& measuring) {
  const fs::path plan = fs::path(flags.folder) / "plan.csv";
  while (!fs::exists(plan) && !measuring.is_over())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!fs::exists(plan)) return;
  write_output((fs::path(flags.folder) / "forecast.csv").string(), "-o",
               survey_forecast_csv(flags.cluster, planned_tables(plan)));
}

// Prints the result of the profiles of --profile, or why there is none.
std::optional<GpuSpread> surveyed_spread(const SurveyFlags& flags) {
  if (!flags.profile) return std::nullopt;
  const fs::path folder = fs::path(flags.folder) / "gpus";
  std::string said = fmt::format("{} holds fewer than two profiles", printable(folder.string()));
  try {
    if (const auto spread = gpu_spread_of(folder)) {
      print_text(gpu_spread_sentence(*spread) + "\n\n");
      return spread;
    }
  } catch (const Error& error) {
    said = error.what();
  }
  print_text(fmt::format("The spread of GPUs is not known: {}.\n\n", said));
  return std::nullopt;
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
  std::string description = validate::calibrated_cluster(base, base_name, "surveyed", summary,
                                                         printable(validate::sources_of(tables)));
  const std::optional<GpuSpread> spread = surveyed_spread(flags);
  if (spread)
    description = validate::cluster_with_gpu_spread(description, after, as_measured(*spread));
  write_output(after, "-o", description);
  print_text(
      fmt::format("{}\nMedian error of the forecast, before by {}, after by {}:\n{}\n"
                  "Forecast with:\n  {}\n",
                  validate::brief_report(summary), flags.cluster, after,
                  survey_comparison(flags.cluster, after, tables),
                  validate::forecast_command(after, tables, Backend::mpi_host)));
  return 0;
}

int survey_command(const SurveyFlags& flags) {
  const validate::MpiLaunch launch = validate::mpi_launch_of(validate::process_environment());
  const bool first = launch.rank == 0;
  if (first) check_flags(flags);
  if (flags.profile) profile_own_gpu(flags, launch);
  ChildProcess measurement(measuring(flags));
  if (first) keep_forecast(flags, measurement);
  const int code = measurement.code();
  return first && code == 0 ? fit(flags) : code;
}

// Reads "10min" as 600; a plain number is in seconds.
CLI::Validator seconds_of_time() {
  return {[](std::string& text) -> std::string {
            try {
              const bool is_number = text.find_first_not_of("0123456789.") == std::string::npos;
              const Duration time = parse_duration(is_number ? text + " s" : text, {});
              text = fmt::format("{}", time.s());
              return {};
            } catch (const Error&) {
              return fmt::format("'{}' is no time (allowed: seconds, or such as 90s, 10min, 2h)",
                                 text);
            }
          },
          ""};
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
  command
      ->add_option("--ops", flags->operations,
                   "operations of lambcast measure --op, with commas between them (default: "
                   "all_reduce,all_gather,reduce_scatter,all_to_all)")
      ->type_name("LIST");
  command
      ->add_option("-b", flags->min_bytes,
                   "smallest size in bytes (K, M, G: powers of 1024; default: 1K)")
      ->type_name("SIZE");
  command
      ->add_option("-e", flags->max_bytes,
                   "largest size in bytes (K, M, G: powers of 1024; default: 16M)")
      ->type_name("SIZE");
  command->add_option("-f", flags->factor, "factor from one size to the next (default: 4)")
      ->type_name("FACTOR");
  command
      ->add_option("--seconds-per-size", flags->seconds_per_size,
                   "seconds for each size (default: 0.2)")
      ->type_name("SECONDS");
  command
      ->add_option("--budget", flags->budget_s,
                   "no table is begun after this time, in seconds or as 10min (default: 600 s)")
      ->type_name("TIME")
      ->transform(seconds_of_time())
      ->check(CLI::Range(1e-6, 1e6));
  command->add_flag("--profile", flags->profile,
                    "each rank profiles a GPU first, into DIR/gpus: how far equal GPUs differ");
  command->add_flag("--force", flags->force, "write into a folder that holds a survey");
  command->footer(
      "Start it with a launcher, one process for each rank that a node should have:\n"
      "  mpirun -n 8 --map-by node lambcast survey --cluster commodity-10gbe -o mine/\n"
      "  srun -N 8 --ntasks-per-node 1 lambcast survey --cluster commodity-10gbe -o mine/\n"
      "With --profile, start a process for each GPU, and -o in a folder that all\n"
      "nodes share. It runs over MPI on hosts; for NCCL on GPUs start lambcast\n"
      "measure. Tables of a survey that was stopped are fitted by\n"
      "  lambcast calibrate mine/tables/*.csv --cluster commodity-10gbe -o mine.toml");
  return [flags] { return survey_command(*flags); };
}

}  // namespace lambcast
