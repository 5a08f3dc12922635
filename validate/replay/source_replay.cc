#include "validate/replay/source_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include "experiments/output/forecast_output.h"
#include "experiments/output/mean_step.h"
#include "models/parallel/model_flops.h"
#include "models/training/price/layer_time.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "validate/calibrate/calibrate.h"
#include "validate/interval_score.h"
#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

const StepForecast& step_of(const Forecast& forecast, const std::string& stage) {
  if (stage.empty()) return forecast.steps.front();
  for (const StepForecast& of_run : forecast.steps)
    if (name_of(of_run.kind) == stage) return of_run;
  throw Error(Exit::usage, fmt::format("has no stage '{}'", stage));
}

double flops_per_sample(const SourceFigure& figure, const ModelShape& model, std::int64_t seq_len) {
  if (figure.flops_per_sample > 0) return figure.flops_per_sample;
  using parallel::AttentionCount;
  const Flops flops =
      figure.count == FlopsCount::full_recompute
          ? parallel::hardware_flops(model, seq_len, parallel::Recompute::full)
          : parallel::model_flops(
                model, seq_len,
                figure.count == FlopsCount::causal ? AttentionCount::causal : AttentionCount::full);
  return flops.value();
}

double memory_gib(const SourceFigure& figure, const MemoryForecast& memory) {
  Bytes bytes = memory.peak;
  if (!figure.parts.empty()) bytes = Bytes(0);
  for (const std::string& name : figure.parts) {
    const auto part = std::find_if(memory.parts.begin(), memory.parts.end(),
                                   [&](const auto& entry) { return entry.first == name; });
    if (part == memory.parts.end())
      throw Error(Exit::usage, fmt::format("the memory has no part '{}'", name));
    bytes += part->second;
  }
  for (const auto& [name, part] : memory.parts)
    if (std::find(figure.without.begin(), figure.without.end(), name) != figure.without.end())
      bytes = Bytes(bytes.value() - part.value());
  return bytes.value() / (1024.0 * 1024 * 1024);
}

// Returns the quantity of a run with this step time.
double quantity_at(const SourceFigure& figure, const TrainingPlan& training, double step_s) {
  const double samples = static_cast<double>(training.batch.train) / step_s;
  const double tokens = samples * static_cast<double>(training.seq_len);
  switch (figure.quantity) {
    case Quantity::samples_per_s:
      return samples;
    case Quantity::tokens_per_s:
      return tokens;
    case Quantity::tokens_per_gpu_s:
      return tokens / training.gpus;
    case Quantity::tflops_per_gpu:
      return samples * flops_per_sample(figure, *training.model, training.seq_len) / training.gpus *
             1e-12;
    case Quantity::mfu_pct: {
      const double tflops = samples * flops_per_sample(figure, *training.model, training.seq_len) /
                            training.gpus * 1e-12;
      if (figure.peak_tflops > 0) return tflops / figure.peak_tflops * 100;
      const std::optional<double> of_peak = flops_utilization(training, tflops);
      if (!of_peak)
        fail_input({"", 0, "mfu"},
                   fmt::format("{} states no peak in this format", training.device->name),
                   "tflops_per_gpu");
      return 100 * *of_peak;
    }
    case Quantity::days:
      return figure.samples / samples / 86400;
    case Quantity::run_time_s:
      return figure.steps * step_s + figure.pauses_s;
    case Quantity::step_time_s:
    case Quantity::layer_forward_s:
    case Quantity::layer_backward_s:
    case Quantity::memory_gib:
      break;
  }
  return step_s;
}

bool is_of_layer(Quantity quantity) {
  return quantity == Quantity::layer_forward_s || quantity == Quantity::layer_backward_s;
}

bool rate(Quantity quantity) {
  return quantity != Quantity::step_time_s && quantity != Quantity::days &&
         quantity != Quantity::run_time_s && quantity != Quantity::memory_gib &&
         !is_of_layer(quantity);
}

void forecast_layer(SourceResult& result, const TrainingPlan& training, CollectiveCosts& costs) {
  const std::optional<LayerTime> layer = layer_time(training, costs);
  if (!layer)
    throw Error(
        Exit::usage,
        "layer times can be forecast only with a parallel layout; try: columns tp, pp or dp");
  const bool forward = result.of.quantity == Quantity::layer_forward_s;
  const Interval& interval = forward ? layer->forward_interval : layer->backward_interval;
  result.forecast = (forward ? layer->forward : layer->backward).us() * 1e-6;
  result.low = interval.low.us() * 1e-6;
  result.high = interval.high.us() * 1e-6;
  result.error = result.forecast / result.of.measured - 1;
}

void forecast_figure(SourceResult& result, const std::optional<ProgramPrior>& prior,
                     Catalog& catalog, CollectiveCosts& costs) {
  TrainingPlan training = resolve(result.of.what_if, catalog).training;
  if (prior) training.prior = *prior;
  if (is_of_layer(result.of.quantity)) return forecast_layer(result, training, costs);
  // Forecasts whole rounds if ranks exchange every H steps: a run then consists of rounds of H
  // steps.
  const std::int64_t round = steps_per_exchange(training.exchange);
  if (round > 1) training.steps = round;
  const Forecast run = forecast(training, costs);
  if (result.of.quantity == Quantity::memory_gib) {
    result.forecast = memory_gib(result.of, run.memory);
    result.low = result.forecast * (1 - memory_error);
    result.high = result.forecast * (1 + memory_error);
    result.error = result.forecast / result.of.measured - 1;
    return;
  }
  result.time = run.time;
  const MeanStep step =
      round > 1 ? mean_step(run) : mean_step(std::span(&step_of(run, result.of.stage), 1));
  result.exposed = step.parts[PartGroup::wire] / step.time_us;
  const auto at = [&](double step_us) { return quantity_at(result.of, training, step_us * 1e-6); };
  result.forecast = at(step.time_us);
  const double first = at(step.time_low_us), last = at(step.time_high_us);
  result.low = std::min(first, last);
  result.high = std::max(first, last);
  result.error = (rate(result.of.quantity) ? result.of.measured / result.forecast
                                           : result.forecast / result.of.measured) -
                 1;
}

// Joins a sentence into one line.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::vector<SourceResult> select(const std::vector<SourceResult>& results, auto&& keep) {
  std::vector<SourceResult> kept;
  std::copy_if(results.begin(), results.end(), std::back_inserter(kept), keep);
  return kept;
}

bool past(const ErrorScore& score, const std::optional<ErrorLimit>& limit) {
  return limit && score.rows > 0 && (score.median > limit->median || score.p90 > limit->p90);
}

SourceScore source_score(const std::string& name, const std::vector<SourceResult>& results,
                         const Source* source) {
  const auto is_time = [](const SourceResult& result) {
    return result.of.quantity != Quantity::memory_gib;
  };
  SourceScore score;
  score.source = name;
  const std::vector<SourceResult> times = select(results, is_time);
  score.time = score_of(times);
  score.fitted = score_of(select(times, [](const auto& result) { return result.of.fitted; }));
  score.unseen = score_of(select(times, [](const auto& result) { return !result.of.fitted; }));
  score.memory = score_of(select(results, [&](const auto& result) { return !is_time(result); }));
  if (source == nullptr) return score;
  score.time_limit = source->time_limit();
  score.memory_limit = source->memory_limit();
  score.within = !past(score.time, score.time_limit) && !past(score.memory, score.memory_limit);
  return score;
}

void average_intervals(SourceSummary& summary) {
  int sources = 0;
  for (const SourceScore& source : summary.sources) {
    if (source.time.with_interval == 0) continue;
    ++sources;
    summary.coverage += static_cast<double>(source.time.inside) / source.time.with_interval;
    summary.interval_score += source.time.interval_score;
  }
  if (sources == 0) return;
  summary.coverage /= sources;
  summary.interval_score /= sources;
}

std::string percent_of(double share) { return fmt::format("{:.1f}%", share * 100); }

// Lists each reason once, with its rows.
std::string refusals(const std::vector<SourceResult>& results) {
  std::map<std::pair<std::string, std::string>, std::set<int>> rows;
  for (const SourceResult& result : results)
    if (!result.ok()) rows[{result.of.source, result.status}].insert(result.of.row);
  std::string out;
  for (const auto& [reason, of_rows] : rows)
    out += fmt::format("refused: {}, row{} {}: {}\n", reason.first, of_rows.size() > 1 ? "s" : "",
                       fmt::join(of_rows, ", "), reason.second);
  return out;
}

std::string_view verdict_of(const SourceSummary& summary) {
  if (!summary.within) return "PAST LIMITS";
  const auto holds = [](const ErrorScore& score, const std::optional<ErrorLimit>& limit) {
    return score.rows > 0 && limit;
  };
  const bool limited = std::ranges::any_of(summary.sources, [&](const SourceScore& source) {
    return holds(source.time, source.time_limit) || holds(source.memory, source.memory_limit);
  });
  return limited ? "within limits" : "no limit applies";
}

std::string inside_text(const ErrorScore& score) {
  return score.with_interval == 0
             ? std::string("-")
             : fmt::format("{:.0f}%", 100.0 * score.inside / score.with_interval);
}

}  // namespace

std::vector<SourceResult> replay_figures(std::vector<SourceFigure> figures,
                                         const std::optional<ProgramPrior>& prior) {
  std::vector<SourceResult> results(figures.size());
  for (std::size_t i = 0; i < figures.size(); ++i) results[i].of = std::move(figures[i]);
  const auto texts = std::make_shared<DescriptionTexts>();
  for (const SourceResult& result : results)
    for (const auto& [what, text] : result.of.texts) texts->add(what, text);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    Catalog catalog(texts);
    CollectiveCosts costs;
    while (true) {
      const std::size_t i = next++;
      if (i >= results.size()) return;
      SourceResult& result = results[i];
      result.status = one_line(result.of.refused);
      if (!result.status.empty()) continue;
      try {
        forecast_figure(result, prior, catalog, costs);
        result.status = "ok";
      } catch (const Error& error) {
        result.status = one_line(error.what());
      }
    }
  };
  std::exception_ptr failure;
  std::mutex failing;
  const auto work_or_fail = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(failing);
      failure = std::current_exception();
      next = results.size();
    }
  };
  // A page has one thread, and cannot start another.
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::thread> threads = start_threads(cores > 1 ? cores : 0, work_or_fail);
  if (threads.empty()) work_or_fail();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return results;
}

ErrorScore score_of(const std::vector<SourceResult>& results) {
  ErrorScore score;
  std::vector<double> errors;
  for (const SourceResult& result : results) {
    if (!result.ok()) {
      ++score.refused;
      continue;
    }
    errors.push_back(std::abs(result.error));
    if (!result.low) continue;
    ++score.with_interval;
    score.inside += result.inside() ? 1 : 0;
    score.interval_score += interval_score(*result.low, *result.high, result.of.measured);
  }
  if (score.with_interval > 0) score.interval_score /= score.with_interval;
  score.rows = static_cast<int>(errors.size());
  if (errors.empty()) return score;
  score.median = validate::quantile(errors, 0.5);
  score.p90 = validate::quantile(errors, 0.9);
  return score;
}

SourceSummary replay_sources() {
  std::vector<SourceFigure> figures;
  std::vector<Source> sources;
  for (const std::string& name : source_names()) {
    const std::string_view rows = source_rows(name);
    if (rows.empty()) continue;
    sources.push_back(load_source(name));
    for (SourceFigure& figure : sources.back().figures(parse_rows(rows, name + ".csv")))
      figures.push_back(std::move(figure));
  }
  SourceSummary summary;
  summary.results = replay_figures(std::move(figures));
  std::vector<double> medians;
  for (const Source& source : sources) {
    const auto own = [&](const auto& result) { return result.of.source == source.name(); };
    SourceScore& score = summary.sources.emplace_back(
        source_score(source.name(), select(summary.results, own), &source));
    summary.within = summary.within && score.within;
    if (score.time.rows > 0) medians.push_back(score.time.median);
  }
  summary.all = source_score("all", summary.results, nullptr).time;
  if (!medians.empty()) summary.of_medians = validate::quantile(medians, 0.5);
  average_intervals(summary);
  return summary;
}

SourceSummary replay_rows(std::string_view text, const std::string& file,
                          const std::string& source) {
  const csv::Table table = parse_rows(text, file);
  SourceSummary summary;
  summary.results = replay_figures(source == "runs" ? figures_of_runs(table)
                                                    : load_source(source).figures(table));
  summary.sources = {source_score(source, summary.results, nullptr)};
  summary.all = summary.sources.front().time;
  summary.of_medians = summary.all.median;
  average_intervals(summary);
  return summary;
}

std::string source_results_csv(const SourceSummary& summary) {
  std::string out = "source,row,case,quantity,measured,forecast,error,low,high,inside,status\n";
  for (const SourceResult& result : summary.results) {
    const bool ok = result.ok();
    const auto shown = [&](double value) { return ok ? csv::number(value) : std::string(); };
    const bool interval = ok && result.low.has_value();
    out += csv::row({result.of.source, fmt::format("{}", result.of.row), result.of.name,
                     std::string(name_of(result.of.quantity)), csv::number(result.of.measured),
                     shown(result.forecast), shown(result.error),
                     interval ? csv::number(*result.low) : "",
                     interval ? csv::number(*result.high) : "",
                     interval ? (result.inside() ? "yes" : "no") : "", result.status}) +
           "\n";
  }
  return out;
}

std::string source_table(const SourceSummary& summary) {
  std::string out =
      fmt::format("{:<24} {:>4} {:>3} {:>5} {:>3} {:>5} {:>3} {:>5} {:>6} {:>6} {:>5}\n", "source",
                  "rows", "ref", "med.", "lim", "p90", "lim", "fit", "unseen", "inside", "score");
  const auto line = [&](const std::string& name, const ErrorScore& score,
                        const std::optional<ErrorLimit>& limit, const std::string& fitted,
                        const std::string& unseen) {
    const auto shown = [&](double share) {
      return score.rows > 0 ? percent_of(share) : std::string("-");
    };
    const auto whole = [](double share) { return fmt::format("{:.0f}%", 100 * share); };
    out += fmt::format("{:<24} {:>4} {:>3} {:>5} {:>3} {:>5} {:>3} {:>5} {:>6} {:>6} {:>5}{}\n",
                       name, score.rows, score.refused, shown(score.median),
                       limit ? whole(limit->median) : "", shown(score.p90),
                       limit ? whole(limit->p90) : "", fitted, unseen, inside_text(score),
                       score.with_interval > 0 ? fmt::format("{:.2f}", score.interval_score) : "",
                       past(score, limit) ? "  PAST ITS LIMIT" : "");
  };
  const auto median = [](const ErrorScore& score) {
    return score.rows > 0 ? percent_of(score.median) : std::string("-");
  };
  for (const SourceScore& source : summary.sources) {
    if (source.time.rows + source.time.refused > 0)
      line(source.source, source.time, source.time_limit, median(source.fitted),
           median(source.unseen));
    if (source.memory.rows + source.memory.refused > 0)
      line(source.source + ", GB", source.memory, source.memory_limit, "", "");
  }
  line("all rows", summary.all, std::nullopt, "", "");
  out +=
      "ref: refused. med., p90: of |forecast / measured - 1|, and their limits; "
      "fit, unseen: its median over rows that set a parameter (grade R), and over the others (U). "
      "GB: of memory. "
      "score: of the intervals; lower is better.\n";
  out += refusals(summary.results);
  return out + fmt::format(
                   "sources, each alike: median of their medians {}, {} inside their "
                   "intervals, interval score {:.2f}: {}\n",
                   percent_of(summary.of_medians), percent_of(summary.coverage),
                   summary.interval_score, verdict_of(summary));
}

std::string source_brief(const SourceSummary& summary) {
  const SourceScore& source = summary.sources.front();
  std::string out;
  const auto say = [&](const char* what, const ErrorScore& score) {
    if (score.rows + score.refused == 0) return;
    out += fmt::format("{} {}: {} rows forecast, {} not", source.source, what, score.rows,
                       score.refused);
    if (score.rows > 0)
      out += fmt::format("; |error| median {}, 90th percentile {}", percent_of(score.median),
                         percent_of(score.p90));
    if (score.with_interval > 0)
      out += fmt::format("; inside the interval {} of {}, interval score {:.2f}", score.inside,
                         score.with_interval, score.interval_score);
    out += "\n";
  };
  say("time", source.time);
  say("memory", source.memory);
  return out;
}

}  // namespace lambcast
