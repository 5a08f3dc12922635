#include "experiments/sites/site_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "experiments/output/cell.h"
#include "experiments/output/rate_text.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr double day_s = 86400;

// Streaming DiLoCo exchanges fragments of 3 layers: 8 fragments of a model with 24 layers.
const std::array methods{
    OuterMethod{"each step", {.every = 1, .by_layer = true}},
    OuterMethod{"DiLoCo", {}},
    OuterMethod{"INTELLECT-1", {.codec = "int8"}},
    OuterMethod{"Streaming", {.fragments = 8, .delay = 1}},
    OuterMethod{"Streaming", {.codec = "e3m0", .fragments = 8, .delay = 1}},
    OuterMethod{"Decoupled",
                {.codec = "int4", .every = 24, .fragments = 24, .delay = 2, .decoupled = true}},
    OuterMethod{"SparseLoCo", {.codec = "topk-2bit", .every = 30}},
};

constexpr std::array tried_steps{1,  2,  3,   5,   7,   10,  15,  20,  30,
                                 50, 70, 100, 150, 200, 300, 500, 700, 1000};

OuterChoice with_steps(OuterChoice choice, int every) {
  choice.every = every;
  choice.fragments = std::min(every, choice.fragments);
  return choice;
}

AdvisedMethod advised(const OuterMethod& method, const SiteForecast& forecast) {
  AdvisedMethod result;
  result.method = method;
  const OuterExchange published = exchange_of(method.choice, forecast);
  result.round = round_with(forecast, published);
  const Duration step = forecast.sites[result.round.pace].step;
  result.for_95_percent = bandwidth_for(enough_for_compute, forecast.group, step, published);
  OuterRound used = result.round;
  for (const int every : tried_steps) {
    if (every > 1 && method.choice.every == 1) break;  // data parallelism has no other H
    const OuterRound round =
        round_with(forecast, exchange_of(with_steps(method.choice, every), forecast));
    if (round.kept < enough_for_compute) continue;
    result.fewest_steps = every;
    used = round;
    break;
  }
  result.egress_per_day = used.sent.value() * static_cast<double>(used.members.size()) * day_s /
                          used.time().s() * used.up_share;
  return result;
}

std::string links_text(const SiteGroup& group) {
  const SiteLink& link = group.sites.front().link;
  std::string out =
      fmt::format("{} up, {} down, {} round trip", to_text_bits(reached_rate(link, link.up.value)),
                  to_text_bits(reached_rate(link, link.down.value)), to_text(link.rtt.value));
  if (group.pairs.empty()) return out;
  const auto rate_of = [](const SitePair& pair) { return pair.rate.value; };
  const auto slowest = std::ranges::min_element(group.pairs, {}, rate_of);
  return out + fmt::format(", slowest pair {}", to_text_bits(slowest->rate.value));
}

std::string usd_text(const SiteAdvice& advice, const AdvisedMethod& row) {
  const auto& price = advice.forecast.group.usd_per_gb;
  return price ? usd_cell(row.egress_per_day * 1e-9 * price->value) : "-";
}

// Returns the egress of a day and its price, if one is stated.
std::string egress_text(const SiteAdvice& advice, const AdvisedMethod& row) {
  const bool priced = advice.forecast.group.usd_per_gb.has_value();
  return to_text(Bytes(row.egress_per_day)) + " a day" +
         (priced ? fmt::format(", {} USD", usd_text(advice, row)) : "");
}

std::string method_text(const AdvisedMethod& row) {
  const OuterChoice& choice = row.method.choice;
  if (choice.every == 1) return fmt::format("An exchange ({}) in each step", choice.codec);
  return fmt::format("{} ({}) every {}", row.method.name, choice.codec,
                     counted(*row.fewest_steps, "step"));
}

std::string advice_answer(const SiteAdvice& advice) {
  const SiteForecast& forecast = advice.forecast;
  if (!advice.best)
    return "No method keeps communication below 5 % with 1,000 steps between exchanges or fewer.\n";
  const AdvisedMethod& best = advice.methods[*advice.best];
  const auto [low, high] = std::minmax(forecast.low.utilisation, forecast.high.utilisation);
  std::string out = fmt::format(
      "{}: {:.1f} % ({:.1f} to {:.1f} %) of the\nsites' own throughput, {} samples/s; egress {}.\n",
      method_text(best), 100 * forecast.round.utilisation, 100 * low, 100 * high,
      rate_text(forecast.samples_per_s), egress_text(advice, best));
  const AdvisedMethod& least = *std::ranges::min_element(advice.methods, {}, [](const auto& row) {
    return row.fewest_steps ? row.egress_per_day : std::numeric_limits<double>::infinity();
  });
  if (&least == &best) return out + "No other method that hides communication sends less.\n";
  return out +
         fmt::format("Least of these: {}, {}.\n", method_text(least), egress_text(advice, least));
}

std::string method_line(const SiteAdvice& advice, const AdvisedMethod& row) {
  return fmt::format("{:<11} {:<9} {:>5} {:>8.1f} {:>14} {:>8} {:>11} {:>7}\n", row.method.name,
                     row.method.choice.codec, row.method.choice.every, 100 * row.round.kept,
                     row.for_95_percent ? to_text_bits(*row.for_95_percent) : "-",
                     row.fewest_steps ? std::to_string(*row.fewest_steps) : "-",
                     to_text(Bytes(row.egress_per_day)), usd_text(advice, row));
}

}  // namespace

SiteAdvice advise_sites(const WhatIf& what_if, Catalog& catalog) {
  SiteAdvice advice;
  advice.forecast = forecast_sites(what_if, {}, catalog);
  if (advice.forecast.sites.size() < 2)
    fail_input({"", 0, "--cluster"}, "one site exchanges nothing",
               "the site's own cluster, or a second [[site]]");
  for (const OuterMethod& method : methods)
    advice.methods.push_back(advised(method, advice.forecast));
  const auto steps_of = [](const AdvisedMethod& method) {
    return method.fewest_steps.value_or(std::numeric_limits<int>::max());
  };
  const AdvisedMethod& best = *std::ranges::min_element(advice.methods, {}, steps_of);
  if (!best.fewest_steps) return advice;
  advice.best = &best - advice.methods.data();
  advice.forecast =
      forecast_sites(what_if, with_steps(best.method.choice, *best.fewest_steps), catalog);
  return advice;
}

std::string site_advice_table(const SiteAdvice& advice) {
  const SiteForecast& forecast = advice.forecast;
  int gpus = 0;
  for (const SiteStep& site : forecast.sites) gpus += site.site.gpus;
  std::string out = advice_answer(advice);
  out += fmt::format(
      "\n{} on {} GPUs at {} of {}; a step takes {}\n{}\n\n", forecast.model, gpus,
      counted(static_cast<std::int64_t>(forecast.sites.size()), "site"), forecast.group.name,
      to_text(forecast.sites[forecast.round.members.back()].step), links_text(forecast.group));
  out += fmt::format("{:<11} {:<9} {:>5} {:>8} {:>14} {:>8} {:>11} {:>7}\n", "", "", "", "used",
                     "hidden (95 %)", "95 % at", "egress", "USD");
  out += fmt::format("{:<11} {:<9} {:>5} {:>8} {:>14} {:>8} {:>11} {:>7}\n", "method", "codec",
                     "steps", "(%)", "with", "steps", "a day", "a day");
  for (const AdvisedMethod& row : advice.methods) out += method_line(advice, row);
  out +=
      "\nsteps: between exchanges, as published. used: time that is left to compute.\n"
      "95 % at: fewest steps with these links, and their egress. Loss is not forecast.\n"
      "lambcast sites has each method's round, intervals and further codecs.\n";
  return out;
}

}  // namespace lambcast
