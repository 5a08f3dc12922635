// The result of `lambcast measure` as text, JSON or CSV, written while it is measured: a run that
// is stopped leaves every row that was finished. JSON then lacks its end ("]}").
//
// Text is the table of nccl-tests, with N/A for an operation that has no in-place form. JSON has
// the keys that nccl-tests writes with -J (so scripts made for it work), and the collective. CSV is
// the project's own format (measurement.h). All three can be read back by the importers.
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

// The out-of-place or in-place half of a row. size = 4 * count bytes for vectors, 4 * count * ranks
// for blocks.
struct MeasuredHalf {
  Row row;
  int iterations = 0;
  std::uint64_t wrong = 0;  // elements on any rank that differ from the exact result
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
  std::string timing;               // description of the timed interval
  bool has_spread = true;           // whether all rows have a spread; otherwise none has
  SharingWords sharing;
  std::vector<RankPlace> places;
  std::vector<MeasuredRow> rows;
};

// Returns the table as a Measurement.
Measurement to_measurement(const MeasuredTable& table);

class Report {
 public:
  // Writes the manifest and the text before the first of `sizes` rows. Without `out` (ranks other
  // than 0) nothing is written. Throws Error if writing fails: as write_output() for the manifest,
  // failure for the table.
  Report(MeasuredTable table, std::ostream* out, std::size_t sizes);
  void add(const MeasuredRow& row);
  // Writes the text after the last row. Returns the exit code: 1 if a result was wrong.
  int finish();

 private:
  void flush();
  void show_progress() const;

  MeasuredTable table_;
  Measurement measurement_;  // without rows
  std::ostream* out_;
  std::size_t sizes_;
};

// Returns JSON with tool, options, versions, hosts, processor, kernel and the environment variables
// that affect a collective; never the whole environment.
std::string manifest_json(const MeasuredTable& table);

// Return the kernel and machine, and the date, for the manifest and the header of the CSV.
std::string kernel_name();
std::string utc_now();

// Returns "NAME=value" of the variables on the allow-list that are set, in the order of the list.
std::vector<std::string> allowed_environment();

}  // namespace lambcast::validate
