// Compares measured collectives with their forecast, by the same code as `lambcast collective`. The
// tables are those that ship (collectives/tables.csv states their cluster and whether it was fitted
// to them), or a log of the user. NCCL's own model is shown for comparison.
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

// The size bands in which errors are reported, as errors_by_band() names them.
inline constexpr std::array<std::string_view, 3> band_names = {"below 64 KiB", "64 KiB to 4 MiB",
                                                               "4 MiB and more"};

struct CollectiveCase {
  std::string name;     // name of the table
  std::string cluster;  // preset or file
  bool fitted = false;  // whether the cluster was fitted to the table; otherwise it is unseen
  validate::Measurement measured;
  std::optional<Backend> backend{};  // absent: that of the table, else that of the calibration
};

struct CollectiveResult {
  CollectiveCase of;
  std::string fabric;              // how its ranks reach one another: "InfiniBand", for figures
  std::vector<Duration> forecast;  // one per row
  std::vector<CalibratedInterval> interval;  // one per forecast
  std::vector<validate::BandError> bands;
  double median_error = 0;            // over all rows, |forecast / measured - 1|
  std::optional<double> nccl_median;  // of NCCL's own model; absent for all_to_all and MPI
};

// Counts the rows in tables of a role, and those with a measured time inside the interval of the
// forecast. The share should be 90 %.
Coverage coverage_of(const std::vector<CollectiveResult>& results, std::string_view role);

// A limit of the median (and 90th percentile) over all rows of a cluster in a range of sizes.
struct CollectiveLimit {
  std::string cluster;  // "*": every cluster without limits of its own
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
  int rows = 0, rows_held = 0;  // all rows, and those to which a limit applies
  bool within = false;
};

// Errors over all tables of a role; an empty role means both.
struct RoleErrors {
  std::string role;
  int tables = 0, rows = 0;
  double median = 0;
  std::vector<validate::BandError> bands;
};

std::vector<CollectiveCase> carried_collectives();
std::vector<CollectiveLimit> carried_limits();

// Returns a table with all times doubled, which shows that limits detect errors.
CollectiveCase canary_collective();

// Replays the cases. Throws Error for a table that does not fit its cluster, or whose operation is
// not modelled.
CollectiveSummary replay_collectives(const std::vector<CollectiveCase>& cases,
                                     const std::vector<CollectiveLimit>& limits);

// Returns the errors of all tables, and of fitted and unseen ones separately if both exist.
std::vector<RoleErrors> errors_by_role(const CollectiveSummary& summary);

std::string_view role_of(const CollectiveCase& replayed);

// Returns forecast / measured - 1 of a row.
double error_of(const CollectiveResult& result, std::size_t row);

// Formats the range of a limit: "64 KiB to 4 MiB", "all sizes".
std::string range_text(const CollectiveLimit& limit);

std::string collective_replay_table(const CollectiveSummary& summary);

// Returns every row as CSV, for plots: table, cluster, role, operation, ranks, size, measured,
// forecast, error.
std::string collective_replay_csv(const CollectiveSummary& summary);

}  // namespace lambcast
