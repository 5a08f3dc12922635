// One collective over a list of sizes: what `lambcast collective` tells, a row a size, by either
// network model and with the interval of the forecast.
#pragma once

#include <string>
#include <vector>

#include "topologies/collective_forecast.h"

namespace lambcast {

struct CollectiveQuestion {
  CollectiveSetting setting;
  bool exchange = false;  // DeepSpeed's compressed_allreduce of fp32, in place of setting.op
  NetworkModel network = NetworkModel::analytic;
  std::vector<double> sizes;  // bytes, as nccl-tests counts them for the operation
};

// Row of a collective's table. A row of an exchange has the sums of its messages; different
// algorithms and protocols are joined by '+'.
struct CollectiveRow {
  double size = 0;
  Duration time{};
  std::string algorithm{}, protocol{};
  CalibratedInterval interval{Duration(), Duration(), true, Ground::calibrated};
  // Time by the flow model; equal to `time` except for some collectives with unlike flows.
  Duration flow_time{};
  Tip tip{};  // of a single collective

  // Whether the flow model says something else, by 2 % or more.
  bool models_part() const;
  double algbw_GBps() const;  // 0 where nothing takes time
};

// Throws Error (usage) for an algorithm or protocol that does not exist or apply; an exchange has
// none to choose.
std::vector<CollectiveRow> forecast_rows(const Cluster& cluster,
                                         const CollectiveQuestion& question);

// From `first` to `last`, each `factor` times the one before, whole bytes. Throws Error naming
// nccl-tests' flags -b, -e and -f for ranges that are none or have more than 10,000 sizes.
std::vector<double> sizes_between(double first, double last, double factor);

}  // namespace lambcast
