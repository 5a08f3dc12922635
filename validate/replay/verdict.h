// Findings of a validation, as sentences made from its numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/replay/collective_replay.h"
#include "validate/replay/replay.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

// The replayed data: all that ships, or a user's file.
struct Validation {
  std::optional<ReplaySummary> training;
  std::optional<CollectiveSummary> collectives;
  std::optional<SourceSummary> sources = {};
};

bool within(const Validation& validation);

// Comparison of the forecast with NCCL's own model, on the tables that both cover.
struct OwnModelScore {
  int tables = 0, fitted = 0;  // tables, and those that a cluster was fitted to
  int better = 0;              // tables for which the forecast has the smaller median
  double forecast_median = 0;  // medians over the tables' medians
  double own_median = 0;
};
OwnModelScore own_model_score(const CollectiveSummary& summary);

// Lists everything that misses its limit: "perlmutter-a100, below 64 KiB: median 25.0% (limit
// 20.0%)".
std::vector<std::string> misses(const Validation& validation);

// Returns the sentences of the verdict: whether limits are met, and which are not; for training and
// for collectives, the size of the errors, the worst ones, and the fitted and unseen data; the
// comparison with NCCL's own model.
std::vector<std::string> verdict_of(const Validation& validation);

// Formats 0.0183 as "1.8%", or as "+1.8%".
std::string percent(double share);
std::string signed_percent(double share);

// Removes the extension: "onebit_adam_blog.csv" becomes "onebit_adam_blog".
std::string table_name(const std::string& file);

}  // namespace lambcast
