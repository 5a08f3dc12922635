// The output of `lambcast collective`: one collective over a list of sizes, one row per size, with
// the times of both network models and the interval of the forecast.
#pragma once

#include <string>
#include <vector>

#include "topologies/collective_forecast.h"

namespace lambcast {

struct CollectiveQuestion {
  CollectiveSetting setting;
  bool exchange = false;  // DeepSpeed's compressed_allreduce of fp32, instead of setting.op
  NetworkModel network = NetworkModel::analytic;
  std::vector<double> sizes;  // bytes, counted as in nccl-tests
};

// A row of a collective's table. For an exchange, it contains sums over the exchange's messages;
// their different algorithms and protocols are joined by '+'.
struct CollectiveRow {
  double size = 0;
  Duration time{};
  std::string algorithm{}, protocol{};
  CalibratedInterval interval{Duration(), Duration(), true, Ground::calibrated};
  // Time by the flow model; equal to `time` except for some collectives with unequal flows.
  Duration flow_time{};
  Tip tip{};  // of an exchange, only whether twice the size is faster

  // Returns whether the two network models differ by 2 % or more.
  bool models_part() const;
  double algbw_GBps() const;  // 0 if the time is zero
};

// Throws Error (usage) for an algorithm or protocol that does not exist or apply. An exchange
// accepts neither.
std::vector<CollectiveRow> forecast_rows(const Cluster& cluster,
                                         const CollectiveQuestion& question);

// Returns sizes from `first` to `last`, each `factor` times the one before, in whole bytes. Throws
// Error naming nccl-tests' flags -b, -e and -f if the range is invalid or has more than 10,000
// sizes.
std::vector<double> sizes_between(double first, double last, double factor);

}  // namespace lambcast
