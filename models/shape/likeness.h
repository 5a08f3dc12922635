// Compares the computation of two models, regardless of their names. A measured time of one model
// applies to another only if their shapes agree.
#pragma once

#include "models/shape/shape.h"

namespace lambcast {

enum class Likeness {
  same,    // all matrix products and the kernels between them are equal
  blocks,  // all blocks are equal; their number, or the parts outside, differ
  other,
};

// Compares everything that affects the time of a forward and backward pass. The name, the maximum
// and default lengths, and the parameter groups do not matter.
Likeness likeness(const ModelShape& a, const ModelShape& b);

}  // namespace lambcast
