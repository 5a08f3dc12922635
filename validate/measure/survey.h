// Measures many tables of collectives in one launch. Each operation is measured in each type, over
// all nodes first, then over 1, 2, 4, ... of them. So one mpirun or srun describes a cluster,
// instead of one for each table. `lambcast measure --tables FOLDER` and `lambcast survey` use it.
//
// The first process writes FOLDER/plan.csv before any timing, with a row for each table and size.
// With `step_weights`, it first times whole steps of the shipped optimizers over all nodes, and
// writes them to FOLDER/steps.csv (nccl_steps.h). Then it writes each table to
// FOLDER/tables/OPERATION-nNODES.csv (OPERATION-TYPE-nNODES.csv for types other than float), as
// `lambcast measure --format csv` prints it. Rows are written one by one, so a survey that ends
// early keeps its finished rows. No table is begun after `budget_s` seconds.
//
// If `steered`, the first process also writes a line to its standard output when the plan is
// written ("plan") and after each further file (its name), and waits for a line on its standard
// input. Any answer but "go" ends the survey, and so does the end of the input. Meanwhile no rank
// measures.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "validate/measure/options.h"
#include "validate/measure/rank_place.h"

namespace lambcast::validate {

struct SurveyOptions {
  std::string folder;
  std::vector<Operation> operations{Operation::all_reduce};
  std::vector<DataType> types{DataType::float32};
  std::uint64_t step_weights = 0;  // of a model; 0: no steps; the first process's value counts
  double budget_s = 600;
  bool steered = false;
};

// The ranks of a launch, as a backend connects them. All processes make the same calls.
class SurveyedRanks {
 public:
  virtual ~SurveyedRanks() = default;
  virtual const std::vector<RankPlace>& places() const = 0;  // one per rank of the launch
  virtual bool first() const = 0;                            // whether rank 0 is in this process
  // Returns, on every process, the value that the first process passed.
  virtual bool value_of_first(bool mine) = 0;
  // Returns the unit of sizes, or 0 if the backend cannot run the operation in this type.
  virtual std::uint64_t block_bytes(Operation operation, DataType type, int ranks) const = 0;
  // Measures one table on the ranks that take part; the first process writes to `out`. Returns 1 if
  // a result was wrong.
  virtual int measure(const MeasureOptions& options, const std::vector<bool>& takes_part,
                      std::ostream& out) = 0;
  // Times whole steps of the shipped optimizers on all ranks. A backend without GPUs times none.
  virtual void measure_steps(const MeasureOptions&, std::uint64_t /*weights*/, std::ostream&) {}
};

// Returns the node counts of a survey over `nodes` nodes in the order of their measurement: all
// nodes first, since most can be learned from them, then powers of two below. A single node is
// included if a node holds several ranks.
std::vector<int> surveyed_node_counts(int nodes, bool several_ranks_a_node);

// Returns the file name of a table: "all_reduce-n4.csv", "all_reduce-half-n4.csv".
std::string survey_table_name(Operation operation, DataType type, int nodes);

// Parse lists with commas between the words. Throw Error naming the flag.
std::vector<Operation> operations_in(const std::string& list, const std::string& flag);
std::vector<DataType> types_in(const std::string& list, const std::string& flag);

// Removes from `flags` --tables, the flags that take lists with it (--op, -d), and those that exist
// only with it (--budget, --steps-of, --steered yes). Returns nothing without --tables. Throws
// Error naming the flag.
std::optional<SurveyOptions> take_survey_flags(std::vector<std::string>& flags);

// Runs the survey; `answers` and `news` are the standard streams described above. Returns 1 if a
// result was wrong. Throws Error for one rank, and if a file cannot be written.
int run_survey(const SurveyOptions& survey, const MeasureOptions& options, SurveyedRanks& ranks,
               std::istream& answers, std::ostream& news);

// Run all tables over MPI or NCCL, with the options of measure_mpi() and measure_nccl(). Return 1
// if a result was wrong.
int survey_mpi(const SurveyOptions& survey, const MeasureOptions& options);
int survey_nccl(const SurveyOptions& survey, const MeasureOptions& options);

}  // namespace lambcast::validate
