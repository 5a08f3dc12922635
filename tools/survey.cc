#include <fmt/format.h>
#include <unistd.h>

#include <array>
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
#include "tools/child_process.h"
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
#include "validate/survey/own_host.h"
#include "validate/survey/step_speedups.h"
#include "validate/survey/survey_tables.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

struct SurveyFlags {
  std::string folder, cluster, operations = "all_reduce,all_gather,reduce_scatter,all_to_all";
  std::string backend = "mpi", types;
  std::string min_bytes = "1K", max_bytes = "16M", factor = "4", seconds_per_size = "0.2";
  double budget_s = 600;
  std::vector<std::string> measured, logs;  // steps of a program, as calibrate takes them
  std::vector<std::string> question;        // flags of lambcast advise
  bool profile = false, force = false;
};

fs::path next_to_this_program(const char* name) {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / name;
}

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

std::string in_folder(const SurveyFlags& flags, const char* name) {
  return (fs::path(flags.folder) / name).string();
}

void refuse_surveyed_folder(const SurveyFlags& flags) {
  std::error_code ignored;
  if (fs::exists(in_folder(flags, "plan.csv"), ignored) && !flags.force)
    fail_input({"", 0, "-o"}, fmt::format("{} holds a survey", printable(flags.folder)),
               "another folder, or --force");
}

// Derives the description to start from, writes it into the folder, and prints what was derived.
void derive_cluster(SurveyFlags& flags, const validate::MpiLaunch& launch) {
  const DerivedCluster derived = derived_cluster(own_host("/"), launch.on_this_host);
  std::error_code ignored;  // the error names the file that cannot be written
  fs::create_directories(flags.folder, ignored);
  flags.cluster = in_folder(flags, "derived.toml");
  write_output(flags.cluster, "-o", derived.toml);
  print_text(fmt::format("{}; written to {}\n\n", derived.sentence, flags.cluster));
}

// Fits the level of a program to its steps, and writes it next to the surveyed cluster.
int fit_program(const SurveyFlags& flags) {
  if (flags.measured.empty() && flags.logs.empty()) return 0;
  std::vector<std::string> words{next_to_this_program("lambcast").string(),
                                 "calibrate",
                                 "--cluster",
                                 in_folder(flags, "cluster.toml"),
                                 "-o",
                                 in_folder(flags, "program.toml"),
                                 "--force"};
  for (const std::string& step : flags.measured) words.insert(words.end(), {"--measured", step});
  for (const std::string& log : flags.logs) words.insert(words.end(), {"--log", log});
  words.insert(words.end(), flags.question.begin(), flags.question.end());
  print_text("\nLevel of the program:\n");
  std::fflush(stdout);
  return ChildProcess(words).code();
}

// Throws Error for steps that could not be fitted after the survey.
void check_steps(const SurveyFlags& flags) {
  if (!flags.measured.empty() && flags.question.empty())
    fail_input({"", 0, "--measured"}, "is a step of a run, which no flag describes",
               "-- --model bert-large --gpus 64 ..., as lambcast advise takes them");
  for (const std::string& log : flags.logs) read_file(log);
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
  std::string file(const char* name) const { return in_folder(flags_, name); }

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
  return {launch.rank, launch.processes, launch.local_rank, launch.on_this_host};
}

int survey_command(SurveyFlags& flags) {
  const validate::MpiLaunch launch = launch_of(flags);
  // The types that training sends: gradients, norms and compressed bytes. MPI adds no 16-bit
  // numbers.
  if (flags.types.empty())
    flags.types = flags.backend == "nccl" ? "half,float,uint8" : "float,uint8";
  std::optional<Survey> survey;
  if (launch.rank == 0) {
    check_steps(flags);
    refuse_surveyed_folder(flags);
    if (flags.cluster.empty()) derive_cluster(flags, launch);
    survey.emplace(flags);
  }
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
  const int fitted = fit_program(flags);
  return code != 0 ? code : fitted;
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

// Adds the flags of what is measured next to collectives: GPUs and a program's steps.
void add_other_flags(CLI::App& command, SurveyFlags& flags) {
  command.add_flag("--profile", flags.profile,
                   "each rank profiles a GPU first, into DIR/gpus: how far equal GPUs differ");
  command.add_flag("--force", flags.force, "write into a folder that holds a survey");
  command
      .add_option(
          "--measured", flags.measured,
          "a step of the run behind --, METRIC=VALUE as in lambcast calibrate: its level is "
          "written to DIR/program.toml (default: none)")
      ->type_name("METRIC=VALUE");
  command
      .add_option(
          "--log", flags.logs,
          "log of a training on this cluster, read as in lambcast calibrate (default: none)")
      ->type_name("FILE");
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
  command
      ->add_option("--cluster", flags->cluster,
                   "description to start from: a preset or a file (default: derived from the GPUs, "
                   "NICs and launcher of the first host)")
      ->type_name("NAME|FILE");
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
                   "types of elements, with commas between them: float, half, bfloat16, uint8 "
                   "(default: half,float,uint8; over MPI, which adds no 16-bit numbers, "
                   "float,uint8)")
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
  add_other_flags(*command, *flags);
  command
      ->add_option("QUESTION", flags->question,
                   "behind --: flags of lambcast advise; the survey ends once its verdict is "
                   "certain, and with nccl it times whole steps on its model's weights "
                   "(default: none)")
      ->type_name("...");
  command->footer(
      "Start it with a launcher, one process for each rank that a node should have:\n"
      "  mpirun -n 8 --map-by node lambcast survey -o mine/\n"
      "  srun -N 8 --ntasks-per-node 1 lambcast survey -o mine/\n"
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
