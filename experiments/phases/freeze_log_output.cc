#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/phases/freeze_log.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

double ratio(const LayerChange& layer) {
  const double high = std::max(layer.before, layer.now);
  return high == 0 ? 1 : std::min(layer.before, layer.now) / high;
}

std::string per_cent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string what(const FreezeChoice& choice) {
  return choice.losses ? "the loss" : choice.layers.size() == 1 ? "the variance" : "the variances";
}

// Explains why this step was chosen and no earlier one.
std::string why(const FreezeChoice& choice) {
  const int earliest = reference::earliest(choice.options);
  const double wanted = choice.options.share;
  const auto reached = [&](double share) { return share >= wanted * (1 - 1e-12); };
  if (reached(choice.share_before) && choice.step - choice.options.interval < earliest) {
    const bool memory = earliest > choice.options.earliest;
    return fmt::format(
        "it had settled before, but step {} is the earliest: {}", earliest,
        memory ? "until then the variance still grows from zero" : "as --earliest asks");
  }
  return fmt::format(
      "at the measurement before it was {}, and {} are asked for",
      choice.share_before < 0 ? std::string("not to be told") : per_cent(choice.share_before),
      per_cent(wanted));
}

// Returns whether the variance has not settled, but the step is the latest allowed.
bool at_latest(const FreezeChoice& choice) {
  const int latest = choice.options.latest;
  return latest > 0 && choice.step >= latest && choice.share < choice.options.share * (1 - 1e-12);
}

std::string answer(const FreezeChoice& choice) {
  const int memory = reference::memory(choice.options);
  const int apart =
      choice.options.interval * static_cast<int>(reference::measurements(choice.options));
  const std::string change =
      apart == memory
          ? fmt::format("{:.3g} % over the {} steps that the variance averages over (beta2 {})",
                        100 * (1 - choice.options.threshold), memory, choice.options.beta2)
          : fmt::format(
                "{:.3g} % over {} steps, the fewest of the log that hold the {} that the variance "
                "averages over (beta2 {})",
                100 * (1 - choice.options.threshold), apart, memory, choice.options.beta2);
  std::string out;
  if (choice.step != 0) {
    out = fmt::format("freeze_step {}: compression may begin after it.\n", choice.step);
    out += at_latest(choice)
               ? fmt::format(
                     "It is the latest step, not a settled one: there {} of the elements changed "
                     "by less than {}, and {} are asked for.\n",
                     per_cent(choice.share), change, per_cent(choice.options.share))
               : fmt::format("There {} of the elements changed by less than {}; {}.\n",
                             per_cent(choice.share), change, why(choice));
  } else {
    out = fmt::format("No step from {} to {}: compression may not begin yet.\n", choice.first_step,
                      choice.last_step);
    const bool nothing =
        std::ranges::all_of(choice.layers, [](const LayerChange& layer) { return layer.now == 0; });
    if (nothing)
      return out + fmt::format("All of {} is 0: no gradient has come yet.\n", what(choice));
    out += choice.last_step < reference::earliest(choice.options)
               ? fmt::format("Step {} is the earliest.\n", reference::earliest(choice.options))
               : fmt::format(
                     "At the end {} of the elements changed by less than {}; {} are asked "
                     "for.\n",
                     per_cent(choice.share), change, per_cent(choice.options.share));
    if (!choice.losses)
      out +=
          "It may never settle: tensors' shares of clipped gradients keep moving. Then "
          "begin at 15 % of the run, as published recipes do (--latest STEP), or ask the loss of "
          "a plain run (--losses).\n";
  }
  if (choice.losses)
    out += fmt::format(
        "A stand-in: the monitor watches the variance, of which the log says nothing. Judged are "
        "means of {} over {} steps.\n",
        what(choice), memory);
  return out;
}

}  // namespace

std::string freeze_table(const FreezeChoice& choice) {
  std::size_t width = 5;
  for (const LayerChange& layer : choice.layers) width = std::max(width, layer.name.size());
  std::string out = answer(choice);
  out += fmt::format("\n{:<{}} {:>14} {:>12} {:>12} {:>7}  {}\n", "layer", width, "elements",
                     "before", "now", "ratio", "settled since");
  for (const LayerChange& layer : choice.layers) {
    out += fmt::format("{:<{}} {:>14} {:>12.5g} {:>12.5g} {:>7.4f}  {}\n", layer.name, width,
                       layer.elements, layer.before, layer.now, ratio(layer),
                       layer.settled ? fmt::format("step {}", layer.settled_since) : "no");
  }
  return out;
}

std::string freeze_json(const FreezeChoice& choice) {
  Json layers = Json::array();
  for (const LayerChange& layer : choice.layers) {
    layers.push_back(
        {{"layer", layer.name},
         {"elements", layer.elements},
         {"before", layer.before},
         {"now", layer.now},
         {"ratio", ratio(layer)},
         {"settled", layer.settled},
         {"settled_since", layer.settled ? Json(layer.settled_since) : Json(nullptr)}});
  }
  const Json json = {
      {"schema_version", 1},
      {"tool", "lambcast"},
      {"version", tool_version},
      {"freeze_step", choice.step != 0 ? Json(choice.step) : Json(nullptr)},
      {"judged", choice.losses ? "loss" : "variance"},
      {"judged_at", choice.judged_at},
      {"settled_share", choice.share},
      {"wanted_share", choice.options.share},
      {"threshold", choice.options.threshold},
      {"beta2", choice.options.beta2},
      {"memory_steps", reference::memory(choice.options)},
      {"interval_steps", choice.options.interval},
      {"earliest_step", reference::earliest(choice.options)},
      {"latest_step", choice.options.latest > 0 ? Json(choice.options.latest) : Json(nullptr)},
      {"first_step", choice.first_step},
      {"last_step", choice.last_step},
      {"layers", layers}};
  return json_lines(json);
}

std::string freeze_csv(const FreezeChoice& choice) {
  std::string out = csv::row({"freeze_step", "judged_at", "layer", "elements", "before", "now",
                              "ratio", "settled", "settled_since"}) +
                    "\n";
  for (const LayerChange& layer : choice.layers) {
    out += csv::row({choice.step != 0 ? std::to_string(choice.step) : "",
                     std::to_string(choice.judged_at), layer.name, std::to_string(layer.elements),
                     csv::number(layer.before), csv::number(layer.now), csv::number(ratio(layer)),
                     layer.settled ? "true" : "false",
                     layer.settled ? std::to_string(layer.settled_since) : ""}) +
           "\n";
  }
  return out;
}

}  // namespace lambcast
