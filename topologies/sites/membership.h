// Which sites train at a moment: failures, departures and joins as shares of time, and how many
// sites they leave.
//
//   M, O   mean time between failures of a site, and its outage (site_group.h: mtbf, outage)
//   L, A   mean time that a member stays, and that it is away (site_group.h: stays, away)
//   w      work that a failure undoes: half of the steps of a round
//
//   failure share   f = (O + w) / M        time lost in a unit of training
//   up share        1 / (1 + f)            renewal: a failure needs training time to occur in
//   present share   max(0, L - 2 w) / (L + A)
//
// A member that leaves takes half a round of work with it, and one that joins waits half a round
// for the next exchange (prime does so). The number of sites that train is a sum of independent
// unequal coins (Poisson binomial); the number of failures in a run is Poisson. Intervals are 90 %.
#pragma once

#include <span>
#include <vector>

#include "topologies/sites/site_group.h"

namespace lambcast {

struct Expected {
  double mean = 0, low = 0, high = 0;
};

// Returns f; 0 for a site that states no failures.
double failure_share(const Site& site, Duration undone);

// Returns 1 for a site that states no departures.
double present_share(const Site& site, Duration undone);

// Returns the chance that 0, 1, 2, ... of the sites train.
std::vector<double> chances_of_counts(std::span<const double> chances);

// Returns the number of sites that train at a moment.
Expected training_sites(std::span<const double> chances);

// Returns the number of events, of which `mean` are expected.
Expected poisson_events(double mean);

}  // namespace lambcast
