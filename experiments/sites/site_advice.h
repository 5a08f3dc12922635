// Advice for several sites: which composition of the published methods, how many steps between
// exchanges, how much bandwidth until communication is hidden, and what egress costs.
//
// Each method is forecast with its published settings, and with the fewest steps H that leave 95 %
// of the time to compute on the stated links. The advice is the method with the fewest steps, since
// sites drift apart between exchanges; of methods with equally few steps, it is the one
// that sends the most bits per weight. The method with the least egress is named next to it. The
// effect of drift and of fewer bits on the loss is not forecast.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sites/site_forecast.h"

namespace lambcast {

// A published method: codec x pattern x schedule.
struct OuterMethod {
  std::string_view name;
  OuterChoice choice;
};

struct AdvisedMethod {
  OuterMethod method;
  OuterRound round;                         // round with the published H
  std::optional<Bandwidth> for_95_percent;  // bandwidth that keeps 95 % with the published H
  std::optional<int> fewest_steps;  // H that keeps 95 % on these links; nothing if none does
  double egress_per_day = 0;        // bytes that all sites send, with those steps
};

struct SiteAdvice {
  SiteForecast forecast;  // forecast of the sites with the advised method
  std::vector<AdvisedMethod> methods;
  std::optional<std::size_t> best;
};

// Throws Error (usage) for a single site.
SiteAdvice advise_sites(const WhatIf& what_if, Catalog& catalog);

// Returns the advice as one screen: at most 24 lines of 80 columns.
std::string site_advice_table(const SiteAdvice& advice);

}  // namespace lambcast
