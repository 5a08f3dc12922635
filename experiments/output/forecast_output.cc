#include "experiments/output/forecast_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_explanation.h"
#include "experiments/output/measure_first.h"
#include "experiments/output/memory_output.h"
#include "experiments/output/rate_text.h"
#include "experiments/scenario/run_length.h"
#include "experiments/verdict/verdict.h"
#include "models/shape/adapters.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/passage.h"
#include "sim/base/counted.h"
#include "sim/base/ratio.h"

namespace lambcast {

namespace {

std::string layout_text(const Parallelism& how) {
  const parallel::ParallelLayout& layout = how.layout;
  std::string text = fmt::format("tensor {} x context {} x data {} x pipeline {}", layout.tp,
                                 layout.cp, layout.dp, layout.pp);
  if (layout.pp > 1)
    text += fmt::format(
        " ({}{})", parallel::name_of(how.schedule),
        layout.virtual_stages > 1 ? fmt::format(", {} chunks", layout.virtual_stages) : "");
  if (layout.ep > 1) text += fmt::format(", experts over {}", layout.ep);
  if (how.sharding != parallel::Sharding::none)
    text += fmt::format(", {} shared by {}", parallel::name_of(how.sharding), how.shard_ranks);
  text += fmt::format(", as {} does it", name_of(how.framework.name));
  return text;
}

std::string_view in_words(Basis basis) {
  constexpr std::string_view words[] = {"fitted here",          "known for this GPU",
                                        "from measured blocks", "from kernel shapes",
                                        "from another model",   "from FLOPs alone"};
  return words[static_cast<std::size_t>(basis)];
}

struct StepColumn {
  const char* title;
  int width, digits;
  double value;
};

// Returns the columns of a step, in milliseconds. With a layout, the bubble takes the column of the
// rate, which the line of the run states too.
std::vector<StepColumn> step_columns(const StepForecast& step, bool layout) {
  const auto ms = [](double us) { return us * 1e-3; };
  std::vector<StepColumn> columns{{"forward", 8, 2, ms(step.forward_us)},
                                  {"backward", 8, 2, ms(step.backward_us)},
                                  {"exposed", 8, 2, ms(step.exposed_comm_us)}};
  if (layout) columns.push_back({"bubble", 7, 2, ms(step.bubble_us)});
  columns.push_back({"compress", 8, 2, ms(step.compress_us + step.decompress_us)});
  columns.push_back({"update", 7, 2, ms(step.optimizer_us)});
  if (!layout) columns.push_back({"samp./s", 7, 1, step.samples_per_s});
  return columns;
}

// Formats the table of steps within 80 columns.
std::string step_table(const Forecast& forecast, bool layout) {
  std::string out = fmt::format("{:<11} {:>6} {:>9}", "phase", "steps", "step (ms)");
  for (const StepColumn& column : step_columns({}, layout))
    out += fmt::format(" {:>{}}", column.title, column.width);
  out += "\n";
  for (const StepForecast& step : forecast.steps) {
    out += fmt::format("{:<11} {:>6} {:>9.2f}", name_of(step.kind), step.steps,
                       step.step_time_us * 1e-3);
    for (const StepColumn& column : step_columns(step, layout))
      out += fmt::format(" {:>{}.{}f}", column.value, column.width, column.digits);
    out += "\n";
  }
  return out;
}

// Formats the time and cost of the run, with their intervals.
std::string run_text(const RunForecast& run) {
  std::string out = fmt::format(
      "run: {} steps in {}, {:.1f} samples/s ({:.1f} to {:.1f}), {:.1f} GPU-hours "
      "({:.1f} to {:.1f})",
      run.steps, time_and_range(run.time_s, run.time_low_s, run.time_high_s), run.samples_per_s,
      run.samples_per_s * run.time_s / run.time_high_s,
      run.samples_per_s * run.time_s / run.time_low_s, run.gpu_hours,
      run.gpu_hours * run.time_low_s / run.time_s, run.gpu_hours * run.time_high_s / run.time_s);
  if (run.cost_usd)
    out += fmt::format(", {} USD ({} to {})", usd_cell(*run.cost_usd),
                       usd_cell(*run.cost_at(run.time_low_s)),
                       usd_cell(*run.cost_at(run.time_high_s)));
  return out;
}

// Returns throughput in the units of language-model training.
std::string language_text(const TrainingPlan& training, const Forecast& forecast) {
  const LanguageRates rates = language_rates(training, forecast);
  if (!rates.tokens_per_s) return "";
  // Tokens and FLOPs are the same at both ends of the run time, so the rates follow from it.
  const RunForecast& run = forecast.run;
  const double most = run.time_s / run.time_low_s, least = run.time_s / run.time_high_s;
  std::string out =
      fmt::format("\ntokens: {} a second ({} to {}), {:.1f} TFLOP/s a GPU ({:.1f} to {:.1f})",
                  rate_text(*rates.tokens_per_s), rate_text(*rates.tokens_per_s * least),
                  rate_text(*rates.tokens_per_s * most), rates.tflops_per_gpu,
                  rates.tflops_per_gpu * least, rates.tflops_per_gpu * most);
  if (rates.mfu)
    out += fmt::format(", MFU {:.1f} % ({:.1f} to {:.1f})", 100 * *rates.mfu,
                       100 * *rates.mfu * least, 100 * *rates.mfu * most);
  const double seconds = 1e9 / *rates.tokens_per_s;
  out +=
      fmt::format("; a billion take {}", time_and_range(seconds, seconds / most, seconds / least));
  if (const auto& cost = run.cost_usd)
    out += fmt::format(" and {} USD ({} to {})", usd_cell(*cost * seconds / run.time_s),
                       usd_cell(*run.cost_at(run.time_low_s) * seconds / run.time_s),
                       usd_cell(*run.cost_at(run.time_high_s) * seconds / run.time_s));
  return out;
}

// Formats the ratio of the plain run's bytes to those of this run.
std::string volume_text(double reduction) {
  if (reduction > 1e4) return "hardly any bytes";
  if (reduction < 1) return fmt::format("{:.2f}x the bytes", 1 / reduction);
  return fmt::format("{:.2f}x fewer bytes", reduction);
}

// Compares the run with the plain one and states the verdict.
std::string pays_text(const TrainingPlan& training, const RunForecast& run,
                      const Judgement& judgement) {
  const Exchange& exchange = training.exchange;
  const std::string against = fmt::format("\nagainst {}{}: ", run.baseline_optimizer,
                                          exchange == Exchange{} ? "" : " and all_reduce");
  if (judgement.verdict == Verdict::not_judged)
    return against + "not judged: " + judgement.why_not_judged;
  std::string out = against + fmt::format("{} as fast, {}", ratio_text(*run.speedup),
                                          volume_text(run.volume_reduction));
  if (judgement.verdict) out += fmt::format(": {}", words_of(*judgement.verdict));
  if (const std::string seldom = seldom_meets(exchange, training.steps_done + training.steps);
      !seldom.empty())
    out += fmt::format(", but {}: its result is not that of {}", seldom, run.baseline_optimizer);
  if (judgement.verdict == Verdict::cannot_tell && !judgement.measure_first.empty())
    out += fmt::format("\n  to be certain, measure first: {}", judgement.measure_first);
  if (judgement.fused)
    out += fmt::format("\n  with the fused kernels that ship here (--kernels fused): {}",
                       to_text(*judgement.fused));
  return out;
}

// Returns a line with the measurement that would narrow the interval of the run most. Empty if
// there is none, if the cluster's logs contain it, or if the verdict already names it.
std::string weakest_text(const TrainingPlan& training, const Judgement& judgement) {
  if (!judgement.weakest) return "";
  const std::string measurement = measurement_for(judgement.weakest->source, training);
  const bool said =
      judgement.verdict == Verdict::cannot_tell && judgement.measure_first == measurement;
  if (measurement.empty() || said) return "";
  return fmt::format("measure first: {}, which alone moves the run by {:.2f} to {:.2f}x\n",
                     measurement, judgement.weakest->low, judgement.weakest->high);
}

}  // namespace

std::optional<double> flops_utilization(const TrainingPlan& training, double tflops_per_gpu) {
  const bool half = training.parallelism ? training.parallelism->format == MatrixFormat::half
                                         : training.recipe.precision.is_half();
  if (!half && !training.parallelism) return std::nullopt;
  const double peak =
      half ? training.device->peak_half.value.value()
           : training.device->rates->of(training.parallelism->format).peak.value.value();
  if (peak <= 0) return std::nullopt;
  return tflops_per_gpu * 1e12 / peak;
}

LanguageRates language_rates(const TrainingPlan& training, const Forecast& forecast) {
  LanguageRates rates;
  double tokens = 0, tflop = 0;
  for (const StepForecast& step : forecast.steps) {
    const double seconds = step.step_time_us * 1e-6 * static_cast<double>(step.steps);
    tokens += step.tokens_per_s * seconds;
    tflop += step.tflops_per_gpu * seconds;
  }
  rates.tflops_per_gpu = tflop / forecast.run.time_s;
  if (training.seq_len == 0) return rates;
  rates.tokens_per_s = tokens / forecast.run.time_s;
  rates.mfu = flops_utilization(training, rates.tflops_per_gpu);
  return rates;
}

std::string interval_text(const TrainingPlan& training, const Forecast& forecast) {
  std::vector<std::string> stages;
  bool calibrated = true;
  Basis basis = Basis::this_machine;
  for (const StepForecast& step : forecast.steps) {
    stages.push_back(
        fmt::format("{}{:.2f} to {:.2f} ms{}",
                    forecast.steps.size() == 1 ? "" : fmt::format("{} ", name_of(step.kind)),
                    step.step_time_low_us * 1e-3, step.step_time_high_us * 1e-3,
                    step.coverage ? fmt::format(" ({:.0f} %)", 100 * *step.coverage) : ""));
    calibrated &= step.calibrated;
    basis = std::max(basis, step.basis);
  }
  const auto& calibration = training.cluster->calibration;
  const double departure = training.cluster->departure.of(training.nodes());
  const bool stands = calibration && std::isfinite(departure);
  const std::string changed = changed_keys(*training.cluster, training.nodes());
  std::string out = fmt::format("step within {}: ", fmt::join(stages, ", "));
  if (training.gpus > 1)
    out += fmt::format("communication {}, ", calibrated ? "calibrated"
                                             : !stands  ? without_calibration(*training.cluster)
                                             : departure == 0 && calibration->another_machine
                                                 ? "from a preset of the same hardware"
                                                 : "extrapolated" + changed);
  const bool measured = training.program || own_scale_of(training);
  out += fmt::format("compute {}{}\n", in_words(basis),
                     basis == Basis::kernels && !measured ? ", program not measured" : "");
  if (!calibrated && stands)
    out += fmt::format("  {} was {} on {} for {}\n", training.cluster->name,
                       calibration->another_machine ? "fitted to another machine" : "calibrated",
                       is_mpi(calibration->backend) ? "MPI" : "NCCL", describe(*calibration));
  return out;
}

std::string ratio_text(const RatioInterval& ratio) {
  return fmt::format("{}x ({} to {}x)", ratio_digits(ratio.value), ratio_digits(ratio.low),
                     ratio_digits(ratio.high));
}

std::string run_time_text(double seconds) {
  // to_text() takes a Duration, which ends at 106 days.
  return seconds < 1e6 ? to_text(Duration::seconds(seconds))
                       : fmt::format("{:.0f} h", seconds / 3600);
}

std::string forecast_table(const Scenario& scenario, const Forecast& forecast,
                           const Judgement& judgement) {
  const TrainingPlan& training = scenario.training;
  const OptimizerType type = training.optimizer();
  std::string out = fmt::format("{} with {} on {}: {} ({}), batch {} = {} x {} x {}",
                                training.model->name, name_of(type), training.cluster->name,
                                counted(training.gpus, "GPU"), counted(training.nodes(), "node"),
                                training.batch.train, training.batch.micro, training.batch.gas,
                                training.parallelism ? counted(training.data_parallel(), "replica")
                                                     : counted(training.gpus, "GPU"));
  if (training.seq_len > 0) out += fmt::format(", sequence {}", training.seq_len);
  if (!gives_length(scenario.asked)) out += fmt::format(", {} steps (assumed)", training.steps);
  if (training.parallelism) out += fmt::format("\n{}", layout_text(*training.parallelism));
  if (const auto& adapters = training.model->adapters)
    out += fmt::format(", adapters of rank {} on frozen weights", adapters->rank);
  if (is_onebit(type))
    out += fmt::format("\nbackend {}, {} compression kernels", traits_of(training.backend()).label,
                       training.kernels == Kernels::fused ? "fused" : "DeepSpeed's unfused");
  const RunForecast& run = forecast.run;
  out += "\n" + run_text(run) + language_text(training, forecast);
  if (run.speedup) out += pays_text(training, run, judgement);
  out += fmt::format("\n{}\n", memory_line(training, forecast.memory));
  out += step_table(forecast, training.parallelism.has_value()) + interval_text(training, forecast);
  out += weakest_text(training, judgement) + sources_line(forecast.sources.shares());
  return out + findings_text(judgement.findings);
}

}  // namespace lambcast
