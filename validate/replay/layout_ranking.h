// Compares the layout search (experiments/search/layout_search.h) with published layouts. Rows of a
// table that are layouts of one job (same model, GPUs and batch) are ranked by forecast and by
// measurement, and the fastest measured one is searched for among the best that the search finds
// without these rows. Rows of a machine before and after a change to it belong to two jobs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/search/layout_space.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

// The measured layouts of one job.
struct LayoutJob {
  std::string source;
  std::string name;  // name of its fastest measured layout
  WhatIf asked;      // settings of the search, without layout keys
  LayoutCandidate fastest;
  std::vector<double> measured, forecast;  // speeds of its distinct layouts
};

// Returns the jobs of the forecast rows, in their order; a layout that was measured several times
// has its mean.
std::vector<LayoutJob> layout_jobs(const std::vector<SourceResult>& results);

// Returns Spearman's rank correlation; equal values share the mean of their ranks. Nothing for
// fewer than two values, or if all values of one side are equal.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

// Quality of the choice of a layout by forecast, over jobs with several measured layouts. The
// regret of a job is how much slower a step is with the layout of the best forecast than with the
// fastest one: speed of the fastest / speed of the chosen - 1, both as measured.
struct LayoutChoice {
  int jobs = 0, best_found = 0;
  double median_regret = 0, worst_regret = 0;
  double median_correlation = 0;  // rank correlation, over jobs of three layouts or more
  int ranked = 0;                 // number of jobs with three layouts or more
};
LayoutChoice choice_of(const std::vector<LayoutJob>& jobs);
double regret_of(const LayoutJob& job);

// Returns a line for the sources whose rows may set parameters (grades U and R), and one for
// left-out stacks (grade S).
std::string choice_table(const LayoutChoice& in_view, const LayoutChoice& left_out);

// Returns the rank, from 1, of the fastest measured layout's division in a search that shows `best`
// divisions of the model; nothing if it is not among them.
std::optional<std::size_t> place_of_fastest(const LayoutJob& job, std::size_t best, int jobs);

}  // namespace lambcast
