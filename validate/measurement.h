// A measured table of one collective, as written by `lambcast measure`, read by the importers from
// other tools' logs, and used by `calibrate` and `validate`.
//
// Sizes and bandwidths are defined as in nccl-tests (doc/PERFORMANCE.md there). With S the size in
// bytes, t the time in seconds and n ranks:
//
//   algbw = S / t                     busbw = algbw * factor
//
//   operation                  S                                          factor
//   all_reduce                 the vector, equal on every rank            2(n-1)/n
//   all_gather                 n blocks, what each rank receives          (n-1)/n
//   reduce_scatter             n blocks, what each rank contributes       (n-1)/n
//   all_to_all                 n blocks, what each rank sends in total    (n-1)/n
//   broadcast                  the vector                                 1
//   send_recv                  each rank to the next, all at once         1
//   reduce                     the vector, equal on every rank            1
//   compressed_allreduce       the fp32 vector before compression         2(n-1)/n
//   ping_pong                  one message, t is half a round trip        1
//   stream                     messages in flight back to back, t = S/bw  1
//
// The last two are not operations of nccl-tests. OSU latency, OSU bandwidth, perftest
// and iperf3 measure them between two ranks. The bandwidth of compressed_allreduce is that of an
// uncompressed all_reduce with the same time, so it may exceed the link: 32 bits of S are 1 bit on
// the wire.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"
#include "sim/collectives/backend.h"

namespace lambcast::validate {

enum class Operation {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv,
  reduce,
  compressed_allreduce,
  ping_pong,
  stream,
};

std::string_view name_of(Operation operation);

// Parses the project's names and the spellings of nccl-tests ("alltoall", "AllReduce", "sendrecv").
// Throws Error naming `where` and all valid operations, without `left_out` if it is given.
Operation parse_operation(std::string_view text, const Where& where,
                          std::optional<Operation> left_out = {});

// Parses "nccl" or "mpi", the backends that can be measured. Throws Error naming `where`.
Backend parse_measured_backend(std::string_view word, const Where& where);

// Returns busbw / algbw of the table above. The number of ranks must be at least 1.
double bus_factor(Operation operation, int ranks);

// The shortest and longest time measured for a row.
struct Spread {
  Duration low;
  Duration high;
};

struct Row {
  Bytes size;
  Duration time;
  std::optional<Spread> spread;
};

// Ratios between the bandwidths printed next to the times of a table. If the columns belong
// together, these are busbw / algbw of its operation and ranks, and algbw equals size / time.
struct PrintedBandwidths {
  double bus_over_alg = 0;
  double alg_over_rate = 0;  // algbw / (size / time)
};

struct Measurement {
  Operation operation = Operation::all_reduce;
  int ranks = 0;
  std::optional<int> nodes;  // absent if the log does not state it
  std::optional<int> gpus_per_node;
  std::optional<std::string> algorithm;  // if it was forced or logged
  std::optional<std::string> protocol;
  std::optional<Backend> backend;  // nccl or mpi_host, if known
  // Parallel connections, for tools that measure without a library (iperf3, perftest).
  std::optional<int> streams;
  // How buffers were copied between device and host within every time; absent: no copies.
  std::optional<std::string> staging;
  std::optional<PrintedBandwidths> printed;  // medians, if enough digits are printed
  std::vector<Row> rows;
  Provenance provenance;  // source of every time in the rows
  // Other facts in the header (gpu, network, settings ...), in its order, for the user.
  std::vector<std::pair<std::string, std::string>> notes;
};

// Bandwidths in GB/s (1e9 bytes).
double algbw_GBps(const Row& row);
double busbw_GBps(const Measurement& measurement, const Row& row);

// Reads the project's CSV: comment lines "# key: value" (collective, ranks, nodes, gpus_per_node,
// algorithm, protocol, backend, streams, staging, kind, source, then notes), then
// size_bytes,time_us,algbw_GBps,busbw_GBps and, if there is a spread, min_us,max_us. The bandwidth
// columns are for human readers: only the time is used, and the ratios of bandwidths to times are
// recorded. `lambcast measure` adds the column `wrong`, the elements that differ from the exact
// result, empty if none was checked, and the same columns in place: in_place_us, in_place_min_us,
// in_place_max_us, in_place_wrong. With `in_place`, times are read from these columns, if there are
// any. A header without `kind` counts as published; `operation` and `ranks` replace missing lines.
// Throws Error with file, line and reason, also for a row with wrong results.
Measurement read_measurement_csv(std::string_view text, std::string_view name,
                                 std::optional<Operation> operation = {},
                                 std::optional<int> ranks = {}, bool in_place = false);
std::string write_measurement_csv(const Measurement& measurement);

// Return parts of the CSV, for rows written one by one: the comment lines with line ends; the
// header line, a row and the times in it without line ends.
std::string measurement_csv_comments(const Measurement& measurement);
std::string measurement_csv_columns(bool spread);
std::string measurement_csv_row(const Measurement& measurement, const Row& row, bool spread);
std::string measurement_csv_times(const Row& row, bool spread);

// Merges separate runs of one measurement: for each size the median of the times, the smallest low
// and the largest high. Throws Error if the runs differ in operation, ranks or sizes.
Measurement merge_runs(const std::vector<Measurement>& runs);

// Returns each measurement once: rows of one size as their median, and a table equal to an earlier
// one left out. Repetition is no further evidence.
std::vector<Measurement> without_repeats(std::span<const Measurement> tables);

// Returns the median; for an even number of values the mean of the middle two. There must be at
// least one value.
Duration median(std::vector<Duration> values);

}  // namespace lambcast::validate
