// Measures many tables of collectives in one launch: each operation over 1, 2, 4, ... nodes. So one
// mpirun or srun describes a cluster, instead of one for each table.
//
// The first process writes FOLDER/plan.csv before any timing, with a row for each table and size.
// Then it writes each table to FOLDER/tables/OPERATION-nNODES.csv, as `lambcast measure --format
// csv` prints it, row after row, so a survey that ends early keeps its finished rows. No table is
// begun after `budget_s` seconds.
//
// Left out: NCCL over fewer nodes than the launch has, and types other than fp32.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/measure/options.h"

namespace lambcast::validate {

struct SurveyOptions {
  std::string folder;
  std::vector<Operation> operations;
  double budget_s = 600;
};

// Returns the node counts of a survey over `nodes` nodes: powers of two below it, and itself. One
// node counts if it holds several ranks.
std::vector<int> surveyed_node_counts(int nodes, bool several_ranks_a_node);

// Returns the file name of a table: "all_reduce-n4.csv".
std::string survey_table_name(Operation operation, int nodes);

// Removes --survey, --ops and --budget from `flags`; returns nothing without --survey. Throws Error
// naming the flag.
std::optional<SurveyOptions> take_survey_flags(std::vector<std::string>& flags);

// Runs all tables over MPI; the options are those of measure_mpi(). Returns 1 if a result was
// wrong.
int survey_mpi(const SurveyOptions& survey, const MeasureOptions& options);

}  // namespace lambcast::validate
