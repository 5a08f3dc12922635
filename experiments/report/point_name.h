// Names the point of a sweep that a figure is for: "box, 16 GPUs, batch 8192". The name has the
// value of every other swept key, so that the point can be found again.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

// A key counts as swept if rows that agree in the keys named before differ in it. Steps that follow
// from the batch are left out. `point` is one of `points`, or of the rows that contain them.
std::string point_name(const Point& point, const std::vector<Point>& points);

}  // namespace lambcast::report
