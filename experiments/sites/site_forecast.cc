#include "experiments/sites/site_forecast.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "models/shape/shape.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Share of the time for compute that a good number of steps keeps.
constexpr double enough = 0.95;

void refuse_keys_of_sites(const WhatIf& what_if) {
  for (const auto& [key, flag] : {std::pair{"gpus", "--gpus"}, {"nodes", "--nodes"}})
    if (what_if.contains(key))
      fail_input({"", 0, flag}, "each site states its own",
                 "gpus of a [[site]] in the description of the sites");
  const auto exchange = what_if.find("exchange");
  if (exchange != what_if.end() && exchange->second.starts_with("local:"))
    fail_input({"", 0, "--exchange"}, exchange->second + " averages weights inside a site",
               "an exchange of gradients; the sites' own is --every H");
}

struct PlainStep {
  SiteStep step;
  std::shared_ptr<const ModelShape> model;
  std::vector<Finding> findings;
};

PlainStep forecast_site(WhatIf asked, const Site& site, Catalog& catalog, CollectiveCosts& costs) {
  asked["cluster"] = site.cluster;
  asked["gpus"] = std::to_string(site.gpus);
  const Scenario scenario = resolve(asked, catalog);
  const Forecast result = forecast_alone(scenario.training, costs);
  const MeanStep mean = mean_step(result);
  PlainStep plain{.step = {}, .model = scenario.training.model, .findings = scenario.findings};
  plain.step.step = Duration::microseconds(mean.time_us);
  plain.step.low = Duration::microseconds(mean.time_low_us);
  plain.step.high = Duration::microseconds(mean.time_high_us);
  plain.step.batch = scenario.training.batch.train;
  plain.step.fits = result.memory.fits;
  return plain;
}

void add_findings(const std::vector<Finding>& findings, std::vector<Finding>& all) {
  for (const Finding& finding : findings)
    if (std::ranges::find(all, finding.code, &Finding::code) == all.end()) all.push_back(finding);
}

SiteStep at_site(SiteStep step, const Site& site) {
  step.site = site;
  for (Duration* time : {&step.step, &step.low, &step.high}) *time = time->scaled(site.slow.value);
  return step;
}

OuterRound round_at(const SiteForecast& forecast, Duration SiteStep::*end,
                    const OuterExchange& exchange) {
  std::vector<Duration> steps;
  for (const SiteStep& site : forecast.sites) steps.push_back(site.*end);
  return outer_round(forecast.group, steps, exchange);
}

void add_options(SiteForecast& forecast) {
  for (const OuterCodec& codec : outer_codecs())
    for (const int every : option_steps) {
      OuterOption option{forecast.exchange, {}};
      option.exchange.codec = codec;
      option.exchange.every = every;
      option.exchange.fragments = std::min(every, option.exchange.fragments);
      option.round = round_at(forecast, &SiteStep::step, option.exchange);
      // Slow sites cost the same at any number of steps.
      const bool keeps = option.round.compute / option.round.time() >= enough;
      if (codec.name == forecast.exchange.codec.name && keeps && !forecast.fewest_steps)
        forecast.fewest_steps = every;
      forecast.options.push_back(std::move(option));
    }
}

// Sets what the round brings and costs.
void add_totals(SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  double samples = 0;
  for (const std::size_t i : round.members)
    samples += static_cast<double>(forecast.sites[i].batch) * forecast.exchange.every;
  forecast.samples_per_s = samples / round.time().s() * round.up_share;
  forecast.egress = round.sent * static_cast<double>(round.members.size());
  constexpr double seconds_of_day = 86400;
  if (forecast.group.usd_per_gb)
    forecast.egress_usd_per_day = forecast.egress.value() * 1e-9 *
                                  forecast.group.usd_per_gb->value * seconds_of_day /
                                  round.time().s() * round.up_share;
  const Duration last = forecast.sites[round.members.back()].step;
  forecast.for_95_percent = bandwidth_for(enough, forecast.group, last, forecast.exchange);
}

}  // namespace

SiteForecast forecast_sites(const WhatIf& what_if, const OuterChoice& choice, Catalog& catalog) {
  refuse_keys_of_sites(what_if);
  const auto sites = what_if.find("cluster");
  if (sites == what_if.end())
    fail_input(
        {"", 0, "--cluster"}, "no description of sites is given",
        fmt::format("a file with [[site]], or one of {}", fmt::join(site_group_names(), ", ")));
  SiteForecast forecast;
  forecast.group = load_sites(sites->second);
  OuterExchange& exchange = forecast.exchange;
  exchange.codec = outer_codec(choice.codec, "--codec");
  exchange.every = choice.every;
  exchange.fragments = choice.fragments;
  exchange.delay = choice.delay;
  exchange.quorum = choice.quorum;
  require_possible(exchange, forecast.group.sites.size());
  CollectiveCosts costs;
  std::map<std::pair<std::string, int>, PlainStep> plain;  // equal sites are forecast once
  for (const Site& site : forecast.group.sites) {
    const std::pair key{site.cluster, site.gpus};
    if (!plain.contains(key)) plain[key] = forecast_site(what_if, site, catalog, costs);
    forecast.sites.push_back(at_site(plain[key].step, site));
    add_findings(plain[key].findings, forecast.findings);
    const ModelShape& model = *plain[key].model;
    forecast.model = model.name;
    exchange.weights = static_cast<double>(trained_parameters(model));
    if (choice.by_layer)
      exchange.layers = static_cast<int>(std::max<std::int64_t>(1, model.layers));
  }
  forecast.round = round_at(forecast, &SiteStep::step, exchange);
  forecast.low = round_at(forecast, &SiteStep::low, exchange);
  forecast.high = round_at(forecast, &SiteStep::high, exchange);
  add_totals(forecast);
  add_options(forecast);
  return forecast;
}

}  // namespace lambcast
