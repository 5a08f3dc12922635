// Keys of a layout that were said and that this layout does not read: what a flag does not do is
// said, so that two runs which differ in it alone are not compared.
#pragma once

#include <vector>

#include "experiments/words.h"
#include "models/finding.h"
#include "models/training/parallelism.h"

namespace lambcast {

// A note each. What switches something off (none, false) does nothing by its meaning.
std::vector<Finding> find_unread(const Words& words, const Parallelism& how);

}  // namespace lambcast
