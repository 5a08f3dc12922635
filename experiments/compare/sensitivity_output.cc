#include "experiments/compare/sensitivity_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/measure_first.h"
#include "experiments/output/plain_name.h"
#include "experiments/scenario/run_length.h"
#include "experiments/sweep/common_length.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

constexpr std::size_t longest_bar = 20, widest_key = 36;

std::string kind_of(const InputEffect& effect) {
  return effect.provenance ? std::string(name_of(effect.provenance->kind)) : "chosen";
}

bool moves(const InputEffect& effect) { return std::abs(effect.time_elasticity) > no_effect; }

// Returns whether a row of the table has a digit other than zero.
bool is_visible(const InputEffect& effect) {
  constexpr double visible = 0.0005;
  return std::abs(effect.time_elasticity) >= visible ||
         std::abs(effect.speedup_elasticity.value_or(0)) >= visible;
}

std::string what_ten_percent_does(const InputEffect& effect) {
  const double change = std::pow(1.1, effect.time_elasticity) - 1;
  return fmt::format("10 % more of it makes the run {:.1f} % {}", 100 * std::abs(change),
                     change > 0 ? "longer" : "shorter");
}

// Returns the quantity whose interval the shares divide: "the speed-up, 1.58 to 3.19x".
std::string interval_name(const Sensitivity& sensitivity) {
  const RunForecast& run = sensitivity.forecast.run;
  return sensitivity.of_speedup()
             ? fmt::format("the speed-up, {:.2f} to {:.2f}x", run.speedup->low, run.speedup->high)
             : "the run's time, " + time_range(run.time_s, run.time_low_s, run.time_high_s);
}

// Returns the speed-up, or why the run is not judged.
std::string judgement_text(const Sensitivity& sensitivity) {
  const RunForecast& run = sensitivity.forecast.run;
  const Judgement& judgement = sensitivity.judgement;
  if (judgement.verdict == Verdict::not_judged)
    return fmt::format("Its speed-up is not judged: {}.\n", judgement.why_not_judged);
  if (!run.speedup) return "";
  return fmt::format("Its speed-up over {} is {}.\n", run.baseline_optimizer,
                     ratio_text(*run.speedup));
}

// Names the measurement to make first, and the strongest of the inputs that it would settle.
std::string measure_text(const Sensitivity& sensitivity) {
  if (sensitivity.parts.empty()) return "No input is uncertain.\n";
  const IntervalPart* first = sensitivity.to_measure();
  if (first == nullptr) return "";
  const auto strongest = std::ranges::find_if(sensitivity.effects, [&](const InputEffect& effect) {
    return effect.source == first->source && moves(effect);
  });
  return fmt::format("To measure first: {}. It makes {:.0f} % of the interval of {}{}.\n",
                     measurement_for(first->source, sensitivity.scenario.training),
                     100 * sensitivity.share(*first), interval_name(sensitivity),
                     strongest == sensitivity.effects.end()
                         ? ""
                         : fmt::format("; it narrows {} most", name_with_key(strongest->key)));
}

std::string answer_of(const Sensitivity& sensitivity) {
  const auto strongest = std::ranges::find_if(sensitivity.effects, [](const InputEffect& effect) {
    return effect.provenance && moves(effect);
  });
  const RunForecast& run = sensitivity.forecast.run;
  const Scenario& scenario = sensitivity.scenario;
  const auto assumed_steps =
      gives_length(scenario.asked) ? std::nullopt : std::optional(scenario.training.steps);
  std::string out = fmt::format("The run{} takes {}. ", assumed_run_text(assumed_steps),
                                time_and_range(run.time_s, run.time_low_s, run.time_high_s));
  if (strongest == sensitivity.effects.end())
    return out + "No number of the cluster or device moves it.\n";
  out += fmt::format("Of all numbers '{}' ({}: {}, {}) moves it most: {}.\n",
                     plain_name(strongest->key), strongest->key, strongest->value,
                     kind_of(*strongest), what_ten_percent_does(*strongest));
  return out + judgement_text(sensitivity) + measure_text(sensitivity);
}

std::string percent_of(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "";
}

// Names the measurement that narrows a part; only the part's name if the cluster's logs already
// contain it.
std::string part_text(const Sensitivity& sensitivity, const IntervalPart& part) {
  const std::string measurement = measurement_for(part.source, sensitivity.scenario.training);
  return measurement.empty() ? name_of_source(part.source) + " (measured)" : measurement;
}

// Formats the parts that make up at least 1 % of the interval.
std::string parts_table(const Sensitivity& sensitivity) {
  if (sensitivity.parts.empty()) return "";
  std::string out = fmt::format("\nwhat makes the interval of {}\n", interval_name(sensitivity));
  for (const IntervalPart& part : sensitivity.parts)
    if (sensitivity.share(part) >= 0.01)
      out += fmt::format("{:>5}  {}\n", percent_of(sensitivity.share(part)),
                         part_text(sensitivity, part));
  return out;
}

// Returns a bar of '<' for an input that shortens the run, of '>' for one that lengthens it.
// `share` is its length relative to the longest bar.
std::string bar_of(double elasticity, double share, std::size_t longest) {
  const double length = static_cast<double>(longest) * share;
  return std::string(static_cast<std::size_t>(std::lround(std::ceil(length))),
                     elasticity < 0 ? '<' : '>');
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity, const SensitivityView& view) {
  const bool all = view.all;
  const auto name_of_input = [&](const InputEffect& effect) {
    return view.keys ? effect.key : plain_name(effect.key);
  };
  std::string out = answer_of(sensitivity);
  std::size_t key_width = 10, value_width = 5, hidden = 0;
  double strongest = no_effect;
  for (const InputEffect& effect : sensitivity.effects) {
    if (!all && !is_visible(effect)) {
      ++hidden;
      continue;
    }
    // Longer names are not aligned; they belong to curves, which few users change.
    key_width = std::max(key_width, std::min(name_of_input(effect).size(), widest_key));
    value_width = std::max(value_width, effect.value.size());
    strongest = std::max(strongest, std::abs(effect.time_elasticity));
  }
  const bool judged = sensitivity.of_speedup();
  const auto line = [&](const std::string& key, const std::string& value, const std::string& kind,
                        const std::string& time, const std::string& speedup,
                        const std::string& share) {
    return fmt::format("{:<{}} {:>{}} {:<9} {:>7}{} {:>5}", key, key_width, value, value_width,
                       kind, time, judged ? fmt::format(" {:>8}", speedup) : "", share);
  };
  const std::string head = line("input", "value", "kind", "of time", "speed-up", "share");
  // The bars fill the remaining width of the page.
  const std::size_t longest =
      head.size() + 1 < page_width ? std::min(page_width - head.size() - 1, longest_bar) : 0;
  out += "\n" + head + "\n";
  for (const InputEffect& effect : sensitivity.effects) {
    if (!all && !is_visible(effect)) continue;
    const double share = std::abs(effect.time_elasticity) / strongest;
    out += fmt::format(
        "{} {}\n",
        line(name_of_input(effect), effect.value, kind_of(effect),
             fmt::format("{:+.3f}", effect.time_elasticity),
             effect.speedup_elasticity ? fmt::format("{:+.3f}", *effect.speedup_elasticity) : "",
             percent_of(effect.interval_share)),
        bar_of(effect.time_elasticity, share, longest));
  }
  out += parts_table(sensitivity);
  out += fmt::format(
      "\nof time: change of the run's time in per cent if the input grows by 1 %. Numbers are "
      "moved "
      "by {:.3g} % up and down, choices are doubled and halved (GPUs and micro batch at the same "
      "global batch). speed-up: change of the speed-up in per cent. Each input is moved alone; "
      "--set also moves the defaults that follow from it. share: part of the interval that comes "
      "from this input; the part of a measurement is split among its inputs by their effect.\n",
      100 * sensitivity.by);
  for (const std::string& key : sensitivity.fixed)
    out += fmt::format("{}: neither its double nor its half can run\n", plain_name(key));
  if (hidden > 0)
    out += fmt::format("{} inputs that move less than 0.0005 %: --all shows them\n", hidden);
  if (!view.keys) out += "--keys shows the key of each input, for --set\n";
  return out;
}

namespace {

std::string measurement_text(const Sensitivity& sensitivity, const InputEffect& effect) {
  return effect.source ? measurement_for(*effect.source, sensitivity.scenario.training) : "";
}

Json share_json(const std::optional<double>& share) { return share ? Json(*share) : Json(nullptr); }

}  // namespace

std::string sensitivity_json(const Sensitivity& sensitivity) {
  const RunForecast& run = sensitivity.forecast.run;
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"answer", answer_of(sensitivity)},
            {"moved_by", sensitivity.by},
            {"run_time_s", run.time_s},
            {"speedup_vs_baseline", run.speedup_vs_baseline},
            {"inputs", Json::array()},
            {"fixed", sensitivity.fixed},
            {"interval_of", sensitivity.of_speedup() ? "speedup" : "time"},
            {"run_time_low_s", run.time_low_s},
            {"run_time_high_s", run.time_high_s},
            {"speedup_low", run.speedup ? Json(run.speedup->low) : Json(nullptr)},
            {"speedup_high", run.speedup ? Json(run.speedup->high) : Json(nullptr)},
            {"interval_parts", Json::array()}};
  const auto& verdict = sensitivity.judgement.verdict;
  json["verdict"] = verdict ? Json(std::string(name_of(*verdict))) : Json(nullptr);
  json["verdict_words"] = verdict ? Json(std::string(words_of(*verdict))) : Json(nullptr);
  const bool of_speedup = sensitivity.of_speedup();
  for (const IntervalPart& part : sensitivity.parts)
    json["interval_parts"].push_back(
        {{"source", name_of_source(part.source)},
         {"measure", measurement_for(part.source, sensitivity.scenario.training)},
         {"share", sensitivity.share(part)},
         {"low", of_speedup ? part.speedup_low : part.time_low_s},
         {"high", of_speedup ? part.speedup_high : part.time_high_s}});
  for (const InputEffect& effect : sensitivity.effects)
    json["inputs"].push_back(
        {{"key", effect.key},
         {"name", plain_name(effect.key)},
         {"value", effect.value},
         {"kind", kind_of(effect)},
         {"source", effect.provenance ? Json(effect.provenance->source) : Json(nullptr)},
         {"time_elasticity", effect.time_elasticity},
         {"speedup_elasticity",
          effect.speedup_elasticity ? Json(*effect.speedup_elasticity) : Json(nullptr)},
         {"interval_share", share_json(effect.interval_share)},
         {"measure", effect.source ? Json(measurement_text(sensitivity, effect)) : Json(nullptr)}});
  return json_lines(json);
}

std::string sensitivity_csv(const Sensitivity& sensitivity) {
  std::string out = csv::row({"key", "value", "kind", "time_elasticity", "speedup_elasticity",
                              "source", "interval_share", "measure", "name"}) +
                    "\n";
  for (const InputEffect& effect : sensitivity.effects)
    out += csv::row({effect.key, effect.value, kind_of(effect), csv::number(effect.time_elasticity),
                     effect.speedup_elasticity ? csv::number(*effect.speedup_elasticity) : "",
                     effect.provenance ? effect.provenance->source : "",
                     effect.interval_share ? csv::number(*effect.interval_share) : "",
                     measurement_text(sensitivity, effect), plain_name(effect.key)}) +
           "\n";
  return out;
}

}  // namespace lambcast
