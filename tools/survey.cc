#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "experiments/advise/advice_output.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"
#include "sim/base/units.h"
#include "tools/commands.h"
#include "tools/stop_signal.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_tables.h"
#include "validate/measure/launch.h"
#include "validate/measure/survey.h"
#include "validate/survey/gpu_spread.h"
#include "validate/survey/step_speedups.h"
#include "validate/survey/survey_tables.h"

extern char** environ;

namespace lambcast {
namespace {

namespace fs = std::filesystem;

struct SurveyFlags {
  std::string folder, cluster, operations = "all_reduce,all_gather,reduce_scatter,all_to_all";
  std::string backend = "mpi", types = "float";
  std::string min_bytes = "1K", max_bytes = "16M", factor = "4", seconds_per_size = "0.2";
  double budget_s = 600;
  std::vector<std::string> question;  // flags of lambcast advise
  bool profile = false, force = false;
};

fs::path next_to_this_program(const char* name) {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / name;
}

// Returns the ends of a pipe to read from and to write to, which a started program does not
// inherit.
std::array<int, 2> new_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Exit::failure, fmt::format("pipe: {}", std::strerror(errno)));
  return ends;
}

enum class ChildStreams { inherited, piped };

// A program that this one starts and waits for.
class ChildProcess {
 public:
  // Starts the program `words[0]` with its arguments. If `streams` is piped, its standard input and
  // output are pipes to this process. Throws Error (missing) if it cannot be started.
  explicit ChildProcess(std::vector<std::string> words,
                        ChildStreams streams = ChildStreams::inherited) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    std::array<int, 2> input{-1, -1}, output{-1, -1};
    if (streams == ChildStreams::piped) {
      input = new_pipe();
      output = new_pipe();
      to_.reset(fdopen(input[1], "w"));
      from_.reset(fdopen(output[0], "r"));
      posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
      posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    }
    const int status =
        posix_spawn(&id_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (streams == ChildStreams::piped) {
      close(input[0]);
      close(output[1]);
    }
    if (status != 0)
      throw Error(Exit::missing, fmt::format("{}: {}", words.front(), std::strerror(status)));
  }

  // Returns the next line of its output, without the line end; nothing once the output has ended.
  std::optional<std::string> line() {
    std::string text;
    for (int c = std::fgetc(from_.get()); c != EOF; c = std::fgetc(from_.get())) {
      if (c == '\n') return text;
      text += static_cast<char>(c);
    }
    return std::nullopt;
  }
  // Writes a line to its input. A program that has ended does not read it.
  void answer(std::string_view text) {
    fmt::print(to_.get(), "{}\n", text);
    std::fflush(to_.get());
  }

  // Waits for the process to end; returns its exit code, or 1 if a signal ended it.
  int code() {
    int status = 0;
    while (waitpid(id_, &status, 0) != id_ && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::failure);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  pid_t id_ = 0;
  std::unique_ptr<std::FILE, Close> to_, from_;
};

// Returns the command of lambcast-measure, which runs as a separate process: MPI stays out of the
// program that fits. `weights` is the number of weights whose steps are timed; 0 if none are, and
// for all processes except the first.
std::vector<std::string> measuring(const SurveyFlags& flags, std::uint64_t weights = 0) {
  std::vector<std::string> words{next_to_this_program("lambcast-measure").string()};
  const std::pair<const char*, std::string> given[] = {
      {"--backend", flags.backend},
      {"--tables", flags.folder},
      {"--steered", "yes"},
      {"--op", flags.operations},
      {"-d", flags.types},
      {"--budget", fmt::format("{}", flags.budget_s)},
      {"-b", flags.min_bytes},
      {"-e", flags.max_bytes},
      {"-f", flags.factor},
      {"-n", "100"},
      {"-a", "3"},
      {"--seconds-per-size", flags.seconds_per_size},
      {"--statistic", flags.backend == "mpi" ? "median" : "mean"}};
  for (const auto& [name, value] : given) words.insert(words.end(), {name, value});
  if (weights > 0) words.insert(words.end(), {"--steps-of", fmt::format("{}", weights)});
  return words;
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

// Returns the question of the words behind "--", which are flags of lambcast advise.
WhatIf question_of(const SurveyFlags& flags) {
  WhatIf what_if;
  CLI::App app("the flags behind --", "survey");
  add_what_if_flags(app, what_if);
  std::vector<std::string> words(flags.question.rbegin(), flags.question.rend());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    fail_input({"", 0, "--"}, error.what(), "flags of lambcast advise");
  }
  if (what_if.contains("cluster"))
    fail_input({"", 0, "--cluster"}, "must stand before --, since the survey measures this cluster",
               "--cluster before --");
  return what_if;
}

// The state of a survey: the tables fitted so far, and the question, if there is one, with the
// latest verdict on it.
class Survey {
 public:
  explicit Survey(const SurveyFlags& flags)
      : flags_(flags),
        base_(cluster_description(flags.cluster)),
        backend_(backend_of(flags.backend)),
        base_name_(is_path(flags.cluster) ? flags.cluster : flags.cluster + ".toml") {
    std::error_code ignored;
    if (fs::exists(file("plan.csv"), ignored) && !flags.force)
      fail_input({"", 0, "-o"}, fmt::format("{} holds a survey", printable(flags.folder)),
                 "another folder, or --force");
    load_cluster(flags.cluster, {});
    validate::operations_in(flags.operations, "--ops");
    validate::types_in(flags.types, "--types");
    question_ = question_of(flags);
    if (!question_.empty()) verdict_before_ = advice_on(flags.cluster);
  }

  // Returns the number of weights whose update is timed; 0 without a model, and with MPI.
  auto step_weights() const { return backend_ == Backend::nccl ? weights_of(question_) : 0; }

  // Called when the measuring program has written `done`: the plan or a table. Returns whether
  // measuring should go on.
  bool goes_on(const std::string& done) {
    if (done == "plan") return keep_forecast(), true;
    if (done == "steps.csv") return stop_signal() == 0;
    try {
      fit();
      print_text(fmt::format("{}{}\n", done, verdict_));
    } catch (const Error& error) {  // later tables may make a fit possible
      print_text(fmt::format("{}: not fitted: {}\n", done, error.what()));
    }
    return stop_signal() == 0 && !decided_;
  }

  // Fits to all rows that are not held out, including those of an unfinished table, and prints the
  // result.
  void finish() {
    const validate::FitSummary summary = fit();
    const SurveyRows rows = hold_out_sizes(tables_);
    const bool held = !rows.held_out.empty();
    const SurveyComparison compared =
        survey_comparison(flags_.cluster, file("cluster.toml"), held ? rows.held_out : rows.fitted);
    write_output(file("held_out.csv"), "-o", compared.csv);
    print_text(fmt::format(
        "{}{}\nMedian error of the forecast on {}, before by {}, after by {}:\n{}"
        "all: {:.1f}% before, {:.1f}% after\n\n{}{}{}Forecast with:\n  {}\n",
        spread_text_, validate::brief_report(summary),
        held ? "sizes that were held out" : "the fitted sizes, too few to hold any out",
        flags_.cluster, file("cluster.toml"), compared.table, 100 * compared.median_before,
        100 * compared.median_after, side_by_side_.empty() ? "" : side_by_side_ + "\n",
        steps_side_by_side(file("steps.csv"), file("cluster.toml"), question_),
        verdict_.empty() ? "" : "Verdict" + verdict_ + "\n\n",
        validate::forecast_command(file("cluster.toml"), tables_, backend_)));
  }

 private:
  std::string file(const char* name) const { return (fs::path(flags_.folder) / name).string(); }

  std::string advice_on(const std::string& cluster) {
    Catalog catalog;
    WhatIf asked = question_;
    asked["cluster"] = cluster;
    const Advice advice = advise(asked, catalog);
    const Answer& answer = advice.answer;
    const RatioInterval& merit = answer.merit();
    decided_ = merit.low > 1 || merit.high < 1 || answer.verdict() == Verdict::does_not_fit;
    verdict_ = fmt::format(": {}, {}", words_of(answer.verdict()),
                           to_text(Speedup{merit.value, merit.low, merit.high}));
    return advice_json(advice);
  }

  void keep_forecast() {
    write_output(file("forecast.csv"), "-o",
                 survey_forecast_csv(flags_.cluster,
                                     forecast_tables(planned_tables(file("plan.csv"), backend_))));
    if (!question_.empty()) write_output(file("verdict-before.json"), "-o", verdict_before_);
  }

  // Writes the description fitted to the rows measured so far, except those held out, and the
  // verdict with it.
  validate::FitSummary fit() {
    const std::vector<validate::Measurement> all = surveyed_tables(flags_.folder);
    side_by_side_ = exchanges_side_by_side(all);
    tables_ = forecast_tables(all);
    if (tables_.empty())
      throw Error(
          Exit::failure,
          fmt::format(
              "no table was finished within {:g} s, so nothing is fitted; try: a larger --budget",
              flags_.budget_s));
    const std::vector<validate::Measurement> fitted = hold_out_sizes(tables_).fitted;
    const validate::FitSummary summary = validate::calibrate(base_, base_name_, fitted, backend_);
    const std::string after = file("cluster.toml");
    std::string description = validate::calibrated_cluster(base_, base_name_, "surveyed", summary,
                                                           printable(validate::sources_of(fitted)));
    if (const std::optional<GpuSpread> spread = spread_of_gpus())
      description = validate::cluster_with_gpu_spread(description, after, as_measured(*spread));
    write_output(after, "-o", description);
    if (!question_.empty()) write_output(file("verdict.json"), "-o", advice_on(after));
    return summary;
  }

  // Returns the spread between the GPUs profiled by --profile, and sets spread_text_ to a sentence
  // about it.
  std::optional<GpuSpread> spread_of_gpus() {
    if (!flags_.profile) return std::nullopt;
    const std::string folder = file("gpus");
    std::string reason = fmt::format("{} holds fewer than two profiles", printable(folder));
    try {
      if (const auto spread = gpu_spread_of(folder)) {
        spread_text_ = gpu_spread_sentence(*spread) + "\n\n";
        return spread;
      }
    } catch (const Error& error) {
      reason = error.what();
    }
    spread_text_ = fmt::format("The spread of GPUs is not known: {}.\n\n", reason);
    return std::nullopt;
  }

  const SurveyFlags& flags_;
  std::string base_;
  Backend backend_;
  std::string base_name_;
  WhatIf question_;
  std::string verdict_before_;  // JSON of the advice on the description that the survey began with
  std::vector<validate::Measurement> tables_;
  std::string verdict_, spread_text_, side_by_side_;
  // Whether the speed-up is certainly above or below 1, or the run does not fit in memory.
  bool decided_ = false;
};

validate::MpiLaunch launch_of(const SurveyFlags& flags) {
  const validate::Environment environment = validate::process_environment();
  if (flags.backend == "mpi") return validate::mpi_launch_of(environment);
  const validate::Launch launch = validate::launch_of(environment);
  return {launch.rank, launch.processes, launch.local_rank};
}

int survey_command(const SurveyFlags& flags) {
  const validate::MpiLaunch launch = launch_of(flags);
  std::optional<Survey> survey;
  if (launch.rank == 0) survey.emplace(flags);
  if (flags.profile) profile_own_gpu(flags, launch);
  if (!survey) return ChildProcess(measuring(flags)).code();
  catch_stop_signals();
  ChildProcess measurement(measuring(flags, survey->step_weights()), ChildStreams::piped);
  bool planned = false;
  while (const auto done = measurement.line()) {
    planned = true;
    measurement.answer(survey->goes_on(*done) ? "go" : "stop");
  }
  const int code = measurement.code();
  if (!planned) return code;
  survey->finish();
  if (stop_signal() != 0) return 128 + stop_signal();
  if (code != 0)
    complain(
        fmt::format("the measurement ended with exit code {}: the description is fitted to "
                    "the rows that were finished",
                    code));
  return code;
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
              return fmt::format("'{}' is not a time (allowed: seconds, or such as 90s, 10min, 2h)",
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
      ->add_option("--backend", flags->backend,
                   "what is measured: mpi on hosts (the default) or nccl on GPUs")
      ->type_name("WORD")
      ->check(CLI::IsMember({"mpi", "nccl"}));
  command
      ->add_option("--types", flags->types,
                   "types of elements, with commas between them: float (the default), half, "
                   "bfloat16, uint8; MPI adds no 16-bit numbers, so those tables are left out")
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
  command
      ->add_option("QUESTION", flags->question,
                   "behind --: flags of lambcast advise; the survey ends once its verdict is "
                   "certain, and with nccl it times whole steps on its model's weights "
                   "(default: none)")
      ->type_name("...");
  command->footer(
      "Start it with a launcher, one process for each rank that a node should have:\n"
      "  mpirun -n 8 --map-by node lambcast survey --cluster commodity-10gbe -o mine/\n"
      "  srun -N 8 --ntasks-per-node 1 lambcast survey --cluster commodity-10gbe -o mine/\n"
      "  mpirun -n 8 lambcast survey --cluster commodity-10gbe -o mine/ -- --model bert-large \\\n"
      "    --gpus 64 --optimizer onebit_lamb --global-batch 4096 --micro-batch 16 \\\n"
      "    --steps 5993 --freeze-step 1000\n"
      "With --profile, start a process for each GPU, and -o in a folder that all\n"
      "nodes share. With --backend nccl start one for each GPU too; its processes\n"
      "meet as those of lambcast measure do. cluster.toml is fitted anew after each\n"
      "table, so a survey that is stopped, or ends with a lost rank, leaves the\n"
      "description of what was finished.");
  return [flags] { return survey_command(*flags); };
}

}  // namespace lambcast
