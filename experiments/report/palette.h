// The look of each optimizer, backend and part of a step, the same in every figure. The colours are
// those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can tell apart.
// Shape and fill show the same difference in grey print.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "models/optimizer/passes.h"
#include "models/training/run/step_parts.h"

namespace lambcast::report {

struct Look {
  std::string_view colour;
  int point;  // gnuplot's pointtype: 4/5 square, 6/7 circle, 8/9 triangle, 12/13 diamond
  double size = 1;
};

// Returns "1-bit LAMB" for "onebit_lamb"; an unknown name stays as it is.
std::string display_name(std::string_view optimizer);

// Returns the look of an optimizer. A plain optimizer has a lighter colour than its compressed
// form, and a hollow mark. LAMB's marks are larger than Adam's, so that both are visible if lines
// meet. `index` chooses a look for unknown names.
Look optimizer_look(std::string_view optimizer, std::size_t index);
Look series_look(std::size_t index);

// Returns colour and shape by `index`; the fill can distinguish two kinds of points. Grey after the
// last colour.
inline constexpr std::size_t shapes = 6;
Look shape_look(std::size_t index, bool filled);

// Looks of step_parts in their order, then of the remaining time.
struct PartLook {
  std::string_view label, colour;
};
inline constexpr std::array<PartLook, step_parts.size() + 1> part_looks = {
    {{"forward", "#56B4E9"},
     {"backward", "#0072B2"},
     {"exposed communication", "#D55E00"},
     {"compression", "#E69F00"},
     {"decompression", "#F0E442"},
     {"optimizer", "#009E73"},
     {"pipeline bubble", "#CC79A7"},
     {"rest of the step", "#999999"}}};
// Look of a step whose parts are not known.
inline constexpr PartLook whole_step_look = {"whole step (parts not in the results)", "#D8D8D8"};

// Returns the word that precedes "step" for a kind of step.
std::string_view adjective_of(StepKind kind);

}  // namespace lambcast::report
