// Finds the step that the freeze monitor of the kernel library would have chosen, and the reason.
// Reads the log of a training run: the norm |v|_1 of the variance, of the whole model or per layer.
// Passes each measurement to kernels/reference/freeze.h.
//
// A loss is weaker evidence than a variance. If a log has only losses, the same criterion is
// applied to their means over D steps, the averaging length of the variance. The answer states
// this.
//
// A log has one of three forms; its steps rise by the same interval throughout:
//
//   step,embedding,layer 1,...     CSV, a column per layer, all of equal weight
//   step,layer,norm[,elements]     CSV, a row per step and layer; `elements` is a layer's weight
//   100 3.25 1.17                  text without a header: the step, then a value per layer
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/reference/freeze.h"

namespace lambcast {

struct FreezeLog {
  std::string name;
  bool losses = false;
  std::vector<std::string> layers;
  std::vector<std::size_t> elements;  // elements of each layer; 1 if the log does not state them
  std::vector<int> steps;
  std::vector<std::vector<double>> values;  // [measurement][layer]
  int interval = 1;
};

// Parses a log. `columns`: the columns to use from a table with a column per layer; empty: all
// except the step. `losses`: the values are losses; this also holds for a single column with such a
// name. Throws Error with file and line.
FreezeLog parse_freeze_log(std::string_view text, const std::string& name,
                           const std::vector<std::string>& columns, bool losses);

// The state of a layer at the chosen step, or at the last step.
struct LayerChange {
  std::string name;
  std::size_t elements = 1;
  double before = 0, now = 0;  // values D steps apart (D: averaging length of the variance)
  bool settled = false;
  int settled_since = 0;  // first step since which it has been settled; 0: it has not settled
};

struct FreezeChoice {
  reference::FreezeOptions options;
  bool losses = false;
  int first_step = 0, last_step = 0;
  int step = 0;             // freeze_step, the last step of the warm-up; 0: none
  int judged_at = 0;        // the step that `layers` describes
  double share = 0;         // share of the elements that are settled at that step
  double share_before = 0;  // same at the previous measurement; -1 if unknown
  std::vector<LayerChange> layers;
};

// Chooses the freeze step. The interval of `options` is replaced by that of the log. Throws Error
// for invalid options, and for a log shorter than two averaging lengths of the variance.
FreezeChoice choose_freeze_step(const FreezeLog& log, reference::FreezeOptions options);

std::string freeze_table(const FreezeChoice& choice);
std::string freeze_json(const FreezeChoice& choice);
std::string freeze_csv(const FreezeChoice& choice);

}  // namespace lambcast
