// Accuracy of collective forecasts in which every fabric has equal weight, however many tables it
// has. Scores are reported per fabric and size band, and over all fabrics; the latter also by
// the evidence of the interval (Ground in topologies/calibration.h).
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
  std::string cluster;  // cluster, or a name for several
  std::string role;     // "fitted" or "unseen"
  int rows = 0;
  std::array<std::optional<BandScore>, 3> bands;  // in the order of band_names
};

// Returns the scores by cluster and role, sorted by name. If `ground` is given, only rows with it
// count.
std::vector<FabricScore> scores_by_fabric(const std::vector<CollectiveResult>& results,
                                          std::optional<Ground> ground = {});

// Returns the median of medians and of 90th percentiles, and the mean of the other figures, for one
// role; it is named `over fabrics`.
FabricScore over_fabrics(const std::vector<FabricScore>& fabrics, const std::string& role);

std::string fabric_score_table(const std::vector<CollectiveResult>& results);

}  // namespace lambcast
