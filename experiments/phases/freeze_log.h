// Finds the step that the freeze monitor of the kernel library would have chosen, and the reason.
// Reads the log of a training run: the norm |v|_1 of the variance, of the whole model or per layer.
// Passes each measurement to kernels/reference/freeze.h.
//
// A loss is weaker evidence than a variance. If a log has only losses, the same criterion is
// applied to their means over D steps, the memory of the variance. The answer states that this is a
// stand-in.
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
  std::vector<std::size_t> elements;  // of every layer; 1 where the log does not say
  std::vector<int> steps;
  std::vector<std::vector<double>> values;  // [measurement][layer]
  int interval = 1;
};

// `columns`: which ones of a table with a column per layer; empty are all but the step. `losses`:
// the values are losses, as those of a column alone whose name says so. Throws Error with file and
// line.
FreezeLog parse_freeze_log(std::string_view text, const std::string& name,
                           const std::vector<std::string>& columns, bool losses);

// A layer at the step that was chosen, or at the last.
struct LayerChange {
  std::string name;
  std::size_t elements = 1;
  double before = 0, now = 0;  // D steps apart
  bool settled = false;
  int settled_since = 0;  // the step from which on it has stayed so; 0: it has not settled
};

struct FreezeChoice {
  reference::FreezeOptions options;
  bool losses = false;
  int first_step = 0, last_step = 0;
  int step = 0;             // freeze_step: the last of the warm-up; 0: none
  int judged_at = 0;        // the step that `layers` speak of
  double share = 0;         // of the elements, settled there
  double share_before = 0;  // at the measurement before, -1 where it could not be told
  std::vector<LayerChange> layers;
};

// The interval of `options` is taken from the log. Throws Error for invalid options, and for a log
// shorter than two memories of the variance.
FreezeChoice choose_freeze_step(const FreezeLog& log, reference::FreezeOptions options);

std::string freeze_table(const FreezeChoice& choice);
std::string freeze_json(const FreezeChoice& choice);
std::string freeze_csv(const FreezeChoice& choice);

}  // namespace lambcast
