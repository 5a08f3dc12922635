#include "experiments/sensitivity_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/forecast_output.h"
#include "sim/base/csv.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t page_width = 80, longest_bar = 20, widest_key = 36;

std::string kind_of(const InputEffect& effect) {
  return effect.provenance ? std::string(name_of(effect.provenance->kind)) : "chosen";
}

bool moves(const InputEffect& effect) { return std::abs(effect.time_elasticity) > no_effect; }

std::string what_ten_percent_does(const InputEffect& effect) {
  const double change = std::pow(1.1, effect.time_elasticity) - 1;
  return fmt::format("10 % more of it makes the run {:.1f} % {}", 100 * std::abs(change),
                     change > 0 ? "longer" : "shorter");
}

std::string answer_of(const Sensitivity& sensitivity) {
  const auto strongest = std::ranges::find_if(sensitivity.effects, [](const InputEffect& effect) {
    return effect.provenance && moves(effect);
  });
  std::string out =
      fmt::format("The run takes {}. ", run_time_text(sensitivity.forecast.run.time_s));
  if (strongest == sensitivity.effects.end())
    return out + "No number of the cluster or device moves it.\n";
  out += fmt::format("Of all numbers {} ({}, {}) moves it most: {}.\n", strongest->key,
                     strongest->value, kind_of(*strongest), what_ten_percent_does(*strongest));
  const InputEffect* first = sensitivity.to_measure();
  if (first == nullptr) return out + "All that move it were measured.\n";
  return out +
         fmt::format("To measure first: {} ({}: {}){}.\n", first->key, kind_of(*first),
                     first->provenance->source,
                     first->key == strongest->key ? "" : "; " + what_ten_percent_does(*first));
}

// '<' for what shortens the run, '>' for what makes it longer; `share` of the longest one.
std::string bar_of(double elasticity, double share, std::size_t longest) {
  const double length = static_cast<double>(longest) * share;
  return std::string(static_cast<std::size_t>(std::lround(std::ceil(length))),
                     elasticity < 0 ? '<' : '>');
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity, bool all) {
  std::string out = answer_of(sensitivity);
  std::size_t key_width = 10, value_width = 5, hidden = 0;
  double strongest = no_effect;
  for (const InputEffect& effect : sensitivity.effects) {
    if (!all && !moves(effect)) {
      ++hidden;
      continue;
    }
    // Longer ones, of curves that hardly anybody moves, stick out.
    key_width = std::max(key_width, std::min(effect.key.size(), widest_key));
    value_width = std::max(value_width, effect.value.size());
    strongest = std::max(strongest, std::abs(effect.time_elasticity));
  }
  const bool compresses = is_onebit(sensitivity.scenario.training.optimizer());
  const auto line = [&](const std::string& key, const std::string& value, const std::string& kind,
                        const std::string& time, const std::string& speedup) {
    return fmt::format("{:<{}} {:>{}} {:<9} {:>7} {:>8}", key, key_width, value, value_width, kind,
                       time, speedup);
  };
  const std::string head = line("input", "value", "kind", "of time", compresses ? "speed-up" : "");
  // The bars take what is left of the page.
  const std::size_t longest =
      head.size() + 1 < page_width ? std::min(page_width - head.size() - 1, longest_bar) : 0;
  out += "\n" + head + "\n";
  for (const InputEffect& effect : sensitivity.effects) {
    if (!all && !moves(effect)) continue;
    const double share = std::abs(effect.time_elasticity) / strongest;
    out += fmt::format(
        "{} {}\n",
        line(effect.key, effect.value, kind_of(effect),
             fmt::format("{:+.4f}", effect.time_elasticity),
             effect.speedup_elasticity ? fmt::format("{:+.4f}", *effect.speedup_elasticity) : ""),
        bar_of(effect.time_elasticity, share, longest));
  }
  out += fmt::format(
      "\nof time: per cent that 1 % more of the input adds to the run's time; numbers move by "
      "{:.3g} % to both sides, choices double and halve (GPUs and micro batch with the global "
      "batch as it is). Each moves alone; --set also moves the defaults that follow from it.\n",
      100 * sensitivity.by);
  for (const std::string& key : sensitivity.fixed)
    out += fmt::format("{}: neither twice nor half of it runs\n", key);
  if (hidden > 0) out += fmt::format("{} inputs that move nothing: --all shows them\n", hidden);
  return out;
}

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
            {"fixed", sensitivity.fixed}};
  for (const InputEffect& effect : sensitivity.effects)
    json["inputs"].push_back(
        {{"key", effect.key},
         {"value", effect.value},
         {"kind", kind_of(effect)},
         {"source", effect.provenance ? Json(effect.provenance->source) : Json(nullptr)},
         {"time_elasticity", effect.time_elasticity},
         {"speedup_elasticity",
          effect.speedup_elasticity ? Json(*effect.speedup_elasticity) : Json(nullptr)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sensitivity_csv(const Sensitivity& sensitivity) {
  std::string out =
      csv::row({"key", "value", "kind", "time_elasticity", "speedup_elasticity", "source"}) + "\n";
  for (const InputEffect& effect : sensitivity.effects)
    out += csv::row({effect.key, effect.value, kind_of(effect), csv::number(effect.time_elasticity),
                     effect.speedup_elasticity ? csv::number(*effect.speedup_elasticity) : "",
                     effect.provenance ? effect.provenance->source : ""}) +
           "\n";
  return out;
}

}  // namespace lambcast
