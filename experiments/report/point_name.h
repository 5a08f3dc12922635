// Which point of a sweep a figure belongs to, in words: "box, 16 GPUs, batch 8192", and of every
// other key that was swept the value it had there, since a figure that does not say it cannot be
// found again.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

// A key counts as swept where a row that is alike in those named before has another value: steps
// that follow from the batch are not said. `point` is one of `points`, or of the rows of which they
// are a part.
std::string point_name(const Point& point, const std::vector<Point>& points);

}  // namespace lambcast::report
