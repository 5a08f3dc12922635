#include "experiments/compare/comparison_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "experiments/advise/advice.h"
#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/interval_axis.h"
#include "experiments/output/measure_first.h"
#include "experiments/sweep/common_length.h"
#include "models/training/memory/tight_memory.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"
#include "sim/base/ratio.h"

namespace lambcast {
namespace {

// Width that keeps rows within 80 columns; longer names get a line of their own.
constexpr std::size_t widest_name = 14;

// Returns the speed-up relative to the contestant named first, which may be one that cannot run.
std::optional<RatioInterval> speedup_of(const Comparison& comparison,
                                        const Contestant& contestant) {
  return comparison.ratio(comparison.reference(), contestant);
}

bool runs_and_fits(const Contestant& contestant) {
  return contestant.refused.empty() && contestant.forecast.memory.fits;
}

// Formats a ratio as "1.24 (1.10 to 1.40) times as long".
std::string longer_text(const RatioInterval& ratio) {
  if (ratio.value == 1 && ratio.shares.empty()) return "exactly as long";
  return fmt::format("{} ({} to {}) times as long", ratio_digits(ratio.value),
                     ratio_digits(ratio.low), ratio_digits(ratio.high));
}

std::string fastest_sentence(const Comparison& comparison) {
  const Contestant& best = comparison.ranked.front();
  if (!best.refused.empty()) return "None of them runs.\n";
  if (!comparison.answered())
    return fmt::format("None of them fits in memory: {} would be the fastest and needs {} a GPU.\n",
                       best.name, to_text(best.forecast.memory.peak));
  const RunForecast& run = best.forecast.run;
  const Contestant& next = comparison.ranked[1];
  constexpr double tie = 1.005;
  const bool ties = runs_and_fits(next) && comparison.ratio(next, best)->value < tie;
  std::string out =
      fmt::format("Fastest{}: {}, {} a run{}", ties ? " by less than 0.5 %" : "", best.name,
                  time_and_range(run.time_s, run.time_low_s, run.time_high_s),
                  assumed_run_text(comparison.common_steps));
  if (!comparison.work.is_a_run())
    out += fmt::format(", {} a {}", run_time_text(run.time_s * comparison.share(best)),
                       comparison.work.name());
  if (comparison.first_named != 0 && speedup_of(comparison, best))
    out += fmt::format(", {} as fast as {}", ratio_text(*speedup_of(comparison, best)),
                       comparison.reference().name);
  else if (runs_and_fits(next))
    out += fmt::format("; the next, {}, takes {}", next.name,
                       longer_text(*comparison.ratio(next, best)));
  out += ".";
  if (!comparison.work.is_a_run()) out += fmt::format(" {}", comparison.work.reason());
  if (!runs_and_fits(next)) return out + "\n";
  const RatioInterval between = *comparison.ratio(next, best);
  if (between.low > 1 || between.shares.empty()) return out + "\n";
  const bool said = comparison.first_named <= 1;  // whether the ratio of the two is already printed
  out += said ? std::string(" Which of the two is faster is not certain.")
              : fmt::format(" Between it and {} it is not certain: {}.", next.name,
                            longer_text(between));
  const std::string measurement = measurement_for(
      between.shares.front().source, std::array{&next.scenario.training, &best.scenario.training});
  return out + (measurement.empty() ? "\n" : fmt::format(" Measure first: {}.\n", measurement));
}

double cost_of(const Comparison& comparison, const Contestant& contestant) {
  return *contestant.forecast.run.cost_usd * comparison.share(contestant);
}

// Returns how much more the second cheapest contestant costs. Prices are used as given, without an
// interval.
std::string second_cheapest(const Comparison& comparison, const Contestant& cheapest) {
  const Contestant* next = nullptr;
  for (const Contestant& contestant : comparison.ranked) {
    if (&contestant == &cheapest || !runs_and_fits(contestant) || !contestant.forecast.run.cost_usd)
      continue;
    if (next == nullptr || cost_of(comparison, contestant) < cost_of(comparison, *next))
      next = &contestant;
  }
  if (next == nullptr) return "";
  const RatioInterval time = *comparison.ratio(*next, cheapest);
  const double price = cost_of(comparison, *next) / cost_of(comparison, cheapest) / time.value;
  return fmt::format(
      " The next, {}, costs {} times as much ({} to {}){}.", next->name,
      ratio_digits(price * time.value), ratio_digits(price * time.low),
      ratio_digits(price * time.high),
      price * time.low > 1 || time.shares.empty() ? "" : ": which is cheaper is not certain");
}

std::string cost_sentence(const Comparison& comparison) {
  const Contestant* cheapest = nullptr;
  std::string without;
  for (const Contestant& contestant : comparison.ranked) {
    if (!contestant.refused.empty() || !contestant.forecast.memory.fits) continue;
    if (!contestant.forecast.run.cost_usd)
      without += (without.empty() ? "" : "; ") + contestant.name;
    else if (cheapest == nullptr ||
             cost_of(comparison, contestant) < cost_of(comparison, *cheapest))
      cheapest = &contestant;
  }
  if (cheapest == nullptr) return fmt::format("Cost: {}.\n", no_price_text());
  const RunForecast& run = cheapest->forecast.run;
  const Provenance& price = cheapest->scenario.training.cluster->usd_per_gpu_hour->provenance;
  std::string out = fmt::format("Cheapest{}: {}, {} USD a run ({} to {}",
                                without.empty() ? "" : " of those with a price", cheapest->name,
                                usd_cell(*run.cost_usd), usd_cell(*run.cost_at(run.time_low_s)),
                                usd_cell(*run.cost_at(run.time_high_s)));
  if (!comparison.work.is_a_run())
    out +=
        fmt::format("; {} a {}", usd_cell(cost_of(comparison, *cheapest)), comparison.work.name());
  out += fmt::format("; price {}: {}).", name_of(price.kind), price.source);
  out += second_cheapest(comparison, *cheapest);
  if (!without.empty())
    out += fmt::format(
        " Without a price: {}; usd_per_gpu_hour in a description of its own gives one "
        "(lambcast presets show), --set cluster.usd_per_gpu_hour=USD sets that of all.",
        without);
  return out + "\n";
}

// Names the warm-up that the rows of 1-bit optimizers assume.
std::string warmup_sentence(const Comparison& comparison) {
  const bool assumed = std::ranges::any_of(comparison.ranked, [](const Contestant& contestant) {
    return contestant.compression.warmup_assumed && contestant.compression.speedup;
  });
  if (!assumed) return "";
  return fmt::format(
      "1-bit optimizers warm up for {} of the run (assumed; --freeze-step sets it).\n",
      assumed_warmup);
}

// The verdicts of those that were judged.
std::string compression_sentence(const Comparison& comparison) {
  if (!comparison.clusters_differ) return warmup_sentence(comparison);
  VerdictCounts own, fused;
  bool assumed = false;
  for (std::size_t i = 0; i < comparison.ranked.size(); ++i) {
    const CompressionPays& pays = comparison.ranked[i].compression;
    if (!pays.speedup) continue;
    own.add(i, speedup_in(*pays.speedup), pays.verdict, pays.measure_first);
    if (pays.fused) fused.add(i, *pays.fused, verdict_of(*pays.fused, 1, true), "");
    assumed = assumed || pays.warmup_assumed;
  }
  const std::string verdict =
      in_words(own, fused, [&](std::size_t i) { return comparison.ranked[i].name; });
  if (verdict.empty()) return "";
  return fmt::format(
      "Does {} pay{}? {}\n", comparison.ranked[own.best_at].compression.optimizer,
      assumed ? fmt::format(", with a warm-up of {} of the run (assumed)", assumed_warmup) : "",
      verdict);
}

bool has_room(const Contestant& contestant) {
  const MemoryForecast& memory = contestant.forecast.memory;
  return memory.fits && !is_tight(memory, *contestant.scenario.training.device);
}

std::string line_of(const Comparison& comparison, const Contestant& contestant, std::size_t width) {
  const Forecast& forecast = contestant.forecast;
  const MeanStep& step = contestant.step;
  const auto against = speedup_of(comparison, contestant);
  const auto [loss, share] = step.largest_loss();
  const auto times = [](const std::optional<RatioInterval>& ratio) {
    return ratio ? fmt::format("{:.2f}x", ratio->value) : std::string("-");
  };
  const std::string name = contestant.name.size() <= width
                               ? contestant.name
                               : fmt::format("{}\n{:{}}", contestant.name, "", width);
  return fmt::format("{:<{}} {:>9} {:>7} {:>8} {:>8}{} {:>6} {:>5} {} {:.0f}%\n", name, width,
                     time_cell(forecast.run.time_s), times(against),
                     bytes_cell(Bytes(step.wire_bytes_per_gpu)), bytes_cell(forecast.memory.peak),
                     has_room(contestant) ? " " : "!",
                     forecast.run.cost_usd ? usd_cell(*forecast.run.cost_usd) : "-",
                     times(contestant.compression.speedup), name_of(loss), 100 * share);
}

std::string axis_of(const Comparison& comparison) {
  std::vector<AxisEntry> entries;
  double longest_s = 0;
  for (const Contestant& contestant : comparison.ranked) {
    if (!contestant.refused.empty()) continue;
    const RunForecast& run = contestant.forecast.run;
    const double share = comparison.share(contestant);
    entries.push_back(
        {contestant.name, share * run.time_low_s, share * run.time_s, share * run.time_high_s});
    longest_s = std::max(longest_s, entries.back().high);
  }
  return interval_axis(std::string(comparison.work.name()), entries, "0 s",
                       run_time_text(longest_s));
}

// Returns each reason why contestants cannot run, with the names of its contestants.
std::vector<std::pair<std::string, std::vector<std::string>>> refusals_of(
    const Comparison& comparison) {
  std::vector<std::pair<std::string, std::vector<std::string>>> refusals;
  for (const Contestant& contestant : comparison.ranked) {
    if (contestant.refused.empty()) continue;
    const auto known = std::ranges::find(refusals, contestant.refused,
                                         &std::pair<std::string, std::vector<std::string>>::first);
    if (known == refusals.end())
      refusals.push_back({contestant.refused, {contestant.name}});
    else
      known->second.push_back(contestant.name);
  }
  return refusals;
}

std::string notes_of(const Comparison& comparison) {
  std::string out;
  for (const auto& [reason, names] : refusals_of(comparison))
    out += fmt::format("{}: cannot run: {}\n", fmt::join(names, ", "), reason);
  for (const Contestant& contestant : comparison.ranked) {
    if (!contestant.refused.empty()) continue;
    if (!contestant.forecast.memory.fits)
      out += fmt::format("{}: needs {} a GPU, {} has {}\n", contestant.name,
                         to_text(contestant.forecast.memory.peak),
                         contestant.scenario.training.device->name,
                         to_text(contestant.scenario.training.device->memory_capacity));
    else if (!has_room(contestant))
      out += fmt::format("{}: may not fit: needs up to {} a GPU, {} has {}\n", contestant.name,
                         to_text(contestant.forecast.memory.high()),
                         contestant.scenario.training.device->name,
                         to_text(contestant.scenario.training.device->memory_capacity));
  }
  return out;
}

Json end_of(const std::optional<Speedup>& speedup, double Speedup::*member) {
  return speedup ? Json((*speedup).*member) : Json(nullptr);
}

Json contestant_json(const Comparison& comparison, const Contestant& contestant) {
  Json json{{"name", contestant.name}};
  if (!contestant.refused.empty()) {
    json["status"] = "infeasible: " + contestant.refused;
    return json;
  }
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto end = [](const std::optional<RatioInterval>& ratio, double RatioInterval::*member) {
    return ratio ? Json((*ratio).*member) : Json(nullptr);
  };
  const TrainingPlan& training = contestant.scenario.training;
  const Forecast& forecast = contestant.forecast;
  const MeanStep& step = contestant.step;
  const auto [loss, share] = step.largest_loss();
  const auto against = speedup_of(comparison, contestant);
  json.update(
      {{"status", forecast.memory.fits ? "ok" : "infeasible: memory"},
       {"cluster", training.cluster->name},
       {"optimizer", std::string(name_of(training.optimizer()))},
       {"exchange", name_of(training.exchange)},
       {"gpus", training.gpus},
       {"run_time_s", forecast.run.time_s},
       {"run_time_low_s", forecast.run.time_low_s},
       {"run_time_high_s", forecast.run.time_high_s},
       {"speedup_vs_first", end(against, &RatioInterval::value)},
       {"step_time_us", step.time_us},
       {"compute_us", step.parts[PartGroup::compute]},
       {"exposed_comm_us", step.parts[PartGroup::wire]},
       {"compression_us", step.parts[PartGroup::compression]},
       {"optimizer_us", step.parts[PartGroup::optimizer]},
       {"bubble_us", step.parts[PartGroup::bubble]},
       {"wire_bytes_per_gpu_and_step", step.wire_bytes_per_gpu},
       {"peak_bytes_per_gpu", forecast.memory.peak.value()},
       {"fits", forecast.memory.fits},
       {"cost_usd", optional(forecast.run.cost_usd)},
       {"price_source", nullptr},
       {"compressed_optimizer", contestant.compression.optimizer},
       {"compression_speedup", end(contestant.compression.speedup, &RatioInterval::value)},
       {"compression_why_not", contestant.compression.why_not},
       {"warmup_assumed", contestant.compression.warmup_assumed},
       {"largest_loss", std::string(name_of(loss))},
       {"largest_loss_share", share},
       {"cost_source", std::string(name_of(forecast.sources.weakest()))},
       {"speedup_low", end(against, &RatioInterval::low)},
       {"speedup_high", end(against, &RatioInterval::high)},
       {"cost_low_usd", optional(forecast.run.cost_at(forecast.run.time_low_s))},
       {"cost_high_usd", optional(forecast.run.cost_at(forecast.run.time_high_s))},
       {"compression_speedup_low", end(contestant.compression.speedup, &RatioInterval::low)},
       {"compression_speedup_high", end(contestant.compression.speedup, &RatioInterval::high)},
       {"compression_verdict", std::string(name_of(contestant.compression.verdict))},
       {"verdict_words", std::string(words_of(contestant.compression.verdict))},
       {"fused_speedup", end_of(contestant.compression.fused, &Speedup::value)},
       {"fused_speedup_low", end_of(contestant.compression.fused, &Speedup::low)},
       {"fused_speedup_high", end_of(contestant.compression.fused, &Speedup::high)},
       {"equal_work", std::string(comparison.work.name())},
       {"equal_work_time_s", forecast.run.time_s * comparison.share(contestant)},
       {"equal_work_cost_usd",
        forecast.run.cost_usd ? Json(cost_of(comparison, contestant)) : Json(nullptr)}});
  if (const auto& price = training.cluster->usd_per_gpu_hour)
    json["price_source"] =
        fmt::format("{}: {}", name_of(price->provenance.kind), price->provenance.source);
  return json;
}

// Formats the speed-up intervals of each cluster: " (aws-p5 3.10 to 4.22x; ...)".
std::string speeds_within(const Comparison& comparison) {
  std::string out;
  for (const Contestant& contestant : comparison.ranked) {
    const auto speed = speedup_of(comparison, contestant);
    if (!speed || speed->shares.empty()) continue;
    out += fmt::format("{}{} {:.2f} to {:.2f}x", out.empty() ? "" : "; ", contestant.name,
                       speed->low, speed->high);
  }
  return out.empty() ? out : fmt::format(" ({})", out);
}

std::string answer_of(const Comparison& comparison) {
  std::string out = fastest_sentence(comparison);
  if (comparison.answered()) out += cost_sentence(comparison);
  return out + compression_sentence(comparison);
}

}  // namespace

std::string comparison_table(const Comparison& comparison) {
  std::size_t width = 10;
  for (const Contestant& contestant : comparison.ranked)
    width = std::max(width, std::min(contestant.name.size(), widest_name));
  std::string out = answer_of(comparison);
  if (comparison.ranked.front().refused.empty())
    out += fmt::format("\n{:<{}} {:>9} {:>7} {:>8} {:>8}  {:>6} {:>5} {}\n", "best first", width,
                       "run", "speed", "wire", "memory", "USD", "1-bit", "most lost");
  for (const Contestant& contestant : comparison.ranked)
    if (contestant.refused.empty()) out += line_of(comparison, contestant, width);
  out += notes_of(comparison);
  out += fmt::format("\n{}", axis_of(comparison));
  return out +
         fmt::format(
             "\nspeed: against {}{}. wire: bytes that a GPU sends a step. 1-bit: what a 1-bit "
             "optimizer makes of the run. most lost: the largest part of the step beside "
             "compute. USD -: no price is known. !: does not fit, or may not, as said above. "
             "Time only: convergence is not forecast.\n",
             comparison.reference().name, speeds_within(comparison));
}

std::string comparison_json(const Comparison& comparison) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"answer", answer_of(comparison)},
            {"first", comparison.reference().name},
            {"results", Json::array()}};
  for (const Contestant& contestant : comparison.ranked)
    json["results"].push_back(contestant_json(comparison, contestant));
  return json_lines(json);
}

std::string comparison_csv(const Comparison& comparison) {
  const std::vector<std::string> columns{"name",
                                         "cluster",
                                         "optimizer",
                                         "exchange",
                                         "gpus",
                                         "run_time_s",
                                         "run_time_low_s",
                                         "run_time_high_s",
                                         "speedup_vs_first",
                                         "step_time_us",
                                         "compute_us",
                                         "exposed_comm_us",
                                         "compression_us",
                                         "optimizer_us",
                                         "bubble_us",
                                         "wire_bytes_per_gpu_and_step",
                                         "peak_bytes_per_gpu",
                                         "fits",
                                         "cost_usd",
                                         "compressed_optimizer",
                                         "compression_speedup",
                                         "largest_loss",
                                         "largest_loss_share",
                                         "status",
                                         "cost_source",
                                         "speedup_low",
                                         "speedup_high",
                                         "cost_low_usd",
                                         "cost_high_usd",
                                         "compression_speedup_low",
                                         "compression_speedup_high",
                                         "compression_verdict",
                                         "fused_speedup",
                                         "fused_speedup_low",
                                         "fused_speedup_high",
                                         "equal_work",
                                         "equal_work_time_s",
                                         "equal_work_cost_usd"};
  std::string out = csv::row(columns) + "\n";
  for (const Contestant& contestant : comparison.ranked) {
    const Json json = contestant_json(comparison, contestant);
    std::vector<std::string> row;
    for (const std::string& column : columns) {
      const Json value = json.value(column, Json(nullptr));
      row.push_back(value.is_null()           ? ""
                    : value.is_string()       ? value.get<std::string>()
                    : value.is_number_float() ? csv::number(value.get<double>())
                                              : json_line(value));
    }
    out += csv::row(row) + "\n";
  }
  return out;
}

}  // namespace lambcast
