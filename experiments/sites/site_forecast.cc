#include "experiments/sites/site_forecast.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "experiments/scenario/words.h"
#include "models/shape/shape.h"
#include "models/training/run/forecast.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "sim/base/whole_number.h"

namespace lambcast {
namespace {

void refuse_keys_of_sites(const WhatIf& what_if) {
  for (const auto& [key, flag] :
       {std::pair{"gpus", "--gpus"}, {"nodes", "--nodes"}, {"hosts", "--hosts"}})
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
  std::int64_t run_steps = 0;
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
  plain.run_steps = scenario.training.steps;
  plain.step.memory = result.memory.peak;
  plain.step.fits = result.memory.fits;
  return plain;
}

void add_findings(const std::vector<Finding>& findings, std::vector<Finding>& all) {
  for (const Finding& finding : findings)
    if (std::ranges::find(all, finding.code, &Finding::code) == all.end()) all.push_back(finding);
}

// Makes the sites of `slow` (OuterChoice) slower. Throws Error (usage) if no site
// matches, or if the factor is not 1 to 1,000.
void slow_down(const std::string& slow, SiteGroup& group) {
  const std::size_t colon = slow.rfind(':');
  const std::string which = slow.substr(0, colon);
  double factor = 0;
  if (colon != std::string::npos) {
    const char* const end = slow.data() + slow.size();
    if (std::from_chars(slow.data() + colon + 1, end, factor).ptr != end) factor = 0;
  }
  const std::optional<std::int64_t> first = whole_number(which);
  constexpr double most = 1000;
  bool names_one = false;
  for (std::size_t i = 0; i < group.sites.size(); ++i) {
    const bool is_counted = first && static_cast<std::int64_t>(i) < *first;
    if (group.sites[i].name != which && !is_counted) continue;
    names_one = true;
    group.sites[i].slow = {group.sites[i].slow.value * factor, {Kind::assumed, "--slow"}};
  }
  if (names_one && factor >= 1 && factor <= most) return;
  std::vector<std::string> names;
  constexpr std::size_t most_names = 8;
  for (const Site& site : group.sites)
    if (names.size() < most_names) names.push_back(site.name);
  fail_input({"", 0, "--slow"}, fmt::format("{} is not SITE:FACTOR", slow),
             fmt::format("a factor of 1 to {} behind a number of sites or one of {}", most,
                         fmt::join(names, ", ")));
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
      // `kept` excludes the wait for slow sites, which is the same share at any number of steps.
      const bool keeps = option.round.kept >= enough_for_compute;
      if (codec.name == forecast.exchange.codec.name && keeps && !forecast.fewest_steps)
        forecast.fewest_steps = every;
      forecast.options.push_back(std::move(option));
    }
}

double samples_per_s(const SiteForecast& forecast, const OuterRound& round) {
  double samples = 0;
  for (const std::size_t i : round.members)
    samples += static_cast<double>(forecast.sites[i].batch) * forecast.exchange.every *
               round.work[i] / round.times[i].s();
  return samples;
}

// Returns how often the run exchanges all weights. The exchange of one of F fragments counts as
// 1/F.
double exchanges_of_run(const SiteForecast& forecast) {
  const OuterExchange& exchange = forecast.exchange;
  const std::int64_t ended = forecast.run_steps * exchange.fragments / exchange.every;
  return static_cast<double>(ended) / exchange.fragments;
}

// Returns the seconds of the run's steps, and of the exchanges that fall within them.
double run_seconds(const SiteForecast& forecast, const OuterRound& round, double samples) {
  const double rounds = static_cast<double>(forecast.run_steps) / forecast.exchange.every;
  const double exchanging = (1 - round.kept) * exchanges_of_run(forecast) / rounds;
  return samples / samples_per_s(forecast, round) * (round.kept + exchanging);
}

// Sets the length of the run, and the failures in it.
void add_run(SiteForecast& forecast) {
  double batch = 0, per_s = 0;
  for (const std::size_t i : forecast.round.members)
    batch += static_cast<double>(forecast.sites[i].batch);
  for (const SiteStep& site : forecast.sites)
    if (site.site.mtbf) per_s += forecast.round.up_share / site.site.mtbf->value.s();
  const double samples = static_cast<double>(forecast.run_steps) * batch;
  forecast.run_s.mean = run_seconds(forecast, forecast.round, samples);
  forecast.failures = poisson_events(forecast.run_s.mean * per_s);
  // Returns the factor on the run time if this many failures occur instead of the expected number.
  const auto longer = [&](double events) {
    const double lost = 1 - forecast.round.up_share;
    return forecast.failures.mean > 0 ? 1 + lost * (events / forecast.failures.mean - 1) : 1;
  };
  forecast.run_s.low = run_seconds(forecast, forecast.low, samples) * longer(forecast.failures.low);
  forecast.run_s.high =
      run_seconds(forecast, forecast.high, samples) * longer(forecast.failures.high);
}

// Adds a warning if the run has no exchange, or fewer than 10.
void find_few_rounds(SiteForecast& forecast) {
  const std::int64_t every = forecast.exchange.every, steps = forecast.run_steps;
  constexpr std::int64_t least_rounds = 10;
  if (forecast.sites.size() < 2 || steps >= least_rounds * every) return;
  const std::int64_t rounds = steps / every;
  forecast.findings.push_back(
      {Severity::warning, rounds == 0 ? "exchange-never" : "exchange-seldom",
       fmt::format("the run of {} has {} of {} between exchanges; try: a smaller --every, or more "
                   "--steps",
                   counted(steps, "step"), rounds == 0 ? "no round" : counted(rounds, "round"),
                   counted(every, "step"))});
}

// Sets the rate, the egress and the cost that follow from the round.
void add_totals(SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  forecast.samples_per_s = samples_per_s(forecast, round);
  forecast.egress = round.sent * static_cast<double>(round.members.size());
  add_run(forecast);
  if (forecast.group.usd_per_gb)
    forecast.egress_usd = exchanges_of_run(forecast) * forecast.egress.value() * 1e-9 *
                          forecast.group.usd_per_gb->value;
  const Duration step = forecast.sites[round.pace].step;
  forecast.for_95_percent =
      bandwidth_for(enough_for_compute, forecast.group, step, forecast.exchange);
}

}  // namespace

OuterExchange exchange_of(const OuterChoice& choice, const SiteForecast& forecast) {
  OuterExchange exchange;
  exchange.weights = forecast.weights;
  exchange.codec = outer_codec(choice.codec, "--codec");
  exchange.every = choice.every;
  exchange.fragments = choice.fragments;
  exchange.delay = choice.delay;
  exchange.quorum = choice.quorum;
  exchange.decoupled = choice.decoupled;
  if (choice.by_layer) exchange.layers = forecast.layers;
  require_possible(exchange, forecast.group.sites.size());
  return exchange;
}

OuterRound round_with(const SiteForecast& forecast, const OuterExchange& exchange) {
  return round_at(forecast, &SiteStep::step, exchange);
}

SiteForecast forecast_sites(const WhatIf& what_if, const OuterChoice& choice, Catalog& catalog) {
  refuse_keys_of_sites(what_if);
  const auto sites = what_if.find("cluster");
  if (sites == what_if.end())
    fail_input(
        {"", 0, "--cluster"}, "no description of sites is given",
        fmt::format("a file with [[site]], or one of {}", fmt::join(site_group_names(), ", ")));
  SiteForecast forecast;
  forecast.group = load_sites(sites->second, Words(what_if).below("wan."));
  WhatIf of_a_site = what_if;
  std::erase_if(of_a_site, [](const auto& said) { return said.first.starts_with("wan."); });
  for (const std::string& slow : choice.slow) slow_down(slow, forecast.group);
  CollectiveCosts costs;
  std::map<std::pair<std::string, int>, PlainStep> plain;  // equal sites are forecast only once
  for (const Site& site : forecast.group.sites) {
    const std::pair key{site.cluster, site.gpus};
    if (!plain.contains(key)) plain[key] = forecast_site(of_a_site, site, catalog, costs);
    forecast.sites.push_back(at_site(plain[key].step, site));
    add_findings(plain[key].findings, forecast.findings);
    const ModelShape& model = *plain[key].model;
    forecast.model = model.name;
    forecast.run_steps = plain[key].run_steps;
    forecast.weights = static_cast<double>(trained_parameters(model));
    forecast.layers = static_cast<int>(std::max<std::int64_t>(1, model.layers));
  }
  const OuterExchange& exchange = forecast.exchange = exchange_of(choice, forecast);
  forecast.round = round_at(forecast, &SiteStep::step, exchange);
  forecast.low = round_at(forecast, &SiteStep::low, exchange);
  forecast.high = round_at(forecast, &SiteStep::high, exchange);
  add_totals(forecast);
  find_few_rounds(forecast);
  add_options(forecast);
  return forecast;
}

}  // namespace lambcast
