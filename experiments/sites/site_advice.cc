#include "experiments/sites/site_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/output/cell.h"
#include "experiments/output/rate_text.h"
#include "sim/base/counted.h"

namespace lambcast {
namespace {

constexpr double day_s = 86400;

// Fragments of Streaming DiLoCo: 8 of 3 layers at 24 layers.
constexpr std::array methods{
    OuterMethod{"each step", "bf16", 1, 1, 0, true},
    OuterMethod{"DiLoCo", "bf16", 100},
    OuterMethod{"INTELLECT-1", "int8", 100},
    OuterMethod{"Streaming", "bf16", 100, 8, 1},
    OuterMethod{"Streaming", "e3m0", 100, 8, 1},
    OuterMethod{"Decoupled", "int4", 24, 24, 2, false, true},
    OuterMethod{"SparseLoCo", "topk-2bit", 30},
};

constexpr std::array tried_steps{1,  2,  3,   5,   7,   10,  15,  20,  30,
                                 50, 70, 100, 150, 200, 300, 500, 700, 1000};

OuterExchange exchange_of_method(const OuterMethod& method, int every, const OuterExchange& model) {
  OuterExchange exchange;
  exchange.weights = model.weights;
  exchange.codec = outer_codec(method.codec, "--codec");
  exchange.every = every;
  exchange.fragments = std::min(every, method.fragments);
  exchange.delay = method.delay;
  exchange.decoupled = method.decoupled;
  if (method.by_layer) exchange.layers = model.layers;
  return exchange;
}

AdvisedMethod advised(const OuterMethod& method, const SiteForecast& forecast) {
  AdvisedMethod result;
  result.method = method;
  const auto round_of = [&](int every) {
    return round_with(forecast, exchange_of_method(method, every, forecast.exchange));
  };
  result.round = round_of(method.every);
  const Duration last = forecast.sites[result.round.members.back()].step;
  result.for_95_percent =
      bandwidth_for(enough_for_compute, forecast.group, last,
                    exchange_of_method(method, method.every, forecast.exchange));
  OuterRound used = result.round;
  for (const int every : tried_steps) {
    const OuterRound round = round_of(every);
    if (round.compute / round.time() < enough_for_compute) continue;
    result.fewest_steps = every;
    used = round;
    break;
  }
  result.egress_per_day = used.sent.value() * static_cast<double>(used.members.size()) * day_s /
                          used.time().s() * used.up_share;
  return result;
}

std::optional<std::size_t> best_of(const std::vector<AdvisedMethod>& all) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].fewest_steps) continue;
    if (!best || *all[i].fewest_steps < *all[*best].fewest_steps) best = i;
  }
  return best;
}

std::string links_text(const SiteGroup& group) {
  const SiteLink& link = group.sites.front().link;
  return fmt::format("{} up, {} down, {} round trip",
                     to_text_bits(reached_rate(link, link.up.value)),
                     to_text_bits(reached_rate(link, link.down.value)), to_text(link.rtt.value));
}

std::string usd_text(const SiteAdvice& advice, const AdvisedMethod& row) {
  const auto& price = advice.forecast.group.usd_per_gb;
  return price ? usd_cell(row.egress_per_day * 1e-9 * price->value) : "-";
}

std::string advice_answer(const SiteAdvice& advice) {
  const SiteForecast& forecast = advice.forecast;
  if (!advice.best)
    return "No method keeps communication below 5 % with 1,000 steps between exchanges or fewer.\n";
  const AdvisedMethod& best = advice.methods[*advice.best];
  return fmt::format(
      "{} ({}) every {}: {:.1f} % of the GPUs' time enters the model,\n"
      "{} samples/s; egress {} a day, {} USD.\nNo method keeps communication below 5 % with fewer "
      "steps.\n",
      best.method.name, best.method.codec, counted(*best.fewest_steps, "step"),
      100 * forecast.round.utilisation, rate_text(forecast.samples_per_s),
      to_text(Bytes(best.egress_per_day)), usd_text(advice, best));
}

std::string method_line(const SiteAdvice& advice, const AdvisedMethod& row) {
  return fmt::format("{:<11} {:<9} {:>5} {:>8.1f} {:>14} {:>8} {:>11} {:>7}\n", row.method.name,
                     row.method.codec, row.method.every,
                     100 * (row.round.compute / row.round.time()),
                     row.for_95_percent ? to_text_bits(*row.for_95_percent) : "-",
                     row.fewest_steps ? std::to_string(*row.fewest_steps) : "-",
                     to_text(Bytes(row.egress_per_day)), usd_text(advice, row));
}

}  // namespace

std::span<const OuterMethod> outer_methods() { return methods; }

SiteAdvice advise_sites(const WhatIf& what_if, Catalog& catalog) {
  SiteAdvice advice;
  advice.forecast = forecast_sites(what_if, {.by_layer = true}, catalog);
  for (const OuterMethod& method : methods)
    advice.methods.push_back(advised(method, advice.forecast));
  advice.best = best_of(advice.methods);
  if (!advice.best) return advice;
  const AdvisedMethod& best = advice.methods[*advice.best];
  advice.forecast =
      forecast_sites(what_if,
                     {.codec = std::string(best.method.codec),
                      .every = *best.fewest_steps,
                      .fragments = std::min(*best.fewest_steps, best.method.fragments),
                      .delay = best.method.delay,
                      .by_layer = best.method.by_layer,
                      .decoupled = best.method.decoupled},
                     catalog);
  return advice;
}

std::string site_advice_table(const SiteAdvice& advice) {
  const SiteForecast& forecast = advice.forecast;
  int gpus = 0;
  for (const SiteStep& site : forecast.sites) gpus += site.site.gpus;
  std::string out = advice_answer(advice);
  out += fmt::format("\n{} on {} GPUs at {} of {}\n{}; a step takes {}\n\n", forecast.model, gpus,
                     counted(static_cast<std::int64_t>(forecast.sites.size()), "site"),
                     forecast.group.name, links_text(forecast.group),
                     to_text(forecast.sites[forecast.round.members.back()].step));
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
