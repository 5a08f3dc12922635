// Findings of a validation, as sentences made from its numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/replay/collective_replay.h"
#include "validate/replay/replay.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

// The replayed data: all that ships inside, or a user's file.
struct Validation {
  std::optional<ReplaySummary> training;
  std::optional<CollectiveSummary> collectives;
  std::optional<SourceSummary> sources = {};
};

bool within(const Validation& validation);

// How NCCL's own model does on the tables that it covers.
struct OwnModelScore {
  int tables = 0, fitted = 0;  // of them, those that a cluster was fitted to
  int better = 0;              // those where the forecast has the smaller median
  double forecast_median = 0;  // medians over the tables of their medians
  double own_median = 0;
};
OwnModelScore own_model_score(const CollectiveSummary& summary);

// "perlmutter-a100, below 64 KiB: median 25.0% (limit 20.0%)": everything that misses its limit.
std::vector<std::string> misses(const Validation& validation);

// Whether limits are met and which are not; then, for training and for collectives, how large the
// errors are, which are the worst, and what was fitted and what unseen; then NCCL's own model.
std::vector<std::string> verdict_of(const Validation& validation);

// 0.0183 to "1.8%", and to "+1.8%".
std::string percent(double share);
std::string signed_percent(double share);

// "onebit_adam_blog.csv" to "onebit_adam_blog".
std::string table_name(const std::string& file);

}  // namespace lambcast
