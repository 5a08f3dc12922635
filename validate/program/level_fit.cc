#include "validate/program/level_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/training/price/measured_program.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr double ends_of_90_percent = 1.645;
constexpr double difference = 0.05;  // change of x, for the slope
// Largest accepted factor between measured and forecast time, either way. The most extreme
// published level of a program is 2.04 (program_levels.h).
constexpr double farthest = 4;
constexpr double known_runs = 4;  // runs that the spread of other programs counts as; assumed
constexpr int most_rounds = 20;
constexpr double close_enough = 1e-6;

// Returns the runs with a program level of exp(x) and no uncertainty.
std::vector<SourceFigure> at_level(const std::vector<SourceFigure>& figures, ProgramLevel program,
                                   double x) {
  program.level.value = program.low = program.high = std::exp(x);
  return with_program(figures, program);
}

std::vector<SourceResult> replayed(std::vector<SourceFigure> figures) {
  std::vector<SourceResult> results = replay_figures(std::move(figures));
  for (const SourceResult& result : results)
    if (!result.ok())
      throw Error(Exit::usage, fmt::format("{}: {}", result.of.name, result.status));
  return results;
}

double error_of(const SourceResult& result) { return std::log1p(result.error); }

double noise_of(const SourceResult& result) {
  return std::hypot(std::log(*result.high / *result.low) / 2 / ends_of_90_percent,
                    result.of.standard_error);
}

// Returns P^2 of a run (level_fit.h).
double prior_variance(const SourceFigure& figure) {
  Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
  const TrainingPlan training = resolve(figure.what_if, catalog).training;
  return training.prior.spread * training.prior.spread + variance_of_kernels(training);
}

// Sums of one round of the fit.
struct FitRound {
  double x = 0, information = 0, pull = 0, misfit = 0;
  std::vector<double> errors, slopes;
};

FitRound round_at(const std::vector<SourceFigure>& figures, const ProgramLevel& program,
                  double prior, double x) {
  const std::vector<SourceResult> here = replayed(at_level(figures, program, x));
  const std::vector<SourceResult> above = replayed(at_level(figures, program, x + difference));
  FitRound round{x, 1 / prior, 0, 0, {}, {}};
  for (std::size_t i = 0; i < here.size(); ++i) {
    const double error = error_of(here[i]), noise = noise_of(here[i]);
    const double slope = (error_of(above[i]) - error) / difference;
    round.errors.push_back(error);
    round.slopes.push_back(slope);
    round.information += slope * slope / (noise * noise);
    round.pull += slope * (slope * x - error) / (noise * noise);
    round.misfit += error * error / (noise * noise);
  }
  return round;
}

// Returns the program of the runs, at level 1.
ProgramLevel program_of(const std::vector<SourceFigure>& figures) {
  ProgramLevel program;
  for (const SourceFigure& figure : figures) {
    Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
    const TrainingPlan training = resolve(figure.what_if, catalog).training;
    const std::string framework(framework_of_run(training)), format(format_of_run(training));
    if (program.framework.empty()) {
      program.framework = framework;
      program.format = format;
      program.fewest_gpus = training.gpus;
    }
    program.fewest_gpus = std::min(program.fewest_gpus, training.gpus);
    program.most_gpus = std::max(program.most_gpus, training.gpus);
    if (program.framework != framework || program.format != format)
      fail_input({"", 0, "--runs"},
                 fmt::format("holds runs of {} in {} format and of {} in {} format: a description "
                             "holds the level of one program",
                             program.framework, program.format, framework, format),
                 "runs of one framework and precision; a description for each");
  }
  program.level.value = 1;
  return program;
}

[[noreturn]] void refuse_bound_by_network(const std::vector<double>& slopes) {
  const double most = *std::max_element(slopes.begin(), slopes.end());
  throw Error(
      Exit::usage,
      fmt::format("--measured: at the level that fits these steps, computing makes {:.0f} % "
                  "of them at most, so they do not set it; allowed: steps that mostly "
                  "compute; try: a step on one node, or measure the collectives first "
                  "(lambcast measure, lambcast calibrate FILE)",
                  100 * std::max(0.0, most)));
}

// Throws Error (usage) if a run is too far from its forecast: its flags probably describe another
// run.
void check_plausible(const std::vector<SourceFigure>& figures, const FitRound& at_level_one) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const double ratio = std::exp(-at_level_one.errors[i]);
    if (at_level_one.slopes[i] < 0.5 || (ratio < farthest && ratio > 1 / farthest)) continue;
    throw Error(
        Exit::usage,
        fmt::format("{}: its step takes {:.3g} times as long as forecast; allowed: {:.2g} to "
                    "{:g} times; try: the unit of the value, and batch, sequence length, model "
                    "and GPUs of the run that was measured",
                    figures[i].name, ratio, 1 / farthest, farthest));
  }
}

std::string source_of(const std::vector<SourceFigure>& figures) {
  std::string text =
      fmt::format("{} measured run{}:", figures.size(), figures.size() > 1 ? "s" : "");
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < std::min(shown, figures.size()); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", figures[i].name);
  return figures.size() > shown ? text + ", ..." : text;
}

}  // namespace

std::vector<SourceFigure> with_program(std::vector<SourceFigure> figures,
                                       const ProgramLevel& program) {
  for (SourceFigure& figure : figures) {
    WhatIf& said = figure.what_if;
    // The level belongs to the GPU of the run, even if the description names another device.
    if (const auto device = said.find("device"); device != said.end())
      said["cluster.device"] = device->second;
    said["cluster.program.framework"] = program.framework;
    said["cluster.program.format"] = program.format;
    said["cluster.program.level"] = fmt::format("{:.12f}", program.level.value);
    said["cluster.program.low"] = fmt::format("{:.12f}", program.low);
    said["cluster.program.high"] = fmt::format("{:.12f}", program.high);
    said["cluster.program.products"] = fmt::format("{:.12f}", program.kinds.products);
    said["cluster.program.attention"] = fmt::format("{:.12f}", program.kinds.attention);
    said["cluster.program.element_wise"] = fmt::format("{:.12f}", program.kinds.element_wise);
    if (program.spread > 0) said["cluster.program.spread"] = fmt::format("{:.12f}", program.spread);
    if (program.fewest_gpus == 0) continue;
    said["cluster.program.fewest_gpus"] = std::to_string(program.fewest_gpus);
    said["cluster.program.most_gpus"] = std::to_string(program.most_gpus);
  }
  return figures;
}

LevelFit fit_level(const std::vector<SourceFigure>& figures, const KindLevels& kinds) {
  std::vector<SourceFigure> times, memory;
  for (const SourceFigure& figure : figures)
    (figure.quantity == Quantity::memory_gib ? memory : times).push_back(figure);
  if (times.empty())
    fail_input({"", 0, "--measured"}, "gives only memory, from which no level follows",
               "a time or a rate as well, such as step_time=5436ms");
  LevelFit fit;
  fit.program = program_of(times);
  fit.program.kinds = kinds;
  const double prior = prior_variance(times.front());
  FitRound round;
  for (int i = 0; i < most_rounds; ++i) {
    round = round_at(times, fit.program, prior, round.x);
    if (i == 0) check_plausible(times, round);
    const double next = round.pull / round.information;
    const bool arrived = std::abs(next - round.x) < close_enough;
    round.x = next;
    if (arrived) break;
  }
  const double runs = static_cast<double>(times.size());
  const double scatter =
      runs > 1 ? (known_runs + round.misfit) / (known_runs + runs - 1) : 1;  // over run_spread^2
  if (1 / round.information > prior / 2) refuse_bound_by_network(round.slopes);
  const double half = ends_of_90_percent * std::sqrt(scatter / round.information);
  const std::vector<SourceResult> before = replayed(at_level(times, fit.program, 0));
  const std::vector<SourceResult> after = replayed(at_level(times, fit.program, round.x));
  for (std::size_t i = 0; i < times.size(); ++i)
    fit.runs.push_back({before[i], after[i], round.slopes[i]});
  fit.program.level = {std::exp(round.x), {Kind::fitted, source_of(times)}};
  fit.program.low = std::exp(round.x - half);
  fit.program.high = std::exp(round.x + half);
  if (runs > 1) fit.program.spread = run_spread * std::sqrt(scatter);
  if (!memory.empty()) fit.memory = replayed(memory);
  return fit;
}

std::string level_report(const LevelFit& fit) {
  const ProgramLevel& program = fit.program;
  std::string out = fmt::format(
      "Level of {} in {} format on this machine: {:.3f} times the kernels' time (90 %: {:.3f} to "
      "{:.3f})\n\nrun\n{:>12} {:<12} {:>18} {:>18} {:>10}\n",
      program.framework, program.format, program.level.value, program.low, program.high, "measured",
      "unit", "forecast before", "after", "computing");
  const auto cell = [](const SourceResult& result) {
    return fmt::format("{:.4g} ({:+.1f} %)", result.forecast, 100 * result.error);
  };
  const auto row = [&](const SourceResult& before, const std::string& after) {
    return fmt::format("{}\n{:>12.4g} {:<12} {:>18} {:>18}", before.of.name, before.of.measured,
                       unit_of(before.of.quantity), cell(before), after);
  };
  for (const FittedRun& run : fit.runs)
    out += fmt::format("{} {:>8.0f} %\n", row(run.before, cell(run.after)), 100 * run.computing);
  for (const SourceResult& result : fit.memory) out += row(result, "sets nothing") + "\n";
  if (const KindLevels& kinds = program.kinds; kinds != KindLevels{})
    out += fmt::format(
        "\nLevels by kind, over that of all kernels: products {:.3f}, attention {:.3f}, "
        "element-wise {:.3f}\n",
        kinds.products, kinds.attention, kinds.element_wise);
  out += "\nErrors are those of the time: -10 % is forecast too fast.\n";
  return out;
}

}  // namespace lambcast
