// What a cluster description was calibrated on, and how far its forecasts were off there. It says
// for any forecast whether it lies inside what was measured, and gives it an interval.
//
// Inside is an operation and a size that were measured, on a layout that was: as many GPUs of each
// node, and nodes between the fewest and the most with so many; and an algorithm that rows of that
// band of size took, by a protocol that some row took: what is said of a tree where tables forced
// the ring is a prior. There the interval of a time t is
// [t * low, t * high], with low and high the 5th and 95th percentile of measured / forecast over
// the rows of that size band, each forecast by a fit to the other half (validate/calibrate).
//
// Outside, each end moves away from t by more, in logarithms, but never past what a description
// without a calibration has, u, unless its own band is wider:
//
//   max(|log(end)|, min(sqrt(log(end)^2 + d w^2 + o^2 + c^2 + m^2), u))
//
//   d  doublings to the nearest layout measured, of nodes and of GPUs per node together; at least
//      those to the nearest size measured, which count as one at most
//                                                  below 64 KiB   to 4 MiB   above
//   w  for a doubling                                      0.75       0.75    0.25
//   o  for another operation than those measured           0.4        0.3     0.2
//   c  on one node after several were measured             1.15       0.75    0.55
//      on several after one                                1.15       0.8     0.75
//   s  tables of another machine of the same hardware     0.35       0.3     0.26
//   m  for what overrides changed since: departure.h
//   u  without any table: NCCL over RDMA (priors.h)       0.8        0.72    0.42
//      NCCL over sockets, nominal rate of the NICs         1.3        1.3     0.9
//      or one that somebody got out of them                1.3        1.3     0.55
//      MPI, where somebody got the rate out of its NICs   1.8        1.8     0.55
//      or no more is known than their nominal rate        1.8        1.8     1
//      within a node, where NICs carry nothing, as with a rate that somebody got out of them;
//      from such a rate to another that an override states, sqrt(u^2 + m^2) of the NIC alone, up to
//      the width of the nominal rate
//
// A band says nothing of an algorithm that none of its rows took: there the half width is u. Fits
// to the rows of all-reduces that took one algorithm were off by 0.66, 0.74 and 0.62 at 90 of 100
// rows of another, beyond their band (6 fabrics alike, sizes apart too).
//
// s joins the sum as o and c do: two sites differ by 30 % at the 90th percentile (0.26), by more,
// it is assumed, where latencies rule.
//
// Where they come from: what 90 of 100 forecasts were off by at most beyond the band of their fit,
// where parts of the public tables were kept from it, as validate/calibrate/leave_out.py prints it,
// and in parentheses how many of 100 lie inside with the values above.
//
//   w  Perlmutter at 2, 4 and 8 nodes from fits to fewer or more: 0.41 (98), 0.35 (98), 0.07 (100).
//      H100 at 4 nodes from 2 and the reverse, few rows: 0.60 (77), 0.88 (80), 0.20 (95). The two
//      fabrics alike, 88, 89 and 97 lie inside. Perlmutter's 1, 2 and 4 GPUs per node from one
//      another: 0.33 (96), 0.40 (98), 0.22 (95). At two doublings forecasts were off by 1.3 to 1.5
//      times what they were at one where latencies rule, so doublings add as squares.
//   o  one of Perlmutter's operations from another: 0.25 (97), 0.22 (93), 0.12 (96)
//   c  one of its nodes from several: 0.56, 0.32, 0.18 (all); the reverse: 0.56 (96), 0.46 (97),
//      0.12 (98). The values are wider than this one fabric asks, which has tables of all else.
//   u  over RDMA and sockets, each fabric left out of the priors in turn (validate/priors): of RDMA
//      90, 90 and 94 of 100 rows lie inside, of sockets, where two are known, 96, 92 and 92. Over
//      MPI, which has no priors: what NCCL's forecasts from its own constants were off by on the 53
//      tables before there were any (1.87, 1.74, 0.53 on 6 fabrics whose description has the rate
//      of their NICs; 1.53, 1.82, 0.96 on the 12 with the nominal one), almost always too fast, no
//      worse on 8 nodes than on 2.
//
// Beyond the data, and assumed: no public table holds more than 32 ranks. Past them a size counts
// as what leaves each rank as much as it would have of 32, S 32 / n, since pieces so small are
// ruled by latency as small sizes are; and u is taken to hold however many nodes there are, since a
// time is a sum of terms each in proportion to one parameter and cannot be further off than the
// worst of them, unless the library chooses another algorithm than the model. MPI without a
// calibration is taken for no better than NCCL.
//
// So more knowledge never widens: an interval inside is no wider than outside, that no wider than
// without a calibration (but for bands past u), and that no wider than on more GPUs. An interval of
// about 90 %, not a bound.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/table.h"
#include "sim/base/units.h"
#include "sim/collectives/backend.h"
#include "sim/collectives/collective.h"
#include "topologies/departure.h"
#include "topologies/priors.h"

namespace lambcast {

struct Calibration {
  struct Range {
    double low = 1;
    double high = 1;
    bool operator==(const Range&) const = default;
  };
  // How many nodes were measured with so many GPUs of each in use.
  struct MeasuredNodes {
    int gpus_per_node = 1;
    Range nodes;
    bool operator==(const MeasuredNodes&) const = default;
  };
  struct Band {
    Bytes below;  // sizes from the band before up to this one
    double low = 1;
    double high = 1;
    // NCCL algorithms that the band's rows took. Empty if the table does not say, and for MPI,
    // whose algorithms share one set of constants.
    std::vector<std::string> algorithms{};
    bool operator==(const Band&) const = default;
  };
  std::string source;  // the tables
  // They are of another machine of the same hardware, not of the user's: what presets ship.
  bool another_machine = false;
  // Calibration of the description before the user's tables were added to it.
  std::shared_ptr<const Calibration> preset{};
  Backend backend = Backend::nccl;  // over whose library, and on which buffers
  std::vector<Op> operations;
  std::vector<std::string> protocols{};  // of NCCL that any row took; empty: not said
  Range sizes;                           // bytes
  std::vector<MeasuredNodes> layouts;    // by GPUs per node
  std::vector<Band> bands;               // by size, the last one open

  bool operator==(const Calibration&) const = default;
};

// Ends of the size bands: below 64 KiB latency decides, above 4 MiB bandwidth.
constexpr double small_below = 65536;
constexpr double medium_below = 4 * 1048576;

// "all_reduce, all_gather; 32.8 kB to 8.59 GB; 1 GPU a node on 2 to 8 nodes, 4 on 1 to 8", for
// people.
std::string describe(const Calibration& calibration);

std::optional<Calibration> decode_calibration(const Table& table);

// Evidence of an interval, from the strongest to the weakest.
enum class Ground {
  calibrated,     // tables of this machine, inside everything that was measured
  same_hardware,  // a preset's tables: inside what was measured on another machine like it
  algorithm,      // inside, except for an algorithm or protocol that no row took
  extrapolated,   // some tables, but beyond them
  none            // no table
};

// "calibrated", "preset of the same hardware", "prior: algorithm not measured", "extrapolated",
// "not calibrated".
std::string_view in_words(Ground ground);

struct CalibratedInterval {
  Duration low, high;
  bool calibrated = false;
  Ground ground = Ground::none;
};

// Returns the same interval for a time that is an approximation itself.
inline CalibratedInterval widened(CalibratedInterval interval,
                                  const std::optional<Approximation>& by) {
  if (by) {
    interval.low = interval.low.scaled(by->low);
    interval.high = interval.high.scaled(by->high);
  }
  return interval;
}

// Algorithm and protocol of a collective; empty if the caller has no preference. Near a tip of
// NCCL's rule, `rival` is the other candidate.
struct RunBy {
  std::string_view algorithm, protocol;
  std::optional<Rival> rival{};
  Bytes leaves_node{};  // bytes that each node sends to others
};

// Evidence for the rate of the NICs.
enum class NicRate { nominal, effective };

// A rate that an override states is nominal; `moved` is its departure from one that was effective.
struct NicEvidence {
  // NOLINTNEXTLINE(google-explicit-constructor): a kind alone, as of a description as it stands.
  NicEvidence(NicRate of, std::optional<double> from = {}) : rate(of), moved(from) {}

  NicRate rate;
  std::optional<double> moved;
};

// Fabrics whose typical constants serve a description without tables: RDMA or TCP sockets for NCCL,
// none for MPI.
enum class Typical { rdma, socket, none };

// Returns the interval of a forecast. An uneven layout counts as one with the average number of
// GPUs per node. The ground is that of the calibration, for any departure.
CalibratedInterval interval_of(const Calibration& calibration, Op op, Bytes size, int ranks,
                               int nodes, const NicEvidence& nic, Typical typical,
                               Duration forecast, const RunBy& by = {},
                               const Departure& departure = {});

// Without a calibration: [t exp(-u), t exp(u)]. No table of the cluster at hand stands behind it.
CalibratedInterval uncalibrated_interval(Bytes size, int ranks, const NicEvidence& nic,
                                         Typical typical, Duration forecast);

}  // namespace lambcast
