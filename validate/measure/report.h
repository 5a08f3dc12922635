// The result of `lambcast measure` as text, JSON or CSV, written while it is measured: a run that
// is stopped leaves every row that was finished. JSON then lacks its end ("]}").
//
// Text is the table of nccl-tests, with N/A for an operation that has no in-place form; JSON
// carries the keys that nccl-tests writes with -J (so scripts made for it work) and names the
// collective besides; CSV is ours (measurement.h), out of place. All three can be read back by the
// importers.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/collectives/backend.h"
#include "validate/measure/options.h"
#include "validate/measure/rank_place.h"
#include "validate/measure/shared_gpu.h"

namespace lambcast::validate {

// One half of a row as it was measured. size = 4 * count bytes for vectors, 4 * count * ranks for
// blocks.
struct MeasuredHalf {
  Row row;
  int iterations = 0;
  std::uint64_t wrong = 0;  // elements of any rank that differ from the exact result
  bool checked = false;
};

struct MeasuredRow {
  MeasuredHalf out_of_place;
  std::optional<MeasuredHalf> in_place;
};

struct MeasuredTable {
  MeasureOptions options;
  Backend backend = Backend::nccl;  // or mpi_host
  std::string library;              // "Open MPI 4.1.4", "NCCL 2.28.9"
  std::string timing;               // what lies between the two readings of the clock, in words
  bool has_spread = true;           // whether rows have one: all or none
  SharingWords sharing;
  std::vector<RankPlace> places;
  std::vector<MeasuredRow> rows;
};

// The table as a Measurement of our own.
Measurement to_measurement(const MeasuredTable& table);

class Report {
 public:
  // Writes the manifest and what comes before the first of `sizes` rows. Without `out` (ranks
  // other than 0) nothing is written anywhere. Throws Error when it cannot be: of the manifest as
  // write_output() does, failure for the table.
  Report(MeasuredTable table, std::ostream* out, std::size_t sizes);
  void add(const MeasuredRow& row);
  // Writes what comes after the last row. Returns the exit code: 1 when a result was wrong.
  int finish();

 private:
  void flush();
  void show_progress() const;

  MeasuredTable table_;
  Measurement measurement_;  // without rows
  std::ostream* out_;
  std::size_t sizes_;
};

// JSON with tool, options, versions, hosts, processor, kernel and those variables of the
// environment that steer a collective; never the whole environment.
std::string manifest_json(const MeasuredTable& table);

// Kernel, machine and date for the manifest and the header of the CSV.
std::string kernel_name();
std::string utc_now();

// "NAME=value" of the variables on the allow-list that are set, in its order.
std::vector<std::string> allowed_environment();

}  // namespace lambcast::validate
