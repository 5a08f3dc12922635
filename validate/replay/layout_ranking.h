// Does a search (experiments/layout_search.h) find what people found? Rows of published tables that
// are layouts of one job, the same model on the same GPUs with the same batch, are put in order by
// the forecast and by the measurement, and the fastest measured one is looked for among the best
// that the search comes up with, which knows nothing of it. Rows of a machine before and after a
// change to it are of two jobs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/layout_space.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

// The measured layouts of one job.
struct LayoutJob {
  std::string source;
  std::string name;  // of its fastest measured layout
  WhatIf asked;      // settings of the search: no key of a layout
  LayoutCandidate fastest;
  std::vector<double> measured, forecast;  // speeds of its distinct layouts
};

// Returns the jobs of the forecast rows, in their order; a layout that was measured several times
// has its mean.
std::vector<LayoutJob> layout_jobs(const std::vector<SourceResult>& results);

// Spearman's rank correlation; equal values share the mean of their ranks. Nothing for fewer than
// two, or where one side is all alike.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

// Returns the rank, from 1, of the fastest measured layout's division of the model in a search that
// shows `best` divisions; nothing if it is not among them.
std::optional<std::size_t> place_of_fastest(const LayoutJob& job, std::size_t best, int jobs);

}  // namespace lambcast
