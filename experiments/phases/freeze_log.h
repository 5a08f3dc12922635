// Which step would the freeze monitor of the kernel library have chosen, and why? Reads what a
// training run has logged: the norm |v|_1 of the variance, of the whole model or layer by layer,
// and asks kernels/reference/freeze.h measurement by measurement.
//
// A loss says less than a variance: where a log has nothing else, the same criterion is held
// against its means over D steps, which are as old as the variance's memory; that is a stand-in,
// and the answer says so.
//
// Three forms of a log are read, steps rising by the same interval throughout:
//
//   step,embedding,layer 1,...     CSV, a column per layer, all weighing alike
//   step,layer,norm[,elements]     CSV, a row per step and layer; elements are what a layer weighs
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

// Of `options` the interval is the log's. Throws Error for options that make no sense and where the
// log is shorter than two memories of the variance.
FreezeChoice choose_freeze_step(const FreezeLog& log, reference::FreezeOptions options);

std::string freeze_table(const FreezeChoice& choice);
std::string freeze_json(const FreezeChoice& choice);
std::string freeze_csv(const FreezeChoice& choice);

}  // namespace lambcast
