// Whether two models compute the same, under any name. A time that was measured of one
// says how long the other takes only if their shapes agree.
#pragma once

#include "models/shape/shape.h"

namespace lambcast {

enum class Likeness {
  same,    // every matrix product and every kernel between them is the same
  blocks,  // all blocks of both are alike; their number, or what lies outside them, differs
  other,
};

// Compares all that bears on the time of a forward and backward pass. The name, the longest and
// the usual length, and the parameter groups do not.
Likeness likeness(const ModelShape& a, const ModelShape& b);

}  // namespace lambcast
