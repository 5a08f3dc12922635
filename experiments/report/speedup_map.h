// Map of the speed-up over NIC bandwidth and GPU count, and the break-even line on which it is 1.
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
  std::vector<std::vector<double>> speedup;              // [gpus][nic_Gbps], NaN where no point ran
  std::vector<std::vector<double>> low = {}, high = {};  // ends of its interval, or NaN
};

// Returns the map of compressed points of one optimizer and cluster, one per bandwidth and GPU
// count.
SpeedupMap speedup_map(const Points& points, std::string title);

// Return whether there are two or more bandwidths at one GPU count; for a map also two or more GPU
// counts.
bool scan_possible(const Points& points);
bool map_possible(const Points& points);

// Returns the row of the map with the largest GPU count that has two or more values; the number of
// rows if there is none.
std::size_t largest_scan(const SpeedupMap& map);

// A piece of the break-even line, in Gbit/s and GPUs.
struct Segment {
  double x0, y0, x1, y1;
};
// Marching squares. The map is first widened by half a cell on each side (with its outermost
// values), so that the line crosses whole cells.
std::vector<Segment> break_even_line(const SpeedupMap& map);
// The lines on which an end of the interval is 1: between them the sign of the gain is not certain.
// Empty for points without intervals.
std::vector<Segment> break_even_ends(const SpeedupMap& map);

// Whether a row has at least two values, all within 0.1 %: then it depends on no bandwidth, and no
// break-even is read off it.
bool is_flat_row(const std::vector<double>& speedup);

// The bandwidths at which one row of the map (one GPU count) crosses 1, ascending; a flat row
// crosses it nowhere.
struct Crossing {
  double nic_Gbps;
  bool falling;  // pays below this bandwidth, not above
};
std::vector<Crossing> crossings(const std::vector<double>& nic_Gbps,
                                const std::vector<double>& speedup);

// All maps of one optimizer as a gnuplot data file (for each map a block of cells, then one of its
// break-even line and one of the ends of its interval, as far as it has them) and the script that
// draws them one above the other.
std::string map_data(const std::vector<SpeedupMap>& maps, const std::vector<std::string>& notes);
std::string map_script(const std::vector<SpeedupMap>& maps, const std::string& name,
                       const std::string& title);

}  // namespace lambcast::report
