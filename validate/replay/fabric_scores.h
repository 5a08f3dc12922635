// How good forecasts of collectives are where every fabric weighs alike, however many tables it
// has: per fabric and band of size, and over fabrics, these also by what the interval rests on
// (Ground in topologies/calibration.h).
//
//   median, 90th percentile   of |forecast / measured - 1|
//   inside                    share of rows within the 90 % interval of their forecast
//   score                     of the intervals (validate/interval_score.h); lower is better
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "validate/replay/collective_replay.h"

namespace lambcast {

struct BandScore {
  double median = 0, p90 = 0, inside = 0, score = 0;
};

struct FabricScore {
  std::string cluster;  // or what stands over several
  std::string role;     // "fitted" or "unseen"
  int rows = 0;
  std::array<std::optional<BandScore>, 3> bands;  // as band_names
};

// By cluster and role, in the order of their names; of rows with this ground alone, where one is
// given.
std::vector<FabricScore> scores_by_fabric(const std::vector<CollectiveResult>& results,
                                          std::optional<Ground> ground = {});

// The median of medians and of 90th percentiles, the mean of the rest; of one role, called `over
// fabrics`.
FabricScore over_fabrics(const std::vector<FabricScore>& fabrics, const std::string& role);

std::string fabric_score_table(const std::vector<CollectiveResult>& results);

}  // namespace lambcast
