// Fits a cluster description to measured tables, with one set of parameters for the whole fabric
// and none per table or size. It minimises the relative error, log(forecast / measured), of the
// forecast that `lambcast collective` prints, by robust least squares (least_squares.h). Parameters
// are fitted as logarithms within physical bounds, so they stay positive.
//
// A limit that the base does not have (the rate of one connection) is added only if the tables
// cannot be explained as well without it.
//
// Half of the data (every other size) is held out first, then the other half. With four tables or
// more, the middle one by number of ranks is held out with the first half. The held-out errors set
// the width of intervals; the parameters then come from a fit on all data.
//
// A repeated size of a table counts once, as the median of its times; so does a table given twice.
//
// The description is the prior of the fit: typical values of fabrics or, in a preset, values fitted
// to another machine of the same hardware, each with its spread. Tables add to the prior and do not
// replace it. The description's forecasts of sizes in no table are part of the prior
// (unmeasured_sizes.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topologies/calibration.h"
#include "validate/calibrate/parameters.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct FittedParameter {
  Parameter of;
  double value = 0;
  double low = 0, high = 0;  // 95 % interval
  // Whether the tables determine the parameter: they shrank its uncertainty to less than half of
  // the prior's and to less than a factor of two, and it is not at a bound.
  bool identified = false;
};

// A latency about which the tables contain nothing: one inside a node if all tables cover several
// nodes, or one of trees between nodes if no row used a tree. It must not follow the fitted
// latencies of rings between nodes, so the description states it explicitly.
struct KeptLatency {
  std::string key;
  Sourced<Duration> value;
};

// Median and 90th percentile of |forecast / measured - 1| over the rows of a size band.
struct BandError {
  std::string band;
  int rows = 0;
  double median = 0;
  double p90 = 0;
};

struct FitSummary {
  Backend backend = Backend::nccl;
  int tables = 0;
  int rows = 0;
  std::vector<FittedParameter> parameters;
  std::vector<KeptLatency> kept;
  std::vector<BandError> fitted;
  std::vector<BandError> held_out;           // forecasts of held-out rows
  std::string held_out_table;                // empty: only sizes were held out
  std::vector<std::string> fitted_tables{};  // fingerprints (fitted_tables.h)
  // Absent if no table is from a library: an iperf3 table contains nothing about the error of
  // collective forecasts.
  std::optional<Calibration> calibration;
  std::vector<std::string> suspicions;  // reasons why the tables look wrong (suspicions.h)
  std::vector<std::string> misfits;     // patterns in the residuals of a poor fit (residuals.h)
  double seconds = 0;
};

// Median of |forecast / measured - 1| above which a fit is poor. The worst shipped fabric has half
// of this value for sizes of 1 MiB and more.
inline constexpr double poor_fit_median = 0.2;

// Called with the number of finished searches for the least cost, and their total. A search of a
// thousand rows takes about a tenth of a second.
using CalibrationProgress = std::function<void(int done, int all)>;

// Calibrates. `base` is the text of a description; messages call it `name`. Throws Error for tables
// that cannot be placed on the cluster, or whose operation is not modelled.
FitSummary calibrate(const std::string& base, const std::string& name,
                     std::span<const Measurement> tables, Backend backend = Backend::nccl,
                     const CalibrationProgress& progress = {});

// Returns a report that fits a screen: parameters, intervals, residuals by size band, unidentified
// parameters.
std::string brief_report(const FitSummary& summary);

// Returns the base description with the fitted keys replaced, each with its interval and `source`,
// and a [calibration] section. `cluster_name` is the name inside the description. Comments of the
// base are lost.
std::string calibrated_cluster(const std::string& base, const std::string& name,
                               const std::string& cluster_name, const FitSummary& summary,
                               const std::string& source);

// Returns the base description with a section [program], and with `device` for its GPU unless
// `device` is empty. Comments of the base are lost.
std::string cluster_with_program(const std::string& base, const std::string& name,
                                 const std::string& cluster_name, const std::string& device,
                                 const ProgramLevel& program);

// Returns the base description with stack.gpu_spread. Comments of the base are lost.
std::string cluster_with_gpu_spread(const std::string& base, const std::string& name,
                                    const Sourced<double>& spread);

// Returns the value below which this share of the values lies, interpolated between two of them;
// 0.5 gives the median. There must be at least one value.
double quantile(std::vector<double> values, double share);

// Returns |forecast / measured - 1| by size band: below 64 KiB, to 4 MiB, above. Bands without rows
// are left out.
std::vector<BandError> errors_by_band(std::span<const double> sizes,
                                      std::span<const double> errors);

}  // namespace lambcast::validate
