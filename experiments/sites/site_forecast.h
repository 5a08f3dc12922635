// Training by several sites. Forecasts a step at each site (its own cluster, the same model, recipe
// and layout), and the round in which the sites exchange weights (outer_round.h). The batch of the
// what-if is that of one site.
//
// The interval of the round has the steps of all sites at their low, or at their high, end; links
// are taken as stated. Left out: the memory of the outer optimizer (8 bytes per weight and site,
// which prime and Streaming DiLoCo keep in host memory), and the further steps needed with larger
// H.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "models/finding.h"
#include "topologies/sites/outer_round.h"

namespace lambcast {

// The exchange between sites, and slow sites, as set by flags.
struct OuterChoice {
  std::string codec = "bf16";
  int every = 100;
  int fragments = 1;
  int delay = 0;
  bool by_layer = false;
  std::optional<int> quorum{};
  bool decoupled = false;
  // "SITE:FACTOR", or "N:FACTOR" for the first N sites: their steps take FACTOR times as long.
  std::vector<std::string> slow{};
};

struct SiteStep {
  Site site;
  Duration step, low, high;  // including the factor `slow`
  std::int64_t batch = 0;    // samples per step
  Bytes memory;              // peak memory of a GPU
  bool fits = true;
};

// An alternative exchange, with its round.
struct OuterOption {
  OuterExchange exchange;
  OuterRound round;
};

struct SiteForecast {
  SiteGroup group;
  std::string model;
  std::vector<SiteStep> sites;
  double weights = 0;  // number of weights that are exchanged
  int layers = 1;
  OuterExchange exchange;
  OuterRound round, low, high;  // low: at the shortest steps
  double samples_per_s = 0;     // rate of all sites whose work counts
  Bytes egress;                 // sent by all sites in a round
  std::int64_t run_steps = 0;
  Expected run_s;                    // its ends combine those of the steps and of the failures
  Expected failures;                 // failures of all sites in the run
  std::optional<double> egress_usd;  // cost of the egress of the run
  std::optional<double> egress_usd_per_day() const {
    constexpr double seconds_of_day = 86400;
    return egress_usd ? std::optional(*egress_usd / run_s.mean * seconds_of_day) : std::nullopt;
  }
  std::optional<Bandwidth> for_95_percent;  // up and down at each site
  std::vector<OuterOption> options;         // every codec with each of option_steps
  // Fewest steps among the options of the chosen codec that keep 95 % of the time for compute.
  std::optional<int> fewest_steps;
  std::vector<Finding> findings;  // from the sites' forecasts, each code once
};

// Share of the time that the exchange should leave for compute.
inline constexpr double enough_for_compute = 0.95;

inline constexpr int option_steps[] = {1, 10, 30, 100, 300, 1000};

// Forecasts the sites. The what-if's cluster names the description of the sites (site_group.h).
// Throws Error (usage) if it cannot be read, or if a site cannot run it.
SiteForecast forecast_sites(const WhatIf& what_if, const OuterChoice& choice, Catalog& catalog);

// Returns the exchange of the model's weights as chosen. Throws Error (usage) for an invalid
// choice.
OuterExchange exchange_of(const OuterChoice& choice, const SiteForecast& forecast);

// Returns the round of the same sites with another exchange.
OuterRound round_with(const SiteForecast& forecast, const OuterExchange& exchange);

std::string site_forecast_table(const SiteForecast& forecast);
std::string site_forecast_json(const SiteForecast& forecast);
// Returns one row per option.
std::string site_forecast_csv(const SiteForecast& forecast);

}  // namespace lambcast
