// Fits a cluster description to measured tables: one set of parameters for the whole fabric, none
// per table or size. Minimised is the relative error, log(forecast / measured), of the very
// forecast that `lambcast collective` prints, by robust least squares (least_squares.h); parameters
// are fitted as logarithms within physical bounds, so they stay positive.
//
// A limit that the base does not have (what one connection carries) comes in only where the tables
// cannot be explained as well without.
//
// Half of the data is held out first, every other size, and then the other half; with four tables
// or more one whole table with the first, the middle one by number of ranks. The held-out errors
// are those of fits that have not seen it, and set the width of intervals; the parameters then come
// from a fit on everything.
//
// A size that a table repeats counts once, as the median of its times, and so does a table that is
// given again.
//
// What the description says already is the prior of the fit: what is typical of fabrics, or, in a
// preset, what was fitted to another machine of the same hardware, each with its spread. A table
// adds to it and does not replace it. So do its forecasts of sizes that no table holds
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
  // Whether the tables determine it: they shrank its uncertainty to less than half of the prior's
  // and to less than a factor of two, and it does not lie at a bound.
  bool identified = false;
};

// A latency inside one node that the tables, all over several, say nothing about, or one of trees
// between nodes where none took one. What they say of the latencies of rings between nodes must not
// stand for it, so the description gets it in writing.
struct KeptLatency {
  std::string key;
  Sourced<Duration> value;
};

// |forecast / measured - 1| over the rows of a size band.
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
  std::vector<BandError> held_out;           // forecast without having seen them
  std::string held_out_table;                // empty: sizes only
  std::vector<std::string> fitted_tables{};  // fingerprints (fitted_tables.h)
  // Absent where no table is one of the library: a wire says nothing of how far its forecasts are
  // off.
  std::optional<Calibration> calibration;
  std::vector<std::string> suspicions;  // what makes the tables look wrong (suspicions.h)
  std::vector<std::string> misfits;     // what a poor fit leaves over (residuals.h)
  double seconds = 0;
};

// Median of |forecast / measured - 1| above which a fit is poor. The worst fabric here reaches half
// of it from 1 MiB up.
inline constexpr double poor_fit_median = 0.2;

// How many searches for the least cost are over, and of how many. Each takes as long as the tables
// have rows: about a tenth of a second for a thousand.
using CalibrationProgress = std::function<void(int done, int all)>;

// `base` is the text of a description; `name` stands for it in messages. Throws Error for tables
// that cannot be placed on the cluster or hold an operation that is no collective of ours.
FitSummary calibrate(const std::string& base, const std::string& name,
                     std::span<const Measurement> tables, Backend backend = Backend::nccl,
                     const CalibrationProgress& progress = {});

// A screenful for people: parameters, intervals, residuals by size band, what was not identified.
std::string brief_report(const FitSummary& summary);

// The base description with the fitted keys replaced, each with its interval and `source`, and a
// [calibration] section; `cluster_name` is the name inside. Comments of the base are lost.
std::string calibrated_cluster(const std::string& base, const std::string& name,
                               const std::string& cluster_name, const FitSummary& summary,
                               const std::string& source);

// The base description with a section [program], and with `device` for its GPU unless that is
// empty. Comments of the base are lost.
std::string cluster_with_program(const std::string& base, const std::string& name,
                                 const std::string& cluster_name, const std::string& device,
                                 const ProgramLevel& program);

// The base description with stack.gpu_spread. Comments of the base are lost.
std::string cluster_with_gpu_spread(const std::string& base, const std::string& name,
                                    const Sourced<double>& spread);

// The value below which this share of at least one value lies, between two of them by
// interpolation; 0.5 is the median.
double quantile(std::vector<double> values, double share);

// |forecast / measured - 1| by band of size: below 64 KiB, to 4 MiB, above. Bands without rows are
// left out.
std::vector<BandError> errors_by_band(std::span<const double> sizes,
                                      std::span<const double> errors);

}  // namespace lambcast::validate
