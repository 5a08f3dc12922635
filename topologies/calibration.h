// Evidence behind a calibrated cluster description: the measured range, and the forecast errors in
// it. It tells for any forecast whether it lies inside the measured range, and gives it an
// interval.
//
// A forecast is inside if its operation, size and layout were measured (this number of GPUs per
// node, and a number of nodes in the range measured with it), if rows of its size band ran the
// algorithm, and if some row ran the protocol. If the tables forced the ring, forecasts of a tree
// rest on a prior. Inside, the interval of a time t is [t * low, t * high], with low and high the
// 5th and 95th percentile of measured / forecast over the rows of that size band, each forecast by
// a fit to the other half (validate/calibrate).
//
// Outside, each end moves away from t, in logarithms, but at most to u, the half width of a
// description without a calibration, unless its own band is wider:
//
//   max(|log(end)|, min(sqrt(log(end)^2 + d w^2 + o^2 + c^2 + m^2), u))
//
//   d  doublings to the nearest measured layout, of nodes and of GPUs per node together; at least
//      those to the nearest measured size, which count as one at most
//                                                  below 64 KiB   to 4 MiB   above
//   w  per doubling                                        0.75       0.75    0.25
//   o  operation that was not measured                     0.4        0.3     0.2
//   c  one node if only several were measured              1.15       0.75    0.55
//      several nodes if only one was measured              1.15       0.8     0.75
//   s  tables of another machine of the same hardware      0.35       0.3     0.26
//   m  effect of later overrides: departure.h
//   u  without any table: NCCL over RDMA (priors.h)        0.8        0.72    0.42
//      NCCL over sockets, nominal rate of the NICs         1.3        1.3     0.9
//      NCCL over sockets, effective rate of the NICs       1.3        1.3     0.55
//      MPI, effective rate of the NICs                     1.8        1.8     0.55
//      MPI, nominal rate of the NICs                       1.8        1.8     1
//      within a node, where NICs are not used, as with an effective rate; from an effective rate to
//      another rate that an override states, sqrt(u^2 + m^2) with m of the NIC alone, up to the
//      width of the nominal rate
//
// A band does not cover an algorithm that none of its rows ran: there the half width is u. Fits
// to the rows of all-reduces of one algorithm were off by 0.66, 0.74 and 0.62 at 90 of 100 rows of
// another algorithm, beyond their band (6 fabrics with equal weight, sizes separately).
//
// s joins the sum like o and c. Two sites differ by 30 % at the 90th percentile (0.26); more is
// assumed for sizes at which latencies dominate.
//
// Source of the values: the error that 90 of 100 forecasts did not exceed beyond the band of their
// fit, when parts of the public tables were left out of the fit (printed by
// validate/calibrate/leave_out.py). In parentheses: how many of 100 lie inside with the values
// above.
//
//   w  Perlmutter at 2, 4 and 8 nodes from fits to fewer or more: 0.41 (98), 0.35 (98), 0.07 (100).
//      H100 at 4 nodes from 2 and the reverse, few rows: 0.60 (77), 0.88 (80), 0.20 (95). With
//      equal weight of both fabrics 88, 89 and 97 lie inside. Perlmutter's 1, 2 and 4 GPUs per
//      node from one another: 0.33 (96), 0.40 (98), 0.22 (95). At sizes dominated by latency,
//      errors at two doublings were 1.3 to 1.5 times those at one, so doublings add as squares.
//   o  one of Perlmutter's operations from another: 0.25 (97), 0.22 (93), 0.12 (96)
//   c  one of its nodes from several: 0.56, 0.32, 0.18 (all); the reverse: 0.56 (96), 0.46 (97),
//      0.12 (98). The values above are wider, since this one fabric has tables of all else.
//   u  over RDMA and sockets, each fabric left out of the priors in turn (validate/priors): for
//      RDMA 90, 90 and 94 of 100 rows lie inside, for sockets, with two fabrics, 96, 92 and 92.
//      MPI has no priors: errors of NCCL's forecasts from its own constants on the 53 tables,
//      before priors (1.87, 1.74, 0.53 on 6 fabrics with the effective rate of their NICs; 1.53,
//      1.82, 0.96 on the 12 with the nominal one), almost always too fast, no worse on 8 nodes
//      than on 2.
//
// Assumptions beyond the data: no public table has more than 32 ranks. For n > 32 ranks, a size S
// falls into the band of S 32 / n, the size with the same bytes per rank on 32 ranks: small pieces
// depend on latency as small sizes do. u is assumed to hold for any number of nodes: a time is a
// sum of terms, each proportional to one parameter, so it cannot be further off than the worst of
// them, unless the library runs another algorithm than forecast. MPI without a calibration is
// assumed to be no better than NCCL.
//
// More knowledge never widens an interval: inside it is no wider than outside, outside no wider
// than without a calibration (except for bands beyond u), and there no wider than on more GPUs. It
// is an interval of about 90 %, not a bound.
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
  // Range of the numbers of nodes that were measured with this number of GPUs in use per node.
  struct MeasuredNodes {
    int gpus_per_node = 1;
    Range nodes;
    bool operator==(const MeasuredNodes&) const = default;
  };
  struct Band {
    Bytes below;  // sizes from the previous band up to this one
    double low = 1;
    double high = 1;
    // NCCL algorithms that the band's rows ran. Empty if the table does not state them, and for
    // MPI, whose algorithms share one set of constants.
    std::vector<std::string> algorithms{};
    bool operator==(const Band&) const = default;
  };
  std::string source;  // names of the tables
  // The tables are of another machine of the same hardware, as in shipped presets, not of the
  // user's.
  bool another_machine = false;
  // Calibration of the description before the user's tables were added to it.
  std::shared_ptr<const Calibration> preset{};
  Backend backend = Backend::nccl;  // library and buffers
  std::vector<Op> operations;
  std::vector<std::string> protocols{};  // NCCL protocols that any row ran; empty: not stated
  Range sizes;                           // bytes
  std::vector<MeasuredNodes> layouts;    // in the order of GPUs per node
  std::vector<Band> bands;               // in the order of sizes; the last one has no end

  bool operator==(const Calibration&) const = default;
};

// Ends of the size bands: below 64 KiB latency dominates, above 4 MiB bandwidth.
constexpr double small_below = 65536;
constexpr double medium_below = 4 * 1048576;

// Returns "all_reduce, all_gather; 32.8 kB to 8.59 GB; 1 GPU a node on 2 to 8 nodes, 4 on 1 to 8".
std::string describe(const Calibration& calibration);

std::optional<Calibration> decode_calibration(const Table& table);

// Evidence of an interval, from the strongest to the weakest.
enum class Ground {
  calibrated,     // tables of this machine, inside the measured range
  same_hardware,  // a preset's tables: inside the measured range of equal hardware
  algorithm,      // inside, except for an algorithm or protocol that no row ran
  extrapolated,   // beyond the measured range
  none            // no tables
};

// Returns "calibrated", "preset of the same hardware", "prior: algorithm not measured",
// "extrapolated" or "not calibrated".
std::string_view in_words(Ground ground);

struct CalibratedInterval {
  Duration low, high;
  bool calibrated = false;
  Ground ground = Ground::none;
};

// Returns the interval widened by the uncertainty of a time that is an approximation itself.
inline CalibratedInterval widened(CalibratedInterval interval,
                                  const std::optional<Approximation>& by) {
  if (by) {
    interval.low = interval.low.scaled(by->low);
    interval.high = interval.high.scaled(by->high);
  }
  return interval;
}

// Algorithm and protocol of a collective; empty if the caller has no preference. Near a switching
// point of NCCL's rule, `rival` is the other candidate.
struct RunBy {
  std::string_view algorithm, protocol;
  std::optional<Rival> rival{};
  Bytes leaves_node{};  // bytes that each node sends to others
};

// Evidence for the NICs' rate: only nominal, or an effective rate that was reached.
enum class NicRate { nominal, effective };

// Evidence for the NICs' rate after overrides. A rate that an override states is nominal; `moved`
// is its departure from an effective rate.
struct NicEvidence {
  // NOLINTNEXTLINE(google-explicit-constructor): without overrides a NicRate suffices.
  NicEvidence(NicRate of, std::optional<double> from = {}) : rate(of), moved(from) {}

  NicRate rate;
  std::optional<double> moved;
};

// Fabrics whose typical constants apply to a description without tables: RDMA or TCP sockets for
// NCCL, none for MPI.
enum class Typical { rdma, socket, none };

// Returns the interval of a forecast. An uneven layout counts as one with the average number of
// GPUs per node. The ground is that of the calibration, regardless of the departure.
CalibratedInterval interval_of(const Calibration& calibration, Op op, Bytes size, int ranks,
                               int nodes, const NicEvidence& nic, Typical typical,
                               Duration forecast, const RunBy& by = {},
                               const Departure& departure = {});

// Returns the interval without any calibration: [t exp(-u), t exp(u)].
CalibratedInterval uncalibrated_interval(Bytes size, int ranks, const NicEvidence& nic,
                                         Typical typical, Duration forecast);

}  // namespace lambcast
