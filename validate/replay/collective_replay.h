// Measured collectives against their forecast, by the same code as `lambcast collective`: the
// tables that ship inside (collectives/tables.csv says which cluster each belongs to and whether it
// was used to fit it), or a log of the user's. NCCL's own model stands beside as a yardstick.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/calibrate/calibrate.h"
#include "validate/measurement.h"

namespace lambcast {

struct CollectiveCase {
  std::string name;     // of the table
  std::string cluster;  // preset or file
  bool fitted = false;  // the cluster was fitted to it, else the table was not seen
  validate::Measurement measured;
};

struct CollectiveResult {
  CollectiveCase of;
  std::vector<Duration> forecast;  // by row
  std::vector<validate::BandError> bands;
  double median_error = 0;            // of all rows, |forecast / measured - 1|
  std::optional<double> nccl_median;  // of NCCL's own model; absent for all_to_all and MPI
};

// "The median (and 90th percentile) over all rows of this cluster in this range of sizes."
struct CollectiveLimit {
  std::string cluster;  // "*": every cluster without a limit of its own for any size
  std::string role;     // "fitted", "unseen" or empty: both
  Bytes from, below;
  double max_median = 0;
  std::optional<double> max_p90;
};

struct LimitResult {
  CollectiveLimit of;
  std::string cluster;
  int rows = 0;
  double median = 0, p90 = 0;
  bool within = false;
};

struct CollectiveSummary {
  std::vector<CollectiveResult> results;
  std::vector<LimitResult> limits;
  bool within = false;
};

std::vector<CollectiveCase> carried_collectives();
std::vector<CollectiveLimit> carried_limits();

// A table whose every time is doubled: proves that the alarm works.
CollectiveCase canary_collective();

// Throws Error for a table that does not fit its cluster, or whose operation is not ours.
CollectiveSummary replay_collectives(const std::vector<CollectiveCase>& cases,
                                     const std::vector<CollectiveLimit>& limits);

std::string collective_replay_table(const CollectiveSummary& summary);

// Every row as CSV, for plots: table, cluster, role, operation, ranks, size, measured, forecast,
// error.
std::string collective_replay_csv(const CollectiveSummary& summary);

}  // namespace lambcast
