// Many tables of collectives in one launch: each operation over 1, 2, 4, ... nodes, so that a
// cluster is described by one mpirun or srun instead of twenty.
//
// The first process writes FOLDER/plan.csv before anything is timed, a row for each table and size,
// and then each table to FOLDER/tables/OPERATION-nNODES.csv as `lambcast measure --format csv`
// prints it, row after row, so that a survey that ends early leaves what it finished. A table is
// not begun when `budget_s` seconds are over.
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

// Node counts of a survey over so many nodes: powers of two below it, and itself. One node counts
// if it holds several ranks.
std::vector<int> surveyed_node_counts(int nodes, bool several_ranks_a_node);

// "all_reduce-n4.csv".
std::string survey_table_name(Operation operation, int nodes);

// Takes --survey, --ops and --budget out of `flags`; nothing without --survey. Throws Error naming
// the flag.
std::optional<SurveyOptions> take_survey_flags(std::vector<std::string>& flags);

// Runs all tables over MPI; options as of measure_mpi(). Returns 1 if a result was wrong.
int survey_mpi(const SurveyOptions& survey, const MeasureOptions& options);

}  // namespace lambcast::validate
