// What a cluster description was calibrated on, and how far its forecasts were off there. It says
// for any forecast whether it lies inside what was measured, and gives it an interval.
//
// Inside, the interval of a time t is [t * low, t * high], with low and high the 5th and 95th
// percentile of measured / forecast over the rows of that size band, those held out of the fit
// among them. Outside, each end moves away from t by more, in logarithms
//
//   sqrt(log(end)^2 + (d w)^2 + o^2 + c^2)
//
//   d  how many doublings it lies past the measured ranks, nodes or sizes (the worst); sizes count
//      as one at most, since latency rules below the smallest and bandwidth above the largest
//   w  below 4 MiB 0.75, above 0.25
//   o  for another operation than those measured: 0.4, 0.3, 0.2
//   c  on one node after several were measured 1.15, 0.75, 0.55; the reverse 1.15, 0.8, 0.75
//
// w, o and c are what 90 of 100 forecasts were off by at most, about, where parts of the public
// tables were kept from a fit: Perlmutter at 2, 4 and 8 nodes from fits to fewer or more, one of
// its operations from another, one node from several and the reverse; HGX H100 at 4 nodes from 2
// and the reverse. For w the two fabrics count alike (0.58 and 0.88, 0.36 and 0.83, 0.09 and 0.32),
// so that above 4 MiB the H100 tables lie inside in 78 of 100 rows, Perlmutter's in 98. An interval
// of about 90 %, then, not a bound. validate/calibrate/leave_out.py measures all of it again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/table.h"
#include "sim/base/units.h"
#include "sim/collectives/choice.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

struct Calibration {
  struct Range {
    double low = 1;
    double high = 1;
  };
  struct Band {
    Bytes below;  // sizes from the band before up to this one
    double low = 1;
    double high = 1;
  };
  std::string source;  // the tables
  bool mpi = false;    // of the MPI library, else of NCCL
  std::vector<Op> operations;
  Range sizes;  // bytes
  Range ranks, nodes;
  std::vector<Band> bands;  // by size, the last one open
};

// Where size bands end: below 64 KiB latency rules, above 4 MiB bandwidth.
constexpr double small_below = 65536;
constexpr double medium_below = 4 * 1048576;

// "all_reduce, all_gather; 32.8 kB to 8.59 GB; 2 to 32 ranks on 1 to 8 nodes", for people.
std::string describe(const Calibration& calibration);

std::optional<Calibration> decode_calibration(const Table& table);

struct CalibratedInterval {
  Duration low, high;
  bool calibrated = false;  // inside everything that was measured
};

CalibratedInterval interval_of(const Calibration& calibration, Op op, Bytes size, int ranks,
                               int nodes, Duration forecast);

// Without a calibration: a factor of 1.53 either way, the worst median by which NCCL's own model
// with its built-in constants missed public tables on a fabric it was not tuned for (A100 with
// Slingshot-11, 21 to 53 %). No measurement on the cluster at hand stands behind it.
CalibratedInterval uncalibrated_interval(Duration forecast);

}  // namespace lambcast
