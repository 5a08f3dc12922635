// Map of the speed-up over NIC bandwidth and GPU count, and the break-even line at which it is 1.
// Between the simulated points the logarithm of the speed-up is linear in the logarithms of
// bandwidth and GPU count.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/slice.h"

namespace lambcast::report {

struct SpeedupMap {
  std::string title;
  std::vector<double> nic_Gbps, gpus;                    // ascending
  std::vector<std::vector<double>> speedup;              // [gpus][nic_Gbps]; NaN if no point ran
  std::vector<std::vector<double>> low = {}, high = {};  // ends of the interval, or NaN
};

// Returns the map of the compressed points of one optimizer and cluster, with one point per
// bandwidth and GPU count.
SpeedupMap speedup_map(const Points& points, std::string title);

// Return whether one GPU count has two or more bandwidths. A map also needs two or more GPU counts.
bool scan_possible(const Points& points);
bool map_possible(const Points& points);

// Returns the row of the map with the largest GPU count that has two or more values; the number of
// rows if there is none.
std::size_t largest_scan(const SpeedupMap& map);

// A piece of the break-even line, in Gbit/s and GPUs.
struct Segment {
  double x0, y0, x1, y1;
};
// Returns the break-even line by marching squares. The map is first widened by half a cell on each
// side (repeating its outermost values), so that the line crosses whole cells.
std::vector<Segment> break_even_line(const SpeedupMap& map);
// Returns the lines at which an end of the interval is 1; between them the sign of the gain is not
// certain. Empty for points without intervals.
std::vector<Segment> break_even_ends(const SpeedupMap& map);

// Returns whether a row has at least two values, all within 0.1 %. Such a row does not depend on
// bandwidth, so it has no break-even.
bool is_flat_row(const std::vector<double>& speedup);

// A bandwidth at which one row of the map (one GPU count) crosses 1. Crossings are ascending; a
// flat row has none.
struct Crossing {
  double nic_Gbps;
  bool falling;  // pays below this bandwidth
};
std::vector<Crossing> crossings(const std::vector<double>& nic_Gbps,
                                const std::vector<double>& speedup);

// Return the data file and the gnuplot script of all maps of one optimizer. For each map the data
// has a block of cells, one of its break-even line and one of the ends of its interval, if present.
// The script draws the maps one above the other.
std::string map_data(const std::vector<SpeedupMap>& maps, const std::vector<std::string>& notes);
std::string map_script(const std::vector<SpeedupMap>& maps, const std::string& name,
                       const std::string& title);

}  // namespace lambcast::report
