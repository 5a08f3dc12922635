// Measured collectives against their forecast, by the same code as `lambcast collective`: the
// tables that ship inside (collectives/tables.csv says which cluster each belongs to and whether it
// was used to fit it), or a log of the user's. NCCL's own model stands beside as a yardstick.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/calibrate/calibrate.h"
#include "validate/measurement.h"
#include "validate/replay/coverage.h"

namespace lambcast {

// The bands of size that errors are told by, as errors_by_band() names them.
inline constexpr std::array<std::string_view, 3> band_names = {"below 64 KiB", "64 KiB to 4 MiB",
                                                               "4 MiB and more"};

struct CollectiveCase {
  std::string name;     // of the table
  std::string cluster;  // preset or file
  bool fitted = false;  // the cluster was fitted to it, else the table was not seen
  validate::Measurement measured;
  std::optional<Backend> backend{};  // absent: as the table says, else the calibration
};

struct CollectiveResult {
  CollectiveCase of;
  std::string fabric;              // how its ranks reach one another: "InfiniBand", for figures
  std::vector<Duration> forecast;  // by row
  std::vector<CalibratedInterval> interval;  // of each forecast
  std::vector<validate::BandError> bands;
  double median_error = 0;            // of all rows, |forecast / measured - 1|
  std::optional<double> nccl_median;  // of NCCL's own model; absent for all_to_all and MPI
};

// How many rows of the tables of a role were measured inside the interval of their forecast, which
// should hold 90 %.
Coverage coverage_of(const std::vector<CollectiveResult>& results, std::string_view role);

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
  int rows = 0, rows_held = 0;  // all, and those that some limit holds
  bool within = false;
};

// Errors over all tables of a role; an empty role stands for both.
struct RoleErrors {
  std::string role;
  int tables = 0, rows = 0;
  double median = 0;
  std::vector<validate::BandError> bands;
};

std::vector<CollectiveCase> carried_collectives();
std::vector<CollectiveLimit> carried_limits();

// A table whose every time is doubled: proves that the alarm works.
CollectiveCase canary_collective();

// Throws Error for a table that does not fit its cluster, or whose operation is not ours.
CollectiveSummary replay_collectives(const std::vector<CollectiveCase>& cases,
                                     const std::vector<CollectiveLimit>& limits);

// Returns the errors of all tables, and of fitted and unseen ones separately if both exist.
std::vector<RoleErrors> errors_by_role(const CollectiveSummary& summary);

std::string_view role_of(const CollectiveCase& replayed);

// forecast / measured - 1 of a row.
double error_of(const CollectiveResult& result, std::size_t row);

// "64 KiB to 4 MiB", "all sizes".
std::string range_text(const CollectiveLimit& limit);

std::string collective_replay_table(const CollectiveSummary& summary);

// Every row as CSV, for plots: table, cluster, role, operation, ranks, size, measured, forecast,
// error.
std::string collective_replay_csv(const CollectiveSummary& summary);

}  // namespace lambcast
